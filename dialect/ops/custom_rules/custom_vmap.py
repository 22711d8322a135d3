"""`custom_vmap_call`: a call of a function that a user's rule vectorizes.

The function defines the results, the lowering and the derivatives. A derivative is a call of the
same kind; its rule is the derivative of the rule (`vmap_rules.py`). Vectorization replaces the call
by the ops of the rule.
"""

from __future__ import annotations

from collections.abc import Sequence

from axir.dialect.core.annotations import Param
from axir.dialect.core.memo import derived
from axir.dialect.core.symbolic_zeros import (
    Marks,
    chosen,
    inexact,
    inverted,
    moving,
    spread,
    unknown,
)
from axir.dialect.ops.calls.jit_call import call_batch, declare_call, sample_call, spread_cotangents
from axir.dialect.ops.elementwise.family import instantiate
from axir.dialect.ops.shape.rearranging import moveaxis
from axir.dialect.program.effects import current_frame
from axir.dialect.program.function import Function
from axir.dialect.program.function_tracing import trace_function
from axir.dialect.program.operation import Sample
from axir.dialect.program.rules import Cotangent, OperandTangents, Tangent, Value

from .bodies import Axes, linear_part_of, tangents_of, transpose_of
from .vmap_rules import (
    TangentRule,
    TransposedRule,
    UserRule,
    VmapRule,
    rule_of,
    spread_over,
    vectorized_inside,
)


@derived
def _opened(call: Function) -> Function:
    """Returns a function with its captures as inputs, so that derivatives reach them, too."""
    if not call.captures:
        return call
    return trace_function(
        lambda *values: call.interpret(values), call.in_avals, name=call.name, kind="Vmap"
    )


def call_with_vmap(function: Function, rule: VmapRule, arguments: Sequence[Value]) -> list[Value]:
    """Calls a function that a rule vectorizes; its captures take the captured values.

    Args:
        function: The function to call.
        rule: Its vectorization.
        arguments: Values of the inputs.
    """
    return custom_vmap_call.bind(*arguments, *function.captured, call=function, rule=rule)


@derived
def _derivative(
    call: Function, rule: str, active: Marks, is_linear: bool
) -> tuple[Function, VmapRule]:
    """Returns the derivative of a function and of its rule."""
    derivative = (linear_part_of if is_linear else tangents_of)(_opened(call), active)
    name = f"{rule}_linear" if is_linear else f"{rule}_jvp"
    return derivative, TangentRule(name, rule_of(rule, call), active, is_linear, derivative)


@derived
def _transposed(call: Function, rule: str, linear: Marks) -> tuple[Function, VmapRule]:
    """Returns the transpose of a function and of its rule."""
    one = transpose_of(_opened(call), linear)
    base = rule_of(rule, call)
    return one, TransposedRule(f"{rule}_transpose", base, linear, call.output_types, one)


def _value_and_jvp(
    primals: Sequence[Value], tangents: OperandTangents, *, call: Function, rule: str
) -> tuple[Sequence[Value], Sequence[Tangent]]:
    active, types = moving(tangents), call.output_types
    operands = [*primals, *chosen(tangents, active)]
    function, derived_rule = _derivative(call, rule, active, False)
    results = call_with_vmap(function, derived_rule, operands)
    return results[: len(types)], spread(results[len(types) :], inexact(types), types)


def _jvp(
    primals: Sequence[Value],
    tangents: OperandTangents,
    outs: Sequence[Value],
    *,
    call: Function,
    rule: str,
) -> Sequence[Tangent]:
    active, types = moving(tangents), call.output_types
    operands = [*primals, *chosen(tangents, active)]
    function, derived_rule = _derivative(call, rule, active, True)
    moved = call_with_vmap(function, derived_rule, operands)
    return spread(moved, inexact(types), types)


def _linearize(
    primals: Sequence[Value], tangents: Sequence[Tangent], *, call: Function, rule: str
) -> tuple[Sequence[Value], Sequence[Tangent]]:
    outs = custom_vmap_call.bind(*primals, call=call, rule=rule)
    return outs, _jvp(primals, tangents, outs, call=call, rule=rule)


def _transpose(
    cotangents: Sequence[Cotangent], *operands: Param, call: Function, rule: str
) -> Sequence[Cotangent | None]:
    linear = unknown(operands)
    function, derived_rule = _transposed(call, rule, linear)
    known = chosen(operands, inverted(linear))
    results = call_with_vmap(function, derived_rule, [*known, *map(instantiate, cotangents)])
    return spread_cotangents(operands, (True,) * linear.count(True), results)


def _batch(
    operands: Sequence[Value], axes: Axes, *, call: Function, rule: str
) -> tuple[list[Value], Axes]:
    if all(axis is None for axis in axes):  # only its collectives are vectorized
        return call_batch(lambda f, xs: f.evaluate(*xs), call, operands, axes)
    flags = tuple(axis is not None for axis in axes)
    values = [x if a is None else moveaxis(x, a, 0) for x, a in zip(operands, axes, strict=True)]
    frame, asked = current_frame(), rule_of(rule, call)
    if frame.maps_devices:  # each device runs the function; the rule is kept until a user's vmap
        function, batched, kept = vectorized_inside(asked, _opened(call), frame, flags)
        outs, found = call_with_vmap(function, kept, values), list(batched)
    else:
        outs, found = asked.apply(frame.size, flags, values)
    return outs, [0 if has else None for has in found]


def _samples() -> list[Sample]:
    function, arguments = sample_call()

    def apply(size: int, flags: Marks, values: Sequence[Value]) -> tuple[list[Value], list[bool]]:
        batched = any(flags[:2])
        x, y = spread_over(size, values[:2], flags[:2], (batched, batched))
        return function.interpret([x, y, values[2]]), [batched, flags[2]]

    rule = UserRule("f_rule", function.input_types, 3, apply, "f")
    return [Sample(arguments, {"call": function, "rule": rule})]


custom_vmap_call = declare_call(
    "custom_vmap_call",
    "call",
    parameters={"call": Function, "rule": str},
    jvp=_jvp,
    value_and_jvp=_value_and_jvp,
    linearize=_linearize,
    transpose=_transpose,
    batch=_batch,
    body=lambda *, call, **params: call,
    samples=_samples,
)
