"""Splitting a checkpointed function: what is computed once, and what the derivative repeats.

The known part of the linearized function is cut at the values that the policy keeps. The derivative
takes those and the arguments, repeats the ops in between, and applies the linear part.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ...context import state
from ...derived import derive
from ...function import Equation, Function, Literal, Var, read, write
from ...single_flight import made_once
from ...tracer import Trace
from .policies import keeps


@dataclass(frozen=True)
class Split:
    """A checkpointed function, split at the values that are kept.

    Attributes:
        forward: From the arguments to the outputs and the kept values.
        derivative: From the moving tangents, the arguments in `used`, and the kept values to the
            tangents of the active outputs.
        used: Which arguments the derivative takes.
        active_outputs: Which outputs have a tangent other than zero.
    """

    forward: Function
    derivative: Function
    used: tuple[int, ...]
    active_outputs: tuple[bool, ...]


def split_for(function: Function, active: tuple[bool, ...], policy: Any) -> Split:
    """Returns the split for given active arguments (inputs, then captures) and policy."""
    key = ("checkpoint", active, policy)
    return made_once(function.derived, key, lambda: _split(function, active, policy))


def _split(function: Function, active: tuple[bool, ...], policy: Any) -> Split:
    linearized = derive(function, "linearize", active)
    known = linearized.known if policy is None else _flat(linearized.known)
    count = len(function.outputs)
    index_of = {variable: index for index, variable in enumerate(known.inputs)}
    extra = iter(known.outputs[count:])
    residuals = [_Residual.of(source, known, extra) for source in linearized.residuals]
    wanted = [r.variable for r in residuals if r.variable is not None]
    needed, kept = _needed(known, wanted, policy)
    used = tuple(sorted(index_of[v] for v in needed if v in index_of))
    forward = _evaluator(known, known.inputs, [*known.outputs[:count], *kept])
    given = [*(known.inputs[index] for index in used), *kept]
    derivative = _derivative(known, linearized.linear, residuals, given, function.name)
    return Split(forward, derivative, used, linearized.active_outputs)


@dataclass(frozen=True)
class _Residual:
    """What the linear part takes: a variable of the known part, or a value from outside."""

    variable: Var | None
    value: Any = None

    @staticmethod
    def of(source: Any, known: Function, extra: Iterator[Var]) -> _Residual:
        if source is None:
            return _Residual(next(extra))
        if type(source) is int:
            return _Residual(known.inputs[source])
        return _Residual(None, source)


def _flat(function: Function) -> Function:
    """Returns a function with the ops of the functions it calls in place, for policies to see."""
    with Trace(function.name) as trace:
        inputs = [trace.add_input(v.type) for v in function.inputs]

        def record(equation: Equation, operands: Sequence[Any]) -> Any:
            if equation.primitive.is_call:
                return equation.params["jaxpr"].interpret(operands, record)
            return trace.record(equation.primitive, operands, equation.params)

        return trace.finish(function.interpret([*inputs, *function.captured], record))


def _needed(
    function: Function, wanted: Sequence[Var], policy: Any
) -> tuple[set[Var], list[Var]]:
    """Returns what the wanted variables depend on, back to what is kept, and what is kept."""
    needed = {v for v in wanted if type(v) is not Literal}
    kept: list[Var] = []
    for equation in reversed(function.equations):
        results = [v for v in equation.results if v in needed]
        if not results:
            continue
        if policy is not None and keeps(policy, equation):
            kept += results
        else:
            needed.update(v for v in equation.operands if type(v) is not Literal)
    kept.reverse()
    return needed, kept


def _compute(
    function: Function, environment: dict[Var, Any], wanted: Iterable[Var], trace: Trace
) -> None:
    """Adds the values of the wanted variables to an environment, by no more ops than needed."""
    needed = {v for v in wanted if type(v) is not Literal and v not in environment}
    chosen = []
    for equation in reversed(function.equations):
        if any(v in needed for v in equation.results):
            chosen.append(equation)
            needed.update(v for v in equation.operands if v not in environment)
    previous = state.origin
    try:
        for equation in reversed(chosen):
            state.origin = equation
            operands = [read(environment, v) for v in equation.operands]
            given = {v: environment[v] for v in equation.results if v in environment}
            results = trace.record(equation.primitive, operands, equation.params)
            write(environment, equation, results)
            environment.update(given)
    finally:
        state.origin = previous


def _evaluator(function: Function, given: Sequence[Var], wanted: Sequence[Var]) -> Function:
    """Returns the function from given to wanted variables of a function."""
    with Trace(function.name, "Checkpoint") as trace:
        environment: dict[Var, Any] = {v: trace.add_input(v.type) for v in given}
        environment.update(zip(function.captures, function.captured, strict=True))
        _compute(function, environment, wanted, trace)
        return trace.finish([read(environment, v) for v in wanted])


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
        environment: dict[Var, Any] = {v: trace.add_input(v.type) for v in given}
        environment.update(zip(known.captures, known.captured, strict=True))
        wanted = [r.variable for r in residuals if r.variable is not None]
        _compute(known, environment, wanted, trace)
        values = [
            r.value if r.variable is None else read(environment, r.variable) for r in residuals
        ]
        return trace.finish(linear.interpret([*tangents, *values]))
