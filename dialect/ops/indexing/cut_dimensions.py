"""Along which dimensions indexing ops work on parts of arrays.

A window that has all of a dimension begins at its begin, wherever the index points to, so the
dimension may be cut. Dimensions in which windows are placed are needed whole. Those of the indices
are a batch: each device gathers for its own indices; and the sums, or the extrema, that the updates
of each device make are combined.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Param, Params
from axir.dialect.core.types import ShapedArray
from axir.dialect.program.dimensions import (
    WHOLE,
    Dimension,
    Dimensions,
    Factors,
    Shapes,
    by_position,
)
from axir.dialect.program.rules import DimensionsRule

from .indexed_windows import GatherDimensionNumbers
from .scatter_shapes import ScatterDimensionNumbers


def of_slice(
    operands: Sequence[ShapedArray],
    results: Sequence[ShapedArray],
    *,
    start_indices: tuple[int, ...],
    limit_indices: tuple[int, ...],
    strides: tuple[int, ...] | None,
) -> Dimensions:
    """Returns the dimensions of `slice`."""

    def local_params(parts: Shapes, _: Shapes) -> Params:
        return {"limit_indices": tuple(map(min, limit_indices, parts[0]))}

    return by_position(operands, results, (), local_params)


def of_dynamic_slice(
    operands: Sequence[ShapedArray], results: Sequence[ShapedArray], *, slice_sizes: tuple[int, ...]
) -> Dimensions:
    """Returns the dimensions of `dynamic_slice`."""
    return by_position(operands, results, (), lambda _, parts: {"slice_sizes": parts[0]})


def of_update(operands: Sequence[ShapedArray], results: Sequence[ShapedArray]) -> Dimensions:
    """Returns the dimensions of `dynamic_update_slice`."""
    return by_position(operands, results)


def of_gather(
    operands: Sequence[ShapedArray],
    results: Sequence[ShapedArray],
    *,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: tuple[int, ...],
    **params: Param,
) -> Dimensions:
    """Returns the dimensions of `gather`."""
    numbers, factors = dimension_numbers, Factors()
    (operand, indices), (result,) = operands, results
    rows = tuple(map(factors.new, indices.shape[:-1]))
    own: list[Dimension] = [WHOLE] * operand.ndim
    out: list[Dimension] = [WHOLE] * result.ndim
    _share(own, rows, numbers.operand_batching_dims, numbers.start_indices_batching_dims)
    batch = [d for d in range(result.ndim) if d not in numbers.offset_dims]
    for place, row in zip(batch, rows, strict=True):
        out[place] = row
    left_out = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    windows = [d for d in range(operand.ndim) if d not in left_out]
    for place, dimension in zip(numbers.offset_dims, windows, strict=True):
        if slice_sizes[dimension] == operand.shape[dimension]:
            out[place] = own[dimension] = factors.new(operand.shape[dimension])

    def local_params(parts: Shapes, _: Shapes) -> Params:
        return {"slice_sizes": tuple(map(min, slice_sizes, parts[0]))}

    found = (tuple(own), (*rows, WHOLE))
    return Dimensions(found, (tuple(out),), factors, local_params=local_params)


def _share(
    own: list[Dimension],
    rows: Sequence[Dimension],
    operand_dimensions: Sequence[int],
    index_dimensions: Sequence[int],
) -> None:
    for dimension, row in zip(operand_dimensions, index_dimensions, strict=True):
        own[dimension] = rows[row]


def of_scatter(combined: str | None) -> DimensionsRule:
    """Returns the rule of a scatter.

    Args:
        combined: How results are combined of which each has some of the updates; None if the
            updates must be there together.
    """

    def rule(
        operands: Sequence[ShapedArray],
        results: Sequence[ShapedArray],
        *,
        dimension_numbers: ScatterDimensionNumbers,
        **params: Param,
    ) -> Dimensions:
        numbers, factors = dimension_numbers, Factors()
        operand, indices, updates = operands
        kind = combined
        if kind != "sum" and dtypes.is_complex(operand.dtype):
            kind = None  # devices know no order of complex numbers
        is_shared = set(numbers.scatter_indices_batching_dims)
        rows = tuple(
            factors.new(extent) if kind is not None or row in is_shared else WHOLE
            for row, extent in enumerate(indices.shape[:-1])
        )
        own: list[Dimension] = [WHOLE] * operand.ndim
        new: list[Dimension] = [WHOLE] * updates.ndim
        batching = numbers.operand_batching_dims
        _share(own, rows, batching, numbers.scatter_indices_batching_dims)
        scattered = [d for d in range(updates.ndim) if d not in numbers.update_window_dims]
        for place, row in zip(scattered, rows, strict=True):
            new[place] = row
        left_out = {*numbers.inserted_window_dims, *batching}
        windows = [d for d in range(operand.ndim) if d not in left_out]
        for place, dimension in zip(numbers.update_window_dims, windows, strict=True):
            if updates.shape[place] == operand.shape[dimension]:
                new[place] = own[dimension] = factors.new(operand.shape[dimension])
        made = tuple(own)
        return Dimensions(
            (made, (*rows, WHOLE), tuple(new)),
            (made,),
            factors,
            _worked_off(rows, is_shared, kind),
            contributing=0 if kind == "sum" else None,
        )

    return rule


def _worked_off(
    rows: Sequence[Dimension], is_shared: set[int], kind: str | None
) -> Mapping[int, str]:
    if kind is None:
        return {}
    return {n: kind for place, row in enumerate(rows) for n in row if place not in is_shared}
