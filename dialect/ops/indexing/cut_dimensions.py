"""Dimensions along which indexing ops work on parts of arrays.

A window that covers a whole dimension starts at its beginning for every index, so the dimension may
be cut. Dimensions along which windows are placed are needed whole. The exception is one dimension
along which windows have extent 1, such as the rows of a table: each device looks up the rows that
it holds. Dimensions of the indices are a batch: each device gathers for its own indices. The sums
or extrema of each device's updates are combined.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Params
from axir.dialect.core.types import ShapedArray
from axir.dialect.program.dimensions import (
    WHOLE,
    Dimension,
    Dimensions,
    Factors,
    LookUp,
    Shapes,
    by_position,
)
from axir.dialect.program.function_rules import DimensionsRule

from .indexed_windows import CLIP, FILL, GatherDimensionNumbers
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
    mode: str,
    **params: object,
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

    looked = _single_row(operand, indices, numbers.collapsed_slice_dims, numbers.start_index_map)
    if looked is not None:
        own[looked] = factors.new(operand.shape[looked])

    def local_params(parts: Shapes, _: Shapes) -> Params:
        found: Params = {"slice_sizes": tuple(map(min, slice_sizes, parts[0]))}
        if looked is not None and parts[0][looked] != operand.shape[looked]:
            found |= {"indices_are_sorted": False, "unique_indices": False}
        return found

    found = (tuple(own), (*rows, WHOLE))
    if looked is None:
        return Dimensions(found, (tuple(out),), factors, local_params=local_params)
    ((factor,), column) = own[looked], numbers.start_index_map.index(looked)
    look_up = LookUp(factor, column, mode == CLIP, mode == FILL, tuple(batch))
    return Dimensions(found, (tuple(out),), factors, {factor: "sum"}, local_params, look_up=look_up)


def _single_row(
    operand: ShapedArray, indices: ShapedArray, left_out: Sequence[int], indexed: Sequence[int]
) -> int | None:
    """Returns the largest dimension along which an index chooses a single element."""
    if dtypes.is_unsigned(indices.dtype) or dtypes.is_key(operand.dtype):
        return None
    rows = [d for d in indexed if d in left_out and operand.shape[d] > 1]
    return max(rows, key=lambda d: operand.shape[d], default=None)


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
        combined: How to combine results that have only some of the updates each; None if each
            result needs all updates.
    """

    def rule(
        operands: Sequence[ShapedArray],
        results: Sequence[ShapedArray],
        *,
        dimension_numbers: ScatterDimensionNumbers,
        mode: str,
        **params: object,
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
        columns = numbers.scatter_dims_to_operand_dims
        looked = _single_row(operand, indices, numbers.inserted_window_dims, columns)
        look_up = None
        if looked is not None:
            own[looked] = factors.new(operand.shape[looked])
            look_up = LookUp(own[looked][0], columns.index(looked), mode == CLIP, False, None)

        def local_params(parts: Shapes, _: Shapes) -> Params:
            is_cut = looked is not None and parts[0][looked] != operand.shape[looked]
            return {"mode": FILL} if is_cut else {}

        made = tuple(own)
        return Dimensions(
            (made, (*rows, WHOLE), tuple(new)),
            (made,),
            factors,
            _worked_off(rows, is_shared, kind),
            local_params,
            contributing=0 if kind == "sum" else None,
            look_up=look_up,
        )

    return rule


def _worked_off(
    rows: Sequence[Dimension], is_shared: set[int], kind: str | None
) -> Mapping[int, str]:
    if kind is None:
        return {}
    return {n: kind for place, row in enumerate(rows) for n in row if place not in is_shared}
