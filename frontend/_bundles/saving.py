"""Writes bundles: functions, parameters and programs become the entries of an archive.

Elsewhere: reading them (`bundle.py`).
"""

from __future__ import annotations

import keyword
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path

import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import HostArray, UserObject
from axir.dialect.core.array import ConcreteArray
from axir.dialect.core.attributes import is_opaque
from axir.dialect.core.context import describe_location
from axir.dialect.core.errors import ParameterError, SerializationError, UnexpectedTracerError
from axir.dialect.core.extended_dtypes import words_of
from axir.dialect.ops import OPS
from axir.dialect.program.function import Function
from axir.dialect.program.module_writer import write_module
from axir.dialect.text.module_reader import read_module
from axir.dialect.text.resources import write_out
from axir.dialect.text.signature import annotate

from .archive import Pieces, byte_count, digest, write_archive
from .manifest import ExportedFunction, Manifest, ProgramEntry
from .programs import flat_signature
from .tensors import write_tensors


def module_of(functions: Mapping[str, Function]) -> UserObject:
    """Returns a verified module of the jaxpr dialect; captures are arguments of its functions.

    Raises:
        SerializationError: if a part has no textual form; see `Exported.module`.
    """
    seen: set[Function] = set()
    for function in functions.values():
        _check_primitives(function, seen)
    try:
        module = write_module(functions)
    except UnexpectedTracerError as error:
        name = next(iter(functions.values())).name
        raise SerializationError(
            f"A custom rule in {name!r} closes over a value that is computed there, "
            f"so no function of the module can hold it: {error.message}",
            "Pass that value as an argument to the function that has the rule, and let the "
            "rule return a derivative for it, of zeros perhaps.",
            where=error.where,
        ) from error
    write_out(module.operation)
    read_module(module)  # raises for parameters without a textual form
    return module


def _check_primitives(function: Function, seen: set[Function]) -> None:
    seen.add(function)
    for equation in function.equations:
        primitive = equation.primitive
        if OPS.get(primitive.name) is not primitive:
            raise SerializationError(
                f"The primitive {primitive.name!r} is defined in Python, not in the jaxpr dialect.",
                "Give it an mlir.register_lowering rule and export .stablehlo(), or write the "
                "function with axir.lax.",
                where=_place(equation),
            )
        opaque = [name for name, value in equation.params.items() if is_opaque(value)]
        if opaque:
            raise SerializationError(
                f"jaxpr.{primitive.name}: the parameter {opaque[0]!r} is a Python object, which "
                "has no textual form.",
                "A saved module calls no Python: leave callbacks and debug.print out of what is "
                "exported, and take policies of checkpoint from axir.checkpoint_policies.",
                where=_place(equation),
            )
    for callee in function.callees():
        if callee not in seen:
            _check_primitives(callee, seen)


def _place(equation: UserObject) -> str | None:
    return describe_location(equation.location)


# Saved functions ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class DisabledSafetyCheck:
    """A check that `export` leaves out.

    >>> DisabledSafetyCheck.rows()
    DisabledSafetyCheck(name='rows')
    """

    name: str

    @staticmethod
    def rows() -> DisabledSafetyCheck:
        """Leaves out whether a function with an open leading dimension treats rows one by one.

        The check is a proof, op by op, which refuses ops that it does not know: callbacks, and
        users' primitives. Without it, rows are treated one by one all the same: results are the
        results of the function of a single row.
        """
        return DisabledSafetyCheck("rows")

    @staticmethod
    def platform() -> DisabledSafetyCheck:
        """Leaves out whether the platform is one that was exported for; programs run on all."""
        return DisabledSafetyCheck("platform")

    @staticmethod
    def custom_call(target_name: str) -> DisabledSafetyCheck:
        """Leaves out the check of calls of library functions; exported functions have no calls."""
        return DisabledSafetyCheck(f"custom_call:{target_name}")

    def is_custom_call(self) -> str | None:
        """Returns the name of the library's function, if this is a check of its calls."""
        kind, _, target = self.name.partition(":")
        return target if kind == "custom_call" else None


# Saving -------------------------------------------------------------------------------------------


MANIFEST = "manifest.json"
MODULE = "module.mlir"
PARAMETERS = "parameters.safetensors"

# A program and its entry in the manifest.
Programs = Sequence[tuple[ProgramEntry, bytes | memoryview]]


def save_bundle(
    functions: Mapping[str, ExportedFunction],
    path: str | Path,
    programs: Programs = (),
    debug_info: bool = True,
) -> None:
    """Writes a bundle, optionally with the lines of the source; readers see the whole file or none.

    Raises:
        ParameterError: if the suffix is not `.axir`, or a function's name is not a Python
            identifier.
        SerializationError: if a function has no textual form.
    """
    path = Path(path)
    if path.suffix != ".axir":
        raise ParameterError(
            f"{path}: a bundle is saved as .axir, not {path.suffix or 'without a suffix'!r}.",
            "A single function can also be saved as .mlir or .mlirbc.",
        )
    write_archive(path, bundle_entries(functions, programs, debug_info))


def bundle_entries(
    functions: Mapping[str, ExportedFunction], programs: Programs = (), debug_info: bool = True
) -> dict[str, Pieces]:
    """Returns the entries of a bundle's archive, the manifest first."""
    check_names(functions)
    parameters = shared_parameters(functions)
    entries: dict[str, Pieces] = {MODULE: [_module_text(functions, debug_info)]}
    if parameters:
        stored = {name: stored_form(x) for name, x in parameters.items()}
        entries[PARAMETERS] = write_tensors(stored)
    for entry, binary in programs:
        entries[entry.file] = [binary]
    manifest = Manifest(
        {name: replace(each.entry, name=name) for name, each in functions.items()},
        {name: x.type for name, x in parameters.items()},
        tuple(entry for entry, _ in programs),
        MODULE,
        PARAMETERS if parameters else None,
        {"axir": metadata.version("axir"), "iree": metadata.version("iree-base-compiler")},
        {name: (byte_count(pieces), digest(pieces)) for name, pieces in entries.items()},
    )
    return {MANIFEST: [manifest.to_json().encode()], **entries}


def check_names(functions: Mapping[str, ExportedFunction]) -> None:
    """Refuses names of functions that Python and C++ could not call.

    Raises:
        ParameterError: if a name is refused, or there are no functions.
    """
    if not functions:
        raise ParameterError("A bundle without functions.", "Export at least one function.")
    for name in functions:
        if not is_function_name(name):
            raise ParameterError(
                f"A function of a bundle cannot be called {name!r}.",
                "Give it a name of letters, digits and underscores: export({'predict': f}).",
            )


def is_function_name(name: str) -> bool:
    """Tells whether Python and C++ can call a function by this name.

    >>> is_function_name("predict"), is_function_name("lambda"), is_function_name("a-b")
    (True, False, False)
    """
    return name.isascii() and name.isidentifier() and not keyword.iskeyword(name)


def shared_parameters(functions: Mapping[str, ExportedFunction]) -> dict[str, ConcreteArray]:
    """Returns the parameters of all functions by name."""
    found: dict[str, ConcreteArray] = {}
    for each in functions.values():
        found.update(each.parameters)
    return found


def _module_text(functions: Mapping[str, ExportedFunction], debug_info: bool) -> bytes:
    module = module_of({name: each.function for name, each in functions.items()})
    for name, each in functions.items():
        annotate(module, name, flat_signature(each))
    text: str = module.operation.get_asm(enable_debug_info=debug_info)
    return text.encode()


def stored_form(array: ConcreteArray) -> HostArray:
    """Returns an array as the parameter file has it: complex numbers as pairs, keys as words.

    >>> from axir.dialect.core.array import as_array
    >>> stored_form(as_array(np.array([1 + 2j], np.complex64)))
    array([[1., 2.]], dtype=float32)
    """
    host = words_of(array.host())
    if not dtypes.is_complex(host.dtype):
        return host
    pairs = np.ascontiguousarray(host).reshape(host.shape)
    return pairs.view(dtypes.real_dtype(host.dtype)).reshape((*host.shape, 2))
