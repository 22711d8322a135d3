"""Ops that read or replace a block of an array at indices that may be unknown while tracing.

The indices are clamped so that the block fits. This module also exports blocks at static places
(`static_slicing.py`). Elsewhere: many blocks at once (`gather.py`, `scatter.py`), and the indexing
syntax `x[...]` (frontend).
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import index

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Param
from axir.dialect.core.array import Positions
from axir.dialect.core.errors import DTypeError
from axir.dialect.core.symbolic_zeros import Zero, is_undefined_primal
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.family import ANY, INTEGER, as_value, full, instantiate
from axir.dialect.ops.shape.movement import (
    SMOOTH,
    apply_to_tangent,
    batch_size,
    canonical_axis,
    insert,
    integers,
    moved_values,
)
from axir.dialect.ops.shape.rearranging import expand_dims, move_batch_axis, squeeze
from axir.dialect.program.function_rules import LoweringContext
from axir.dialect.program.op_table import declare
from axir.dialect.program.operation import Sample
from axir.dialect.program.parameters import Ints
from axir.dialect.program.primitive import Primitive
from axir.dialect.program.rules import (
    Cotangent,
    MlirValues,
    Operand,
    Tangent,
    Tangents,
    TransposeOperand,
    Value,
)

from .cut_dimensions import of_dynamic_slice, of_update
from .gather import GatherDimensionNumbers, gather
from .scatter import ScatterDimensionNumbers, scatter
from .start_indices import (
    block,
    check_block,
    check_starts,
    lower_starts,
    stack_starts,
    start_operands,
    zero_start,
)
from .static_slicing import index_in_dim, slice, slice_in_dim

__all__ = [
    "dynamic_index_in_dim",
    "dynamic_slice",
    "dynamic_slice_in_dim",
    "dynamic_update_index_in_dim",
    "dynamic_update_slice",
    "dynamic_update_slice_in_dim",
    "index_in_dim",
    "slice",
    "slice_in_dim",
]

# dynamic_slice ---------------------------------------------------------------------------------


def _infer_dynamic_slice(
    operand: ShapedArray, *starts: ShapedArray, slice_sizes: tuple[int, ...]
) -> ShapedArray:
    check_starts("dynamic_slice", operand, starts)
    check_block("dynamic_slice", operand, slice_sizes, "slice_sizes")
    return ShapedArray(slice_sizes, operand.dtype, operand.weak_type)


def _transpose_dynamic_slice(
    ct: Value, operand: TransposeOperand, *starts: Param, slice_sizes: tuple[int, ...]
) -> Sequence[Cotangent | None]:
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
        all_starts = insert(starts, axis, zero_start(starts))
        return _dynamic_slice.bind(x, *all_starts, slice_sizes=sizes), axis
    rows = stack_starts(starts, start_axes, batch_size(operands, axes))
    batching = () if axis is None else (axis,)
    ndim = len(slice_sizes)
    numbers = GatherDimensionNumbers(
        offset_dims=tuple(range(1, ndim + 1)),
        collapsed_slice_dims=(),
        start_index_map=tuple(d for d in range(x.ndim) if d != axis),
        operand_batching_dims=batching,
        start_indices_batching_dims=() if axis is None else (0,),
    )
    sizes = slice_sizes if axis is None else insert(slice_sizes, axis, min(1, x.shape[axis]))
    return gather(x, rows, numbers, sizes, mode="clip"), 0


def _lower_dynamic_slice(
    context: LoweringContext, x: ir.Value, *starts: ir.Value, slice_sizes: tuple[int, ...]
) -> MlirValues:
    # Without start indices IREE's compiler crashes; there the block is the whole array.
    if not starts:
        return x
    return hlo.dynamic_slice(x, lower_starts(context, starts, slice_sizes), slice_sizes)


# Shapes, start indices and block sizes of samples, including blocks out of bounds and empty ones.
_SAMPLE_BLOCKS: tuple[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]], ...] = (
    ((4, 5), (1, 2), (2, 3)),
    ((4, 5), (3, -2), (2, 3)),
    ((6,), (100,), (2,)),
    ((), (), ()),
    ((3, 2), (1, 0), (0, 2)),
    ((0, 2), (0, 3), (0, 1)),
    ((1, 2, 1, 1, 3, 1), (0, 1, 0, 5, -2, 0), (1, 1, 1, 1, 2, 1)),
)


def _dynamic_slice_samples() -> list[Sample]:
    generator = np.random.default_rng(0)
    cases = [(dtypes.float32, dtype, _SAMPLE_BLOCKS[i % 3]) for i, dtype in enumerate(INTEGER)]
    kinds = (dtypes.float32, *ANY)
    cases += [(d, dtypes.int32, _SAMPLE_BLOCKS[i % 7]) for i, d in enumerate(kinds)]
    samples = []
    for dtype, index_dtype, (shape, starts, sizes) in cases:
        indices = tuple(np.array(s).astype(index_dtype) for s in starts)
        x = moved_values(generator, shape, dtype)
        samples.append(Sample((x, *indices), {"slice_sizes": sizes}, is_smooth=dtype in SMOOTH))
    return samples


_dynamic_slice: Primitive = declare(
    "dynamic_slice",
    parameters={"slice_sizes": Ints},
    moves_elements=True,
    infer=_infer_dynamic_slice,
    evaluate=lambda x, *starts, slice_sizes: x[block(x.shape, slice_sizes, starts)],
    jvp=apply_to_tangent(lambda t, *starts, **params: _dynamic_slice.bind(t, *starts, **params)),
    transpose=_transpose_dynamic_slice,
    dimensions=of_dynamic_slice,
    batch=_batch_dynamic_slice,
    lower=_lower_dynamic_slice,
    samples=_dynamic_slice_samples,
)


def dynamic_slice(
    operand: Operand,
    start_indices: Positions,
    slice_sizes: Sequence[int],
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Value:
    """Returns a block at indices that may be unknown while tracing.

    Args:
        operand: The array.
        start_indices: First index along each dimension: a sequence of integer scalars, or an array
            of rank 1. They are clamped so that the block fits into the array.
        slice_sizes: Extents of the block.
        allow_negative_indices: Whether negative indices count from the end (for each dimension, or
            for all); otherwise they are clamped to zero.

    Raises:
        ShapeError: if the block does not fit into the array.
        ParameterError: unless there is one index for each dimension.
        DTypeError: if the indices are not integers.

    >>> from axir.dialect.core.array import as_array
    >>> dynamic_slice(as_array(np.arange(6)), (5,), (2,))
    Array([4, 5], dtype=int32)
    """
    operand = as_value(operand)
    starts = start_operands("dynamic_slice", operand, start_indices, allow_negative_indices)
    sizes = integers("dynamic_slice", "slice_sizes", slice_sizes)
    return _dynamic_slice.bind(operand, *starts, slice_sizes=sizes)


def dynamic_slice_in_dim(
    operand: Operand,
    start_index: Operand,
    slice_size: int,
    axis: int = 0,
    *,
    allow_negative_indices: bool = True,
) -> Value:
    """Slices along one axis at an index that may be unknown while tracing."""
    operand = as_value(operand)
    axis = canonical_axis("dynamic_slice_in_dim", axis, operand.ndim)
    sizes = (*operand.shape[:axis], index(slice_size), *operand.shape[axis + 1 :])
    starts = _starts_along(operand, start_index, axis)
    return dynamic_slice(operand, starts, sizes, allow_negative_indices=allow_negative_indices)


def _starts_along(operand: Value, start: Operand, axis: int) -> list[Operand]:
    starts: list[Operand] = [0] * operand.ndim
    starts[axis] = start
    return starts


def dynamic_index_in_dim(
    operand: Operand,
    index: Operand,
    axis: int = 0,
    keepdims: bool = True,
    *,
    allow_negative_indices: bool = True,
) -> Value:
    """Returns the entry along one axis at an index that may be unknown while tracing.

    >>> from axir.dialect.core.array import as_array
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


def _infer_update(operand: ShapedArray, update: ShapedArray, *starts: ShapedArray) -> ShapedArray:
    name = "dynamic_update_slice"
    check_starts(name, operand, starts)
    if operand.dtype != update.dtype:
        raise DTypeError(
            f"{name}: the update {update} must have the dtype of the operand {operand}.",
            "Cast with update.astype(operand.dtype).",
        )
    check_block(name, operand, update.shape, "the update of shape")
    return ShapedArray(operand.shape, operand.dtype, operand.weak_type and update.weak_type)


def _evaluate_update(operand: np.ndarray, update: np.ndarray, *starts: np.ndarray) -> np.ndarray:
    result = operand.copy()
    result[block(operand.shape, update.shape, starts)] = update
    return result


def _update_jvp(primals: Sequence[Value], tangents: Sequence[Tangent], out: Value) -> Tangents:
    if type(tangents[0]) is Zero and type(tangents[1]) is Zero:
        return Zero(out.aval.to_tangent_aval())
    return _dynamic_update_slice.bind(
        instantiate(tangents[0]), instantiate(tangents[1]), *primals[2:]
    )


def _transpose_update(
    ct: Value, operand: TransposeOperand, update: TransposeOperand, *starts: Param
) -> Sequence[Cotangent | None]:
    cotangents: list[Cotangent | None] = [None] * (2 + len(starts))
    shape = update.aval.shape
    if is_undefined_primal(operand):
        zeros = full(shape, 0, ct.dtype)
        cotangents[0] = _dynamic_update_slice.bind(ct, zeros, *starts)
    if is_undefined_primal(update):
        cotangents[1] = _dynamic_slice.bind(ct, *starts, slice_sizes=shape)
    return cotangents


def _batch_update(operands: Sequence[Value], axes: Sequence[int | None]) -> tuple[Value, int]:
    (x, update, *starts), (axis, update_axis, *start_axes) = operands, axes
    size = batch_size(operands, axes)
    destination = axis if axis is not None else update_axis if update_axis is not None else 0
    x = move_batch_axis(x, axis, size, destination)
    update = move_batch_axis(update, update_axis, size, destination)
    if all(a is None for a in start_axes):
        all_starts = insert(starts, destination, zero_start(starts))
        return _dynamic_update_slice.bind(x, update, *all_starts), destination
    others = tuple(d for d in range(x.ndim) if d != destination)
    # The scattered windows stand behind the batch axis, which is the axis of the rows.
    update = move_batch_axis(update, destination, size, 0)
    numbers = ScatterDimensionNumbers(
        update_window_dims=tuple(range(1, x.ndim)),
        inserted_window_dims=(),
        scatter_dims_to_operand_dims=others,
        operand_batching_dims=(destination,),
        scatter_indices_batching_dims=(0,),
    )
    rows = stack_starts(starts, start_axes, size)
    return scatter(x, rows, update, numbers, mode="clip"), destination


def _lower_update(
    context: LoweringContext, x: ir.Value, update: ir.Value, *starts: ir.Value
) -> MlirValues:
    if not starts:
        return update
    sizes = context.types_in[1].shape
    return hlo.dynamic_update_slice(x, update, lower_starts(context, starts, sizes))


def _update_samples() -> list[Sample]:
    generator = np.random.default_rng(0)
    cases = [(d, dtypes.int32, _SAMPLE_BLOCKS[i % 7]) for i, d in enumerate(ANY)]
    cases += [(dtypes.float32, dtypes.int32, variant) for variant in _SAMPLE_BLOCKS]
    cases += [(dtypes.float32, dtype, _SAMPLE_BLOCKS[1]) for dtype in (dtypes.int8, dtypes.uint32)]
    samples = []
    for dtype, index_dtype, (shape, starts, sizes) in cases:
        indices = tuple(np.array(s).astype(index_dtype) for s in starts)
        x, update = (moved_values(generator, s, dtype) for s in (shape, sizes))
        samples.append(Sample((x, update, *indices), is_smooth=dtype in SMOOTH))
    return samples


_dynamic_update_slice: Primitive = declare(
    "dynamic_update_slice",
    moves_elements=True,
    infer=_infer_update,
    evaluate=_evaluate_update,
    jvp=_update_jvp,
    transpose=_transpose_update,
    dimensions=of_update,
    batch=_batch_update,
    lower=_lower_update,
    samples=_update_samples,
)


def dynamic_update_slice(
    operand: Operand,
    update: Operand,
    start_indices: Positions,
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Value:
    """Returns an array with a block replaced, at indices that may be unknown while tracing.

    Args:
        operand: The array.
        update: The block, of the array's dtype and rank.
        start_indices: First index along each dimension: a sequence of integer scalars, or an array
            of rank 1. They are clamped so that the block fits into the array.
        allow_negative_indices: Whether negative indices count from the end (for each dimension, or
            for all); otherwise they are clamped to zero.

    Raises:
        ShapeError: if the block does not fit into the array.
        ParameterError: unless there is one index for each dimension.
        DTypeError: if dtypes differ, or the indices are not integers.

    >>> from axir.dialect.core.array import as_array
    >>> dynamic_update_slice(as_array(np.zeros(4)), as_array(np.ones(2)), (1,))
    Array([0., 1., 1., 0.], dtype=float32)
    """
    operand, update = as_value(operand), as_value(update)
    name = "dynamic_update_slice"
    starts = start_operands(name, operand, start_indices, allow_negative_indices)
    return _dynamic_update_slice.bind(operand, update, *starts)


def dynamic_update_slice_in_dim(
    operand: Operand,
    update: Value,
    start_index: Operand,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Value:
    """Replaces a block along one axis, at an index that may be unknown while tracing."""
    operand = as_value(operand)
    axis = canonical_axis("dynamic_update_slice_in_dim", axis, operand.ndim)
    starts = _starts_along(operand, start_index, axis)
    return dynamic_update_slice(
        operand, update, starts, allow_negative_indices=allow_negative_indices
    )


def dynamic_update_index_in_dim(
    operand: Operand,
    update: Operand,
    index: Operand,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Value:
    """Replaces the entry along one axis at an index that may be unknown while tracing.

    Args:
        operand: The array.
        update: The entry, with or without the axis.
        index: Its place.
        axis: The axis.
        allow_negative_indices: Whether a negative index counts from the end.
    """
    operand, update = as_value(operand), as_value(update)
    axis = canonical_axis("dynamic_update_index_in_dim", axis, operand.ndim)
    if update.ndim == operand.ndim - 1:
        update = expand_dims(update, (axis,))
    return dynamic_update_slice_in_dim(
        operand, update, index, axis, allow_negative_indices=allow_negative_indices
    )
