"""Arguments and results of functions of StableHLO: JAX's names, and types that may be open.

Elsewhere: signatures of saved functions (`signature.py`).
"""

from __future__ import annotations

from iree.compiler import ir

from axir.dialect.core.annotations import OptionValue
from axir.dialect.core.quantized_types import is_quantized, quantization

from .signature import default_names, is_public

_RESULT_INFO = "jax.result_info"


def names_of(module: ir.Module, symbol: str) -> tuple[list[str], list[str]]:
    """Returns names of arguments and results, from locations and `jax.result_info`."""
    for view in module.body.operations:
        op = view.operation
        if ir.StringAttr(op.attributes["sym_name"]).value == symbol:
            break
    return argument_names(op), _distinct(_result_names(op), "result")


def argument_names(op: ir.Operation) -> list[str]:
    """Returns the names of a function's arguments."""
    arguments = list(op.regions[0].blocks[0].arguments)
    return _distinct([_scope(argument.location) for argument in arguments], "arg")


def open_types(module: ir.Module) -> dict[str, dict[str, list[dict[str, OptionValue]]]]:
    """Returns arguments and results of public functions with open extents, which are None.

    Returns:
        By function, `arguments` and `results` as tables of name, type, dtype and shape; nothing if
        all extents are known.
    """
    found: dict[str, dict[str, list[dict[str, OptionValue]]]] = {}
    is_open = False
    for view in module.body.operations:
        op = view.operation
        if op.name != "func.func" or not is_public(op):
            continue
        function_type = ir.FunctionType(ir.TypeAttr(op.attributes["function_type"]).value)
        symbol = ir.StringAttr(op.attributes["sym_name"]).value
        groups = {"arguments": function_type.inputs, "results": function_type.results}
        rows: dict[str, list[dict[str, OptionValue]]] = {}
        for (role, kinds), names in zip(groups.items(), names_of(module, symbol), strict=True):
            rows[role] = [_open_row(name, kind) for name, kind in zip(names, kinds, strict=True)]
            is_open = is_open or any("?" in str(kind) for kind in kinds)
        found[symbol] = rows
    return found if is_open else {}


def quantized_types(module: ir.Module) -> dict[str, dict[str, list[str | None]]]:
    """Returns the meaning of quantized integers in arguments and results; None for other arrays.

    Returns:
        By function, lists of texts for its `arguments` and `results`.
    """
    found: dict[str, dict[str, list[str | None]]] = {}
    for view in module.body.operations:
        op = view.operation
        if op.name != "func.func" or not is_public(op):
            continue
        function_type = ir.FunctionType(ir.TypeAttr(op.attributes["function_type"]).value)
        groups = {"arguments": function_type.inputs, "results": function_type.results}
        found[ir.StringAttr(op.attributes["sym_name"]).value] = {
            role: [str(quantization(x)) if is_quantized(x) else None for x in kinds]
            for role, kinds in groups.items()
        }
    return found


def _open_row(name: str, kind: ir.Type) -> dict[str, OptionValue]:
    text = str(kind).removeprefix("tensor<").removesuffix(">")
    if not isinstance(kind, ir.RankedTensorType):
        return {"name": name, "type": text, "dtype": text, "shape": ()}
    shape = tuple(None if extent < 0 else extent for extent in kind.shape)
    return {"name": name, "type": text, "dtype": str(kind.element_type), "shape": shape}


def _scope(location: ir.Location) -> str | None:
    return location.name_str if isinstance(location, ir.NameLoc) else None


def _result_names(op: ir.Operation) -> list[str | None]:
    count = len(ir.FunctionType(ir.TypeAttr(op.attributes["function_type"]).value).results)
    if "res_attrs" not in op.attributes:
        return [None] * count
    entries = ir.ArrayAttr(op.attributes["res_attrs"])
    return [
        ir.StringAttr(marks[_RESULT_INFO]).value if _RESULT_INFO in marks else None
        for marks in entries
    ]


def _distinct(names: list[str | None], kind: str) -> list[str]:
    """Returns the names if all exist and differ, else numbers."""
    given = [name for name in names if name]
    return given if len(set(given)) == len(names) else default_names(kind, len(names))
