"""`custom_vmap_call`: a call of a function that a user's rule vectorizes.

Results, lowering and derivatives are those of the function; a derivative is a call of the same
kind, whose rule is the derivative of the rule (`vmap_rules.py`). Vectorized, the call is gone: what
the rule computes stands in its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...axes import current_frame
from ...function import Function
from ...primitive import Sample
from ...single_flight import made_once
from ...symbolic import is_undefined_primal
from ...trace import trace_function
from ...types import ShapedArray
from ..call import spread_cotangents
from ..family import instantiate
from ..shape import moveaxis
from ..table import declare
from .bodies import arguments_of, batched_body, check_call, evaluate_body, is_moving, spread
from .derivatives import linear_part_of, tangents_of, transpose_of
from .vmap_rules import (
    TangentRule,
    TransposedRule,
    UserRule,
    VmapRule,
    rule_of,
)


def _infer(*types: ShapedArray, call: Function, rule: str) -> list[ShapedArray]:
    check_call("custom_vmap_call", call, types)
    return call.output_types


def _evaluate(*operands: np.ndarray, call: Function, rule: str) -> list[np.ndarray]:
    return evaluate_body(call, operands)


def _implement(*operands: Any, call: Function, rule: str) -> list[Any]:
    return call.interpret(operands)


def _opened(call: Function) -> Function:
    """Returns a function whose captures are inputs, so that derivatives reach them, too."""
    if not call.captures:
        return call
    return made_once(
        call.derived,
        _OPENED,
        lambda: trace_function(
            lambda *values: call.interpret(values), arguments_of(call), name=call.name, kind="Vmap"
        ),
    )


_OPENED = "captures are inputs"


def _apply(call: Function, rule: VmapRule, operands: Sequence[Any]) -> list[Any]:
    return custom_vmap_call.bind(*operands, *call.captured, call=call, rule=rule)


def _derived(
    call: Function, rule: str, active: tuple[bool, ...], is_linear: bool
) -> tuple[Function, VmapRule]:
    """Returns the derivative of a function and of its rule, made once."""

    def make() -> tuple[Function, VmapRule]:
        base = rule_of(rule, arguments_of(call)).for_operands(arguments_of(call))
        derive_it = linear_part_of if is_linear else tangents_of
        name = f"{rule}_linear" if is_linear else f"{rule}_jvp"
        derivative = derive_it(_opened(call), active)
        return derivative, TangentRule(name, base, active, is_linear, derivative)

    return made_once(call.derived, ("custom_vmap derivative", rule, active, is_linear), make)


def _value_and_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, call: Function, rule: str
) -> tuple[list[Any], list[Any]]:
    active = tuple(map(is_moving, tangents))
    results = _apply(*_derived(call, rule, active, False), [*primals, *filter(is_moving, tangents)])
    count = len(call.outputs)
    return results[:count], spread(call.output_types, results[count:])


def _jvp(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    outs: Sequence[Any],
    *,
    call: Function,
    rule: str,
) -> list[Any]:
    active = tuple(map(is_moving, tangents))
    moving = _apply(*_derived(call, rule, active, True), [*primals, *filter(is_moving, tangents)])
    return spread(call.output_types, moving)


def _linearize(
    primals: Sequence[Any], tangents: Sequence[Any], *, call: Function, rule: str
) -> tuple[list[Any], list[Any]]:
    outs = custom_vmap_call.bind(*primals, call=call, rule=rule)
    return outs, _jvp(primals, tangents, outs, call=call, rule=rule)


def _transpose(cotangents: Sequence[Any], *operands: Any, call: Function, rule: str) -> list[Any]:
    linear = tuple(map(is_undefined_primal, operands))

    def make() -> tuple[Function, VmapRule]:
        base = rule_of(rule, arguments_of(call)).for_operands(arguments_of(call))
        one = transpose_of(_opened(call), linear)
        return one, TransposedRule(f"{rule}_transpose", base, linear, call.output_types, one)

    function, transposed_rule = made_once(
        call.derived, ("custom_vmap transpose", rule, linear), make
    )
    known = [x for x in operands if not is_undefined_primal(x)]
    results = _apply(function, transposed_rule, [*known, *map(instantiate, cotangents)])
    return spread_cotangents(operands, (True,) * linear.count(True), results)


def _batch(
    operands: Sequence[Any], axes: Sequence[int | None], *, call: Function, rule: str
) -> tuple[list[Any], Sequence[int | None]]:
    frame = current_frame()
    if all(axis is None for axis in axes):  # only what it communicates is vectorized
        body = batched_body(call, axes)
        return body.function.evaluate(*operands), body.axes
    flags = tuple(axis is not None for axis in axes)
    values = [x if a is None else moveaxis(x, a, 0) for x, a in zip(operands, axes, strict=True)]
    base = rule_of(rule, arguments_of(call)).for_operands(arguments_of(call))
    outs, found = base.apply(frame.size, flags, values)
    return outs, [0 if has else None for has in found]


def _lower(context: Any, *values: Any, call: Function, rule: str) -> list[Any]:
    return context.inline(call, *values)


def _samples() -> list[Sample]:
    from ..elementwise import mul
    from ..transcendental import sin

    vector, count = ShapedArray((3,), np.float32), ShapedArray((), np.int32)
    types = [vector, vector, count]

    def body(x: Any, y: Any, unused: Any) -> list[Any]:
        return [mul(sin(x), y), unused]

    function = trace_function(body, types, name="f")

    def apply(
        size: int, flags: tuple[bool, ...], values: Sequence[Any]
    ) -> tuple[list[Any], list[bool]]:
        from .vmap_rules import spread_over

        batched = any(flags[:2])
        x, y = spread_over(size, values[:2], flags[:2], (batched, batched))
        return [mul(sin(x), y), values[2]], [batched, flags[2]]

    rule = UserRule("f_rule", types, 3, apply, "f")
    x, y = np.array([0.1, 0.2, 0.3], np.float32), np.array([1, 2, 3], np.float32)
    return [Sample((x, y, np.array(4, np.int32)), {"call": function, "rule": rule})]


custom_vmap_call = declare(
    "custom_vmap_call",
    takes_keys=True,
    multiple_results=True,
    is_memoized=False,
    infer=_infer,
    evaluate=_evaluate,
    jvp=_jvp,
    value_and_jvp=_value_and_jvp,
    linearize=_linearize,
    transpose=_transpose,
    batch=_batch,
    lower=_lower,
    body=lambda *, call, **params: call,
    samples=_samples,
)
custom_vmap_call.implementation = _implement


def call_with_vmap(function: Function, rule: VmapRule, arguments: Sequence[Any]) -> list[Any]:
    """Calls a function that a rule vectorizes; its captures take the values captured.

    Args:
        function: What is computed.
        rule: Its vectorization.
        arguments: Values of the inputs.
    """
    return _apply(function, rule, arguments)
