"""Functions without their effects, for differentiating ops that have already run.

While values are known, an op with effects runs when it is recorded. Differentiating a loop that
prints must then not print again: the loop is differentiated without its prints.
"""

from __future__ import annotations

from axir.dialect.core.annotations import Params
from axir.dialect.program.derived_functions import derive, transformation
from axir.dialect.program.effects import has_effects, is_effectful
from axir.dialect.program.equation import Equation
from axir.dialect.program.function import Function
from axir.dialect.program.restriction import restricted


def params_to_derive(equation: Equation, has_run: bool) -> Params:
    """Returns the parameters with which to differentiate an op; without effects if it has run."""
    if not has_run or not equation.primitive.multiple_results or not is_effectful(equation):
        return equation.params
    return {name: _silent(value) for name, value in equation.params.items()}


def _silent(value: object) -> object:
    if type(value) is Function:
        return derive(value, "silence") if has_effects(value) else value
    return tuple(map(_silent, value)) if type(value) is tuple else value


@transformation("silence")
def silence_function(function: Function) -> Function:
    """Returns a function without the ops that have effects and no results."""
    kept = [
        Equation(e.primitive, e.operands, e.results, params_to_derive(e, has_run=True), e.op)
        for e in function.equations
        if e.results or not is_effectful(e)
    ]
    inputs = (*function.inputs, *function.captures)
    return restricted(function, kept, inputs, function.outputs, "Silence")
