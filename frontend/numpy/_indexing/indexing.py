"""Reading parts of arrays: `x[index]`.

Static positions become slices, computed scalars dynamic slices, and arrays of positions gathers.
Elsewhere: the syntax of indices (`index_parsing.py`) and updates (`index_update.py`).
"""

from __future__ import annotations

from functools import lru_cache
from types import EllipsisType

import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import IndexLike, UserObject
from axir.dialect.core.array import ArrayLike, ConcreteArray, Memories, from_numpy
from axir.dialect.core.errors import ParameterError
from axir.dialect.core.places import place_of_part
from axir.dialect.core.state import state
from axir.dialect.core.symbolic_dims import SymbolicDim, is_same, is_symbolic_dim
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise import arithmetic as lax
from axir.dialect.ops.elementwise import comparison
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.ops.indexing.dynamic_slicing import dynamic_slice, dynamic_slice_in_dim
from axir.dialect.ops.indexing.gather import GatherDimensionNumbers, gather
from axir.dialect.ops.indexing.indexed_windows import GatherScatterMode
from axir.dialect.ops.indexing.start_indices import one_dtype
from axir.dialect.ops.indexing.static_slicing import slice as static_slice
from axir.dialect.ops.shape.broadcasting import expand_dims
from axir.dialect.ops.shape.concatenation import concatenate
from axir.dialect.ops.shape.rearranging import reshape, rev, squeeze
from axir.dialect.program.op_table import OPS
from axir.dialect.program.rules import Value
from axir.dialect.program.tracer import Tracer
from axir.numpy._arguments.promotion import (
    broadcast_value,
    constant,
)

from .dynamic_slices import Cut, cut_of
from .index_parsing import (
    Bounds,
    EmptyAxisError,
    Gathered,
    Index,
    Layout,
    Position,
    Slice,
    is_position,
    layout_of,
    parse_index,
)

CLIP, FILL, PROMISE_IN_BOUNDS = "clip", "fill", "promise_in_bounds"
_BASIC = frozenset((int, slice, type(None), EllipsisType))

_bind_slice, _bind_squeeze = OPS["slice"].bind, OPS["squeeze"].bind

# x[index] --------------------------------------------------------------------------------------


def getitem_array(self: ConcreteArray, index: IndexLike) -> Value:
    """`x[index]` of an `Array` with known indices, by NumPy on its memory.

    NumPy refuses positions out of bounds; `read` then raises the error, or clamps.
    """
    if state.keeps_origins or (Memories.has_remote and self.remote_device is not None):
        return read(self, index)
    kind = type(index)
    try:
        if kind is int:
            part = self.host()[index, ...]
        elif kind in _BASIC:
            part = self.host()[index]
        else:
            known = numpy_index(index if kind is tuple else (index,))
            if known is None:
                return read(self, index)
            part = self.host()[known]
    except (IndexError, TypeError, ValueError):
        return read(self, index)
    array_type = self.type
    part_type = ShapedArray(part.shape, array_type.dtype, array_type.weak_type)
    place = self._device
    if place is not None:
        place = place_of_part(self, part.shape)
    return ConcreteArray(part_type, part, None, place)


def getitem_tracer(self: Tracer, index: IndexLike) -> Value:
    """`x[index]` of a `Tracer`."""
    shape = self.type.shape
    if type(index) is int and shape and is_position(index, shape[0]):
        start, limit = _row_bounds(shape, index)
        row = _bind_slice(self, start_indices=start, limit_indices=limit, strides=None)
        return _bind_squeeze(row, dimensions=(0,))
    return read(self, index)


@lru_cache(maxsize=4096)
def _row_bounds(shape: tuple[int, ...], index: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Returns where the slice of one entry along the first axis begins and ends."""
    row = index % shape[0]
    return (row, *[0] * (len(shape) - 1)), (row + 1, *shape[1:])


def numpy_index(items: tuple[UserObject, ...]) -> tuple[UserObject, ...] | None:
    """Returns an index with arrays as NumPy's, or None if it holds something else."""
    result: list[UserObject] = []
    has_ellipsis = False
    for item in items:
        kind = type(item)
        if kind is ConcreteArray:
            item = item.host()
        elif kind not in _BASIC:
            return None
        has_ellipsis = has_ellipsis or item is Ellipsis
        result.append(item)
    # With an ellipsis NumPy returns arrays of rank 0 instead of scalars.
    return tuple(result) if has_ellipsis else (*result, ...)


def read(
    x: Value,
    index: IndexLike,
    *,
    mode: UserObject = None,
    fill_value: ArrayLike | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    wrap_negative_indices: bool = True,
) -> Value:
    """Returns the part of an array that an index names.

    Args:
        x: The array.
        index: As between brackets.
        mode: Treatment of positions out of bounds: 'clip' (default), 'fill', 'promise_in_bounds'.
        fill_value: What 'fill' takes.
        indices_are_sorted: A promise that may speed the gather up.
        unique_indices: A promise that may speed the gather up.
        wrap_negative_indices: Whether negative positions count from the end.
    """
    clamps = mode in (None, CLIP, PROMISE_IN_BOUNDS)
    cut = cut_of(x.shape, index, wrap_negative_indices)
    if cut is not None:
        options = {
            "mode": mode,
            "fill_value": fill_value,
            "wrap_negative_indices": wrap_negative_indices,
        }
        is_block = cut.is_block and clamps
        part = block_of(x, cut) if is_block else read(x, cut.places(), **options)
        return read(part, cut.rest, **options)
    # Programs keep positions that are out of bounds, for checks to find.
    bounds = Bounds(mode is None, clamps and type(x) is not Tracer, wrap_negative_indices)
    parsed = parse_index(x.shape, index, bounds)
    is_scalar = clamps and not parsed.has_arrays
    block = slice_block(x, parsed, cuts_positions=parsed.is_static or is_scalar)
    if parsed.is_static:
        return shape_static(block, parsed)
    if is_scalar:
        return _read_scalars(block, parsed, wrap_negative_indices)
    layout = layout_of(parsed)
    if names_nothing(parsed, layout):
        return expand_dims(_empty(block, layout), layout.new_axes)
    positions, axes = index_vectors(block, parsed, layout, wrap_negative_indices)
    result = gather(
        block,
        positions,
        gather_numbers(layout, axes),
        window_sizes(block, axes),
        mode=CLIP if mode is None else mode,
        fill_value=fill_value,
        indices_are_sorted=indices_are_sorted,
        unique_indices=unique_indices,
    )
    return expand_dims(result, layout.new_axes)


def block_of(x: Value, cut: Cut) -> Value:
    """Returns the block that an index cuts out, moved inside the array."""
    return dynamic_slice_in_dim(x, cut.start, cut.size, cut.axis, allow_negative_indices=False)


def slice_block(x: Value, index: Index, *, cuts_positions: bool) -> Value:
    """Applies the slices of an index, leaving all axes in place.

    Args:
        x: The array.
        index: The index.
        cuts_positions: Whether to cut axes at static positions to extent 1.
    """
    starts, limits, strides, reversed_axes = [], [], [], []
    for axis, entry in index.axes():
        extent = index.shape[axis]
        start, limit, stride = 0, extent, 1
        if type(entry) is Slice:
            start, limit, stride = slice_bounds(entry)
            if is_reversed(entry):
                reversed_axes.append(axis)
                start, limit = extent - limit, extent - start
        elif type(entry) is Position and cuts_positions:
            start, limit = entry.value, entry.value + 1
        starts.append(start)
        limits.append(limit)
        strides.append(stride)
    if reversed_axes:
        x = rev(x, reversed_axes)
    is_whole = (
        tuple(limits) == index.shape and all(is_same(s, 0) for s in starts) and set(strides) <= {1}
    )
    if not is_whole:
        x = static_slice(x, starts, limits, strides if any(s != 1 for s in strides) else None)
    return x


def is_reversed(entry: Slice) -> bool:
    """Tells whether the entries of a slice stand in decreasing order."""
    return entry.step < 0 and (is_symbolic_dim(entry.length) or entry.length > 1)


def slice_bounds(entry: Slice) -> tuple[int, int, int]:
    """Returns start, limit and stride of the same entries in increasing order."""
    if entry.length == 0:
        return 0, 0, 1
    if SymbolicDim in (type(entry.start), type(entry.length)):
        if entry.step == 1:
            return entry.start, entry.start + entry.length, 1
        first, last = entry.start, entry.start + (entry.length - 1) * entry.step
        return (first, last + 1, entry.step) if entry.step > 0 else (last, first + 1, -entry.step)
    distance = (entry.length - 1) * entry.step
    lowest = entry.start + min(distance, 0)
    return lowest, lowest + abs(distance) + 1, abs(entry.step) if entry.length > 1 else 1


def shape_static(block: Value, index: Index) -> Value:
    """Drops the axes at single positions and inserts the new ones."""
    dropped = [axis for axis, entry in index.axes() if type(entry) is not Slice]
    if dropped:
        block = squeeze(block, dropped)
    kept = [entry for entry in index.entries if entry is None or type(entry) is Slice]
    new_axes = [place for place, entry in enumerate(kept) if entry is None]
    return expand_dims(block, new_axes) if new_axes else block


def _read_scalars(block: Value, index: Index, wraps: bool) -> Value:
    starts: list[UserObject] = []
    sizes = list(block.shape)
    for axis, entry in index.axes():
        is_computed = type(entry) is Gathered
        starts.append(entry.positions if is_computed else 0)
        if is_computed:
            if not sizes[axis]:
                raise EmptyAxisError(axis, index.shape)
            sizes[axis] = 1
    block = dynamic_slice(block, one_dtype(starts), sizes, allow_negative_indices=wraps)
    return shape_static(block, index)


# Arrays of positions ---------------------------------------------------------------------------


def names_nothing(index: Index, layout: Layout) -> bool:
    """Tells whether positions in an empty array index an axis without entries.

    Raises:
        EmptyAxisError: if positions in an array that is not empty do so.
    """
    empty = [axis for axis, e in index.axes() if type(e) is Gathered and not index.shape[axis]]
    if empty and all(layout.batch_shape):
        raise EmptyAxisError(empty[0], index.shape)
    return bool(empty)


def _empty(block: Value, layout: Layout) -> ConcreteArray:
    """Returns the part of an array, without new axes, that empty arrays of positions name."""
    shape = part_shape(block, layout)
    empty_type = ShapedArray(shape, block.type.dtype, block.type.weak_type)
    return ConcreteArray(empty_type, np.zeros(shape, block.type.dtype))


def part_shape(block: Value, layout: Layout) -> tuple[int, ...]:
    """Returns the shape, without new axes, of the part named by an index with arrays."""
    windows, start = [block.shape[axis] for axis in layout.window_axes], layout.batch_start
    return (*windows[:start], *layout.batch_shape, *windows[start:])


def index_vectors(
    block: Value, index: Index, layout: Layout, wraps: bool
) -> tuple[Value, tuple[int, ...]]:
    """Returns the index vectors of an index with arrays, and the axes that they index."""
    columns, axes = [], []
    for axis, entry in index.axes():
        if type(entry) is Slice:
            continue
        axes.append(axis)
        if type(entry) is Position:
            positions: Value = from_numpy(np.asarray(entry.value, np.int32))
        else:
            positions = _in_range(entry.positions, block.shape[axis], wraps)
        shaped = broadcast_value(positions, layout.batch_shape)
        columns.append(reshape(shaped, (*layout.batch_shape, 1)))
    if not columns:
        empty = np.zeros((*layout.batch_shape, 0), np.int32)
        return from_numpy(empty), ()
    vectors = columns[0] if len(columns) == 1 else concatenate(columns, len(layout.batch_shape))
    return vectors, tuple(axes)


def _in_range(positions: Value, extent: int, wraps: bool) -> Value:
    """Counts negative positions from the end, and brings all to int32 where that is enough."""
    dtype = dtypes.int64 if type(extent) is int and extent >= 2**31 else dtypes.int32
    if dtypes.is_unsigned(positions.dtype) and positions.dtype.itemsize >= dtype.itemsize:
        positions = lax.min(positions, constant(extent, positions.dtype))
    positions = convert_element_type(positions, dtype)
    if not wraps or dtypes.is_unsigned(positions.dtype):
        return positions
    if type(positions) is ConcreteArray and (positions.host() >= 0).all():
        return positions
    wrapped = lax.add(positions, constant(extent, dtype))
    return comparison.select_n(comparison.lt(positions, constant(0, dtype)), positions, wrapped)


def gather_numbers(layout: Layout, axes: tuple[int, ...]) -> GatherDimensionNumbers:
    """Returns the dimension numbers of the gather that reads the part described by a layout."""
    return GatherDimensionNumbers(window_dimensions(layout), axes, axes)


def window_dimensions(layout: Layout) -> tuple[int, ...]:
    """Returns the dimensions, without new axes, that do not come from index arrays."""
    rank = len(layout.batch_shape) + len(layout.window_axes)
    batch = range(layout.batch_start, layout.batch_start + len(layout.batch_shape))
    return tuple(d for d in range(rank) if d not in batch)


def window_sizes(block: Value, axes: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the sizes of windows: 1 along indexed axes, everything along the others."""
    return tuple(1 if axis in axes else extent for axis, extent in enumerate(block.shape))


def read_along(
    x: Value,
    positions: Value,
    axis: int,
    mode: object,
    fill_value: ArrayLike | None,
    wraps: bool,
) -> Value:
    """Reads along an axis at positions; the other axes belong together, one place to the other."""
    others = tuple(place for place in range(x.ndim) if place != axis)
    found = _in_range(positions, x.shape[axis], wraps)
    return gather(
        x,
        reshape(found, (*found.shape, 1)),
        GatherDimensionNumbers((), (axis,), (axis,), others, others),
        (1,) * x.ndim,
        mode=gather_mode("take_along_axis", mode),
        fill_value=fill_value,
    )


def gather_mode(name: str, mode: object) -> object:
    try:
        return FILL if mode is None else GatherScatterMode.from_any(mode)
    except ParameterError:
        raise ParameterError(
            f"jnp.{name}: mode {mode!r} is none of 'fill', 'clip', 'wrap' and 'promise_in_bounds'."
        ) from None
