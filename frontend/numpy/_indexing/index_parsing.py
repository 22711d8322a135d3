"""The parser of NumPy's indexing syntax: from `x[index]` to an operation along each axis.

Elsewhere: reading (`indexing.py`) and updating (`index_update.py`) the indexed part.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Extent, IndexLike, UserObject
from axir.dialect.core.array import ConcreteArray, as_array, from_numpy
from axir.dialect.core.config import config
from axir.dialect.core.errors import (
    ConcretizationTypeError,
    IndexTypeError,
    NonConcreteBooleanIndexError,
    OutOfBoundsError,
    ShapeError,
)
from axir.dialect.core.symbolic_dims import (
    SymbolicDim,
    as_traced,
    is_extent,
    is_same,
    is_symbolic_dim,
    operation,
    symbolic_dim_bounds,
)
from axir.dialect.program.rules import Value
from axir.dialect.program.tracer import Tracer
from axir.numpy._arguments.promotion import broadcast_shape
from axir.numpy._arrays.creation import array


class DynamicSliceError(IndexTypeError, IndexError):
    """A slice has bounds with values that are not known while tracing."""


class MaskShapeError(ShapeError, IndexError):
    """A mask differs in shape from the axes that it indexes."""


class EmptyAxisError(OutOfBoundsError, ShapeError):
    """An entry is requested along an axis of extent 0."""

    def __init__(self, axis: int, shape: tuple[int, ...]):
        super().__init__(
            f"An index is out of bounds for axis {axis} with size 0 of an array of shape {shape}: "
            "there is no entry.",
            "An index that is a slice or an empty array of integers gives an empty result.",
        )


class Slice(NamedTuple):
    """Every `step`-th entry along an axis: `length` of them, from `start` on."""

    start: int
    length: int
    step: int


class Position(NamedTuple):
    """One entry along an axis, at a position known while tracing."""

    value: int


class Gathered(NamedTuple):
    """Entries along an axis at the positions in an integer array (of rank 0: one entry).

    Without an axis (`has_axis`), it stands for a scalar mask: an array of one or no zeros.
    """

    positions: Value
    has_axis: bool = True


NEW_AXIS = None
Entry = Any  # a Slice, Position, Gathered or NEW_AXIS


class Index(NamedTuple):
    """An index, one entry for each axis of the array, and for each new axis.

    Attributes:
        entries: The operations along the axes, in order.
        shape: Shape of the array that is indexed.
        arrays_are_apart: Whether other entries, even an empty ellipsis, separate positions.
    """

    entries: tuple[Entry, ...]
    shape: tuple[int, ...]
    arrays_are_apart: bool

    @property
    def is_static(self) -> bool:
        """Tells whether all positions are known."""
        return not any(type(entry) is Gathered for entry in self.entries)

    @property
    def has_arrays(self) -> bool:
        """Tells whether there are positions in arrays of rank one or more."""
        return any(type(e) is Gathered and e.positions.ndim for e in self.entries)

    def axes(self) -> Iterator[tuple[int, Entry]]:
        """Yields the axes of the array with their entries, without new axes."""
        axis = 0
        for entry in self.entries:
            if entry is NEW_AXIS or (type(entry) is Gathered and not entry.has_axis):
                continue
            yield axis, entry
            axis += 1


# Parsing user indices -----------------------------------------------------------------------


class Bounds(NamedTuple):
    """The treatment of positions that are known while tracing and out of bounds.

    Attributes:
        is_checked: Whether they are errors under the option `jax_check_static_indices`.
        clamps: Whether they become the nearest `Position`; otherwise they become `Gathered`, and
            the mode decides their treatment.
        wraps: Whether negative positions count from the end.
    """

    is_checked: bool
    clamps: bool
    wraps: bool


def parse_index(shape: tuple[int, ...], index: IndexLike, bounds: Bounds) -> Index:
    """Parses an index.

    Args:
        shape: Shape of the array.
        index: The expression between the brackets.
        bounds: Treatment of positions out of bounds.

    Raises:
        OutOfBoundsError: for more indices than axes, and for a static position out of bounds if
            such are errors.
        EmptyAxisError: for a position along an axis of extent 0.
        IndexTypeError: for something that is no index.
        NonConcreteBooleanIndexError: for a mask with unknown values.
    """
    is_tuple = type(index) is tuple
    items = [normal_item(item, is_tuple) for item in (index if is_tuple else (index,))]
    used = sum(axes_used(item) for item in items)
    if used > len(shape):
        raise OutOfBoundsError(
            f"Too many indices: the array of shape {shape} has {len(shape)} axes, but {used} were "
            "indexed.",
        )
    are_apart = _arrays_are_apart(items)
    items = _without_ellipsis(items, len(shape) - used)
    entries: list[Entry] = []
    axis = 0
    for item in items:
        entries += _entries(item, shape, axis, bounds)
        axis += axes_used(item)
    return Index(tuple(entries), shape, are_apart)


def normal_item(item: UserObject, is_in_tuple: bool) -> UserObject:
    """Returns an item as None, Ellipsis, int, bool, slice, or an array of integers or bools."""
    kind = type(item)
    if item is None or item is Ellipsis or kind in (int, slice, bool):
        return item
    if kind is ConcreteArray or kind is Tracer:
        return _checked_dtype(item)
    if isinstance(item, np.bool_):
        return bool(item)
    if isinstance(item, (list, tuple)):
        if is_in_tuple:
            return _checked_dtype(array(item) if item else from_numpy(np.zeros(0, np.int32)))
        raise IndexTypeError(
            f"{_shorten(item)} is a {kind.__name__}, which is no index.",
            "Turn it into an array with jnp.array(...), or index axis by axis: x[i, j].",
        )
    if kind is SymbolicDim:
        return as_traced(item)
    if isinstance(item, np.integer) or (not hasattr(item, "dtype") and hasattr(item, "__index__")):
        return item.__index__()
    if hasattr(item, "__array__") or hasattr(item, "__jax_array__"):
        return _checked_dtype(as_array(item))
    raise IndexTypeError(
        f"{_shorten(item)} of type {kind.__name__!r} is no index.",
        "Indices are integers, slices, None, Ellipsis, and arrays of integers or bools.",
    )


def _shorten(item: object) -> str:
    text = repr(item)
    return text if len(text) <= 60 else text[:57] + "..."


def _checked_dtype(item: Value) -> Value:
    if dtypes.is_inexact(item.dtype) or dtypes.kind(item.dtype) not in "biu":
        raise IndexTypeError(
            f"An array of type {item.type} is no index: only integers and bools are.",
            "Cast it with x.astype(int).",
        )
    return item


def axes_used(item: UserObject) -> int:
    if item is None or item is Ellipsis or type(item) is bool:
        return 0
    if type(item) in (ConcreteArray, Tracer) and item.dtype == dtypes.bool_:
        return item.ndim
    return 1


def _arrays_are_apart(items: list[object]) -> bool:
    """Tells whether other entries separate arrays; integers count as arrays."""
    is_array = [
        item is not None and item is not Ellipsis and type(item) is not slice for item in items
    ]
    if not any(is_array):
        return False
    last = len(is_array) - is_array[::-1].index(True)
    return not all(is_array[is_array.index(True) : last])


def _without_ellipsis(items: list[object], missing: int) -> list[object]:
    places = [place for place, item in enumerate(items) if item is Ellipsis]
    if len(places) > 1:
        raise OutOfBoundsError("An index can have only one ellipsis ('...').")
    everything = [slice(None)] * missing
    if not places:
        return items + everything
    return items[: places[0]] + everything + items[places[0] + 1 :]


def _entries(item: UserObject, shape: tuple[int, ...], axis: int, bounds: Bounds) -> list[Entry]:
    if item is None:
        return [NEW_AXIS]
    if type(item) is slice:
        return [_parse_slice(item, shape[axis])]
    if type(item) is int:
        return [_parse_integer(item, axis, shape, bounds)]
    if type(item) is bool:
        return [_scalar_mask(item)]
    if item.dtype == dtypes.bool_:
        return _parse_mask(item, shape, axis)
    return [Gathered(item)]


def _parse_slice(item: slice, extent: int) -> Slice:
    if SymbolicDim in (type(extent), type(item.start), type(item.stop), type(item.step)):
        return _parse_open_slice(item, extent)
    try:
        start, stop, step = item.indices(extent)
    except ConcretizationTypeError:
        raise DynamicSliceError(
            f"The bounds of {item} are not known while tracing.",
            "Use lax.dynamic_slice(x, starts, sizes) or lax.dynamic_slice_in_dim for a block of "
            "known size at a computed position.",
        ) from None
    except TypeError:
        raise IndexTypeError(f"The bounds of {item} must be integers or None.") from None
    except ValueError:
        raise OutOfBoundsError(f"The step of {item} must not be zero.") from None
    return Slice(start, len(range(start, stop, step)), step)


def _parse_open_slice(item: slice, extent: Extent) -> Slice:
    """Returns a slice with symbolic dimensions as bounds or as the extent of the axis."""
    step = 1 if item.step is None else item.step
    if not is_extent(step) or not all(x is None or is_extent(x) for x in (item.start, item.stop)):
        raise DynamicSliceError(
            f"The bounds of {item} along an axis of extent {extent} are not known while tracing.",
            "Use lax.dynamic_slice(x, starts, sizes) for a block of known size at a computed "
            "position.",
        )
    if is_same(step, 0):
        raise OutOfBoundsError(f"The step of {item} must not be zero.")
    is_forward = step > 0
    least, most = (0, extent) if is_forward else (-1, extent - 1)

    def bound(x: Extent | None, absent: Extent) -> Extent:
        if x is None:
            return absent
        if x < 0:
            x = x + extent
        return operation("min", operation("max", x, least), most)

    start = bound(item.start, least if is_forward else most)
    stop = bound(item.stop, most if is_forward else least)
    distance = stop - start
    count = (distance + step - 1) // step if is_forward else (-distance - step - 1) // -step
    return Slice(start, operation("max", count, 0), step)


def is_position(value: int, extent: Extent) -> bool:
    """Tells whether a position is inside an axis, whatever the sizes are if it is open."""
    least = symbolic_dim_bounds(extent)[0] if is_symbolic_dim(extent) else extent
    return -least <= value < least


def _parse_integer(value: int, axis: int, shape: tuple[int, ...], bounds: Bounds) -> Entry:
    extent = shape[axis]
    if is_symbolic_dim(extent) and not is_position(value, extent):
        return Gathered(from_numpy(np.asarray(value, np.int32)))
    position = value + extent if value < 0 and bounds.wraps else value
    if 0 <= position < extent:
        return Position(position)
    if bounds.is_checked and config.jax_check_static_indices:
        raise OutOfBoundsError(
            f"Index {value} is out of bounds for axis {axis} of extent {extent} of an array of "
            f"shape {shape}.",
            "The option jax_check_static_indices is on. Say what should happen instead with "
            "x.at[index].get(mode='clip') or mode='fill'.",
        )
    if not extent:
        raise EmptyAxisError(axis, shape)
    if bounds.clamps:
        return Position(0 if position < 0 else extent - 1)
    dtype = np.dtype(np.int64 if type(extent) is int and extent >= 2**31 else np.int32)
    limits = np.iinfo(dtype)
    return Gathered(from_numpy(np.asarray(max(limits.min, min(value, limits.max)), dtype)))


def _scalar_mask(value: bool) -> Gathered:
    return Gathered(from_numpy(np.zeros((1 if value else 0,), np.int32)), has_axis=False)


_MASK_USE = (
    "as a mask, whose number of true elements is the length of the result (take jnp.where(mask, x, "
    "y) for a result of known shape, or jnp.nonzero(mask, size=n) for positions)"
)


def _parse_mask(mask: Value, shape: tuple[int, ...], axis: int) -> list[Entry]:
    while type(mask) is Tracer:
        mask = mask.known(NonConcreteBooleanIndexError, _MASK_USE)
    host = mask.host()  # type: ignore[attr-defined]
    if not host.ndim:
        return [_scalar_mask(bool(host))]
    indexed = shape[axis : axis + host.ndim]
    if host.shape != indexed:
        raise MaskShapeError(
            f"A mask of shape {host.shape} does not fit the axes of shape {indexed} that it "
            "indexes.",
            "A mask has the shape of the array, or of its first axes.",
        )
    return [Gathered(from_numpy(p.astype(np.int32))) for p in np.nonzero(host)]


# Where the axes of a result come from ----------------------------------------------------------


class Layout(NamedTuple):
    """The axes of the result of an index with arrays, by NumPy's rules.

    The axes of the (broadcast) index arrays replace the arrays; if other entries separate the
    arrays, they come first. Positions beside arrays count as arrays.

    Attributes:
        batch_shape: Shape to which the index arrays broadcast.
        batch_start: The position of its axes among the remaining axes, without new axes.
        new_axes: The positions of the new axes in the final result.
        window_axes: Axes of the array that are left, in order.
    """

    batch_shape: tuple[int, ...]
    batch_start: int
    new_axes: tuple[int, ...]
    window_axes: tuple[int, ...]


def layout_of(index: Index) -> Layout:
    """Returns where the axes of the result of an index with arrays come from."""
    arrays = [e.positions for e in index.entries if type(e) is Gathered]
    batch_shape = broadcast_shape("indexing", [a.shape for a in arrays])
    is_array = [type(e) in (Gathered, Position) for e in index.entries]
    first, starts_first = is_array.index(True), index.arrays_are_apart
    new_axes, place, batch_start = [], 0, 0
    if starts_first:
        place = len(batch_shape)
    kept = 0
    for number, entry in enumerate(index.entries):
        if entry is NEW_AXIS:
            new_axes.append(place)
            place += 1
        elif type(entry) is Slice:
            place += 1
            kept += 1
        elif number == first and not starts_first:
            batch_start = kept
            place += len(batch_shape)
    window_axes = tuple(axis for axis, entry in index.axes() if type(entry) is Slice)
    return Layout(batch_shape, batch_start, tuple(new_axes), window_axes)
