"""`custom_jvp_call`: a call of a function with a user's forward-mode rule.

The function defines the results and the lowering. Elsewhere: checks of the rule's results (in the
frontend, while the rule is traced) and calls with known values (`applied.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from axir.dialect.core.annotations import Param
from axir.dialect.core.memo import derived
from axir.dialect.core.state import BatchFrame
from axir.dialect.core.symbolic_zeros import Marks, chosen, inexact, moving, spread
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.calls.jit_call import declare_call, sample_call, transpose_call
from axir.dialect.ops.elementwise.arithmetic import add, mul
from axir.dialect.ops.elementwise.family import instantiate
from axir.dialect.ops.elementwise.transcendental import cos, sin
from axir.dialect.program.effects import current_frame
from axir.dialect.program.function import Function
from axir.dialect.program.function_tracing import trace_function
from axir.dialect.program.operation import Sample
from axir.dialect.program.parameters import Deferrable
from axir.dialect.program.rules import Cotangent, Operand, Tangent, Value

from .bodies import (
    Axes,
    apply_linear,
    argument_types,
    batched_in_front,
    batched_rule,
    bind_call,
    check_rule,
    closed_over_error,
    inexact_only,
    trace_of_tangents,
)
from .rules import Rule, active_arguments, for_active, wants_zeros


def _check(
    types: Sequence[ShapedArray],
    *,
    call_jaxpr: Function,
    jvp_jaxpr_fun: Deferrable,
    num_consts: int,
    symbolic_zeros: bool,
    name: str,
) -> None:
    arguments = argument_types("custom_jvp_call", types, num_consts)
    if type(jvp_jaxpr_fun) is Function:
        results = call_jaxpr.output_types
        taken, returned = ([*ts, *inexact_only(ts)] for ts in (arguments, results))
        check_rule("custom_jvp_call", jvp_jaxpr_fun, taken, returned)


def _differentiate(
    primals: Sequence[Value],
    tangents: Sequence[Tangent],
    *,
    is_split: bool,
    call_jaxpr: Function,
    jvp_jaxpr_fun: Deferrable,
    num_consts: int,
    name: str,
    **params: object,
) -> tuple[Sequence[Value], Sequence[Tangent]]:
    count = len(primals) - num_consts
    primals, tangents, fixed = primals[:count], tangents[:count], tangents[count:]
    if any(moving(fixed)):
        raise closed_over_error("custom_jvp", name)
    active = active_arguments(jvp_jaxpr_fun, primals, tangents)
    values = apply_linear(
        for_active(jvp_jaxpr_fun, active),
        [*primals, *map(instantiate, chosen(tangents, active))],
        trace_of_tangents(tangents) if is_split else None,
    )
    results = call_jaxpr.output_types
    return values[: len(results)], spread(values[len(results) :], inexact(results), results)


def _batch(
    operands: Sequence[Value],
    axes: Axes,
    *,
    call_jaxpr: Function,
    jvp_jaxpr_fun: Deferrable,
    num_consts: int,
    **params: object,
) -> tuple[list[Value], list[int | None]]:
    count = len(operands) - num_consts
    everything = inexact(call_jaxpr.in_avals[:count])
    rule = _batched(jvp_jaxpr_fun, tuple(axes[:count]), current_frame(), everything)
    body = batched_in_front(call_jaxpr, axes)
    results = bind_call(custom_jvp_call, body, operands, num_consts, jvp_jaxpr_fun=rule, **params)
    return results, [0] * len(results)


@derived
def _batched(
    rule: Param, axes: tuple[int | None, ...], frame: BatchFrame, everything: Marks
) -> Rule:
    """Returns a vectorized rule, made once, because a rule may use itself."""

    def make(active: Marks) -> Function:
        return batched_rule(for_active(rule, active), frame, (*axes, *chosen(axes, active)))

    return Rule(f"{rule.name}_vmap", make, everything, wants_zeros(rule))


def _transpose(
    cotangents: Sequence[Cotangent], *operands: object, call_jaxpr: Function, **params: object
) -> Sequence[Cotangent | None]:
    # Differentiation is over: the function itself is transposed, and must be linear.
    return transpose_call(cotangents, *operands, jaxpr=call_jaxpr)


def _samples() -> list[Sample]:
    function, arguments = sample_call()

    def rule(x: Operand, y: Operand, passed: Any, dx: object, dy: object) -> list[Value]:
        tangent = add(mul(mul(dx, cos(x)), y), mul(sin(x), dy))
        return [*function.interpret([x, y, passed]), tangent]

    types = function.input_types
    params = {
        "call_jaxpr": function,
        "jvp_jaxpr_fun": trace_function(rule, [*types, *inexact_only(types)], name="f_jvp"),
        "num_consts": 0,
        "symbolic_zeros": False,
        "name": "f",
    }
    return [Sample(arguments, params)]


custom_jvp_call = declare_call(
    "custom_jvp_call",
    "call_jaxpr",
    parameters={
        "call_jaxpr": Function,
        "jvp_jaxpr_fun": Deferrable,
        "num_consts": int,
        "symbolic_zeros": bool,
        "name": str,
    },
    check=_check,
    value_and_jvp=partial(_differentiate, is_split=False),
    linearize=partial(_differentiate, is_split=True),
    batch=_batch,
    body=lambda *, call_jaxpr, **params: call_jaxpr,
    transpose=_transpose,
    samples=_samples,
)


def call_with_jvp(
    function: Function, rule: Param, arguments: Sequence[Value], symbolic_zeros: bool, name: str
) -> list[Value]:
    """Calls a function with a rule as its derivative; its captures take the captured values.

    Args:
        function: The function to call.
        rule: Its forward-mode rule; see `rules.jvp_rule`.
        arguments: Values of the inputs.
        symbolic_zeros: Whether the rule depends on which arguments are active.
        name: Name of the user's function.
    """
    params = {"jvp_jaxpr_fun": rule, "symbolic_zeros": symbolic_zeros, "name": name}
    return bind_call(custom_jvp_call, function, arguments, 0, **params)
