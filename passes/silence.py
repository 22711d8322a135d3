"""Functions without their effects: for deriving what has run already.

While values are known, an op with effects runs when it is recorded. Differentiating a loop whose
body prints then must not print again: it differentiates the loop without the prints.
"""

from __future__ import annotations

from typing import Any

from axir.dialect.context import state
from axir.dialect.derived import derive, transformation
from axir.dialect.effects import has_effects, is_effectful
from axir.dialect.function import Equation, Function, read, write
from axir.dialect.tracer import Trace


def params_to_derive(equation: Equation, has_run: bool) -> dict[str, Any]:
    """Returns the parameters with which to derive an op, given whether it has run already."""
    if not has_run or not equation.primitive.multiple_results or not is_effectful(equation):
        return equation.params
    return {name: _silent(value) for name, value in equation.params.items()}


def _silent(value: Any) -> Any:
    if type(value) is Function:
        return derive(value, "silence") if has_effects(value) else value
    return tuple(map(_silent, value)) if type(value) is tuple else value


@transformation("silence")
def silence_function(function: Function) -> Function:
    """Returns a function without the ops that have effects and give no results."""
    with Trace(function.name, "Silence") as trace:
        arguments = [trace.add_input(v.type) for v in (*function.inputs, *function.captures)]
        environment = dict(zip((*function.inputs, *function.captures), arguments, strict=True))
        previous = state.origin
        try:
            for equation in function.equations:
                if not equation.results and is_effectful(equation):
                    continue
                state.origin = equation
                operands = [read(environment, v) for v in equation.operands]
                params = params_to_derive(equation, has_run=True)
                write(environment, equation, trace.record(equation.primitive, operands, params))
        finally:
            state.origin = previous
        return trace.finish([read(environment, v) for v in function.outputs])
