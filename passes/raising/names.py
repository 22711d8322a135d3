"""Names of arguments and results of functions of StableHLO, as JAX writes them."""

from __future__ import annotations

from iree.compiler import ir

from axir.dialect.text.signature import default_names

_RESULT_INFO = "jax.result_info"


def names_of(module: ir.Module, symbol: str) -> tuple[list[str], list[str]]:
    """Returns names of arguments and results: those in locations and `jax.result_info`."""
    for view in module.body.operations:
        op = view.operation
        if ir.StringAttr(op.attributes["sym_name"]).value == symbol:
            break
    return argument_names(op), _distinct(_result_names(op), "result")


def argument_names(op: ir.Operation) -> list[str]:
    """Returns the names of a function's arguments."""
    arguments = list(op.regions[0].blocks[0].arguments)
    return _distinct([_scope(argument.location) for argument in arguments], "arg")


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
    """Returns names if all are there and differ, else numbers."""
    given = [name for name in names if name]
    return given if len(set(given)) == len(names) else default_names(kind, len(names))
