"""Recognizing calls of host functions in a module."""

from __future__ import annotations

from iree.compiler import ir

from axir.dialect.program.function_rules import HOST

_PREFIX = f"{HOST}.callback_"


def host_function(operation: ir.Operation) -> int | None:
    """Returns the number of the host function that an operation calls; None if it calls none."""
    if operation.name != "func.call":
        return None
    callee = ir.FlatSymbolRefAttr(operation.attributes["callee"]).value
    return int(callee.removeprefix(_PREFIX)) if callee.startswith(_PREFIX) else None
