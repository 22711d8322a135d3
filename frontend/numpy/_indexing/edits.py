"""Arrays with entries added, taken away or replaced, and blocks put together."""

from __future__ import annotations

import functools
from operator import index

import numpy as np

from axir.dialect.core.annotations import Axes, UserObject
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import ImmutableArrayError, ParameterError, ShapeError
from axir.dialect.core.symbolic_dims import smaller
from axir.dialect.ops.shape.rearranging import reshape
from axir.dialect.program.rules import Value
from axir.numpy._arguments.checks import canonical_axis
from axir.numpy._arguments.promotion import array_argument, broadcast_value
from axir.numpy._arrays.grids import arange
from axir.numpy._reductions.cumulative import cumsum
from axir.numpy._shape.joining import concatenate, take_places
from axir.numpy._shape.manipulation import moveaxis

from .index_update import update
from .selection import concrete_host, nonzero, where
from .taking import take

__all__ = ["block", "compress", "delete", "fill_diagonal", "insert", "place", "trim_zeros"]


def _host(name: str, x: ArrayLike) -> np.ndarray:
    """Returns the known elements of an argument that decides the shape of the result."""
    return np.asarray(concrete_host(array_argument(name, x), f"jnp.{name}"))


def _along(name: str, arr: ArrayLike, axis: int | None) -> tuple[Value, int]:
    array = array_argument(name, arr)
    if axis is None:
        return reshape(array, (array.size,)), 0
    return array, canonical_axis(name, axis, array.ndim)


def delete(
    arr: ArrayLike, obj: ArrayLike, axis: int | None = None, *, assume_unique_indices: bool = False
) -> Value:
    """Returns an array without some of its entries along an axis.

    Args:
        arr: The array.
        obj: Which: an integer, a slice, or known integers or bools.
        axis: Along which; None flattens `arr` first.
        assume_unique_indices: Has no effect.

    >>> import axir.numpy as jnp
    >>> jnp.delete(jnp.arange(4), 1)
    Array([0, 2, 3], dtype=int32)
    """
    array, axis = _along("delete", arr, axis)
    obj = obj if isinstance(obj, (slice, int)) else _host("delete", obj)
    kept = np.delete(np.arange(array.shape[axis]), obj)
    return take_places(array, array_argument("delete", kept.astype(np.int32)), axis)


def insert(arr: ArrayLike, obj: UserObject, values: ArrayLike, axis: int | None = None) -> Value:
    """Returns an array with further entries along an axis.

    Args:
        arr: The array.
        obj: Before which entries: an integer, a slice, or known integers; places beyond an end mean
            that end.
        values: The entries; they broadcast, and take the dtype of the array.
        axis: Along which; None flattens `arr` first.

    >>> import axir.numpy as jnp
    >>> jnp.insert(jnp.array([1, 3]), 1, 2)
    Array([1, 2, 3], dtype=int32)
    """
    array, axis = _along("insert", arr, axis)
    extent = array.shape[axis]
    values = array_argument("insert", values).astype(array.dtype)
    is_single = not isinstance(obj, slice) and np.ndim(_host("insert", obj)) == 0
    if is_single and values.ndim and axis < array.ndim:
        # A single place takes the values with their axis in front, as an assignment does.
        values = reshape(values, (1,) * (array.ndim - values.ndim) + values.shape)
        values = _moved_first(values, axis)
    order = _insertion_order(extent, obj, values, axis, array.ndim)
    count = len(order) - extent
    shape = (*array.shape[:axis], count, *array.shape[axis + 1 :])
    joined = concatenate([array, broadcast_value(values, shape)], axis)
    return take_places(joined, array_argument("insert", order), axis)


def _moved_first(values: Value, axis: int) -> Value:
    return moveaxis(values, 0, axis)


def _insertion_order(
    extent: int, obj: UserObject, values: Value, axis: int, ndim: int
) -> np.ndarray:
    """Returns the places of the result's entries in the array followed by the values."""
    if isinstance(obj, slice):
        where = np.arange(*obj.indices(extent))
    else:
        where = np.atleast_1d(_host("insert", obj)).astype(np.int64)
        where = np.clip(np.where(where < 0, where + extent, where), 0, extent)
    own = values.shape[values.ndim - (ndim - axis)] if values.ndim >= ndim - axis else 1
    count = own if where.size == 1 else where.size
    if where.size == 1:
        where = np.repeat(where, count)
    return np.insert(np.arange(extent), where, np.arange(extent, extent + count)).astype(np.int32)


def compress(
    condition: ArrayLike,
    a: ArrayLike,
    axis: int | None = None,
    *,
    size: int | None = None,
    fill_value: ArrayLike = 0,
    out: None = None,
) -> Value:
    """Returns the entries along an axis where a condition holds.

    Args:
        condition: Bools, as many as entries or fewer.
        a: The array.
        axis: Along which; None flattens it first.
        size: How many entries to return, so that the condition may be traced.
        fill_value: The padding after the entries if there are fewer than `size`.
        out: Only None; arrays are immutable.

    >>> import axir.numpy as jnp
    >>> jnp.compress(jnp.array([True, False, True]), jnp.arange(3))
    Array([0, 2], dtype=int32)
    """
    if out is not None:
        raise ImmutableArrayError("jnp.compress: arrays are immutable, so out must be None.")
    array, axis = _along("compress", a, axis)
    condition = array_argument("compress", condition)
    (places,) = nonzero(condition, size=size, fill_value=array.shape[axis])
    if size is None:
        return take_places(array, places, axis)
    return take(array, places, axis, mode="fill", fill_value=fill_value)


def place(arr: ArrayLike, mask: ArrayLike, vals: object, *, inplace: bool = True) -> Value:
    """Returns an array with values, over and over again, where a mask holds.

    Args:
        arr: The array.
        mask: Bools of as many elements.
        vals: Values, at least one.
        inplace: Must be False: arrays are immutable.

    >>> import axir.numpy as jnp
    >>> jnp.place(jnp.arange(4), jnp.array([True, False, True, True]), [7, 8], inplace=False)
    Array([7, 1, 8, 7], dtype=int32)
    """
    _reject_in_place("place", inplace)
    array, mask = array_argument("place", arr), array_argument("place", mask).astype(bool)
    values = array_argument("place", np.asarray(vals) if isinstance(vals, (list, tuple)) else vals)
    if array.size != mask.size:
        raise ShapeError(
            f"jnp.place: the mask {mask.type} has not as many elements as {array.type}."
        )
    if not values.size:
        raise ParameterError("jnp.place needs at least one value.")
    flat = reshape(mask, (mask.size,))
    turn = (cumsum(flat.astype(np.int32)) - 1) % values.size
    chosen = reshape(values, (values.size,))[turn].astype(array.dtype)
    return reshape(where(flat, chosen, reshape(array, (array.size,))), array.shape)


def _reject_in_place(name: str, inplace: bool) -> None:
    if inplace:
        raise ImmutableArrayError(
            f"jnp.{name}: arrays are immutable.",
            f"Call x = jnp.{name}(x, ..., inplace=False).",
        )


def fill_diagonal(
    a: ArrayLike, val: ArrayLike, wrap: bool = False, *, inplace: bool = True
) -> Value:
    """Returns an array with other values on the diagonal.

    Args:
        a: Array of at least 2 axes; more than 2 must be equal in extent.
        val: The values; a vector is repeated.
        wrap: Must be False.
        inplace: Must be False: arrays are immutable.

    >>> import axir.numpy as jnp
    >>> jnp.fill_diagonal(jnp.zeros((2, 2)), 3, inplace=False)
    Array([[3., 0.],
           [0., 3.]], dtype=float32)
    """
    _reject_in_place("fill_diagonal", inplace)
    array, values = array_argument("fill_diagonal", a), array_argument("fill_diagonal", val)
    if wrap:
        raise ParameterError("jnp.fill_diagonal: the diagonal does not wrap; pass wrap=False.")
    if array.ndim < 2 or (array.ndim > 2 and len(set(array.shape)) > 1):
        raise ShapeError(f"jnp.fill_diagonal: {array.type} has no diagonal.")
    places = arange(functools.reduce(smaller, array.shape))
    if values.ndim:
        flat = reshape(values, (values.size,))
        values = flat[places % max(values.size, 1)]
    return update(array, (places,) * array.ndim, "set", values.astype(array.dtype))


def block(arrays: object) -> Value:
    """Puts arrays together from nested lists: the innermost along the last axis.

    >>> import axir.numpy as jnp
    >>> jnp.block([[jnp.eye(1), jnp.zeros((1, 1))], [jnp.ones((1, 2))]])
    Array([[1., 0.],
           [1., 1.]], dtype=float32)
    """
    depth = _depth(arrays)
    leaves = [array_argument("block", x) for x in _leaves(arrays)]
    rank = max([depth, *(x.ndim for x in leaves)])
    return _joined(arrays, depth, rank)


def _depth(arrays: object) -> int:
    if not isinstance(arrays, list):
        return 0
    depths = {_depth(x) for x in arrays}
    if len(depths) != 1:
        raise ParameterError("jnp.block: lists must be nested equally deep and must not be empty.")
    return 1 + depths.pop()


def _leaves(arrays: object) -> list[UserObject]:
    return [y for x in arrays for y in _leaves(x)] if isinstance(arrays, list) else [arrays]


def _joined(arrays: UserObject, depth: int, rank: int) -> Value:
    if depth == 0:
        array = array_argument("block", arrays)
        return reshape(array, (1,) * (rank - array.ndim) + array.shape)
    return concatenate([_joined(x, depth - 1, rank) for x in arrays], -depth)


def trim_zeros(filt: object, trim: str = "fb", axis: Axes = None) -> Value:
    """Returns a known array without the layers of zeros at its ends.

    Args:
        filt: The array.
        trim: 'f' for those at the front, 'b' for those at the back.
        axis: Along which axes; None for all.

    >>> import axir.numpy as jnp
    >>> jnp.trim_zeros(jnp.array([0, 1, 0, 2, 0]))
    Array([1, 0, 2], dtype=int32)
    """
    array = array_argument("trim_zeros", np.asarray(filt) if isinstance(filt, list) else filt)
    places = np.argwhere(_host("trim_zeros", array))
    given = range(array.ndim) if axis is None else np.atleast_1d(axis).tolist()
    parts = [slice(None)] * array.ndim
    for entry in given:
        d = canonical_axis("trim_zeros", entry, array.ndim)
        if not len(places):
            parts[d] = slice(0, 0)
            continue
        start = index(places[:, d].min()) if "f" in trim.lower() else 0
        stop = index(places[:, d].max()) + 1 if "b" in trim.lower() else array.shape[d]
        parts[d] = slice(start, stop)
    return array[tuple(parts)]
