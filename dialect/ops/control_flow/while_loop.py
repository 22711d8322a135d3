"""`while`: repeats a body as long as a condition holds.

Operands are the constants of the condition, those of the body, and the carry.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any

import numpy as np

from ... import dtypes
from ... import stablehlo as hlo
from ...array import ConcreteArray, as_array
from ...axes import current_frame
from ...derived import derive, derive_batched
from ...errors import ParameterError, ReverseModeError
from ...function import Function
from ...primitive import Unsupported
from ...symbolic import Zero
from ...types import ShapedArray
from ..shape import moveaxis
from ..table import declare
from . import loop_samples
from .bodies import (
    Body,
    activity,
    call_function,
    check_arguments,
    check_results,
    chosen,
    derived_body,
    instantiated,
    spread,
    trace_body,
    union,
)
from .execution import COMPILED_PASS, Unit, compilation_of, may_compile, work_of
from .interpretation import quiet, steps_of


def bind_while(
    condition: Body,
    body: Body,
    init: Sequence[Any],
    condition_consts: Sequence[Any] = (),
    body_consts: Sequence[Any] = (),
) -> list[Any]:
    """Applies `while` to bodies whose first inputs are captured values, then constants."""
    first = [*condition.captured, *condition_consts]
    second = [*body.captured, *body_consts]
    params = {
        "body_jaxpr": body.function,
        "body_nconsts": len(second),
        "cond_jaxpr": condition.function,
        "cond_nconsts": len(first),
    }
    return while_primitive.bind(*first, *second, *init, **params)


def _split(
    operands: Sequence[Any], cond_nconsts: int, body_nconsts: int
) -> tuple[list[Any], list[Any], list[Any]]:
    middle = cond_nconsts + body_nconsts
    return (
        list(operands[:cond_nconsts]), list(operands[cond_nconsts:middle]), list(operands[middle:])
    )


def _infer(
    *types: ShapedArray,
    cond_jaxpr: Function,
    cond_nconsts: int,
    body_jaxpr: Function,
    body_nconsts: int,
) -> list[ShapedArray]:
    if len(types) < cond_nconsts + body_nconsts:
        raise ParameterError(
            f"while has {len(types)} operands, but cond_nconsts={cond_nconsts} and "
            f"body_nconsts={body_nconsts} name {cond_nconsts + body_nconsts} constants.",
            "The operands are the constants of the condition, those of the body, and the carry.",
        )
    first, second, carry = _split(types, cond_nconsts, body_nconsts)
    check_arguments("while: the condition", cond_jaxpr, [*first, *carry])
    check_arguments("while: the body", body_jaxpr, [*second, *carry])
    check_results("while: the condition", cond_jaxpr, [ShapedArray((), dtypes.bool_)])
    check_results("while: the body", body_jaxpr, carry)
    return body_jaxpr.output_types


# Values ----------------------------------------------------------------------------------------


def _iterate(
    operands: Sequence[np.ndarray],
    cond_jaxpr: Function,
    cond_nconsts: int,
    body_jaxpr: Function,
    body_nconsts: int,
    seconds: float | None = None,
) -> tuple[list[np.ndarray], bool]:
    """Interprets the loop, no longer than `seconds`; returns the carry, and whether it ended."""
    first, second, carry = _split(operands, cond_nconsts, body_nconsts)
    holds, advance = steps_of(cond_jaxpr), steps_of(body_jaxpr)
    end = None if seconds is None else perf_counter() + seconds
    with quiet():
        while holds([*first, *carry])[0]:
            if end is not None and perf_counter() > end:
                return carry, False
            carry = advance([*second, *carry])
    return carry, True


def _evaluate(*operands: np.ndarray, **params: Any) -> list[np.ndarray]:
    return _iterate(operands, **params)[0]


def _implement(*operands: Any, **params: Any) -> list[ConcreteArray]:
    if not may_compile(params):
        return while_primitive._evaluate(operands, params)
    arrays = [as_array(x) for x in operands]
    unit = Unit(while_primitive, params, [x.type for x in arrays])
    if unit.is_used:
        return unit(arrays)
    gains = work_of(params["cond_jaxpr"]) + work_of(params["body_jaxpr"]) > COMPILED_PASS
    seconds = compilation_of(params) * 1e-6 if gains else None
    carry, has_ended = _iterate([x.host() for x in arrays], **params, seconds=seconds)
    consts = params["cond_nconsts"] + params["body_nconsts"]
    results = [
        ConcreteArray(t, x) for t, x in zip(params["body_jaxpr"].output_types, carry, strict=True)
    ]
    return results if has_ended else unit([*arrays[:consts], *results])


def _lower(
    context: Any,
    *values: Any,
    cond_jaxpr: Function,
    cond_nconsts: int,
    body_jaxpr: Function,
    body_nconsts: int,
) -> list[Any]:
    first, second, carry = _split(values, cond_nconsts, body_nconsts)
    if not carry:
        return []
    return hlo.while_(
        carry,
        lambda *carried: context.inline(cond_jaxpr, *first, *carried),
        lambda *carried: context.inline(body_jaxpr, *second, *carried),
    )


# Derivatives -----------------------------------------------------------------------------------


def _active_carry(
    body_jaxpr: Function, consts: tuple[bool, ...], carry: tuple[bool, ...]
) -> tuple[bool, ...]:
    """Tells which carried values get tangents, as long as a pass through the body adds some."""
    while True:
        active = derive(body_jaxpr, "jvp", (*consts, *carry)).active_outputs
        grown = union(carry, active)
        if grown == carry:
            return carry
        carry = grown


def _tangent_bodies(
    cond_jaxpr: Function,
    body_jaxpr: Function,
    consts: tuple[bool, ...],
    carry: tuple[bool, ...],
) -> tuple[Body, Body]:
    """Returns condition and body of the loop that carries values, then tangents of active ones."""
    types = body_jaxpr.output_types
    count, moving = len(types), sum(carry)
    derived = derive(body_jaxpr, "jvp", (*consts, *carry))

    def advance(*arguments: Any) -> list[Any]:
        primal_consts = arguments[: len(consts)]
        tangent_consts = arguments[len(consts) : len(arguments) - count - moving]
        carried = arguments[len(arguments) - count - moving :]
        results = call_function(
            derived.function,
            [*primal_consts, *carried[:count], *tangent_consts, *carried[count:]],
        )
        tangents = spread(results[count:], derived.active_outputs, types)
        return [*results[:count], *instantiated(tangents, carry)]

    inputs = [v.type for v in body_jaxpr.inputs]
    carried = [*inputs[len(consts) :], *chosen(inputs[len(consts) :], carry)]
    moving_consts = chosen(inputs[: len(consts)], consts)
    body = trace_body(
        advance, [*inputs[: len(consts)], *moving_consts, *carried], f"{body_jaxpr.name}_jvp", "Jvp"
    )
    cond_types = [v.type for v in cond_jaxpr.inputs]
    kept = len(cond_types)

    def holds(*arguments: Any) -> list[Any]:
        return cond_jaxpr.interpret(arguments[:kept])

    condition = trace_body(
        holds, [*cond_types, *chosen(inputs[len(consts) :], carry)], cond_jaxpr.name, "Jvp"
    )
    return condition, body


def _value_and_jvp(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    cond_jaxpr: Function,
    cond_nconsts: int,
    body_jaxpr: Function,
    body_nconsts: int,
) -> tuple[list[Any], list[Any]]:
    first, second, init = _split(primals, cond_nconsts, body_nconsts)
    _, const_tangents, init_tangents = _split(tangents, cond_nconsts, body_nconsts)
    consts = activity(const_tangents)
    carry = _active_carry(body_jaxpr, consts, activity(init_tangents))
    condition, body = derived_body(
        body_jaxpr,
        ("while jvp", cond_jaxpr, consts, carry),
        lambda: _tangent_bodies(cond_jaxpr, body_jaxpr, consts, carry),
    )
    results = bind_while(
        condition,
        body,
        [*init, *instantiated(init_tangents, carry)],
        first,
        [*second, *chosen(const_tangents, consts)],
    )
    types = body_jaxpr.output_types
    return results[: len(types)], spread(results[len(types) :], carry, types)


def _linearize(
    primals: Sequence[Any], tangents: Sequence[Any], **params: Any
) -> tuple[list[Any], list[Any]]:
    # The number of passes is unknown, hence so is the extent of what would have to be kept. The
    # linear function runs the loop again, values and tangents together.
    outs = while_primitive.bind(*primals, **params)
    _, const_tangents, init_tangents = _split(
        tangents, params["cond_nconsts"], params["body_nconsts"]
    )
    body_jaxpr = params["body_jaxpr"]
    carry = _active_carry(body_jaxpr, activity(const_tangents), activity(init_tangents))
    if not any(carry):
        return outs, [Zero(t.to_tangent_aval()) for t in body_jaxpr.output_types]
    _, out_tangents = _value_and_jvp(primals, tangents, **params)
    return outs, out_tangents


class _NoTranspose(Unsupported):
    """Stands for the transpose rule."""

    def __call__(self, *args: Any, **params: Any) -> Any:
        """Raises the error that tells users what to write instead."""
        raise ReverseModeError(
            "Reverse-mode differentiation does not work for lax.while_loop, nor for lax.fori_loop "
            f"with traced bounds: {self.reason}.",
            "Give fori_loop bounds that are Python integers, or use lax.scan over the largest "
            "number of passes with lax.cond inside; forward mode (axir.jvp, axir.jacfwd) works as "
            "it is.",
        )


_REASON = "the number of passes is unknown, so what the backward pass needs cannot be kept"


# Batching --------------------------------------------------------------------------------------


def _out_axes(is_batched: Sequence[bool]) -> tuple[int | None, ...]:
    return tuple(0 if batched else None for batched in is_batched)


def _is_batched(axes: Sequence[int | None]) -> tuple[bool, ...]:
    return tuple(axis is not None for axis in axes)


def _batched_carry(
    cond_jaxpr: Function,
    body_jaxpr: Function,
    cond_axes: list[int | None],
    body_axes: list[int | None],
    carry: tuple[bool, ...],
) -> tuple[tuple[bool, ...], bool]:
    """Returns which carried values get the batch axis, and whether the condition has it."""
    while True:
        carried = _out_axes(carry)
        predicate = derive_batched(cond_jaxpr, [*cond_axes, *carried]).axes[0]
        if predicate is not None:
            return (True,) * len(carry), True
        grown = union(carry, _is_batched(derive_batched(body_jaxpr, [*body_axes, *carried]).axes))
        if grown == carry:
            return carry, False
        carry = grown


def _batch(
    operands: Sequence[Any],
    axes: Sequence[int | None],
    *,
    cond_jaxpr: Function,
    cond_nconsts: int,
    body_jaxpr: Function,
    body_nconsts: int,
) -> tuple[list[Any], list[int | None]]:
    size = current_frame().size
    first, second, init = _split(operands, cond_nconsts, body_nconsts)
    cond_axes, body_axes, init_axes = _split(axes, cond_nconsts, body_nconsts)
    carry, has_batched_condition = _batched_carry(
        cond_jaxpr, body_jaxpr, cond_axes, body_axes, _is_batched(init_axes)
    )
    out_axes = _out_axes(carry)
    init = [
        to_front(x, axis, size) if batched else x
        for x, axis, batched in zip(init, init_axes, carry, strict=True)
    ]
    body = derive_batched(body_jaxpr, [*body_axes, *out_axes], out_axes).function
    predicate_axes = (0,) if has_batched_condition else (None,)
    condition = derive_batched(cond_jaxpr, [*cond_axes, *out_axes], predicate_axes).function
    if has_batched_condition:
        return _run_lanes(condition, body, first, second, init), list(out_axes)
    closed_condition, closed_body = derived_body(
        body_jaxpr,
        ("while vmap", condition, body),
        lambda: (_closed(condition), _closed(body)),
    )
    return bind_while(closed_condition, closed_body, init, first, second), list(out_axes)


def _closed(function: Function) -> Body:
    """Returns a function with its captures as first inputs."""
    if not function.captures:
        return Body(function, ())
    return trace_body(
        lambda *arguments: call_function(function, arguments),
        [v.type for v in function.inputs],
        function.name,
    )


def to_front(value: Any, axis: int | None, size: int) -> Any:
    """Brings a batch axis to the front, broadcasting a value that has none."""
    from ..broadcasting import broadcast

    return broadcast(value, (size,)) if axis is None else moveaxis(value, axis, 0)


def _run_lanes(
    condition: Function,
    body: Function,
    cond_consts: list[Any],
    body_consts: list[Any],
    init: list[Any],
) -> list[Any]:
    """Runs the loop until it has ended in each place of the batch, which then keeps its values.

    The condition's values are carried along, so that they are computed once in a pass.
    """
    any_runs, advance = derived_body(
        body,
        ("while lanes", condition, len(cond_consts), len(body_consts)),
        lambda: _lane_bodies(condition, body, len(cond_consts), len(body_consts)),
    )
    running = call_function(condition, [*cond_consts, *init])
    results = bind_while(any_runs, advance, [*running, *init], (), [*cond_consts, *body_consts])
    return results[1:]


def _lane_bodies(
    condition: Function, body: Function, cond_count: int, body_count: int
) -> tuple[Body, Body]:
    from ..elementwise import select_n
    from ..reduce import reduce_or

    consts = cond_count + body_count

    def advance(*arguments: Any) -> list[Any]:
        cond_consts, body_consts = arguments[:cond_count], arguments[cond_count:consts]
        running, *carry = arguments[consts:]
        moved = call_function(body, [*body_consts, *carry])
        carry = [
            select_n(_aligned(running, new.type), old, new)
            for old, new in zip(carry, moved, strict=True)
        ]
        return [*call_function(condition, [*cond_consts, *carry]), *carry]

    carried = [v.type for v in (*condition.outputs, *body.inputs[body_count:])]
    const_types = [v.type for v in (*condition.inputs[:cond_count], *body.inputs[:body_count])]
    return (
        trace_body(lambda running, *_: [reduce_or(running, (0,))], carried, condition.name, "Vmap"),
        trace_body(advance, [*const_types, *carried], body.name, "Vmap"),
    )


def _aligned(running: Any, wanted: ShapedArray) -> Any:
    from ..broadcasting import broadcast_in_dim

    return broadcast_in_dim(running, wanted.shape, (0,)) if wanted.ndim != 1 else running


while_primitive = declare(
    "while",
    takes_keys=True,
    multiple_results=True,
    is_memoized=False,
    is_staged=True,
    infer=_infer,
    evaluate=_evaluate,
    value_and_jvp=_value_and_jvp,
    linearize=_linearize,
    transpose=_NoTranspose("transpose", "while", _REASON),
    batch=_batch,
    lower=_lower,
    samples=loop_samples.while_samples,
)
while_primitive.implementation = _implement
