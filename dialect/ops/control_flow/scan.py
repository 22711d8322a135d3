"""`scan`: carries values through a body, once for each slice of its operands.

Operands are constants, the carry, and `xs`, sliced along their first axis; results are the carry
and `ys`, stacked along a new first axis. Derivatives stand in `scan_derivatives.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...axes import current_frame
from ...derived import derive_batched
from ...dtypes import storage
from ...errors import ParameterError
from ...function import Function
from ...types import ShapedArray
from ..shape import moveaxis
from ..table import declare
from . import loop_samples
from .bodies import (
    Body,
    call_function,
    check_arguments,
    check_results,
    derived_body,
    signature,
    trace_body,
    union,
)
from .execution import COMPILED_PASS, implementation, work_of
from .interpretation import quiet, steps_of
from .lowered_scan import lowered_loop
from .while_loop import to_front

# What slicing and stacking add to a pass of an interpreted loop, in microseconds.
_SLICING = 1.0


def bind_scan(
    body: Body,
    consts: Sequence[Any],
    carry: Sequence[Any],
    xs: Sequence[Any],
    *,
    length: int,
    reverse: bool = False,
    unroll: int = 1,
    is_linear: bool = False,
) -> tuple[list[Any], list[Any]]:
    """Applies `scan` to a body whose first inputs are captured values, then constants.

    Returns:
        The carry after the last pass, and the stacked `ys`.
    """
    consts = [*body.captured, *consts]
    operands = [*consts, *carry, *xs]
    params = {
        "jaxpr": body.function,
        "length": length,
        "reverse": reverse,
        "unroll": unroll,
        "num_consts": len(consts),
        "num_carry": len(carry),
        "linear": (is_linear,) * len(operands),
    }
    results = scan_primitive.bind(*operands, **params)
    return results[: len(carry)], results[len(carry) :]


def split(
    values: Sequence[Any], num_consts: int, num_carry: int
) -> tuple[list[Any], list[Any], list[Any]]:
    """Splits operands into constants, carry and xs."""
    end = num_consts + num_carry
    return list(values[:num_consts]), list(values[num_consts:end]), list(values[end:])


def stacked(types: Sequence[ShapedArray], length: int) -> list[ShapedArray]:
    """Returns the types of stacks of values of given types."""
    return [ShapedArray((length, *t.shape), t.dtype, t.weak_type) for t in types]


def loop_options(params: dict[str, Any]) -> dict[str, Any]:
    """Returns those parameters that loops derived from a loop share with it."""
    return {name: params[name] for name in ("length", "reverse", "unroll")}


def _infer(
    *types: ShapedArray,
    jaxpr: Function,
    length: int,
    num_consts: int,
    num_carry: int,
    **params: Any,
) -> list[ShapedArray]:
    if len(types) < num_consts + num_carry or length < 0:
        raise ParameterError(
            f"scan has {len(types)} operands, length={length}, num_consts={num_consts} and "
            f"num_carry={num_carry}.",
            "The operands are the constants, the carry and the arrays that are scanned.",
        )
    consts, carry, xs = split(types, num_consts, num_carry)
    if any(not t.shape or t.shape[0] != length for t in xs):
        raise ParameterError(
            f"scan: the arrays that are scanned, of types {signature(xs)}, must all have a first "
            f"axis of extent length={length}.",
        )
    slices = [ShapedArray(t.shape[1:], t.dtype, t.weak_type) for t in xs]
    check_arguments("scan: the body", jaxpr, [*consts, *carry, *slices])
    outputs = jaxpr.output_types
    check_results("scan: the body", jaxpr, [*carry, *outputs[num_carry:]])
    return [*outputs[:num_carry], *stacked(outputs[num_carry:], length)]


# Values ----------------------------------------------------------------------------------------


def _evaluate(
    *operands: np.ndarray,
    jaxpr: Function,
    length: int,
    reverse: bool,
    num_consts: int,
    num_carry: int,
    **params: Any,
) -> list[np.ndarray]:
    consts, carry, xs = split(operands, num_consts, num_carry)
    ys = [np.empty((length, *t.shape), storage(t.dtype)) for t in jaxpr.output_types[num_carry:]]
    steps = steps_of(jaxpr)
    with quiet():
        for i in range(length - 1, -1, -1) if reverse else range(length):
            results = steps([*consts, *carry, *[x[i, ...] for x in xs]])
            carry = results[:num_carry]
            for y, result in zip(ys, results[num_carry:], strict=True):
                y[i] = result
    return [*carry, *ys]


def _gain(*, jaxpr: Function, length: int, **params: Any) -> float:
    return length * (work_of(jaxpr) + _SLICING - COMPILED_PASS)


def _lower(
    context: Any,
    *values: Any,
    jaxpr: Function,
    length: int,
    reverse: bool,
    unroll: int,
    num_consts: int,
    num_carry: int,
    linear: tuple[bool, ...],
) -> list[Any]:
    consts, carry, xs = split(values, num_consts, num_carry)

    def advance(carry: Sequence[Any], slices: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        results = context.inline(jaxpr, *consts, *carry, *slices)
        return results[:num_carry], results[num_carry:]

    types = [t.words for t in jaxpr.output_types[num_carry:]]
    return lowered_loop(advance, carry, xs, types, length, reverse, unroll)


# Batching --------------------------------------------------------------------------------------


def _batch(
    operands: Sequence[Any],
    axes: Sequence[int | None],
    *,
    jaxpr: Function,
    num_consts: int,
    num_carry: int,
    **params: Any,
) -> tuple[list[Any], list[int | None]]:
    size = current_frame().size
    consts, init, xs = split(operands, num_consts, num_carry)
    const_axes, init_axes, x_axes = split(axes, num_consts, num_carry)
    # The axis that is scanned stays first.
    xs = [moveaxis(x, 0, 1) if axis == 0 else x for x, axis in zip(xs, x_axes, strict=True)]
    slice_axes = [None if axis is None else max(axis - 1, 0) for axis in x_axes]
    carry = tuple(axis is not None for axis in init_axes)
    while True:
        carry_axes = [0 if batched else None for batched in carry]
        found = derive_batched(jaxpr, [*const_axes, *carry_axes, *slice_axes]).axes
        grown = union(carry, [axis is not None for axis in found[:num_carry]])
        if grown == carry:
            break
        carry = grown
    out_axes = [*carry_axes, *found[num_carry:]]
    batched = derive_batched(jaxpr, [*const_axes, *carry_axes, *slice_axes], out_axes).function
    body = derived_body(batched, "closed", lambda: _closed(batched))
    init = [
        to_front(x, axis, size) if is_batched else x
        for x, axis, is_batched in zip(init, init_axes, carry, strict=True)
    ]
    results = bind_scan(
        body, consts, init, xs,
        **loop_options(params),
    )
    y_axes = [None if axis is None else axis + 1 for axis in found[num_carry:]]
    return [*results[0], *results[1]], [*carry_axes, *y_axes]


def _closed(function: Function) -> Body:
    if not function.captures:
        return Body(function, ())
    return trace_body(
        lambda *arguments: call_function(function, arguments),
        [v.type for v in function.inputs],
        function.name,
        "Vmap",
    )


scan_primitive = declare(
    "scan",
    takes_keys=True,
    multiple_results=True,
    is_memoized=False,
    is_staged=True,
    infer=_infer,
    evaluate=_evaluate,
    batch=_batch,
    lower=_lower,
    samples=loop_samples.scan_samples,
)
scan_primitive.implementation = implementation(scan_primitive, _gain)
