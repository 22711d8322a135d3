"""Which values of an unfinished trace may have tangents: those that float inputs reach.

Rules with symbolic zeros ask for this while the function around them is still being traced.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import dtypes
from ...function import Equation, Var
from ...tracer import Trace
from ..family import zero_tangent


def reached(
    trace: Trace, operands: Sequence[Any], candidates: Sequence[bool]
) -> tuple[bool, ...]:
    """Tells which operands depend smoothly on inputs of a trace.

    Args:
        trace: The trace; its float and complex inputs count as moving.
        operands: Values, some of them of the trace.
        candidates: Which of them to ask about; False for the others.
    """
    source: dict[Var, Equation] = {
        v: equation for equation in trace.equations for v in equation.results
    }
    inputs = set(trace.inputs)
    found: dict[Var, bool] = {}

    def is_reached(variable: Var) -> bool:
        pending = [variable]
        seen = set()
        while pending:
            current = pending.pop()
            if current in seen or not dtypes.is_inexact(current.type.dtype):
                continue
            seen.add(current)
            if current in inputs or found.get(current, False):
                return True
            equation = source.get(current)
            if equation is not None and equation.primitive.jvp is not zero_tangent:
                pending += equation.operands
        return False

    for x, is_candidate in zip(operands, candidates, strict=True):
        if is_candidate:
            found[x] = is_reached(x)
    return tuple(
        is_candidate and found[x] for x, is_candidate in zip(operands, candidates, strict=True)
    )
