"""Decides which parts of a model's state a function may update in place.

Elsewhere: writing memory (`axir.runtime.cpp`).
"""

from __future__ import annotations

from axir.dialect.ops.calls.callbacks import Callback
from axir.dialect.program.equation import Var
from axir.dialect.program.function import Function
from axir.passes.fuse.fuse_programs import LARGE_BYTES

# Operations that change some elements of their first operand, and keep the others.
_PARTIAL = frozenset(
    (
        *("dynamic_update_slice", "scatter", "scatter_add", "scatter_mul"),
        *("scatter_min", "scatter_max", "scatter_apply"),
    )
)
_CONTROL_FLOW = frozenset(("cond", "scan", "while"))


def updates_in_place(function: Function, result: int, argument: Var) -> bool:
    """Tells whether a result is a large argument with some elements changed.

    This is done only for functions that cannot fail half way, because a failed call must leave the
    state as it was. A function that calls users' functions, or allocates memory as it runs, writes
    to fresh memory.
    """
    if _may_fail(function):
        return False
    made_by = {y: equation for equation in function.equations for y in equation.results}
    value = function.outputs[result]
    if value.type.size * value.type.dtype.itemsize < LARGE_BYTES:
        return False
    is_changed = False
    while value is not argument:
        equation = made_by.get(value)
        if equation is None or equation.primitive.name not in _PARTIAL:
            return False
        value = equation.operands[0]
        is_changed = True
    return is_changed


def _may_fail(function: Function) -> bool:
    """Tells whether a function has control flow, or calls users' functions."""
    return any(
        equation.primitive.name in _CONTROL_FLOW
        or any(isinstance(value, Callback) for value in equation.params.values())
        for equation in function.equations
    ) or any(map(_may_fail, function.callees()))
