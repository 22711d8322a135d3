"""`custom_derivative`: a call with a rule that ran during recording, on known values.

Under `grad` and similar transformations of concrete arguments the rule runs in place of the
function, so that Python code in it can look at values. The op carries the outcome: the results and
the map of tangents. It occurs only in functions that are differentiated at once, so it has no text
and no lowering.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from axir.dialect.core.errors import UnsupportedRuleError
from axir.dialect.core.symbolic_zeros import Marks, chosen, inexact, spread
from axir.dialect.ops.calls.jit_call import jit_primitive
from axir.dialect.ops.elementwise.family import instantiate, zero_tangent
from axir.dialect.program.equation import Equation, Var
from axir.dialect.program.function import Function
from axir.dialect.program.primitive import Primitive
from axir.dialect.program.rules import Tangent, Value
from axir.dialect.program.tracer import Trace, Tracer

from .bodies import apply_linear, belongs, closed_over_error, has_mixed_ops

custom_derivative = Primitive("custom_derivative", multiple_results=True)


class Applied:
    """A call after its rule has run.

    Args:
        name: Name of the user's function.
        outs: The results, one level out.
        push: From tangents of the moving operands to tangents of the float and complex results.
    """

    def __init__(self, name: str, outs: list[Value], push: Callable[[list[Any]], list[Any]]):
        self.name = name
        self.outs = outs
        self.push = push

    def __repr__(self) -> str:
        return self.name


def _value_and_jvp(
    primals: Sequence[Value], tangents: Sequence[Tangent], *, call: Applied, moving: Marks
) -> tuple[Sequence[Value], Sequence[Tangent]]:
    types = [x.type for x in call.outs]
    out_tangents = call.push(list(map(instantiate, chosen(tangents, moving))))
    return call.outs, spread(out_tangents, inexact(types), types)


custom_derivative.value_and_jvp = _value_and_jvp


def moving_operands(trace: Trace, operands: Sequence[Value]) -> Marks:
    """Tells which operands may have tangents: float and complex values of the trace itself."""
    has_tangent = inexact([x.type for x in operands])
    return tuple([h and belongs(x, trace) for x, h in zip(operands, has_tangent, strict=True)])


def reached(trace: Trace, operands: Sequence[Value], candidates: Sequence[bool]) -> Marks:
    """Tells which operands depend smoothly on float and complex inputs of an unfinished trace.

    Args:
        trace: The trace.
        operands: Values, some of them of the trace.
        candidates: Marks of the operands to test; the others get False.
    """
    reach = _reaches.get(trace)
    if reach is None:
        reach = _reaches[trace] = _Reach(_smooth(trace.inputs))
    found = reach.follow(trace.equations)
    return tuple(asked and x in found for x, asked in zip(operands, candidates, strict=True))


class _Reach:
    """The variables that depend smoothly on given ones, in a growing list of equations.

    Args:
        start: The given variables.
    """

    def __init__(self, start: Sequence[Var]):
        self.found = set(start)
        self._count = 0

    def follow(self, equations: Sequence[Equation]) -> set[Var]:
        """Follows the new equations; returns all variables found so far."""
        for equation in equations[self._count :]:
            if not self.found.isdisjoint(equation.operands):
                self.found.update(_smooth(self._reached_results(equation)))
        self._count = len(equations)
        return self.found

    def _reached_results(self, equation: Equation) -> Sequence[Var]:
        primitive = equation.primitive
        if primitive.jvp is zero_tangent:
            return ()
        if primitive is not jit_primitive:
            return equation.results
        function = equation.params["jaxpr"]
        marks = [x in self.found for x in equation.operands]
        inputs = (*function.inputs, *function.captures)
        within = _Reach(_smooth(chosen(inputs, marks))).follow(function.equations)
        return chosen(equation.results, [x in within for x in function.outputs])


# The variables found in unfinished traces.
_reaches: weakref.WeakKeyDictionary[Trace, _Reach] = weakref.WeakKeyDictionary()


def _smooth(variables: Sequence[Var]) -> list[Var]:
    return chosen(variables, inexact([v.type for v in variables]))


def values_of(trace: Trace, operands: Sequence[Value]) -> list[Value]:
    """Returns operands one level out."""
    return [trace.value_of(x) if belongs(x, trace) else x for x in operands]  # type: ignore[arg-type]


def record_applied(
    trace: Trace, operands: Sequence[Value], call: Applied, moving: Marks
) -> list[Value]:
    """Records a call in the trace of its operands, after its rule has run."""
    params = {"call": call, "moving": moving}
    return trace.record_known(custom_derivative, operands, params, call.outs)


def outside_values(trace: Trace, values: Sequence[Value], kind: str, name: str) -> list[Value]:
    """Returns values that a rule computed from known ones, one level out.

    Values of the trace itself come from the closure of the rule.

    Raises:
        UnexpectedTracerError: if they depend smoothly on the differentiated inputs.
    """
    if not any(type(x) is Tracer and x.owner.level >= trace.level for x in values):
        return list(values)
    inside = [belongs(x, trace) for x in values]
    deeper = [type(x) is Tracer and x.owner.level > trace.level for x in values]
    if any(deeper) or any(reached(trace, values, inside)):
        raise closed_over_error(kind, name)
    return values_of(trace, values)


def linear_part(
    name: str,
    rule: Callable[[list[Any]], tuple[list[Any], list[Any]]],
    operands: Sequence[Value],
) -> tuple[list[Any], Function]:
    """Applies a forward-mode rule to known primals.

    Args:
        name: Name of the user's rule.
        rule: From tangents of the moving operands to results, and tangents of the float and complex
            results.
        operands: The moving operands.

    Returns:
        The results, and the linear part: a function from tangents to tangents with the residuals as
        its captures.
    """
    with Trace(name, "Linearize", is_ambient=False) as trace:
        outs, out_tangents = rule([trace.add_input(x.type) for x in operands])
        mixed = [belongs(x, trace) for x in outs]
        linear = trace.finish([*out_tangents, *chosen(outs, mixed)])
    if any(mixed) or has_mixed_ops(linear):
        linear, further = _separated(name, linear, len(out_tangents))
        known = iter(further)
        outs = [next(known) if m else x for x, m in zip(outs, mixed, strict=True)]
    return outs, linear


def _separated(name: str, function: Function, count: int) -> tuple[Function, list[Value]]:
    """Moves the values that do not depend on tangents out of a linear function."""
    with Trace(name, "Linearize", is_ambient=False) as trace:
        tangents = [trace.add_input(v.type) for v in function.inputs]
        results = apply_linear(function, tangents, trace)
        known = results[count:]
        if any(belongs(x, trace) for x in known):
            raise UnsupportedRuleError(
                f"The rule {name!r} computes its primal output from tangents.",
                "The primal output is what the function itself returns: compute it from the "
                "primals only.",
            )
        return trace.finish(results[:count]), known
