"""`select_and_scatter`: combines elements at the position that a function chooses per window.

The special form with derivatives stands in `select_and_scatter.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import (
    DTypeLike,
    Options,
    Param,
    Returning,
    UserFunction,
    UserObject,
)
from axir.dialect.core.array import ConcreteArray, from_numpy
from axir.dialect.core.errors import DTypeError, ShapeError
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.arithmetic import abs as absolute
from axir.dialect.ops.elementwise.arithmetic import add, mul
from axir.dialect.ops.elementwise.comparison import ge, gt, lt
from axir.dialect.ops.elementwise.family import as_value
from axir.dialect.ops.elementwise.samples import random_values
from axir.dialect.ops.indexing.static_slicing import index_in_dim
from axir.dialect.ops.reductions.computations import apply_elementwise, check_captures, single_op
from axir.dialect.ops.reductions.folding import spaced_values
from axir.dialect.ops.shape.concatenation import concatenate
from axir.dialect.ops.shape.movement import batch_size
from axir.dialect.ops.shape.rearranging import expand_dims, move_batch_axis
from axir.dialect.program.function import Function
from axir.dialect.program.function_rules import LoweringContext
from axir.dialect.program.function_tracing import function_name, trace_function
from axir.dialect.program.op_table import declare
from axir.dialect.program.operation import Sample
from axir.dialect.program.rules import BatchAxes, MlirValues, Operand, Value

from .select_and_scatter import (
    NOWHERE,
    check_source,
    select_and_scatter_add,
    undilated,
)
from .sliding_windows import (
    UNDILATED_PARAMETERS,
    Window,
    cut_dimensions,
    cut_value,
    fold_windows,
    pad_value,
    padded_positions,
    result_shape,
    window_of,
)

_NAME = "select_and_scatter"


def _infer(
    operand: ShapedArray,
    source: ShapedArray,
    init: ShapedArray,
    *,
    select_jaxpr: Function,
    scatter_jaxpr: Function,
    **params: Param,
) -> ShapedArray:
    check_source(_NAME, source, operand, undilated(**params))
    if init.shape or init.dtype != operand.dtype:
        raise ShapeError(
            f"{_NAME}: the initial value {init} must be a scalar of the operand's dtype "
            f"{operand.dtype}."
        )
    return ShapedArray(operand.shape, operand.dtype)


# Evaluation ------------------------------------------------------------------------------------


def _where(keeps: np.ndarray, x: Value, y: Value) -> Value:
    return from_numpy(np.where(keeps, np.asarray(x), np.asarray(y)))


def _positions(operand: np.ndarray, select: Function, window: Window) -> np.ndarray:
    """Returns the number of the element chosen in each window, or `NOWHERE`."""
    counts = result_shape(operand.shape, window)
    if 0 in counts or not operand.size:
        return np.full(counts, NOWHERE, np.int64)

    def combine(lhs: list[Value], rhs: list[Value]) -> list[Value]:
        (a, first), (b, second) = lhs, rhs
        keeps = apply_elementwise(select, [a, b])[0].host()  # type: ignore[attr-defined]
        keeps = (keeps | (second.host() < 0)) & (first.host() >= 0)  # type: ignore[attr-defined]
        return [_where(keeps, a, b), _where(keeps, first, second)]

    arrays = [pad_value(from_numpy(operand), 0, window), padded_positions(operand.shape, window)]
    places = fold_windows(combine, arrays, window, counts, cut_value)[1]
    return places.host()  # type: ignore[attr-defined]


def _evaluate(
    operand: np.ndarray,
    source: np.ndarray,
    init: np.ndarray,
    *,
    select_jaxpr: Function,
    scatter_jaxpr: Function,
    **params: Param,
) -> np.ndarray:
    """Combines, round by round, at most one more element into each place."""
    where = _positions(operand, select_jaxpr, undilated(**params)).reshape(-1)
    order = where.argsort(kind="stable")
    order = order[where[order] >= 0]
    places, elements = where[order], source.reshape(-1)[order]
    result = np.full(operand.size, init, operand.dtype)
    starts = np.flatnonzero(np.diff(places, prepend=NOWHERE))
    ends = np.append(starts[1:], len(places))
    while starts.size:
        hit = places[starts]
        arguments = [from_numpy(result[hit]), from_numpy(elements[starts])]
        result[hit] = apply_elementwise(scatter_jaxpr, arguments)[0].host()  # type: ignore[attr-defined]
        starts += 1
        remains = starts < ends
        starts, ends = starts[remains], ends[remains]
    return result.reshape(operand.shape)


# Batching and lowering -------------------------------------------------------------------------


def _batch(operands: Sequence[Value], axes: BatchAxes, **params: Param) -> tuple[Value, int]:
    size = batch_size(operands, axes)
    operand, source = (
        move_batch_axis(x, axis, size, 0) for x, axis in zip(operands[:2], axes[:2], strict=True)
    )
    init = operands[2]
    functions = {k: params.pop(k) for k in ("scatter_jaxpr", "select_jaxpr")}
    window = undilated(**params)
    if axes[2] is None:
        fields = dict(zip(Window._fields, window.batched()[:3], strict=False))
        return _select_and_scatter.bind(operand, source, init, **functions, **fields), 0
    # Each batch element starts from another initial value, which the op does not support.
    results = [
        _select_and_scatter.bind(
            *(index_in_dim(x, i, keepdims=False) for x in (operand, source, init)),
            **functions,
            **params,
        )
        for i in range(size)
    ]
    return concatenate([expand_dims(x, (0,)) for x in results], 0), 0


def _lower(
    context: LoweringContext,
    operand: ir.Value,
    source: ir.Value,
    init: ir.Value,
    *,
    select_jaxpr: Function,
    scatter_jaxpr: Function,
    **params: Param,
) -> MlirValues:
    array, given, _ = context.types_in
    if not given.size or not array.size:
        return hlo.broadcast_in_dim(init, array.shape, ())
    return hlo.select_and_scatter(
        operand,
        source,
        init,
        lambda a, b: context.inline(select_jaxpr, a, b)[0],
        lambda a, b: context.inline(scatter_jaxpr, a, b)[0],
        **params,
    )


# Samples and the function ----------------------------------------------------------------------


def _samples() -> list[Sample]:
    generator = np.random.default_rng(23)
    samples = []

    def add_sample(
        dtype: DTypeLike,
        select: Returning[Value],
        scatter: Returning[Value],
        init: float,
        shape: tuple[int, ...],
        *fields: Options,
    ) -> None:
        dtype = np.dtype(dtype)
        scalar = ShapedArray((), dtype)
        operand = spaced_values(generator, shape, dtype)
        source = random_values(generator, result_shape(shape, undilated(*fields)), dtype, -2, 2)
        functions = {
            "scatter_jaxpr": trace_function(lambda a, b: [scatter(a, b)], [scalar] * 2),
            "select_jaxpr": trace_function(lambda a, b: [select(a, b)], [scalar] * 2),
        }
        params = dict(zip(Window._fields, fields, strict=False))
        args = (operand, source, np.asarray(init, dtype))
        samples.append(Sample(args, {**functions, **params}))

    def is_larger_in_size(a: Operand, b: Operand) -> Value:
        return ge(absolute(a), absolute(b))

    def halved_sum(a: Operand, b: Operand) -> Value:
        return add(mul(a, b), b)

    f32 = np.float32
    add_sample(f32, ge, mul, 1, (6,), (3,), (1,), ((1, 0),))
    add_sample(f32, is_larger_in_size, halved_sum, 2, (4, 5), (2, 3), (1, 2), ((0, 1), (2, 1)))
    add_sample(f32, gt, add, 0.5, (7,), (2,), (3,), ((-1, 2),))
    add_sample(np.int32, lt, mul, 1, (5,), (2,), (1,), ((0, 0),))
    add_sample(dtypes.bfloat16, ge, mul, 1, (2, 4), (1, 2), (1, 2), ((0, 0), (0, 0)))
    add_sample(f32, ge, add, 1, (3,), (2,), (2,), ((5, 4),))
    add_sample(f32, ge, add, 1, (), (), (), ())
    add_sample(f32, ge, add, 1, (1, 3, 1, 1, 2, 1), (1, 2, 1, 1, 1, 1), (1,) * 6, ((0, 0),) * 6)
    add_sample(f32, ge, add, 1, (0, 2), (1, 1), (1, 1), ((0, 0), (0, 0)))
    return samples


_select_and_scatter = declare(
    _NAME,
    parameters={
        "select_jaxpr": Function,
        "scatter_jaxpr": Function,
        **UNDILATED_PARAMETERS,
    },
    is_memoized=False,
    infer=_infer,
    evaluate=_evaluate,
    dimensions=cut_dimensions,
    batch=_batch,
    lower=_lower,
    samples=_samples,
    unsupported={
        "jvp": "its functions may be any; select_and_scatter with `ge` (or `le`), `add` and the "
        "initial value 0 has a derivative.",
        "transpose": "it need not be linear.",
    },
)


def select_and_scatter(
    operand: Operand,
    select: Callable[[Value, Value], object],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: UserObject,
    source: Operand,
    init_value: Operand,
    scatter: Callable[[Value, Value], object],
) -> Value:
    """Combines an element for each window of an array at the position of the chosen element.

    Args:
        operand: The array with the windows to search.
        select: `(a, b) -> bool scalar`: whether to choose a rather than b, which comes later.
        window_dimensions: As in `reduce_window`, like the strides and the padding.
        window_strides: See there.
        padding: See there. Padding is never chosen.
        source: The elements, one for each window.
        init_value: The value at positions that no window chooses, and the initial value at the
            others.
        scatter: `(current, element) -> scalar`: combines an element with the current value.

    Returns:
        An array of the operand's type.

    Raises:
        ShapeError: unless there is one source element for each window.
        DTypeError: for functions that return other types than they should.

    >>> import numpy as np
    >>> from axir.dialect.ops.elementwise.arithmetic import ge, mul
    >>> x, s = np.array([3, 1, 2, 5], np.int32), np.array([7, 8], np.int32)
    >>> select_and_scatter(x, ge, (2,), (2,), "VALID", s, 1, mul)
    Array([7, 1, 1, 8], dtype=int32)
    """
    operand, source = as_value(operand), as_value(source)
    if type(init_value) in (bool, int, float, complex):
        init_value = np.asarray(init_value).astype(operand.dtype)
    init = as_value(init_value)
    fields = window_of(_NAME, operand.shape, window_dimensions, window_strides, padding)[:3]
    choice = _traced(select, operand.dtype, dtypes.bool_)
    combiner = _traced(scatter, operand.dtype, operand.dtype)
    is_sum = single_op(combiner) == "add" and type(init) is ConcreteArray and not init.host()
    if is_sum and single_op(choice) in ("ge", "le") and _is_in_order(choice):
        return select_and_scatter_add(source, operand, single_op(choice) or "", *fields)
    params = dict(zip(Window._fields, fields, strict=False))
    return _select_and_scatter.bind(
        operand, source, init, scatter_jaxpr=combiner, select_jaxpr=choice, **params
    )


def _is_in_order(function: Function) -> bool:
    return list(function.equations[0].operands) == list(function.inputs)


def _traced(function: UserFunction, dtype: np.dtype, result: np.dtype) -> Function:
    scalar = ShapedArray((), dtype)
    name = function_name(function)
    traced = trace_function(lambda a, b: [function(a, b)], [scalar] * 2, name=name)
    check_captures(_NAME, traced)
    (out,) = traced.output_types
    if out.shape or out.dtype != result:
        raise DTypeError(
            f"{_NAME}: the function {name!r} must return a scalar of {result}, but returns {out}."
        )
    return traced
