"""Parts of arrays at places known while tracing."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from operator import index

import numpy as np

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core.errors import OutOfBoundsError, ParameterError, ShapeError
from axir.dialect.core.symbolic_dims import as_extent
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.family import as_value, full
from axir.dialect.ops.shape.movement import (
    Variant,
    apply_to_tangent,
    canonical_axis,
    insert,
    integers,
    spread_samples,
)
from axir.dialect.ops.shape.rearranging import pad, squeeze
from axir.dialect.program.op_table import declare
from axir.dialect.program.operation import Sample
from axir.dialect.program.parameters import Ints
from axir.dialect.program.primitive import Primitive
from axir.dialect.program.rules import Cotangent, Operand, TransposeOperand, Value

from .cut_dimensions import of_slice


def _infer_slice(
    operand: ShapedArray,
    *,
    start_indices: tuple[int, ...],
    limit_indices: tuple[int, ...],
    strides: tuple[int, ...] | None,
) -> ShapedArray:
    steps = (1,) * operand.ndim if strides is None else strides
    if not len(start_indices) == len(limit_indices) == len(steps) == operand.ndim:
        raise ParameterError(
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
    operand: TransposeOperand,
    *,
    start_indices: tuple[int, ...],
    limit_indices: tuple[int, ...],
    strides: tuple[int, ...] | None,
) -> Sequence[Cotangent | None]:
    shape = operand.aval.shape
    steps = (1,) * len(shape) if strides is None else strides
    config = []
    for start, step, count, extent in zip(start_indices, steps, ct.shape, shape, strict=True):
        end = start + count
        if step != 1:
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
    def variant(
        shape: tuple[int, ...],
        start: tuple[int, ...],
        limit: tuple[int, ...],
        strides: tuple[int, ...] | None = None,
    ) -> Variant:
        params = {"start_indices": start, "limit_indices": limit, "strides": strides}
        return (shape,), params

    return spread_samples(
        [
            variant((4, 5), (1, 2), (3, 5)),
            variant((7, 5), (1, 0), (6, 5), (2, 3)),
            variant((6,), (1,), (6,), (4,)),
            variant((3,), (2,), (2,)),
            variant((), (), ()),
            variant((0, 2), (0, 0), (0, 1), (1, 1)),
            variant((1, 2, 1, 3, 2, 1), (0, 1, 0, 0, 0, 0), (1, 2, 1, 3, 2, 1), (1, 1, 1, 2, 1, 1)),
        ]
    )


_slice: Primitive = declare(
    "slice",
    parameters={"start_indices": Ints, "limit_indices": Ints, "strides": Ints | None},
    moves_elements=True,
    infer=_infer_slice,
    evaluate=_evaluate_slice,
    jvp=apply_to_tangent(lambda t, **params: _slice.bind(t, **params)),
    transpose=_transpose_slice,
    dimensions=of_slice,
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
        ParameterError: if their numbers differ from the number of dimensions.
        ShapeError: if the bounds lie outside the array, or a stride is not positive.

    >>> from axir.dialect.core.array import as_array
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
    operand: Operand,
    start_index: int | None,
    limit_index: int | None,
    stride: int = 1,
    axis: int = 0,
) -> Value:
    """Slices along one axis; negative bounds count from the end, None is the end itself.

    >>> from axir.dialect.core.array import as_array
    >>> slice_in_dim(as_array(np.arange(6)), -3, None)
    Array([3, 4, 5], dtype=int32)
    """
    operand = as_value(operand)
    axis = canonical_axis("slice_in_dim", axis, operand.ndim)
    extent = operand.shape[axis]
    start = 0 if start_index is None else as_extent(start_index)
    limit = extent if limit_index is None else as_extent(limit_index)
    starts, limits, strides = [0] * operand.ndim, list(operand.shape), [1] * operand.ndim
    starts[axis] = start + extent if start < 0 else start
    limits[axis] = limit + extent if limit < 0 else limit
    strides[axis] = index(stride)
    return slice(operand, starts, limits, None if stride == 1 else strides)


def index_in_dim(operand: Operand, index: int, axis: int = 0, keepdims: bool = True) -> Value:
    """Returns the entry at a static index along one axis.

    Args:
        operand: The array.
        index: The index of the entry; negative ones count from the end.
        axis: The axis.
        keepdims: Whether the axis stays, with extent 1.

    Raises:
        OutOfBoundsError: if the index is out of bounds.
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
