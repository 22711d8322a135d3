"""Ops that read or replace a block of an array: at static places, or at indices known only later.

Dynamic indices are clamped so that the block fits. What does not live here: many blocks at once
(`indexing.py`, `scatter.py`), and the indexing syntax `x[...]` (the frontend's).
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from operator import index
from typing import Any

import numpy as np

from .. import dtypes
from .. import stablehlo as hlo
from ..errors import DTypeError, OutOfBoundsError, ParameterError, ShapeError
from ..primitive import Sample
from ..symbolic import Zero, is_undefined_primal
from ..types import ShapedArray
from .elementwise import add, lt, select_n
from .family import ANY, INTEGER, Value, as_value, full, instantiate, match_scalars, random_values
from .movement import apply_to_tangent, batch_size, canonical_axis, insert, integers, spread_samples
from .shape import broadcast_in_dim, concatenate, expand_dims, move_batch_axis, pad, squeeze
from .table import declare

# slice -----------------------------------------------------------------------------------------


def _infer_slice(
    operand: ShapedArray,
    *,
    start_indices: tuple[int, ...],
    limit_indices: tuple[int, ...],
    strides: tuple[int, ...] | None,
) -> ShapedArray:
    steps = (1,) * operand.ndim if strides is None else strides
    if not len(start_indices) == len(limit_indices) == len(steps) == operand.ndim:
        raise ShapeError(
            f"slice: start_indices {start_indices}, limit_indices {limit_indices} and strides "
            f"{strides} must have one entry for each of the {operand.ndim} dimensions of {operand}."
        )
    shape = []
    bounds = zip(start_indices, limit_indices, steps, operand.shape, strict=True)
    for dimension, (start, limit, step, extent) in enumerate(bounds):
        if not 0 <= start <= limit <= extent:
            raise ShapeError(
                f"slice: bounds {start} to {limit} along dimension {dimension} of {operand} do not "
                f"satisfy 0 <= start <= limit <= {extent}.",
                "Negative bounds count from the end in slice_in_dim and in x[start:limit].",
            )
        if step <= 0:
            raise ShapeError(
                f"slice: stride {step} along dimension {dimension} is not positive.",
                "Reverse with rev, or with x[::-1].",
            )
        shape.append(-(-(limit - start) // step))
    return ShapedArray(shape, operand.dtype, operand.weak_type)


def _evaluate_slice(
    x: np.ndarray,
    *,
    start_indices: tuple[int, ...],
    limit_indices: tuple[int, ...],
    strides: tuple[int, ...] | None,
) -> np.ndarray:
    if strides is None:
        return x[tuple(map(builtins.slice, start_indices, limit_indices))]
    return x[tuple(map(builtins.slice, start_indices, limit_indices, strides))]


def _transpose_slice(
    ct: Value,
    operand: Any,
    *,
    start_indices: tuple[int, ...],
    limit_indices: tuple[int, ...],
    strides: tuple[int, ...] | None,
) -> list[Any]:
    shape = operand.aval.shape
    steps = (1,) * len(shape) if strides is None else strides
    config = []
    for start, step, count, extent in zip(start_indices, steps, ct.shape, shape, strict=True):
        end = start + (count - 1) * step + 1 if count else start
        config.append((start, extent - end, step - 1))
    return [pad(ct, full((), 0, ct.dtype), config)]


def _batch_slice(
    operands: Sequence[Value],
    axes: Sequence[int],
    *,
    start_indices: tuple[int, ...],
    limit_indices: tuple[int, ...],
    strides: tuple[int, ...] | None,
) -> tuple[Value, int]:
    (x,), (axis,) = operands, axes
    result = _slice.bind(
        x,
        start_indices=insert(start_indices, axis, 0),
        limit_indices=insert(limit_indices, axis, x.shape[axis]),
        strides=None if strides is None else insert(strides, axis, 1),
    )
    return result, axis


def _slice_samples() -> list[Sample]:
    def variant(shape: tuple[int, ...], start: Any, limit: Any, strides: Any = None) -> Any:
        params = {"start_indices": start, "limit_indices": limit, "strides": strides}
        return (shape,), params

    return spread_samples([
        variant((4, 5), (1, 2), (3, 5)),
        variant((7, 5), (1, 0), (6, 5), (2, 3)),
        variant((6,), (1,), (6,), (4,)),
        variant((3,), (2,), (2,)),
        variant((), (), ()),
        variant((0, 2), (0, 0), (0, 1), (1, 1)),
    ])


_slice = declare(
    "slice",
    infer=_infer_slice,
    evaluate=_evaluate_slice,
    jvp=apply_to_tangent(lambda t, **params: _slice.bind(t, **params)),
    transpose=_transpose_slice,
    batch=_batch_slice,
    lower=lambda context, x, *, start_indices, limit_indices, strides: hlo.slice(
        x, start_indices, limit_indices, strides
    ),
    samples=_slice_samples,
)


def slice(
    operand: Value,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None = None,
) -> Value:
    """Returns a block at a static place.

    Args:
        operand: The array.
        start_indices: First index along each dimension.
        limit_indices: End (exclusive) along each dimension, at most its extent.
        strides: Step along each dimension; 1 by default.

    Raises:
        ShapeError: if the bounds lie outside the array, or a stride is not positive.

    >>> from axir.dialect.array import as_array
    >>> slice(as_array(np.arange(6)), (1,), (6,), (2,))
    Array([1, 3, 5], dtype=int32)
    """
    return _slice.bind(
        operand,
        start_indices=integers("slice", "start_indices", start_indices),
        limit_indices=integers("slice", "limit_indices", limit_indices),
        strides=None if strides is None else integers("slice", "strides", strides),
    )


def slice_in_dim(
    operand: Value,
    start_index: int | None,
    limit_index: int | None,
    stride: int = 1,
    axis: int = 0,
) -> Value:
    """Slices along one axis; negative bounds count from the end, None is the end itself.

    >>> from axir.dialect.array import as_array
    >>> slice_in_dim(as_array(np.arange(6)), -3, None)
    Array([3, 4, 5], dtype=int32)
    """
    operand = as_value(operand)
    axis = canonical_axis("slice_in_dim", axis, operand.ndim)
    extent = operand.shape[axis]
    start = 0 if start_index is None else index(start_index)
    limit = extent if limit_index is None else index(limit_index)
    starts, limits, strides = [0] * operand.ndim, list(operand.shape), [1] * operand.ndim
    starts[axis] = start + extent if start < 0 else start
    limits[axis] = limit + extent if limit < 0 else limit
    strides[axis] = index(stride)
    return slice(operand, starts, limits, None if stride == 1 else strides)


def index_in_dim(operand: Value, index: int, axis: int = 0, keepdims: bool = True) -> Value:
    """Returns the entry at a static index along one axis.

    Args:
        operand: The array.
        index: Which entry; negative ones count from the end.
        axis: Along which axis.
        keepdims: Whether the axis stays, with extent 1.

    Raises:
        OutOfBoundsError: if there is no such entry.
    """
    operand = as_value(operand)
    axis = canonical_axis("index_in_dim", axis, operand.ndim)
    extent = operand.shape[axis]
    if not -extent <= index < extent:
        raise OutOfBoundsError(
            f"index_in_dim: index {index} is out of bounds for axis {axis} of extent {extent}."
        )
    start = index + extent if index < 0 else index
    result = slice_in_dim(operand, start, start + 1, 1, axis)
    return result if keepdims else squeeze(result, (axis,))


# Dynamic indices -------------------------------------------------------------------------------

_INDEX_LIMIT = np.iinfo(np.int32).max


def _check_starts(name: str, operand: ShapedArray, starts: Sequence[ShapedArray]) -> None:
    if len(starts) != operand.ndim:
        raise ShapeError(
            f"{name}: {len(starts)} start indices were given for the {operand.ndim} dimensions of "
            f"{operand}."
        )
    if any(start.shape for start in starts):
        raise ShapeError(
            f"{name}: start indices must be scalars, but got {', '.join(map(str, starts))}.",
            "Use gather, or vmap, for many blocks.",
        )
    if any(s.dtype not in INTEGER or s.dtype != starts[0].dtype for s in starts):
        raise DTypeError(
            f"{name}: start indices must be integers of one dtype, but got "
            f"{', '.join(map(str, starts))}.",
            "Cast with i.astype(int).",
        )


def _check_block(name: str, operand: ShapedArray, sizes: tuple[int, ...], what: str) -> None:
    if len(sizes) != operand.ndim:
        raise ShapeError(
            f"{name}: {what} {sizes} must have one entry for each of the {operand.ndim} dimensions "
            f"of {operand}."
        )
    if any(not 0 <= size <= extent for size, extent in zip(sizes, operand.shape, strict=True)):
        raise ShapeError(f"{name}: {what} {sizes} does not fit into {operand}.")


def _block(
    shape: tuple[int, ...], sizes: Sequence[int], starts: Sequence[np.ndarray]
) -> tuple[builtins.slice, ...]:
    block = []
    for extent, size, start in zip(shape, sizes, starts, strict=True):
        first = int(start)
        first = 0 if first < 0 else extent - size if first > extent - size else first
        block.append(builtins.slice(first, first + size))
    return tuple(block)


def _lower_starts(context: Any, starts: Sequence[Any], sizes: Sequence[int]) -> list[Any]:
    """Start indices in a signed dtype wide enough for the extents."""
    if not starts:
        return []
    dtype = context.types_in[-1].dtype
    if dtype in (dtypes.int32, dtypes.int64):
        return list(starts)
    shape = context.types_in[0].shape
    lowered = []
    for start, extent, size in zip(starts, shape, sizes, strict=True):
        highest = extent - size
        # Large unsigned indices would turn negative, hence are clamped before the cast.
        if dtypes.is_unsigned(dtype) and highest <= np.iinfo(dtype).max:
            start = hlo.minimum(start, hlo.full_like(start, highest))
        lowered.append(hlo.convert(start, dtypes.int64 if highest > _INDEX_LIMIT else dtypes.int32))
    return lowered


def _start_operands(
    name: str, operand: Value, start_indices: Any, allow_negative_indices: Any
) -> list[Value]:
    """Splits start indices into scalars of one dtype; negative ones count from the end."""
    if hasattr(start_indices, "ndim") and start_indices.ndim == 1:
        array = as_value(start_indices)
        starts = [index_in_dim(array, i, 0, keepdims=False) for i in range(array.shape[0])]
    else:
        starts = list(start_indices)
    if not starts:
        return starts
    allowed = allow_negative_indices
    wraps = [allowed] * len(starts) if isinstance(allowed, bool) else list(allowed)
    if not len(starts) == len(wraps) == operand.ndim:
        raise ShapeError(
            f"{name}: {len(starts)} start indices ({len(wraps)} entries of allow_negative_indices) "
            f"were given for the {operand.ndim} dimensions of {operand.aval}."
        )
    wrapped = [
        _wrap(start, extent) if may_wrap else start
        for start, extent, may_wrap in zip(starts, operand.shape, wraps, strict=True)
    ]
    return _one_dtype([start if type(start) is int else as_value(start) for start in wrapped])


def _wrap(start: Any, extent: int) -> Any:
    if isinstance(start, (int, np.integer)):
        start = int(start)
        return start + extent if start < 0 else start
    start = as_value(start)
    if start.shape or start.dtype not in dtypes.SIGNED:
        return start  # unsigned, or not an index: for `infer` to judge
    if extent > np.iinfo(start.dtype).max:
        from .conversion import convert_element_type

        start = convert_element_type(start, dtypes.int32)
    return select_n(lt(start, 0), start, add(start, extent))


def _one_dtype(starts: list[Any]) -> list[Value]:
    """Casts start indices of different integer dtypes to the one that they promote to."""
    kinds = {start.dtype for start in starts if type(start) is not int}
    if len(kinds) <= 1:
        return match_scalars(*starts)
    from .conversion import convert_element_type

    common, _ = dtypes.promote((dtype, False) for dtype in kinds)
    if not dtypes.is_integer(common):
        return match_scalars(*starts)  # unequal dtypes: for `infer` to refuse
    return [
        start if type(start) is not int and start.dtype == common
        else convert_element_type(as_value(start), common)
        for start in starts
    ]


def _stack_starts(starts: Sequence[Value], axes: Sequence[int | None], size: int) -> Value:
    """Joins start indices, each with a batch axis or without, into rows of one index each."""
    columns = [
        broadcast_in_dim(start, (size, 1), () if axis is None else (0,))
        for start, axis in zip(starts, axes, strict=True)
    ]
    return concatenate(columns, 1)


def _zero_start(starts: Sequence[Value]) -> Value:
    return full((), 0, starts[0].dtype if starts else dtypes.int32)


# dynamic_slice ---------------------------------------------------------------------------------


def _infer_dynamic_slice(
    operand: ShapedArray, *starts: ShapedArray, slice_sizes: tuple[int, ...]
) -> ShapedArray:
    _check_starts("dynamic_slice", operand, starts)
    _check_block("dynamic_slice", operand, slice_sizes, "slice_sizes")
    return ShapedArray(slice_sizes, operand.dtype, operand.weak_type)


def _transpose_dynamic_slice(
    ct: Value, operand: Any, *starts: Any, slice_sizes: tuple[int, ...]
) -> list[Any]:
    if not is_undefined_primal(operand):
        return [None] * (1 + len(starts))
    zeros = full(operand.aval.shape, 0, ct.dtype)
    return [_dynamic_update_slice.bind(zeros, ct, *starts), *[None] * len(starts)]


def _batch_dynamic_slice(
    operands: Sequence[Value], axes: Sequence[int | None], *, slice_sizes: tuple[int, ...]
) -> tuple[Value, int]:
    (x, *starts), (axis, *start_axes) = operands, axes
    if all(a is None for a in start_axes):
        assert axis is not None
        sizes = insert(slice_sizes, axis, x.shape[axis])
        all_starts = insert(starts, axis, _zero_start(starts))
        return _dynamic_slice.bind(x, *all_starts, slice_sizes=sizes), axis
    from .indexing import GatherDimensionNumbers, gather

    rows = _stack_starts(starts, start_axes, batch_size(operands, axes))
    batching = () if axis is None else (axis,)
    ndim = len(slice_sizes)
    numbers = GatherDimensionNumbers(
        offset_dims=tuple(range(1, ndim + 1)),
        collapsed_slice_dims=(),
        start_index_map=tuple(d for d in range(x.ndim) if d != axis),
        operand_batching_dims=batching,
        start_indices_batching_dims=() if axis is None else (0,),
    )
    sizes = slice_sizes if axis is None else insert(slice_sizes, axis, 1)
    return gather(x, rows, numbers, sizes, mode="clip"), 0


def _dynamic_slice_samples() -> list[Sample]:
    generator = np.random.default_rng(0)
    variants: list[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]] = [
        ((4, 5), (1, 2), (2, 3)),
        ((4, 5), (3, -2), (2, 3)),
        ((6,), (100,), (2,)),
        ((), (), ()),
        ((3, 2), (1, 0), (0, 2)),
    ]
    cases = [(dtypes.float32, dtype, variants[i % 3]) for i, dtype in enumerate(INTEGER)]
    cases += [(d, dtypes.int32, variants[i % 5]) for i, d in enumerate((dtypes.float32, *ANY))]
    samples = []
    for dtype, index_dtype, (shape, starts, sizes) in cases:
        indices = tuple(np.array(s).astype(index_dtype) for s in starts)
        x = random_values(generator, shape, dtype, -2, 2)
        samples.append(Sample((x, *indices), {"slice_sizes": sizes}))
    return samples


_dynamic_slice = declare(
    "dynamic_slice",
    infer=_infer_dynamic_slice,
    evaluate=lambda x, *starts, slice_sizes: x[_block(x.shape, slice_sizes, starts)],
    jvp=apply_to_tangent(lambda t, *starts, **params: _dynamic_slice.bind(t, *starts, **params)),
    transpose=_transpose_dynamic_slice,
    batch=_batch_dynamic_slice,
    lower=lambda context, x, *starts, slice_sizes: hlo.dynamic_slice(
        x, _lower_starts(context, starts, slice_sizes), slice_sizes
    ),
    samples=_dynamic_slice_samples,
)


def dynamic_slice(
    operand: Value,
    start_indices: Any,
    slice_sizes: Sequence[int],
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Value:
    """Returns a block at indices that need not be known while tracing.

    Args:
        operand: The array.
        start_indices: First index along each dimension: a sequence of integer scalars, or an array
            of rank 1. They are clamped so that the block fits into the array.
        slice_sizes: Extents of the block.
        allow_negative_indices: Whether negative indices count from the end (for each dimension, or
            for all); otherwise they are clamped to zero.

    Raises:
        ShapeError: if the block does not fit into the array, or the indices do not fit its rank.
        DTypeError: if the indices are not integers.

    >>> from axir.dialect.array import as_array
    >>> dynamic_slice(as_array(np.arange(6)), (5,), (2,))
    Array([4, 5], dtype=int32)
    """
    operand = as_value(operand)
    starts = _start_operands("dynamic_slice", operand, start_indices, allow_negative_indices)
    sizes = integers("dynamic_slice", "slice_sizes", slice_sizes)
    return _dynamic_slice.bind(operand, *starts, slice_sizes=sizes)


def dynamic_slice_in_dim(
    operand: Value,
    start_index: Any,
    slice_size: int,
    axis: int = 0,
    *,
    allow_negative_indices: bool = True,
) -> Value:
    """Slices along one axis at an index that need not be known while tracing."""
    operand = as_value(operand)
    axis = canonical_axis("dynamic_slice_in_dim", axis, operand.ndim)
    sizes = (*operand.shape[:axis], index(slice_size), *operand.shape[axis + 1 :])
    starts = _starts_along(operand, start_index, axis)
    return dynamic_slice(operand, starts, sizes, allow_negative_indices=allow_negative_indices)


def _starts_along(operand: Value, start: Any, axis: int) -> list[Any]:
    starts: list[Any] = [0] * operand.ndim
    starts[axis] = start
    return starts


def dynamic_index_in_dim(
    operand: Value,
    index: Any,
    axis: int = 0,
    keepdims: bool = True,
    *,
    allow_negative_indices: bool = True,
) -> Value:
    """Returns the entry along one axis at an index that need not be known while tracing.

    >>> from axir.dialect.array import as_array
    >>> dynamic_index_in_dim(as_array(np.arange(6).reshape(2, 3)), 1, keepdims=False)
    Array([3, 4, 5], dtype=int32)
    """
    operand = as_value(operand)
    axis = canonical_axis("dynamic_index_in_dim", axis, operand.ndim)
    result = dynamic_slice_in_dim(
        operand, index, 1, axis, allow_negative_indices=allow_negative_indices
    )
    return result if keepdims else squeeze(result, (axis,))


# dynamic_update_slice --------------------------------------------------------------------------


def _infer_update(
    operand: ShapedArray, update: ShapedArray, *starts: ShapedArray
) -> ShapedArray:
    name = "dynamic_update_slice"
    _check_starts(name, operand, starts)
    if operand.dtype != update.dtype:
        raise DTypeError(
            f"{name}: the update {update} must have the dtype of the operand {operand}.",
            "Cast with update.astype(operand.dtype).",
        )
    _check_block(name, operand, update.shape, "the update of shape")
    return ShapedArray(operand.shape, operand.dtype, operand.weak_type and update.weak_type)


def _evaluate_update(
    operand: np.ndarray, update: np.ndarray, *starts: np.ndarray
) -> np.ndarray:
    result = operand.copy()
    result[_block(operand.shape, update.shape, starts)] = update
    return result


def _update_jvp(primals: Sequence[Any], tangents: Sequence[Any], out: Value) -> Any:
    if type(tangents[0]) is Zero and type(tangents[1]) is Zero:
        return Zero(out.aval.to_tangent_aval())
    return _dynamic_update_slice.bind(
        instantiate(tangents[0]), instantiate(tangents[1]), *primals[2:]
    )


def _transpose_update(ct: Value, operand: Any, update: Any, *starts: Any) -> list[Any]:
    cotangents: list[Any] = [None] * (2 + len(starts))
    shape = update.aval.shape
    if is_undefined_primal(operand):
        zeros = full(shape, 0, ct.dtype)
        cotangents[0] = _dynamic_update_slice.bind(ct, zeros, *starts)
    if is_undefined_primal(update):
        cotangents[1] = _dynamic_slice.bind(ct, *starts, slice_sizes=shape)
    return cotangents


def _batch_update(
    operands: Sequence[Value], axes: Sequence[int | None]
) -> tuple[Value, int]:
    (x, update, *starts), (axis, update_axis, *start_axes) = operands, axes
    size = batch_size(operands, axes)
    destination = axis if axis is not None else update_axis if update_axis is not None else 0
    x = move_batch_axis(x, axis, size, destination)
    update = move_batch_axis(update, update_axis, size, destination)
    if all(a is None for a in start_axes):
        all_starts = insert(starts, destination, _zero_start(starts))
        return _dynamic_update_slice.bind(x, update, *all_starts), destination
    from .scatter import ScatterDimensionNumbers, scatter

    others = tuple(d for d in range(x.ndim) if d != destination)
    # The scattered windows stand behind the batch axis, which is that of the rows.
    update = move_batch_axis(update, destination, size, 0)
    numbers = ScatterDimensionNumbers(
        update_window_dims=tuple(range(1, x.ndim)),
        inserted_window_dims=(),
        scatter_dims_to_operand_dims=others,
        operand_batching_dims=(destination,),
        scatter_indices_batching_dims=(0,),
    )
    rows = _stack_starts(starts, start_axes, size)
    return scatter(x, rows, update, numbers, mode="clip"), destination


def _update_samples() -> list[Sample]:
    generator = np.random.default_rng(0)
    variants: list[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]] = [
        ((4, 5), (1, 2), (2, 3)),
        ((4, 5), (3, -2), (2, 3)),
        ((6,), (100,), (2,)),
        ((), (), ()),
        ((3, 2), (1, 0), (0, 2)),
    ]
    cases = [(d, dtypes.int32, variants[i % 5]) for i, d in enumerate((dtypes.float32, *ANY))]
    cases += [(dtypes.float32, dtypes.int32, variant) for variant in variants]
    cases += [(dtypes.float32, dtype, variants[1]) for dtype in (dtypes.int8, dtypes.uint32)]
    samples = []
    for dtype, index_dtype, (shape, starts, sizes) in cases:
        indices = tuple(np.array(s).astype(index_dtype) for s in starts)
        x = random_values(generator, shape, dtype, -2, 2)
        samples.append(Sample((x, random_values(generator, sizes, dtype, -2, 2), *indices)))
    return samples


_dynamic_update_slice = declare(
    "dynamic_update_slice",
    infer=_infer_update,
    evaluate=_evaluate_update,
    jvp=_update_jvp,
    transpose=_transpose_update,
    batch=_batch_update,
    lower=lambda context, x, update, *starts: hlo.dynamic_update_slice(
        x, update, _lower_starts(context, starts, context.types_in[1].shape)
    ),
    samples=_update_samples,
)


def dynamic_update_slice(
    operand: Value,
    update: Value,
    start_indices: Any,
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Value:
    """Returns an array in which a block is replaced, at indices that need not be known yet.

    Args:
        operand: The array.
        update: The block, of the array's dtype and rank.
        start_indices: First index along each dimension: a sequence of integer scalars, or an array
            of rank 1. They are clamped so that the block fits into the array.
        allow_negative_indices: Whether negative indices count from the end (for each dimension, or
            for all); otherwise they are clamped to zero.

    Raises:
        ShapeError: if the block does not fit into the array, or the indices do not fit its rank.
        DTypeError: if dtypes differ, or the indices are not integers.

    >>> from axir.dialect.array import as_array
    >>> dynamic_update_slice(as_array(np.zeros(4)), as_array(np.ones(2)), (1,))
    Array([0., 1., 1., 0.], dtype=float32)
    """
    operand, update = as_value(operand), as_value(update)
    name = "dynamic_update_slice"
    starts = _start_operands(name, operand, start_indices, allow_negative_indices)
    return _dynamic_update_slice.bind(operand, update, *starts)


def dynamic_update_slice_in_dim(
    operand: Value,
    update: Value,
    start_index: Any,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Value:
    """Replaces a block along one axis, at an index that need not be known while tracing."""
    operand = as_value(operand)
    axis = canonical_axis("dynamic_update_slice_in_dim", axis, operand.ndim)
    starts = _starts_along(operand, start_index, axis)
    return dynamic_update_slice(
        operand, update, starts, allow_negative_indices=allow_negative_indices
    )


def dynamic_update_index_in_dim(
    operand: Value,
    update: Value,
    index: Any,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Value:
    """Replaces the entry along one axis at an index that need not be known while tracing.

    Args:
        operand: The array.
        update: The entry: with the axis, of extent 1, or without it.
        index: Where.
        axis: Along which axis.
        allow_negative_indices: Whether a negative index counts from the end.
    """
    operand, update = as_value(operand), as_value(update)
    axis = canonical_axis("dynamic_update_index_in_dim", axis, operand.ndim)
    if update.ndim == operand.ndim - 1:
        update = expand_dims(update, (axis,))
    if update.ndim == operand.ndim and update.shape[axis] != 1:
        raise ShapeError(
            f"dynamic_update_index_in_dim: the update {update.aval} must have extent 1 along axis "
            f"{axis}, or lack that axis.",
            "Use dynamic_update_slice_in_dim for a longer block.",
        )
    return dynamic_update_slice_in_dim(
        operand, update, index, axis, allow_negative_indices=allow_negative_indices
    )
