"""Functions of modules of any origin: raised if necessary, with their weights as parameters.

Elsewhere: reading modules (`frontend/_programs/compiled_modules.py`), exporting functions of Python
(`axir.export`).
"""

from __future__ import annotations

from collections.abc import Iterable
from types import MappingProxyType

from axir.dialect.core.errors import ParseError, ShapeError
from axir.dialect.text.module_reader import read_module
from axir.dialect.text.resources import offer_archives
from axir.dialect.text.signature import signatures
from axir.passes.raising.module import Shapes
from axir.passes.raising.raise_stablehlo import RaisedFunction, raise_functions
from axir.runtime.cpp.emitting.names import identifier, unique_names
from axir.runtime.device.buffers import read_parameter_archive

from .bound_arguments import trees_of
from .captures import parametrized, shared
from .exported import Exported
from .manifest import FunctionEntry
from .open_sizes import open_of
from .saving import is_function_name
from .tensors import read_safetensors

offer_archives(".safetensors", read_safetensors)
offer_archives(".irpa", read_parameter_archive)


def functions_of_module(
    module: object, dialect: str, where: str, shapes: Shapes = MappingProxyType({})
) -> dict[str, Exported]:
    """Returns the public functions of a module of jaxpr or StableHLO, by valid names of Python.

    Weights, and other arrays above 1 KiB, become parameters, which the functions share.

    Args:
        module: The module; it is verified.
        dialect: The dialect it is in.
        where: The module's name in errors.
        shapes: Shapes of arguments, by name, that StableHLO leaves open.

    Raises:
        ParseError: if it is of another dialect, or has no public function.
        UnknownOpError, VerificationError: if it is not valid.
        RaisingError: if StableHLO has an operation without a counterpart in the jaxpr dialect.
        ShapeError: if a shape does not fit, or no argument has its name.
        WeightsError: if its weights are missing or damaged.
    """
    if shapes and dialect == "jaxpr":
        raise ShapeError(
            f"The shapes of {where} are given already: it is a module of jaxpr.",
            "Only modules of StableHLO may leave shapes open.",
        )
    if dialect == "stablehlo":
        found = raise_functions(module, shapes)
    elif dialect == "jaxpr":
        read = read_module(module)
        found = {
            symbol: RaisedFunction(read[symbol], signature, {})
            for symbol, signature in signatures(module).items()
        }
    else:
        raise ParseError(
            f"{where} is a module of {dialect}, which cannot be transformed.",
            "Lower it to StableHLO with the program that wrote it.",
            where="",
        )
    if not found:
        raise ParseError(f"{where} has no public function.", "Make one public.", where="")
    parts = {}
    for symbol, raised in found.items():
        names = {("object", place): name for place, name in raised.weights.items()}
        parts[symbol] = parametrized(raised.function, names, {})
    names_of = _names(found)
    made = {}
    for symbol, part in shared(parts).items():
        signature = found[symbol].signature
        trees = trees_of(signature, where)
        name = names_of[symbol]
        is_open = open_of(part.function, signature)
        entry = FunctionEntry(name, signature, tuple(part.parameters), open=is_open)
        made[name] = Exported(entry, part.function, part.parameters, *trees)
    return made


def _names(symbols: Iterable[str]) -> dict[str, str]:
    """Returns names for functions: their symbols, or similar and unique names."""
    names = {symbol: symbol for symbol in symbols if is_function_name(symbol)}
    others = [symbol for symbol in symbols if symbol not in names]
    free = unique_names((identifier(each, "function") for each in others), names)
    return {**names, **dict(zip(others, free, strict=True))}
