"""Splitting a checkpointed function into ops that run once and ops that the derivative repeats.

The known part of the linearized function is cut at the values that the policy keeps. The derivative
takes these values and the arguments, repeats the ops in between, and applies the linear part.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from axir.dialect.core.array import Array
from axir.dialect.ops.custom_rules.policies import keeps
from axir.dialect.program.derived_functions import RematerializedFunction, derive, transformation
from axir.dialect.program.equation import Equation, Var
from axir.dialect.program.function import Function
from axir.dialect.program.function_tracing import Copy, restricted
from axir.dialect.program.rules import Results, Value
from axir.dialect.program.tracer import Trace
from axir.dialect.program.walk import backward_slice


@transformation("rematerialize")
def rematerialize_function(
    function: Function, active: tuple[bool, ...], policy: Hashable
) -> RematerializedFunction:
    """Returns the split for given active arguments (inputs, then captures) and policy."""
    linearized = derive(function, "linearize", active)
    known = linearized.known if policy is None else _flat(linearized.known)
    count = len(function.outputs)
    index_of = {variable: index for index, variable in enumerate(known.inputs)}
    extra = iter(known.outputs[count:])
    residuals = [_Residual.of(source, known, extra) for source in linearized.residuals]
    wanted = [r.variable for r in residuals if r.variable is not None]
    needed, kept = _needed(known, wanted, policy)
    used = tuple(sorted(index_of[v] for v in needed if v in index_of))
    outputs = [*known.outputs[:count], *kept]
    equations = backward_slice(known.equations, outputs).equations
    forward = restricted(known, equations, known.inputs, outputs, "Checkpoint")
    given = [*(known.inputs[index] for index in used), *kept]
    derivative = _derivative(known, linearized.linear, residuals, given, function.name)
    return RematerializedFunction(forward, derivative, used, linearized.active_outputs)


@dataclass(frozen=True)
class _Residual:
    """A residual of the linear part: a variable of the known part, or a value from outside."""

    variable: Var | None
    value: Value | None = None

    @staticmethod
    def of(source: int | Array | None, known: Function, extra: Iterator[Var]) -> _Residual:
        if source is None:
            return _Residual(next(extra))
        if isinstance(source, int):
            return _Residual(known.inputs[source])
        return _Residual(None, source)


def _flat(function: Function) -> Function:
    """Returns a function with its callees inlined, so that policies see their ops."""
    with Trace(function.name) as trace:
        inputs = [trace.add_input(v.type) for v in function.inputs]

        def record(equation: Equation, operands: Sequence[Value]) -> Results:
            if equation.primitive.is_call:
                return equation.params["jaxpr"].interpret(operands, record)
            return trace.record(equation.primitive, operands, equation.params)

        return trace.finish(function.interpret([*inputs, *function.captured], record))


def _needed(
    function: Function, wanted: Sequence[Var], policy: Hashable
) -> tuple[set[Var], list[Var]]:
    """Returns the variables that wanted ones depend on, back to kept ones, and the kept ones."""
    kept: list[Var] = []

    def enter(equation: Equation, needed: set[Var]) -> Equation | None:
        if policy is None or not keeps(policy, equation):
            return equation
        kept.extend(v for v in reversed(equation.results) if v in needed)
        return None

    needed = backward_slice(function.equations, wanted, enter=enter).variables
    kept.reverse()
    return needed, kept


def _derivative(
    known: Function,
    linear: Function,
    residuals: Sequence[_Residual],
    given: Sequence[Var],
    name: str,
) -> Function:
    """Returns the function from tangents and given variables to tangents, which repeats ops."""
    with Trace(f"{name}_tangent", "Checkpoint") as trace:
        tangents = [trace.add_input(v.type) for v in linear.inputs]
        wanted = [r.variable for r in residuals if r.variable is not None]
        copy = Copy(trace, known, given)
        copy.add(backward_slice(known.equations, wanted, given=copy).equations)
        values = [r.value if r.variable is None else copy[r.variable] for r in residuals]
        given_values = cast("list[Value]", values)
        return trace.finish(linear.interpret([*tangents, *given_values]))
