"""Scatters in NumPy, and as StableHLO.

Elsewhere: the ops and their other rules (`scatter.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core import dtypes
from axir.dialect.core.types import ShapedArray

from .indexed_windows import (
    CLIP,
    Windows,
    as_int64,
)
from .lowered_indices import LoweredIndices
from .scatter_shapes import (
    ScatterDimensionNumbers,
    window_sizes,
    windows,
)


def evaluate_scatter(
    combine: np.ufunc | None,
    operand: np.ndarray,
    indices: np.ndarray,
    updates: np.ndarray,
    *,
    dimension_numbers: ScatterDimensionNumbers,
    mode: str,
    unique_indices: bool,
    **_: object,
) -> np.ndarray:
    """Computes a scatter in NumPy: updates one after the other, where indices repeat."""
    result = np.array(operand, order="C", copy=True)
    if not updates.size:
        return result
    geometry = windows(operand.shape, indices.shape[:-1], updates.shape, dimension_numbers)
    if geometry.canonical is not None:
        updates = updates.transpose(geometry.canonical)
    indices, fits = placed(geometry, indices, mode)
    if geometry.take_axis is not None and (combine is None or unique_indices):
        rows = indices[..., 0]
        if fits is not None:
            rows, updates = rows[fits], updates[fits]
        axis = geometry.take_axis
        view = np.moveaxis(result, axis, 0) if axis else result
        view[rows] = updates if combine is None else combine(view[rows], updates)
        return result
    positions = geometry.batch_positions(indices)
    if fits is not None:
        positions, updates = positions[fits], updates[fits]
    positions = geometry.spread(positions).reshape(-1)
    flat, updates = result.reshape(-1), updates.reshape(-1)
    if combine is None:
        flat[positions] = updates
    elif unique_indices or positions.size == 1:
        flat[positions] = combine(flat[positions], updates)
    else:
        _combine_at(combine, flat, positions, updates)
    return result


# The rounding error of so many updates one after the other is small.
_FEW = 1024


# Number of updates that are widened at a time.
_CHUNK = 1 << 16


def _combine_at(
    combine: np.ufunc, flat: np.ndarray, positions: np.ndarray, updates: np.ndarray
) -> None:
    """Combines elements with updates one after the other; many updates in double precision."""
    wide = dtypes.complex128 if dtypes.is_complex(flat.dtype) else dtypes.float64
    is_rounded = combine in (np.add, np.multiply) and dtypes.is_inexact(flat.dtype)
    if positions.size <= max(_FEW, 2 * flat.size) or not is_rounded or flat.dtype == wide:
        combine.at(flat, positions, updates)
        return
    total = flat.astype(wide)
    for start in range(0, positions.size, _CHUNK):
        part = slice(start, start + _CHUNK)
        combine.at(total, positions[part], updates[part].astype(wide))
    with np.errstate(over="ignore"):
        flat[:] = total


def placed(geometry: Windows, indices: np.ndarray, mode: str) -> tuple[np.ndarray, Any]:
    """Returns index vectors adapted to the mode, and marks of those that fit (None if all do)."""
    indices = as_int64(indices)
    if mode == CLIP:
        return geometry.clip(indices), None
    fits = geometry.fits(indices)
    return indices, None if fits.all() else fits


def lower_scatter(
    body: Callable[[object, object], object],
    types: Sequence[ShapedArray],
    operand: ir.Value,
    indices: ir.Value,
    updates: ir.Value,
    *,
    dimension_numbers: ScatterDimensionNumbers,
    indices_are_sorted: bool,
    unique_indices: bool,
    mode: str,
) -> ir.Value:
    """Builds `stablehlo.scatter` with the combiner `body`; the operands have the given types."""
    operand_type, indices_type, updates_type = types
    if not updates_type.size:
        return operand
    numbers = dimension_numbers
    sizes = window_sizes(operand_type.shape, updates_type.shape, numbers)
    if indices_type.shape == (0,) and sizes == operand_type.shape:
        # One window: the whole operand.
        return body(operand, hlo.reshape(updates, sizes))
    limits = [operand_type.shape[d] - sizes[d] for d in numbers.scatter_dims_to_operand_dims]
    lowered = LoweredIndices(indices, indices_type, limits)
    if mode == CLIP:
        vectors = lowered.clipped()
    elif any(sizes[d] > 1 for d in numbers.scatter_dims_to_operand_dims):
        # StableHLO drops single elements out of bounds; here a window is dropped as a whole.
        extents = [operand_type.shape[d] for d in numbers.scatter_dims_to_operand_dims]
        vectors = lowered.outside_unless(lowered.fits(), extents)
    else:
        vectors = lowered.for_scatter()
    return hlo.scatter(
        [operand],
        vectors,
        [updates],
        body,
        update_window_dims=numbers.update_window_dims,
        inserted_window_dims=numbers.inserted_window_dims,
        scatter_dims_to_operand_dims=numbers.scatter_dims_to_operand_dims,
        index_vector_dim=indices_type.ndim - 1,
        input_batching_dims=numbers.operand_batching_dims,
        scatter_indices_batching_dims=numbers.scatter_indices_batching_dims,
        indices_are_sorted=indices_are_sorted,
        unique_indices=unique_indices,
    )[0]
