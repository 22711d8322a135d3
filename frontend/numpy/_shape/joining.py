"""Joining, splitting and repeating arrays."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from operator import index

import numpy as np

from axir._devices.placement import lies_where_told
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import DTypeLike, UserObject
from axir.dialect.core.array import ArrayLike, ConcreteArray, from_numpy
from axir.dialect.core.errors import (
    ConcretizationTypeError,
    DTypeError,
    NonArrayArgumentError,
    ParameterError,
    ShapeError,
)
from axir.dialect.core.symbolic_dims import as_extent, is_symbolic_dim
from axir.dialect.ops.elementwise.comparison import le
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.ops.indexing.gather import GatherDimensionNumbers, gather
from axir.dialect.ops.indexing.static_slicing import slice_in_dim
from axir.dialect.ops.reductions.cumulative import cumsum
from axir.dialect.ops.reductions.reduce import reduce_sum
from axir.dialect.ops.shape.broadcasting import broadcast_in_dim, expand_dims
from axir.dialect.ops.shape.concatenation import concatenate as lax_concatenate
from axir.dialect.ops.shape.constants import iota
from axir.dialect.ops.shape.rearranging import reshape, squeeze
from axir.dialect.program.rules import Value
from axir.dialect.program.tracer import Tracer
from axir.numpy._arguments.checks import canonical_axis, reject_out
from axir.numpy._arguments.promotion import array_argument, not_an_array, promote_arguments

from .manipulation import atleast_1d, atleast_2d, atleast_3d, moveaxis

__all__ = [
    "append", "array_split", "column_stack", "concat", "concatenate", "dsplit", "dstack", "hsplit",
    "hstack", "repeat", "resize", "split", "stack", "tile", "unstack", "vsplit", "vstack",
]  # fmt: skip


# Joining ---------------------------------------------------------------------------------------


def _elements(name: str, arrays: object, *, are_nested: bool = False) -> list[Value]:
    """Returns a sequence of arrays, or an array along its first axis, as a list.

    Args:
        name: The function's name, for errors.
        arrays: The sequence.
        are_nested: Whether an element may be a list or tuple of arrays, such as the cotangents
            that a pullback returns.
    """
    if type(arrays) is ConcreteArray or type(arrays) is Tracer or isinstance(arrays, np.ndarray):
        return list(unstack(arrays))
    if not isinstance(arrays, Sequence) or isinstance(arrays, str):
        raise NonArrayArgumentError(
            f"jnp.{name}: takes a sequence of arrays, not {type(arrays).__name__!r}.",
            f"Write jnp.{name}([a, b]).",
        )
    if not arrays:
        raise ParameterError(f"jnp.{name}: needs at least one array.", "The sequence is empty.")
    if are_nested:
        arrays = [stack(x) if isinstance(x, (list, tuple)) and x else x for x in arrays]
    return [array_argument(name, x, i) for i, x in enumerate(arrays)]


def _promoted(name: str, arrays: Sequence[Value], dtype: DTypeLike) -> list[Value]:
    if dtype is None:
        return promote_arguments(name, *arrays)
    dtype = dtypes.canonicalize_dtype(dtype)
    return [convert_element_type(x, dtype) for x in arrays]


def concatenate(arrays: object, axis: int | None = 0, dtype: DTypeLike = None) -> Value:
    """Joins arrays along an axis.

    Args:
        arrays: Sequence of arrays with shapes that differ at most along the axis.
        axis: The axis; None flattens the arrays first.
        dtype: dtype of the result; by default the one that the arrays promote to.

    Raises:
        ParameterError: if there are no arrays, or if they are scalars.
        ShapeError: if their shapes do not fit.
        AxisError: for an axis out of range.

    >>> import axir.numpy as jnp
    >>> jnp.concatenate([jnp.ones(2), jnp.zeros(1)])
    Array([1., 1., 0.], dtype=float32)
    """
    values = _elements("concatenate", arrays)
    if axis is None:
        values = [x if x.ndim == 1 else reshape(x, (x.size,)) for x in values]
        axis = 0
    if not values[0].ndim:
        raise ParameterError(
            "jnp.concatenate: zero-dimensional arrays cannot be concatenated.",
            "Use jnp.stack, or jnp.concatenate with axis=None.",
        )
    axis = canonical_axis("concatenate", axis, values[0].ndim)
    values = _promoted("concatenate", values, dtype)
    return values[0] if len(values) == 1 else lax_concatenate(values, axis)


def concat(arrays: object, /, *, axis: int | None = 0) -> Value:
    """Joins arrays along an axis; see `concatenate`."""
    return concatenate(arrays, axis)


def stack(arrays: object, axis: int = 0, out: None = None, dtype: DTypeLike = None) -> Value:
    """Joins arrays of equal shape along a new axis.

    Args:
        arrays: Sequence of arrays.
        axis: Where the new axis stands in the result.
        out: Not supported.
        dtype: dtype of the result; by default the one that the arrays promote to.

    Raises:
        ParameterError: if there are no arrays, or if their shapes differ.
        AxisError: for an axis out of range.

    >>> import axir.numpy as jnp
    >>> jnp.stack([jnp.array([1, 2]), jnp.array([3, 4])], axis=1)
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    reject_out("stack", out)
    if type(arrays) is ConcreteArray or type(arrays) is Tracer or isinstance(arrays, np.ndarray):
        value = array_argument("stack", arrays)
        value = value if dtype is None else convert_element_type(value, dtype)
        return moveaxis(value, 0, canonical_axis("stack", axis, value.ndim))
    values = _elements("stack", arrays)
    shape = values[0].shape
    if any(x.shape != shape for x in values):
        raise ParameterError(
            "jnp.stack: all input arrays must have the same shape, but they have "
            f"{', '.join(str(x.shape) for x in values)}.",
            "Broadcast them first, or use jnp.concatenate.",
        )
    axis = canonical_axis("stack", axis, len(shape) + 1)
    values = _promoted("stack", values, dtype)
    return lax_concatenate([expand_dims(x, (axis,)) for x in values], axis)


def vstack(tup: object, dtype: DTypeLike = None) -> Value:
    """Joins arrays along axis 0; vectors are rows.

    >>> import axir.numpy as jnp
    >>> jnp.vstack([jnp.array([1, 2]), jnp.array([3, 4])])
    Array([[1, 2],
           [3, 4]], dtype=int32)
    """
    rows = [atleast_2d(x) for x in _elements("vstack", tup, are_nested=True)]
    return concatenate(rows, 0, dtype)


def hstack(tup: object, dtype: DTypeLike = None) -> Value:
    """Joins arrays along axis 1, vectors along axis 0.

    >>> import axir.numpy as jnp
    >>> jnp.hstack([jnp.array([1, 2]), jnp.array([3])])
    Array([1, 2, 3], dtype=int32)
    """
    parts = [atleast_1d(x) for x in _elements("hstack", tup, are_nested=True)]
    return concatenate(parts, 0 if parts[0].ndim == 1 else 1, dtype)


def dstack(tup: object, dtype: DTypeLike = None) -> Value:
    """Joins arrays along axis 2, after `atleast_3d`.

    >>> import axir.numpy as jnp
    >>> jnp.dstack([jnp.array([1, 2]), jnp.array([3, 4])]).shape
    (1, 2, 2)
    """
    return concatenate([atleast_3d(x) for x in _elements("dstack", tup, are_nested=True)], 2, dtype)


def column_stack(tup: object) -> Value:
    """Joins arrays along axis 1; vectors are columns.

    >>> import axir.numpy as jnp
    >>> jnp.column_stack([jnp.array([1, 2]), jnp.array([3, 4])])
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    columns = [x if x.ndim > 1 else reshape(x, (x.size, 1)) for x in _elements("column_stack", tup)]
    return concatenate(columns, 1)


def append(arr: ArrayLike, values: ArrayLike, axis: int | None = None) -> Value:
    """Joins two arrays along an axis, or flattened.

    >>> import axir.numpy as jnp
    >>> jnp.append(jnp.array([1, 2]), jnp.array([[3], [4]]))
    Array([1, 2, 3, 4], dtype=int32)
    """
    return concatenate([array_argument("append", arr), array_argument("append", values, 1)], axis)


# Splitting -------------------------------------------------------------------------------------


def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Value, ...]:
    """Returns the parts of an array along an axis, which they lack.

    Raises:
        ParameterError: for a scalar.
        AxisError: for an axis out of range.

    >>> import axir.numpy as jnp
    >>> jnp.unstack(jnp.array([[1, 2], [3, 4]]))
    (Array([1, 2], dtype=int32), Array([3, 4], dtype=int32))
    """
    x = array_argument("unstack", x)
    if not x.ndim:
        raise ParameterError(
            "jnp.unstack: needs an array of at least one axis, not a scalar.",
            "jnp.atleast_1d gives a scalar an axis.",
        )
    axis = canonical_axis("unstack", axis, x.ndim)
    return tuple(
        squeeze(slice_in_dim(x, i, i + 1, axis=axis), (axis,)) for i in range(x.shape[axis])
    )


def array_split(ary: ArrayLike, indices_or_sections: object, axis: int = 0) -> list[Value]:
    """Splits an array along an axis into nearly equal parts, or at given places; see `split`.

    >>> import axir.numpy as jnp
    >>> [len(part) for part in jnp.array_split(jnp.arange(5), 3)]
    [2, 2, 1]
    """
    return _split("array_split", ary, indices_or_sections, axis, False)


def split(ary: ArrayLike, indices_or_sections: object, axis: int = 0) -> list[Value]:
    """Splits an array along an axis.

    Args:
        ary: Array.
        indices_or_sections: The number of equal parts, or the places where parts begin.
        axis: The axis.

    Raises:
        ParameterError: if equal parts are not possible.
        AxisError: for an axis out of range.

    >>> import axir.numpy as jnp
    >>> jnp.split(jnp.arange(4), [1, 3])
    [Array([0], dtype=int32), Array([1, 2], dtype=int32), Array([3], dtype=int32)]
    """
    return _split("split", ary, indices_or_sections, axis, True)


def hsplit(ary: ArrayLike, indices_or_sections: object) -> list[Value]:
    """Splits an array along axis 1, a vector along axis 0; see `split`."""
    axis = 0 if array_argument("hsplit", ary).ndim == 1 else 1
    return _split("hsplit", ary, indices_or_sections, axis, True)


def vsplit(ary: ArrayLike, indices_or_sections: object) -> list[Value]:
    """Splits an array along axis 0; see `split`."""
    return _split("vsplit", ary, indices_or_sections, 0, True)


def dsplit(ary: ArrayLike, indices_or_sections: object) -> list[Value]:
    """Splits an array along axis 2; see `split`."""
    return _split("dsplit", ary, indices_or_sections, 2, True)


def _split(
    name: str, ary: ArrayLike, places: UserObject, axis: int, must_be_equal: bool
) -> list[Value]:
    ary = array_argument(name, ary)
    axis = canonical_axis(name, axis, ary.ndim)
    extent = ary.shape[axis]
    if isinstance(places, (tuple, list)) or np.ndim(places) > 0:
        bounds = [0, *[_clipped(index(place), extent) for place in places], extent]
    else:
        count = index(places)
        if count < 1 or (must_be_equal and extent % count):
            raise ParameterError(
                f"jnp.{name}: array split does not result in an equal division: axis {axis} has "
                f"extent {extent}, and there are to be {count} parts.",
                "Use jnp.array_split, or give the places where to split.",
            )
        small, larger = divmod(extent, count)
        bounds = [small * i + min(i, larger) for i in range(count + 1)]
    return [
        slice_in_dim(ary, start, max(start, end), axis=axis)
        for start, end in itertools.pairwise(bounds)
    ]


def _clipped(place: int, extent: int) -> int:
    return min(max(place + extent if place < 0 else place, 0), extent)


# Repeating -------------------------------------------------------------------------------------


def tile(A: ArrayLike, reps: UserObject) -> Value:
    """Repeats a whole array along axes.

    Args:
        A: Array.
        reps: How often along each axis; an integer for the last one. The shorter of `reps` and the
            shape gets ones in front.

    >>> import axir.numpy as jnp
    >>> jnp.tile(jnp.array([1, 2]), (2, 2))
    Array([[1, 2, 1, 2],
           [1, 2, 1, 2]], dtype=int32)
    """
    a = array_argument("tile", A)
    is_list = not is_symbolic_dim(reps) and np.ndim(reps)
    counts = tuple(map(as_extent, reps)) if is_list else (as_extent(reps),)
    rank = max(a.ndim, len(counts))
    counts = (1,) * (rank - len(counts)) + counts
    shape = (1,) * (rank - a.ndim) + a.shape
    pairs = tuple(n for pair in zip(counts, shape, strict=True) for n in pair)
    repeated = broadcast_in_dim(reshape(a, shape), pairs, tuple(range(1, 2 * rank, 2)))
    return reshape(repeated, tuple(n * count for n, count in zip(shape, counts, strict=True)))


@lies_where_told
def repeat(
    a: ArrayLike,
    repeats: UserObject,
    axis: int | None = None,
    *,
    total_repeat_length: int | None = None,
    out_sharding: object = None,
) -> Value:
    """Repeats each element along an axis.

    Args:
        a: Array.
        repeats: How often: an integer, or one for each element along the axis.
        axis: The axis; by default the array is flattened.
        total_repeat_length: Extent of the result along the axis; needed if `repeats` is traced. The
            result is cut off there, or filled up with the last element of `a`.
        out_sharding: Placement of the result: a sharding, or a `PartitionSpec`.

    Raises:
        ParameterError: if `repeats` does not fit the axis, or if one of them is negative.
        DTypeError: if `repeats` are no integers.
        ConcretizationTypeError: if `repeats` is traced and the length not given.

    >>> import axir.numpy as jnp
    >>> jnp.repeat(jnp.array([1, 2, 3]), jnp.array([2, 0, 1]))
    Array([1, 1, 3], dtype=int32)
    """
    a = array_argument("repeat", a)
    if isinstance(repeats, (tuple, list)):
        raise not_an_array("repeat", repeats, 1)
    if axis is None:
        a, axis = (a if a.ndim == 1 else reshape(a, (a.size,))), 0
    axis = canonical_axis("repeat", axis, a.ndim)
    if is_symbolic_dim(repeats) and total_repeat_length is None:
        return _repeat_evenly(a, repeats, axis)
    if np.ndim(repeats) == 1 and len(repeats) != 1 and len(repeats) != a.shape[axis]:
        raise ParameterError(
            f"jnp.repeat: repeats of length {len(repeats)} does not fit axis {axis} of {a.aval}.",
            "Give a number, or one for each element along the axis.",
        )
    if total_repeat_length is not None and not a.shape[axis]:
        return a
    if type(repeats) is Tracer and total_repeat_length is not None:
        return _repeat_traced(a, repeats, axis, index(total_repeat_length))
    counts = _checked_counts(repeats if type(repeats) is not Tracer else _known(repeats))
    if counts.size == 1 and total_repeat_length is None:
        return _repeat_evenly(a, int(counts[0]), axis)
    extent = a.shape[axis]
    places = np.repeat(np.arange(extent, dtype=np.int32), counts)
    if total_repeat_length is not None:
        length = index(total_repeat_length)
        filled = np.full(max(length - len(places), 0), extent - 1, np.int32)
        places = np.concatenate([places[:length], filled])
    return take_places(a, from_numpy(places), axis)


def _checked_counts(repeats: object) -> np.ndarray:
    counts = np.asarray(repeats)
    if counts.ndim > 1:
        raise ParameterError(
            f"jnp.repeat: repeats of shape {counts.shape} has {counts.ndim} axes.",
            "Give a number, or one for each element along the axis.",
        )
    if counts.dtype.kind not in "iub" and counts.size:
        raise DTypeError(
            f"jnp.repeat: repeats of dtype {counts.dtype} are no integers.",
            "Cast them with repeats.astype(int).",
        )
    if (counts < 0).any():
        raise ParameterError(f"jnp.repeat: repeats={counts.tolist()} is negative.")
    return counts.reshape(-1).astype(np.int64)


def _known(repeats: Tracer) -> object:
    return repeats.known(
        ConcretizationTypeError,
        "for the extent of the result of jnp.repeat (pass total_repeat_length)",
    )


def _repeat_evenly(a: Value, count: int, axis: int) -> Value:
    shape = (*a.shape[: axis + 1], count, *a.shape[axis + 1 :])
    dimensions = tuple(d + (d > axis) for d in range(a.ndim))
    merged = (*a.shape[:axis], a.shape[axis] * count, *a.shape[axis + 1 :])
    return reshape(broadcast_in_dim(a, shape, dimensions), merged)


def _repeat_traced(a: Value, repeats: Value, axis: int, length: int) -> Value:
    """Counts for each position of the result the elements with repetitions that end before it."""
    extent = a.shape[axis]
    counts = convert_element_type(repeats, np.int32)
    counts = broadcast_in_dim(counts, (extent,), (0,) if counts.ndim else ())
    ends = broadcast_in_dim(cumsum(counts), (length, extent), (1,))
    places = broadcast_in_dim(iota(np.int32, length), (length, extent), (0,))
    return take_places(a, reduce_sum(convert_element_type(le(ends, places), np.int32), (1,)), axis)


def take_places(a: Value, places: Value, axis: int) -> Value:
    """Reads an array at places along an axis; those out of range are clipped."""
    offset = tuple(d for d in range(a.ndim) if d != axis)
    numbers = GatherDimensionNumbers(offset, (axis,), (axis,))
    sizes = tuple(1 if d == axis else extent for d, extent in enumerate(a.shape))
    return gather(a, expand_dims(places, (1,)), numbers, sizes, mode="clip")


def resize(a: ArrayLike, new_shape: UserObject) -> Value:
    """Returns an array of another shape, filled with the elements again and again.

    Raises:
        ShapeError: for a negative extent.

    >>> import axir.numpy as jnp
    >>> jnp.resize(jnp.array([1, 2, 3]), (2, 2))
    Array([[1, 2],
           [3, 1]], dtype=int32)
    """
    a = array_argument("resize", a)
    shape = tuple(map(index, new_shape)) if np.ndim(new_shape) else (index(new_shape),)
    if any(extent < 0 for extent in shape):
        raise ShapeError(
            f"jnp.resize: shape {shape} has a negative extent.", "-1 is not inferred here."
        )
    size = math.prod(shape)
    if not size or not a.size:
        return broadcast_in_dim(convert_element_type(0, a.dtype), shape, ())
    flat = tile(reshape(a, (a.size,)), -(-size // a.size))
    return reshape(slice_in_dim(flat, 0, size), shape)
