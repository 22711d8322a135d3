"""Shapes of scatters: dimension numbers, inference, windows. Elsewhere: the ops (`scatter.py`)."""

from __future__ import annotations

import functools
from typing import NamedTuple

from axir.dialect.core import dtypes
from axir.dialect.core.errors import DTypeError, ParameterError, ShapeError
from axir.dialect.core.types import ShapedArray

from .indexed_windows import (
    Windows,
    check_batching,
    check_dimensions,
    check_distinct,
    check_index_type,
)


class ScatterDimensionNumbers(NamedTuple):
    """The correspondence of a scatter's operand, index and update dimensions.

    Attributes:
        update_window_dims: Dimensions of the updates that run over the windows.
        inserted_window_dims: Operand dimensions that the updates lack; windows have size 1 there.
        scatter_dims_to_operand_dims: The operand dimension that each index entry indexes.
        operand_batching_dims: Operand dimensions along which each index vector has its own slice.
        scatter_indices_batching_dims: The corresponding dimensions of the indices.
    """

    update_window_dims: tuple[int, ...]
    inserted_window_dims: tuple[int, ...]
    scatter_dims_to_operand_dims: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    scatter_indices_batching_dims: tuple[int, ...] = ()


SCATTER_PARAMETERS = {
    "dimension_numbers": ScatterDimensionNumbers,
    "indices_are_sorted": bool,
    "unique_indices": bool,
    "mode": str,
}


def infer(
    name: str,
    operand: ShapedArray,
    indices: ShapedArray,
    updates: ShapedArray,
    *,
    dimension_numbers: ScatterDimensionNumbers,
    **_: object,
) -> ShapedArray:
    """Returns the type of a scatter's result, or raises the user's error."""
    numbers = dimension_numbers
    if operand.dtype != updates.dtype:
        raise DTypeError(
            f"{name} requires an operand and updates of equal dtype, but got {operand} and "
            f"{updates}.",
            "Cast with x.astype(dtype); x.at[...] does so by itself.",
        )
    if operand.dtype == dtypes.bool_ and name in ("scatter_add", "scatter_mul"):
        raise DTypeError(
            f"{name} does not accept bool: booleans have neither sum nor product.",
            "Use scatter_max for 'or' and scatter_min for 'and', or cast with x.astype(int).",
        )
    window = numbers.update_window_dims
    check_dimensions(name, "update_window_dims", window, updates.ndim)
    check_index_type(
        name, indices, len(numbers.scatter_dims_to_operand_dims), updates.ndim - len(window)
    )
    _check_numbers(name, operand, numbers)
    batch = tuple(updates.shape[d] for d in range(updates.ndim) if d not in window)
    if batch != indices.shape[:-1]:
        raise ShapeError(
            f"{name}: the updates {updates} have {batch} windows, but the indices {indices} have "
            f"{indices.shape[:-1]} vectors."
        )
    sizes = window_sizes(operand.shape, updates.shape, numbers)
    if any(size > extent for size, extent in zip(sizes, operand.shape, strict=True)):
        raise ShapeError(f"{name}: windows of sizes {sizes} do not fit into the operand {operand}.")
    first, second = numbers.operand_batching_dims, numbers.scatter_indices_batching_dims
    check_batching(name, operand, indices, first, second)
    return ShapedArray(operand.shape, operand.dtype, operand.weak_type and updates.weak_type)


def _check_numbers(name: str, operand: ShapedArray, numbers: ScatterDimensionNumbers) -> None:
    inserted, batching = numbers.inserted_window_dims, numbers.operand_batching_dims
    check_dimensions(name, "inserted_window_dims", inserted, operand.ndim)
    rank = operand.ndim
    check_distinct(name, rank, inserted_window_dims=inserted, operand_batching_dims=batching)
    indexed = numbers.scatter_dims_to_operand_dims
    check_distinct(name, rank, scatter_dims_to_operand_dims=indexed, operand_batching_dims=batching)
    if len(numbers.update_window_dims) != rank - len(inserted) - len(batching):
        raise ParameterError(
            f"{name}: update_window_dims {numbers.update_window_dims} must name one dimension of "
            f"the updates for each dimension of the operand {operand} that is neither inserted nor "
            "a batching one."
        )


def window_sizes(
    operand_shape: tuple[int, ...], updates_shape: tuple[int, ...], numbers: ScatterDimensionNumbers
) -> tuple[int, ...]:
    """Returns the size of a scatter's windows in each dimension of the operand."""
    hidden = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
    window = iter([updates_shape[axis] for axis in numbers.update_window_dims])
    return tuple(
        min(1, extent) if d in hidden else next(window) for d, extent in enumerate(operand_shape)
    )


@functools.lru_cache(maxsize=1024)
def windows(
    operand_shape: tuple[int, ...],
    batch_shape: tuple[int, ...],
    updates_shape: tuple[int, ...],
    numbers: ScatterDimensionNumbers,
) -> Windows:
    """Returns the geometry of a scatter."""
    sizes = window_sizes(operand_shape, updates_shape, numbers)
    return Windows(operand_shape, batch_shape, *numbers, sizes)
