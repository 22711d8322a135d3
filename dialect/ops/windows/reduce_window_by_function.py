"""Reductions of sliding windows by a function of the user's: `reduce_window`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Param, UserObject
from axir.dialect.core.array import from_numpy
from axir.dialect.core.symbolic_zeros import Zero
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.arithmetic import max as larger_of
from axir.dialect.ops.elementwise.comparison import or_, select_n
from axir.dialect.ops.elementwise.family import instantiate
from axir.dialect.ops.reductions.computations import (
    Computation,
    apply_elementwise,
    check_equal_shapes,
    paired_with_tangents,
    single_op,
)
from axir.dialect.ops.reductions.variadic_reduce import sample_computations
from axir.dialect.ops.shape.movement import batch_size
from axir.dialect.ops.shape.rearranging import broadcast_in_dim, move_batch_axis
from axir.dialect.program.derived_functions import derive
from axir.dialect.program.function import Function
from axir.dialect.program.function_rules import LoweringContext
from axir.dialect.program.function_tracing import trace_function
from axir.dialect.program.op_table import Traceable, declare
from axir.dialect.program.operation import Sample
from axir.dialect.program.rules import BatchAxes, Operand, Results, Tangent, Value

from .reduce_window import reduce_window_max, reduce_window_min, reduce_window_sum
from .sliding_windows import (
    WINDOW_PARAMETERS,
    Window,
    check_window,
    cut_dimensions,
    cut_value,
    fold_windows,
    lower_windows,
    occupied_places,
    pad_value,
    result_shape,
    window_of,
)

# Ops that may combine an element repeatedly, so that initial values can fill holes.
_IDEMPOTENT = frozenset(("max", "min", "and", "or"))


def _infer(*types: ShapedArray, jaxpr: Function, **params: Param) -> list[ShapedArray]:
    name, window = "reduce_window", Window(**params)
    count = len(types) // 2
    check_equal_shapes(name, types[:count])
    check_window(name, types[0].ndim, window)
    shape = result_shape(types[0].shape, window)
    return [
        ShapedArray(shape, x.dtype, x.weak_type and init.weak_type)
        for x, init in zip(types[:count], types[count:], strict=True)
    ]


# Folds -----------------------------------------------------------------------------------------


def _fold(
    function: Function, operands: Sequence[Value], inits: Sequence[Value], window: Window
) -> list[Value]:
    """Reduces by doubling; initial values may have the shape of the result.

    `function` combines accumulators, then elements. Holes take no part. A scalar has no windows: it
    is its own result, as in a `reduce` along no axes.
    """
    if not operands[0].shape:
        return list(operands)
    counts = result_shape(operands[0].shape, window)
    accumulators = [x if x.shape == counts else broadcast_in_dim(x, counts, ()) for x in inits]
    if 0 in counts or not operands[0].size:
        return accumulators
    padded = [pad_value(x, 0, window) for x in operands]
    if not window.has_holes:
        total = fold_windows(
            lambda lhs, rhs: apply_elementwise(function, [*lhs, *rhs]),
            padded,
            window,
            counts,
            cut_value,
        )
        return apply_elementwise(function, [*accumulators, *total])

    def combine(lhs: list[Value], rhs: list[Value]) -> list[Value]:
        (*before, is_before), (*after, is_after) = lhs, rhs
        both = apply_elementwise(function, [*before, *after])
        chosen = [
            select_n(is_before, b, select_n(is_after, a, c))
            for a, b, c in zip(before, after, both, strict=True)
        ]
        return [*chosen, or_(is_before, is_after)]

    is_element = from_numpy(np.ascontiguousarray(occupied_places(operands[0].shape, window)))
    *total, is_any = fold_windows(combine, [*padded, is_element], window, counts, cut_value)
    results = apply_elementwise(function, [*accumulators, *total])
    return [select_n(is_any, i, r) for i, r in zip(accumulators, results, strict=True)]


def _evaluate(*arrays: np.ndarray, jaxpr: Function, **params: Param) -> list[np.ndarray]:
    count = len(arrays) // 2
    values = [from_numpy(x) for x in arrays]
    results = _fold(jaxpr, values[:count], values[count:], Window(**params))
    return [x.host() for x in results]  # type: ignore[attr-defined]


# Rules -----------------------------------------------------------------------------------------


def _jvp(
    primals: Sequence[Value],
    tangents: Sequence[Tangent],
    outs: Results,
    *,
    jaxpr: Function,
    **params: Param,
) -> Sequence[Tangent]:
    """Folds values together with their tangents, combined by the tangent of the computation."""
    count = len(primals) // 2
    is_inexact = [dtypes.is_inexact(x.dtype) for x in primals[:count]]
    if all(type(t) is Zero for t in tangents):
        return [Zero(out.aval.to_tangent_aval()) for out in outs]
    moving = [
        instantiate(tangent)
        for tangent, is_moving in zip(tangents, is_inexact * 2, strict=True)
        if is_moving
    ]
    active = len(moving) // 2
    results = _fold(
        paired_with_tangents(jaxpr, tuple(is_inexact)),
        [*primals[:count], *moving[:active]],
        [*primals[count:], *moving[active:]],
        Window(**params),
    )
    remaining = iter(results[count:])
    return [
        next(remaining) if is_moving else Zero(out.aval.to_tangent_aval())
        for out, is_moving in zip(outs, is_inexact, strict=True)
    ]


def _batch(
    operands: Sequence[Value], axes: BatchAxes, *, jaxpr: Function, **params: Param
) -> tuple[list[Value], list[int]]:
    count = len(operands) // 2
    size = batch_size(operands, axes)
    window = Window(**params).batched()
    arrays = [
        move_batch_axis(x, axis, size, 0)
        for x, axis in zip(operands[:count], axes[:count], strict=True)
    ]
    if arrays[0].ndim == 1:  # scalars, which have no windows
        return arrays, [0] * count
    inits = operands[count:]
    if all(axis is None for axis in axes[count:]):
        results = _reduce_window.bind(*arrays, *inits, jaxpr=jaxpr, **window._asdict())
        return results, [0] * count
    # Each batch element starts from another initial value, which the op does not support.
    shape = result_shape(arrays[0].shape, window)
    spread = [
        broadcast_in_dim(x, shape, () if axis is None else (0,))
        for x, axis in zip(inits, axes[count:], strict=True)
    ]
    return _fold(jaxpr, arrays, spread, window), [0] * count


def _lower(
    context: LoweringContext, *values: ir.Value, jaxpr: Function, **params: Param
) -> list[ir.Value]:
    count, window = len(values) // 2, Window(**params)
    operand, out = context.types_in[0], context.types_out[0]
    operands, inits = list(values[:count]), list(values[count:])
    if not out.shape:
        return operands
    if not out.size or not operand.size:
        return [hlo.broadcast_in_dim(init, out.shape, ()) for init in inits]

    def body(*scalars: Operand) -> list[Value]:
        return context.inline(jaxpr, *scalars)

    if not window.has_holes or single_op(jaxpr) in _IDEMPOTENT:
        return lower_windows(operands, inits, window, body)

    # StableHLO would combine the initial values once for every hole, and in any order.
    def guarded(*scalars: ir.Value) -> list[ir.Value]:
        before, is_before = scalars[:count], scalars[count]
        after, is_after = scalars[count + 1 : -1], scalars[-1]
        both = body(*before, *after)
        chosen = [
            hlo.select(is_after, hlo.select(is_before, c, b), a)
            for a, b, c in zip(before, after, both, strict=True)
        ]
        return [*chosen, hlo.or_(is_before, is_after)]

    is_element = hlo.broadcast_in_dim(hlo.constant(True), operand.shape, ())
    *found, has_element = lower_windows(
        [*operands, is_element], [*inits, hlo.constant(False)], window, guarded
    )
    starts = [hlo.broadcast_in_dim(init, out.shape, ()) for init in inits]
    started = _lower_elementwise(context, jaxpr, [*starts, *found])
    return [
        hlo.select(has_element, value, start) for value, start in zip(started, starts, strict=True)
    ]


def _lower_elementwise(
    context: LoweringContext, function: Function, values: Sequence[ir.Value]
) -> list[ir.Value]:
    """Writes the ops of a function of scalars for the elements of arrays of one shape."""
    shape = hlo.shape_of(values[0])
    size = math.prod(shape)
    axes = (0,) * len(function.inputs)
    batched = derive(function, "vmap", size, axes, (0,) * len(function.outputs)).function
    results = context.inline(batched, *(hlo.reshape(x, (size,)) for x in values))
    return [hlo.reshape(x, shape) for x in results]


# Samples and the function ----------------------------------------------------------------------


def _samples() -> list[Sample]:
    logsumexp, labelled, both = sample_computations()
    largest = trace_function(lambda x, y: [larger_of(x, y)], [ShapedArray((), np.int32)] * 2)
    generator = np.random.default_rng(5)

    def draw(*shape: int) -> np.ndarray:
        return (generator.permutation(int(np.prod(shape))).reshape(shape) / 8 + 0.5).astype(
            np.float32
        )

    zero, one, start = np.float32(0), np.float32(1), np.float32(-np.inf)
    labels = generator.integers(0, 9, (3, 4), np.int32)
    plain, pads = ((2,), (1,), ((0, 0),), (1,), (1,)), ((2, 3), (1, 2), ((1, 0), (2, 1)))
    ones = ((1, 1), (1, 1))
    square: tuple = ((2, 2), (1, 1), ((0, 0), (0, 0)), *ones)
    cases: list[tuple[tuple[Any, ...], Function, tuple[Any, ...]]] = [
        ((draw(5), zero), logsumexp, plain),
        ((draw(5), one), logsumexp, ((3,), (2,), ((2, 4),), (2,), (1,))),
        ((draw(3, 4), one), logsumexp, (*pads, *ones)),
        ((draw(9), zero), logsumexp, ((7,), (1,), ((-1, 0),), (1,), (1,))),
        ((draw(0), one), logsumexp, ((2,), (1,), ((2, 1),), (1,), (1,))),
        ((draw(), one), logsumexp, ((), (), (), (), ())),
        (
            (draw(1, 2, 1, 1, 3, 1), one),
            logsumexp,
            ((1, 2, 1, 1, 2, 1), (1,) * 6, ((0, 0),) * 6, (1,) * 6, (1,) * 6),
        ),
        ((draw(3, 4), draw(3, 4), zero, one), both, square),
        ((draw(3, 4), draw(3, 4), one, zero), both, (*pads, (2, 1), (1, 2))),
        ((draw(3, 4), labels, start, np.int32(-1)), labelled, square),
        ((labels, np.int32(4)), largest, (*pads, *ones)),
    ]
    return [
        Sample(
            tuple(np.asarray(x) for x in args),
            {"jaxpr": function, **Window(*fields)._asdict()},
            is_smooth=function not in (labelled, largest),
        )
        for args, function, fields in cases
    ]


_reduce_window = declare(
    "reduce_window",
    parameters={"jaxpr": Function, **WINDOW_PARAMETERS},
    multiple_results=True,
    is_memoized=False,
    infer=_infer,
    evaluate=_evaluate,
    jvp=_jvp,
    dimensions=cut_dimensions,
    batch=_batch,
    lower=_lower,
    samples=_samples,
    unsupported={"transpose": "it need not be linear; differentiate it with jvp first."},
)

_MONOIDS: dict[str, Traceable] = {
    "add": reduce_window_sum,
    "max": reduce_window_max,
    "min": reduce_window_min,
}


def reduce_window(
    operand: Operand,
    init_value: Operand,
    computation: Callable[..., object],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: str | Sequence[tuple[int, int]] = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> UserObject:
    """Reduces sliding windows of an array by a function; several arrays together.

    Args:
        operand: An array, or a tuple or list (in `axir.lax` any tree) of arrays of one shape.
        init_value: A scalar for each array, of its dtype; each window starts from it.
        computation: Associative and commutative; gets accumulators and elements (two scalars, or
            two tuples of scalars) and returns the new accumulators.
        window_dimensions: Number of elements of a window along each dimension.
        window_strides: Distances between neighbouring windows; 1 by default.
        padding: Numbers of places that are added (cut off, if negative) before and after, as pairs
            (low, high); or "VALID" for none, "SAME" for as many windows as there are strides, with
            the odd place behind, "SAME_LOWER" with the odd place in front. Such places hold no
            element: they take no part in the reduction.
        base_dilation: Distances between neighbouring elements, after spreading: 2 leaves a hole,
            which takes no part, between neighbours.
        window_dilation: Distances between the elements of a window.

    Returns:
        One element per window for each operand: an array, or a tuple or list as the operands were.

    Raises:
        ShapeError: for windows that do not have the operands' rank, operands of different shapes,
            and initial values that are not scalars.
        DTypeError: for initial values or results of other dtypes than the operands.
        ParameterError: for different numbers of operands and initial values, a computation that
            uses traced values from around it, or an unknown padding.

    >>> from axir.dialect.ops.elementwise.arithmetic import add
    >>> reduce_window(np.array([1, 2, 3, 4], np.int32), 0, add, (2,), (1,), "SAME")
    Array([3, 5, 7, 4], dtype=int32)
    """
    given = Computation("reduce_window", operand, init_value, computation)
    window = window_of(
        "reduce_window", given.arrays[0].shape, window_dimensions, window_strides, padding,
        base_dilation, window_dilation,
    )  # fmt: skip
    special = _MONOIDS.get(given.monoid() or "")
    if special is not None and _takes(special, given.arrays[0].dtype):
        return given.packed([special.primitive.bind(given.arrays[0], **window._asdict())])
    bind = _reduce_window.bind
    results = bind(*given.arrays, *given.inits, jaxpr=given.function, **window._asdict())
    return given.packed(results)


def _takes(reduction: Traceable, dtype: np.dtype) -> bool:
    """Tells whether a special form takes a dtype: sums need numbers, extrema need an order."""
    if reduction is reduce_window_sum:
        return dtype != dtypes.bool_
    return not dtypes.is_complex(dtype)
