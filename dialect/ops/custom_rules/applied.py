"""`custom_derivative`: a call whose rule ran when it was recorded, because values were known.

Under `grad` and its kin on concrete arguments the rule runs in place of the function, so that
Python code in it can look at values. The op carries what came of it: results, and how tangents map.
It stands only in functions that are differentiated at once, so it has no text and no lowering.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...errors import UnsupportedRuleError
from ...function import Function
from ...primitive import Primitive
from ...symbolic import Zero
from ...tracer import Trace, Tracer
from ..family import instantiate
from .bodies import apply_linear, closed_over_error, has_mixed_ops, inexact, spread
from .custom_lin import Backward, apply_backward
from .perturbed import reached

custom_derivative = Primitive("custom_derivative", multiple_results=True)


class Applied:
    """A call whose rule has run.

    Args:
        name: What the user calls the function.
        outs: The results, one level out.
        push: From tangents of the moving operands to those of the float and complex results.
    """

    def __init__(self, name: str, outs: list[Any], push: Callable[[list[Any]], list[Any]]):
        self.name = name
        self.outs = outs
        self.push = push

    def __repr__(self) -> str:
        return self.name


def _value_and_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, call: Applied, moving: tuple[bool, ...]
) -> tuple[list[Any], list[Any]]:
    chosen = [instantiate(t) for t, is_moving in zip(tangents, moving, strict=True) if is_moving]
    return call.outs, spread([x.type for x in call.outs], call.push(chosen))


custom_derivative.value_and_jvp = _value_and_jvp


def moving_operands(trace: Trace, operands: Sequence[Any]) -> tuple[bool, ...]:
    """Tells which operands may have tangents: float and complex values of the trace itself."""
    has_tangent = inexact([x.type for x in operands])
    return tuple(
        has and type(x) is Tracer and x.owner is trace
        for x, has in zip(operands, has_tangent, strict=True)
    )


def values_of(trace: Trace, operands: Sequence[Any]) -> list[Any]:
    """Returns operands one level out."""
    return [
        trace.value_of(x) if type(x) is Tracer and x.owner is trace else x for x in operands
    ]


def record_applied(
    trace: Trace, operands: Sequence[Any], call: Applied, moving: tuple[bool, ...]
) -> list[Any]:
    """Records a call whose rule has run in the trace of its operands."""
    params = {"call": call, "moving": moving}
    return trace.record_known(custom_derivative, operands, params, call.outs)


def outside_values(trace: Trace, values: Sequence[Any], kind: str, name: str) -> list[Any]:
    """Returns values that a rule computed from known ones, one level out.

    Values of the trace itself come from what the rule closes over.

    Raises:
        UnexpectedTracerError: if they depend smoothly on what is differentiated.
    """
    if not any(type(x) is Tracer and x.owner.level >= trace.level for x in values):
        return list(values)
    inside = [type(x) is Tracer and x.owner is trace for x in values]
    deeper = [type(x) is Tracer and x.owner.level > trace.level for x in values]
    if any(deeper) or any(reached(trace, values, inside)):
        raise closed_over_error(kind, name)
    return values_of(trace, values)


class LinearPart:
    """A forward-mode rule applied to known primals: its results, and its linear part.

    Args:
        name: What the user calls the rule.
        rule: From tangents of the moving operands to results, and tangents of the float and
            complex ones.
        operands: The moving operands.

    Attributes:
        outs: The results.
        linear: From tangents to tangents; its captures are the residuals.
    """

    def __init__(
        self,
        name: str,
        rule: Callable[[list[Any]], tuple[list[Any], list[Any]]],
        operands: Sequence[Any],
    ):
        with Trace(name, "Linearize", is_ambient=False) as trace:
            tangents = [trace.add_input(x.type) for x in operands]
            outs, out_tangents = rule(tangents)
            mixed = [type(x) is Tracer and x.owner is trace for x in outs]
            inside = [x for x, is_mixed in zip(outs, mixed, strict=True) if is_mixed]
            linear = trace.finish([*out_tangents, *inside])
        if inside or has_mixed_ops(linear):
            linear, further = _separated(name, linear, len(out_tangents))
            remaining = iter(further)
            outs = [
                next(remaining) if is_mixed else x for x, is_mixed in zip(outs, mixed, strict=True)
            ]
        self.outs = outs
        self.linear = linear


def _separated(name: str, function: Function, count: int) -> tuple[Function, list[Any]]:
    """Takes what does not depend on tangents out of a linear function."""
    with Trace(name, "Linearize", is_ambient=False) as trace:
        tangents = [trace.add_input(v.type) for v in function.inputs]
        results = apply_linear(function, tangents, trace)
        known = results[count:]
        if any(type(x) is Tracer and x.owner is trace for x in known):
            raise UnsupportedRuleError(
                f"The rule {name!r} computes its primal output from tangents.",
                "The primal output is what the function itself returns: compute it from the "
                "primals only.",
            )
        return trace.finish(results[:count]), known


def push_backward(
    bwd: Backward, residuals: Sequence[Any], indices: Sequence[int], name: str
) -> Callable[[list[Any]], list[Any]]:
    """Returns the map of tangents of a function with a reverse-mode rule, which only waits.

    Args:
        bwd: The backward rule.
        residuals: Values for it.
        indices: Which of the float and complex arguments the tangents belong to.
        name: What the user calls the function.
    """

    def push(tangents: list[Any]) -> list[Any]:
        full = [instantiate(Zero(t)) for t in bwd.argument_types]
        for index, tangent in zip(indices, tangents, strict=True):
            full[index] = tangent
        return apply_backward(bwd, residuals, full, name)

    return push
