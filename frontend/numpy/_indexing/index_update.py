"""Updated copies of arrays: `x.at[index].set(value)` and its like.

The indexed part is read, combined with the values, and written back: blocks by
`dynamic_update_slice`, positions in arrays by scatters. Elsewhere: the public methods
(`array_parts.py`), the syntax of indices (`index_parsing.py`) and plain reading (`indexing.py`).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import IndexLike, Options, UserObject
from axir.dialect.core.array import ArrayLike, ConcreteArray, from_numpy
from axir.dialect.core.config import config
from axir.dialect.core.host_arrays import ignore_floating_point_warnings, restore_warnings
from axir.dialect.core.state import state
from axir.dialect.ops.elementwise import arithmetic as lax
from axir.dialect.ops.elementwise import comparison
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.ops.elementwise.family import full
from axir.dialect.ops.indexing import scatter as scatters
from axir.dialect.ops.indexing.dynamic_slicing import (
    dynamic_slice,
    dynamic_update_slice,
    dynamic_update_slice_in_dim,
)
from axir.dialect.ops.indexing.scatter_apply import scatter_apply
from axir.dialect.ops.indexing.start_indices import one_dtype
from axir.dialect.ops.shape.broadcasting import broadcast_in_dim
from axir.dialect.ops.shape.constants import full_like
from axir.dialect.ops.shape.padding import pad
from axir.dialect.ops.shape.rearranging import reshape, rev
from axir.dialect.program.rules import Value
from axir.dialect.program.tracer import Tracer
from axir.numpy._arguments.promotion import (
    BroadcastError,
    array_argument,
    broadcast_value,
    common_shape,
    constant,
    dtype_and_weakness,
)
from axir.numpy._arrays.creation import array, converted
from axir.numpy._elementwise import arithmetic

from .dynamic_slices import Cut, cut_of
from .index_parsing import (
    Bounds,
    EmptyAxisError,
    Gathered,
    Index,
    Position,
    Slice,
    layout_of,
    parse_index,
)
from .indexing import (
    CLIP,
    PROMISE_IN_BOUNDS,
    block_of,
    index_vectors,
    is_reversed,
    numpy_index,
    part_shape,
    read,
    slice_block,
    slice_bounds,
    window_dimensions,
)

Combine = Callable[[Value, Value], Value]


def _replace(old: Value, new: Value) -> Value:
    return new


# How an update combines the existing elements with the values, and the matching scatter.
_COMBINE: dict[str, Combine] = {
    "set": _replace,
    "add": arithmetic.add,
    "subtract": arithmetic.subtract,
    "multiply": arithmetic.multiply,
    "divide": arithmetic.divide,
    "power": arithmetic.power,
    "min": arithmetic.minimum,
    "max": arithmetic.maximum,
}
_SCATTER = {
    "set": scatters.scatter,
    "add": scatters.scatter_add,
    "multiply": scatters.scatter_mul,
    "min": scatters.scatter_min,
    "max": scatters.scatter_max,
}


def update(
    x: Value,
    index: IndexLike,
    kind: str,
    values: ArrayLike | Sequence[object],
    *,
    mode: object = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    wrap_negative_indices: bool = True,
) -> Value:
    """Returns a copy of an array with the part that an index names updated.

    Args:
        x: The array.
        index: As between brackets.
        kind: Which update: a key of `_COMBINE`.
        values: Array or scalar that broadcasts to the shape of the part. It takes the dtype of `x`.
        mode: As of `Reference`, like the options that follow.
        indices_are_sorted: A promise.
        unique_indices: A promise.
        wrap_negative_indices: Whether negative positions count from the end.

    Raises:
        BroadcastError: if the values do not fit the part.
        OutOfBoundsError, IndexTypeError: for an index that does not fit the array.
        EmptyAxisError: for a single position along an axis of extent 0.
    """
    if kind == "divide" and not dtypes.is_inexact(x.dtype):
        # As jnp.divide does; the other updates keep the dtype of the array.
        x = converted(x, arithmetic.divide(full_like(x, 1, shape=()), 1).dtype)
    if type(values) is int and dtypes.is_integer(x.dtype):
        # An integer in the range of the array's dtype need not fit another dtype.
        values = constant(values, x.dtype, weak_type=True)
    if isinstance(values, (list, tuple)):
        values = array(values)
    values = _fitting(x, array_argument(f"ndarray.at[...].{kind}", values), kind)
    cut = cut_of(x.shape, index, wrap_negative_indices)
    if cut is not None:
        options = {"mode": mode, "wrap_negative_indices": wrap_negative_indices}
        return _update_cut(x, cut, kind, values, options)
    if type(x) is type(values) is ConcreteArray:
        known = update_known(x, index, kind, values, mode is None and wrap_negative_indices)
        if known is not None:
            return known
    masked = _update_by_mask(x, index, kind, values)
    if masked is not None:
        return masked
    parsed = parse_index(x.shape, index, Bounds(mode is None, False, wrap_negative_indices))
    block = slice_block(x, parsed, cuts_positions=parsed.is_static)
    if parsed.is_static:
        values = _block_values(values, parsed, block.shape, kind)
        block = _cast(_COMBINE[kind](block, values), x)
    elif not parsed.has_arrays:
        block = _update_scalars(block, parsed, kind, values, mode, wrap_negative_indices)
    else:
        promises = {"indices_are_sorted": indices_are_sorted, "unique_indices": unique_indices}
        block = _update_arrays(
            block, parsed, kind, values, "drop" if mode is None else mode,
            wrap_negative_indices, promises,
        )  # fmt: skip
    return _write_back(x, block, parsed)


def _update_cut(
    x: Value, cut: Cut, kind: str, values: Value, options: dict[str, UserObject]
) -> Value:
    """Updates the part named by an index with a slice of computed start; otherwise as `update`."""
    if not cut.is_block:
        if cut.is_all:
            return update(x, cut.places(), kind, values, **options)
        part = update(read(x, cut.places(), mode=CLIP), cut.rest, kind, values, **options)
        return update(x, cut.places(), "set", part, **options)
    old = block_of(x, cut)
    new = update(old, cut.rest, kind, values, **options)
    if options["mode"] not in (CLIP, PROMISE_IN_BOUNDS):
        new = comparison.select_n(cut.is_inside(), old, new)
    return dynamic_update_slice_in_dim(x, new, cut.start, cut.axis, allow_negative_indices=False)


def apply(
    x: Value, index: IndexLike, func: Callable[[Value], Value], *, mode: object = None,
    wrap_negative_indices: bool = True, **promises: bool,
) -> Value:  # fmt: skip
    """Returns a copy of an array with a function applied to the part that an index names.

    Args:
        x: The array.
        index: As between brackets.
        func: Elementwise function.
        mode: As of `Reference`, like the options that follow.
        wrap_negative_indices: Whether negative positions count from the end.
        **promises: `indices_are_sorted` and `unique_indices`.
    """
    options = {"wrap_negative_indices": wrap_negative_indices, **promises}
    if cut_of(x.shape, index, wrap_negative_indices) is not None:
        part = read(x, index, mode=CLIP, **options)
        return update(x, index, "set", func(part), mode=mode, **options)
    parsed = parse_index(x.shape, index, Bounds(mode is None, False, wrap_negative_indices))
    if not parsed.has_arrays or promises.get("unique_indices", False):
        part = read(x, index, mode=CLIP if mode is None else mode, **options)
        return update(x, index, "set", func(part), mode=mode, **options)
    block = slice_block(x, parsed, cuts_positions=False)
    if not block.size:
        return x
    layout = layout_of(parsed)
    vectors, axes = index_vectors(block, parsed, layout, wrap_negative_indices)
    if _are_distinct(vectors):
        promises["unique_indices"] = True
    result = scatter_apply(
        block,
        vectors,
        func,
        scatters.ScatterDimensionNumbers(window_dimensions(layout), axes, axes),
        update_shape=part_shape(block, layout),
        mode="drop" if mode is None else mode,
        **promises,
    )
    return _write_back(x, result, parsed)


def _are_distinct(vectors: Value) -> bool:
    """Tells whether index vectors are known and none occurs twice."""
    if type(vectors) is not ConcreteArray:
        return False
    rows = vectors.host().reshape(-1, vectors.shape[-1])
    return len(np.unique(rows, axis=0)) == len(rows)


def _fitting(x: Value, values: Value, kind: str) -> Value:
    """Returns the values in the dtype of the array, with a warning if they do not fit it."""
    pairs = {dtype_and_weakness(x), dtype_and_weakness(values)}
    common, _ = dtypes.promote(pairs)
    if common != x.dtype:
        warnings.warn(
            f"x.at[...].{kind}: values of {values.dtype} do not fit an array of {x.dtype} and are "
            "converted: cast them with values.astype(x.dtype), or the array.",
            FutureWarning,
            stacklevel=4,
        )
    if kind == "set" or common == x.dtype:
        return converted(values, x.dtype)
    return values


def _cast(result: Value, x: Value) -> Value:
    return result if result.type is x.type else converted(result, x.dtype, x.weak_type)


# Static parts ----------------------------------------------------------------------------------


def _part_shape(index: Index) -> tuple[int, ...]:
    kept = [e for e in index.entries if e is None or type(e) is Slice]
    return tuple(1 if e is None else e.length for e in kept)


def _spread(values: Value, shape: tuple[int, ...], kind: str) -> Value:
    """Broadcasts values to the shape of a part."""
    while values.ndim > len(shape) and values.shape[0] == 1:
        values = reshape(values, values.shape[1:])
    if common_shape((values.shape, shape)) != shape:
        raise BroadcastError(
            f"x.at[...].{kind}: values of shape {values.shape} do not broadcast to the shape "
            f"{shape} of what the index names.",
        )
    return broadcast_value(values, shape)


def _block_values(values: Value, index: Index, shape: tuple[int, ...], kind: str) -> Value:
    if not values.ndim:
        return broadcast_value(values, shape)
    return reshape(_spread(values, _part_shape(index), kind), shape)


def _write_back(x: Value, block: Value, index: Index) -> Value:
    """Writes a block, shaped like the part named by the slices of the index, back to its place."""
    reversed_axes, bounds = [], []
    for axis, entry in index.axes():
        extent = index.shape[axis]
        bound = (0, extent, 1)
        if type(entry) is Slice:
            bound = slice_bounds(entry)
            if is_reversed(entry):
                reversed_axes.append(axis)
        elif type(entry) is Position and index.is_static:
            bound = (entry.value, entry.value + 1, 1)
        bounds.append(bound)
    if block.size == 0:
        return x
    if reversed_axes:
        block = rev(block, reversed_axes)
    if block.shape == x.shape:
        return block
    if all(stride == 1 for _, _, stride in bounds):
        return dynamic_update_slice(x, block, [start for start, _, _ in bounds])
    return _write_strided(x, block, bounds)


def _write_strided(x: Value, block: Value, bounds: list[tuple[int, int, int]]) -> Value:
    config = [
        (start, extent - limit, stride - 1)
        for (start, limit, stride), extent in zip(bounds, x.shape, strict=True)
    ]
    spread = pad(block, constant(0, x.dtype, False), config)
    return comparison.select_n(_is_written(x, block, bounds, config), x, spread)


def _is_written(
    x: Value,
    block: Value,
    bounds: list[tuple[int, int, int]],
    config: list[tuple[int, int, int]],
) -> Value:
    """Tells for each element whether one of the block is written there."""
    if x.aval.is_open:
        return pad(full(block.shape, True, np.bool_), constant(False, dtypes.bool_, False), config)
    is_written = np.zeros(x.shape, np.bool_)
    is_written[tuple(slice(*bound) for bound in bounds)] = True
    return from_numpy(is_written)


# Computed positions ----------------------------------------------------------------------------


def _update_scalars(
    block: Value, index: Index, kind: str, values: Value, mode: object, wraps: bool
) -> Value:
    starts: list[UserObject] = []
    sizes = list(block.shape)
    is_inside: UserObject = None
    for axis, entry in index.axes():
        start: UserObject = 0
        if type(entry) is Gathered:
            if not sizes[axis]:
                raise EmptyAxisError(axis, index.shape)
            start = _wrapped(entry.positions, sizes[axis], wraps)
            if mode not in (CLIP, PROMISE_IN_BOUNDS):
                is_inside = _both(is_inside, _is_within(start, sizes[axis]))
            sizes[axis] = 1
        elif type(entry) is Position:
            start, sizes[axis] = entry.value, 1
        starts.append(start)
    if not block.size:
        return block
    starts = one_dtype(starts)
    old = dynamic_slice(block, starts, sizes, allow_negative_indices=False)
    values = _block_values(values, index, old.shape, kind)
    new = _cast(_COMBINE[kind](old, values), block)
    if is_inside is not None:
        new = comparison.select_n(is_inside, old, new)
    return dynamic_update_slice(block, new, starts, allow_negative_indices=False)


def _wrapped(position: Value, extent: int, wraps: bool) -> Value:
    if not wraps or dtypes.is_unsigned(position.dtype):
        return position
    if position.dtype.itemsize < 4:
        position = convert_element_type(position, dtypes.int32)
    zero, end = constant(0, position.dtype), constant(extent, position.dtype)
    return comparison.select_n(comparison.lt(position, zero), position, lax.add(position, end))


def _is_within(position: Value, extent: int) -> Value:
    if position.dtype.itemsize < 4:
        position = convert_element_type(position, dtypes.int32)
    is_low = comparison.lt(position, constant(extent, position.dtype))
    return comparison.and_(comparison.ge(position, constant(0, position.dtype)), is_low)


def _both(first: Value | None, second: Value) -> Value:
    return second if first is None else comparison.and_(first, second)


# Positions in arrays ---------------------------------------------------------------------------


def _update_arrays(
    block: Value,
    index: Index,
    kind: str,
    values: Value,
    mode: object,
    wraps: bool,
    promises: dict[str, bool],
) -> Value:
    layout = layout_of(index)
    vectors, axes = index_vectors(block, index, layout, wraps)
    shape = part_shape(block, layout)
    with_new_axes = list(shape)
    for place in layout.new_axes:
        with_new_axes.insert(place, 1)
    updates = reshape(_spread(values, tuple(with_new_axes), kind), shape)
    if not block.size:
        return block
    numbers = scatters.ScatterDimensionNumbers(window_dimensions(layout), axes, axes)

    def scatter(name: str, operand: Value, new: Value) -> Value:
        return _SCATTER[name](operand, vectors, new, numbers, mode=mode, **promises)

    if kind in ("divide", "power"):
        # Dividing (raising) by each of several values is dividing by their product.
        product = scatter("multiply", full_like(block, 1, updates.dtype), updates)
        return _cast(_COMBINE[kind](block, product), block)
    wide = converted(block, updates.dtype) if updates.dtype != block.dtype else block
    if kind == "subtract":
        kind, updates = "add", lax.neg(updates)
    if wide.dtype == dtypes.bool_ and kind in ("add", "multiply"):
        # Of bools the sum is the logical or, the product the logical and.
        kind = "max" if kind == "add" else "min"
    return _cast(scatter(kind, wide, updates), block)


def _update_by_mask(x: UserObject, index: IndexLike, kind: str, values: UserObject) -> Value | None:
    """Updates by one mask with one value, which needs no positions; else returns None."""
    mask = index[0] if type(index) is tuple and len(index) == 1 else index
    if isinstance(mask, np.ndarray) and mask.dtype == np.bool_:
        mask = array_argument("ndarray.at", mask)
    is_mask = type(mask) in (ConcreteArray, Tracer) and mask.dtype == dtypes.bool_ and mask.ndim
    if not is_mask or values.ndim or mask.shape != x.shape[: mask.ndim]:
        return None
    chosen = mask
    if mask.ndim < x.ndim:
        chosen = broadcast_in_dim(mask, x.shape, tuple(range(mask.ndim)))
    new = _cast(_COMBINE[kind](x, values), x)
    return comparison.select_n(chosen, x, new)


# Known updates of small arrays --------------------------------------------------------------------


# Arrays up to this size are updated by NumPy, if all is known.
_SMALL = 2048
_IN_PLACE: dict[str, Options] = {
    "set": None,
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
}


def update_known(
    x: ConcreteArray, index: IndexLike, kind: str, values: ConcreteArray, is_plain: bool
) -> ConcreteArray | None:
    """Updates a small array as NumPy does with its memory, which is faster than doing it by ops.

    Returns None where NumPy's rules are others: for positions out of bounds, for `mode`s unless all
    positions are inside, for masks beside values, for values that do not broadcast, and for many
    positions.
    """
    if state.keeps_origins or x.remote_device is not None:
        return None
    if kind not in _IN_PLACE or values.dtype != x.dtype or max(x.size, values.size) > _SMALL:
        return None
    if config.jax_debug_nans or config.jax_debug_infs:
        return None
    known = numpy_index(index if type(index) is tuple else (index,))
    if known is None or not (is_plain or _is_inside(known, x.shape)):
        return None
    if any(getattr(item, "dtype", None) == np.bool_ for item in known):
        return None
    if any(getattr(item, "size", 0) > _SMALL for item in known):
        return None
    if kind in ("add", "subtract", "multiply") and x.dtype == dtypes.bool_:
        return None
    host = np.array(x.host(), order="C")
    combine = _IN_PLACE[kind]
    token = ignore_floating_point_warnings()
    try:
        if combine is None:
            host[known] = values.host()
        else:
            combine.at(host, known, values.host())
    except (IndexError, TypeError, ValueError):
        return None
    finally:
        restore_warnings(token)
    return ConcreteArray(x.type, host, None, x._device)


def _is_inside(known: tuple[object, ...], shape: tuple[int, ...]) -> bool:
    """Tells whether an index is one array of positions, all of them inside and not negative."""
    if len(known) != 2 or type(known[0]) is not np.ndarray or not shape:
        return False
    positions = known[0]
    return positions.dtype.kind in "iu" and bool(((positions >= 0) & (positions < shape[0])).all())
