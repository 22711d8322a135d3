"""Removes the checks of arguments from programs that are called with arguments of known types.

IREE's functions look at the type, the length and the kind of memory of each argument, 0.15 us each:
a fifth of the time of a short call. Elsewhere: the callers that need no checks
(`runtime/calls/compiled_function.py`), running the compiler (`invoker.py`).
"""

from __future__ import annotations

from iree.compiler import ir

_CALLS = frozenset(("vm.call", "vm.call.variadic"))
_CHECKS = frozenset(("hal.buffer_view.assert", "hal.buffer.assert"))


def remove_argument_checks(module: ir.Operation) -> int:
    """Erases the calls of a VM module that check buffers, in place.

    Returns:
        How many there were.
    """
    checks: list[ir.Operation] = []

    def collect(operation: ir.Operation) -> ir.WalkResult:
        if operation.name in _CALLS:
            callee = operation.attributes["callee"]
            if ir.FlatSymbolRefAttr(callee).value in _CHECKS:
                checks.append(operation)
        return ir.WalkResult.ADVANCE

    module.walk(collect)
    for operation in checks:
        operation.erase()
    return len(checks)
