"""The walk of differentiation, which `jvp` and `linearize` share: values and tangents, op by op.

The two differ in the rule that they apply to an op with nonzero tangents. While values are known,
an op with effects runs when it is recorded. Differentiating a loop that prints must then not print
again: the loop is differentiated without its prints. Elsewhere: the rules (`axir.dialect.ops`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from axir.dialect.core.annotations import Params
from axir.dialect.core.errors import MissingRuleError
from axir.dialect.core.state import attributed
from axir.dialect.core.symbolic_zeros import Zero
from axir.dialect.program.derived_functions import derive, transformation
from axir.dialect.program.effects import has_effects, is_effectful
from axir.dialect.program.equation import Equation, Var
from axir.dialect.program.function import Function
from axir.dialect.program.function_tracing import restricted
from axir.dialect.program.operation import Operation
from axir.dialect.program.rules import Results, Tangent, Tangents, Value
from axir.dialect.program.walk import Environment

Rule: TypeAlias = Callable[
    [Equation, list[Value], list[Tangent], Results], tuple[Results, Tangents]
]
"""From an equation, the values and tangents of its operands, and its results or None if nobody has
computed them, to its results and their tangents."""


def differentiate(
    primitive: Operation,
    primals: Sequence[Value],
    tangents: Sequence[Tangent],
    params: Params,
    outs: Results = None,
) -> tuple[Results, Tangents]:
    """Applies a primitive to primals and tangents by its rules.

    Args:
        primitive: The primitive; its rule is `value_and_jvp` (values and tangents together, as
            calls and users' primitives have) or `jvp` (tangents, given the values).
        primals: Values of the operands.
        tangents: Their tangents; some may be `Zero`.
        params: Parameters of the primitive.
        outs: The results, if they are known already.

    Returns:
        Results and their tangents, as lists for a primitive with multiple results.
    """
    if primitive.value_and_jvp is not None:
        # Users' rules may map over them by axes, which are tuples in JAX, too.
        return primitive.value_and_jvp(tuple(primals), tuple(tangents), **params)
    if primitive.jvp is None:
        raise MissingRuleError(
            f"Differentiation rule for '{primitive.name}' not implemented",
            f"Define it with ad.primitive_jvps[{primitive.name}] = rule(primals, tangents).",
        )
    if outs is None:
        outs = primitive.bind(*primals, **params)
    return outs, primitive.jvp(primals, tangents, outs, **params)


class _Tangents(dict[Var, Tangent]):
    """The nonzero tangents of variables."""

    __slots__ = ()

    def __missing__(self, variable: Var) -> Zero:
        return Zero(variable.type.to_tangent_aval())

    def store(self, equation: Equation, tangents: Tangents) -> None:
        """Stores the tangents of an equation's results: a list, or the only one."""
        tangents = tangents if equation.primitive.multiple_results else (tangents,)
        for variable, tangent in zip(equation.results, tangents, strict=True):
            if type(tangent) is not Zero and tangent is not None:
                self[variable] = tangent


def walk_with_tangents(
    function: Function,
    primals: Sequence[Value],
    tangents: Sequence[Tangent],
    known: Mapping[Var, Value] | None,
    rule: Rule,
) -> tuple[list[Value], list[Tangent]]:
    """Computes a function and its tangents, op by op.

    Args:
        function: The function to differentiate.
        primals: Values of its inputs and captures.
        tangents: Their tangents, `Zero` for values without a tangent.
        known: Values of variables that have been computed already.
        rule: Applied to the equations with operands that have a nonzero tangent.

    Returns:
        Its outputs and their tangents; some tangents may be `Zero`.
    """
    values = Environment.of(function, primals)
    moving = _Tangents(
        (v, t)
        for v, t in zip((*function.inputs, *function.captures), tangents, strict=False)
        if type(t) is not Zero
    )
    for equation in attributed(function.equations):
        outs = _known_results(equation, known)
        operands = [values[v] for v in equation.operands]
        if any([v in moving for v in equation.operands]):
            operand_tangents = [moving[v] for v in equation.operands]
            outs, out_tangents = rule(equation, operands, operand_tangents, outs)
            values.store(equation, outs)
            moving.store(equation, out_tangents)
            continue
        if outs is None:
            outs = equation.primitive.bind(*operands, **equation.params)
        values.store(equation, outs)
    return values.values_of(function.outputs), [moving[v] for v in function.outputs]


def _known_results(equation: Equation, known: Mapping[Var, Value] | None) -> Results:
    """Returns the results that an equation had while it was traced; None if they are unknown."""
    if known is None or any([v not in known for v in equation.results]):
        return None
    # Ops without results have effects, and tracing with known values ran them at once.
    values = [known[v] for v in equation.results]
    return values if equation.primitive.multiple_results else values[0]


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
