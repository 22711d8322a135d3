"""Sorting, and searching in sorted arrays.

NaNs sort behind all numbers, complex numbers by their real, then imaginary parts. Elsewhere: sets
(`set_operations.py`) and order statistics (`frontend/numpy/_reductions/quantiles.py`).
"""

from __future__ import annotations

from operator import index

import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Axes, DTypeLike
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import AxirError, DTypeError, ParameterError
from axir.dialect.core.symbolic_dims import is_open, symbolic_dim_bounds
from axir.dialect.ops.elementwise.arithmetic import add, sub
from axir.dialect.ops.elementwise.comparison import and_, eq, le, lt, ne, not_, or_, select_n
from axir.dialect.ops.elementwise.conversion import convert_element_type, imag, real
from axir.dialect.ops.indexing.static_slicing import index_in_dim, slice_in_dim
from axir.dialect.ops.reductions.reduce import reduce_sum
from axir.dialect.ops.shape.broadcasting import broadcast_in_dim
from axir.dialect.ops.shape.concatenation import concatenate
from axir.dialect.ops.shape.constants import broadcasted_iota, iota
from axir.dialect.ops.shape.rearranging import reshape, rev
from axir.dialect.ops.sorting.sort import sort as lax_sort
from axir.dialect.ops.sorting.sort import top_k as lax_top_k
from axir.dialect.program.op_table import OPS
from axir.dialect.program.rules import Value
from axir.numpy._arguments.checks import canonical_axis
from axir.numpy._arguments.promotion import (
    array_argument,
    constant,
    promote_arguments,
    require_real,
)
from axir.numpy._elementwise.floats import signbit
from axir.numpy._elementwise.logic import isnan
from axir.numpy._indexing.taking import take_along_axis
from axir.numpy._shape.joining import take_places, unstack

__all__ = [
    "argpartition", "argsort", "digitize", "lexsort", "partition", "searchsorted", "sort",
    "sort_complex", "top_k",
]  # fmt: skip


_bind_sort = OPS["sort"].bind


class SortOptionError(AxirError, TypeError):
    """An option of NumPy's sort that makes no sense here."""


def _check_options(name: str, kind: object, order: object) -> None:
    if kind is not None:
        raise SortOptionError(
            f"jnp.{name}: 'kind' argument to {name} is not supported.",
            "Use stable=True or stable=False to specify sort stability.",
        )
    if order is not None:
        raise SortOptionError(
            f"jnp.{name}: 'order' argument to {name} is not supported: arrays have no fields.",
            "Use jnp.lexsort to sort by several keys.",
        )


def _along(name: str, a: ArrayLike, axis: Axes) -> tuple[Value, int]:
    a = array_argument(name, a)
    if axis is None:
        return (a if a.ndim == 1 else reshape(a, (a.size,))), 0
    return a, canonical_axis(name, axis, a.ndim)


def sort(
    a: ArrayLike,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
) -> Value:
    """Sorts an array along an axis.

    Args:
        a: Array of any dtype.
        axis: The axis; None sorts the flattened array.
        kind: Must be None.
        order: Must be None.
        stable: Whether equal elements keep their order.
        descending: Whether the largest comes first (NaN before it).

    Raises:
        AxisError: for an axis out of range.
        SortOptionError: if `kind` or `order` is given.

    >>> import axir.numpy as jnp
    >>> jnp.sort(jnp.array([3, 1, 2]))
    Array([1, 2, 3], dtype=int32)
    """
    _check_options("sort", kind, order)
    a, axis = _along("sort", a, axis)
    (result,) = _bind_sort(a, dimension=axis, is_stable=bool(stable), num_keys=1)
    return rev(result, (axis,)) if descending else result


def argsort(
    a: ArrayLike,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
    dtype: DTypeLike = None,
) -> Value:
    """Returns the indices that sort an array along an axis; see `sort`.

    Args:
        a, axis, kind, order, stable, descending: As of `sort`.
        dtype: Integer dtype of the result; by default the default integer dtype.

    >>> import axir.numpy as jnp
    >>> jnp.argsort(jnp.array([3, 1, 2]))
    Array([1, 2, 0], dtype=int32)
    """
    _check_options("argsort", kind, order)
    a, axis = _along("argsort", a, axis)
    index_dtype = dtypes.canonicalize_dtype(np.int64 if dtype is None else dtype)
    if not dtypes.is_integer(index_dtype):
        raise DTypeError(
            f"jnp.argsort: dtype {index_dtype} is not an integer dtype.", "Positions are integers."
        )
    places = broadcasted_iota(index_dtype, a.shape, axis)
    if not descending:
        return lax_sort((a, places), axis, bool(stable), num_keys=1)[1]
    # Backwards, so that equal elements keep their order.
    pair = rev(a, (axis,)), rev(places, (axis,))
    return rev(lax_sort(pair, axis, bool(stable), num_keys=1)[1], (axis,))


def top_k(
    a: ArrayLike, k: int, /, *, axis: int = -1, mode: str = "largest", sorted: bool = True
) -> tuple[Value, Value]:
    """Finds the `k` largest or smallest elements along an axis, and where they are.

    Args:
        a: Array of real numbers.
        k: How many; at most the extent of the axis.
        axis: The axis.
        mode: `largest` or `smallest`.
        sorted: Whether they are in order, the best first; they are in any case.

    Returns:
        The elements, and their int32 indices along the axis; of equal elements the first ones.
        NaN counts as the largest, and -0.0 as less than 0.0.

    Raises:
        ParameterError: for another mode, or a `k` that is negative or too large.
        DTypeError: for complex numbers.

    >>> import axir.numpy as jnp
    >>> jnp.top_k(jnp.array([1, 4, 2, 3]), 2)
    (Array([4, 3], dtype=int32), Array([1, 3], dtype=int32))
    """
    values = array_argument("top_k", a)
    axis = canonical_axis("top_k", axis, values.ndim)
    if mode not in ("largest", "smallest"):
        raise ParameterError(f"jnp.top_k: mode is {mode!r}.", "It is 'largest' or 'smallest'.")
    if mode == "largest":
        return lax_top_k(values, k, axis=axis)
    if not 0 <= index(k) <= values.shape[axis]:
        raise ParameterError(
            f"jnp.top_k: k={k} must lie between 0 and the size of axis {axis} of {values.type}."
        )
    require_real("top_k", values)
    places = broadcasted_iota(np.dtype(np.int32), values.shape, axis)
    keys: tuple[Value, ...] = (values,)
    if dtypes.is_float(values.dtype):  # zeros in the order of their signs, but no NaN by its sign
        keys = (values, or_(isnan(values), not_(signbit(values))))
    ordered, *_, order = lax_sort((*keys, places), axis, num_keys=len(keys))
    return (
        slice_in_dim(ordered, 0, index(k), axis=axis), slice_in_dim(order, 0, index(k), axis=axis)
    )  # fmt: skip


def lexsort(
    keys: ArrayLike | tuple[ArrayLike, ...] | list[Value], axis: int = -1, *, batch_size: int = 16
) -> Value:
    """Returns the indices that sort by several keys; the last key is the primary one.

    Args:
        keys: Sequence of arrays of equal shape, or an array of keys along its first axis.
        axis: Axis of each key to sort along.
        batch_size: How many keys one sort compares at most. With more keys of one dtype, several
            sorts are made, least significant keys first; the result is the same.

    Raises:
        ParameterError: if there are no keys, or their shapes differ.

    >>> import axir.numpy as jnp
    >>> jnp.lexsort((jnp.array([1, 0, 1]), jnp.array([2, 2, 1])))
    Array([2, 1, 0], dtype=int32)
    """
    if isinstance(keys, (tuple, list)):
        arrays = [array_argument("lexsort", key, i) for i, key in enumerate(keys)]
    else:
        arrays = list(unstack(keys))
    if not arrays:
        raise SortOptionError(
            "jnp.lexsort: need sequence of keys with len > 0 in lexsort.", "Pass at least one key."
        )
    if any(key.shape != arrays[0].shape for key in arrays):
        raise ParameterError(
            "jnp.lexsort: all keys need to be the same shape, but they have "
            f"{', '.join(str(key.shape) for key in arrays)}.",
            "Broadcast them first.",
        )
    if batch_size < 1:
        raise ParameterError(f"jnp.lexsort: batch_size is {batch_size}.", "It is at least 1.")
    shape = arrays[0].shape
    dtype = dtypes.canonicalize_dtype(np.int64)
    if not shape:
        return constant(0, dtype)
    axis = canonical_axis("lexsort", axis, len(shape))
    places: Value = broadcasted_iota(dtype, shape, axis)
    is_one_dtype = all(key.dtype == arrays[0].dtype for key in arrays)
    size = batch_size if is_one_dtype else len(arrays)
    for start in range(0, len(arrays), size):
        batch = arrays[start : start + size]
        if start:
            batch = [take_along_axis(key, places, axis) for key in batch]
        places = lax_sort((*batch[::-1], places), axis, num_keys=len(batch))[-1]
    return places


def partition(a: ArrayLike, kth: int, axis: int = -1) -> Value:
    """Rearranges elements so that none before place k is larger and none behind it smaller.

    The order on both sides of it is not specified.

    Args:
        a: Array of real numbers.
        kth: The place.
        axis: The axis.

    Raises:
        DTypeError: for complex numbers.
        ParameterError: for a place out of range.

    >>> import axir.numpy as jnp
    >>> jnp.partition(jnp.array([3, 1, 2]), 1)[1]
    Array(2, dtype=int32)
    """
    a, axis = _partitioned("partition", a, kth, axis)
    return lax_sort(a, axis)


def argpartition(a: ArrayLike, kth: int, axis: int = -1) -> Value:
    """Returns indices that rearrange elements as `partition` does.

    >>> import axir.numpy as jnp
    >>> jnp.argpartition(jnp.array([3, 1, 2]), 1)[1]
    Array(2, dtype=int32)
    """
    a, axis = _partitioned("argpartition", a, kth, axis)
    return argsort(a, axis, dtype=np.int32)


def _partitioned(name: str, a: ArrayLike, kth: int, axis: int) -> tuple[Value, int]:
    a = array_argument(name, a)
    require_real(name, a)
    axis = canonical_axis(name, axis, a.ndim)
    if not -a.shape[axis] <= index(kth) < a.shape[axis]:
        raise ParameterError(
            f"jnp.{name}: kth={kth} is out of range for axis {axis} of {a.aval}.",
            f"It lies between {-a.shape[axis]} and {a.shape[axis] - 1}.",
        )
    return a, axis


def sort_complex(a: ArrayLike) -> Value:
    """Sorts along the last axis by real, then imaginary part; the result is complex.

    >>> import axir.numpy as jnp
    >>> jnp.sort_complex(jnp.array([2.0, 1.0]))
    Array([1.+0.j, 2.+0.j], dtype=complex64)
    """
    a, axis = _along("sort_complex", a, -1)
    result = lax_sort(a, axis)
    return convert_element_type(result, dtypes.promote_types(result.dtype, dtypes.complex64))


# Searching -------------------------------------------------------------------------------------

_METHODS = ("scan", "scan_unrolled", "sort", "compare_all")
# As many comparisons as are cheaper than the steps of a binary search.
_FEW_COMPARISONS = 1 << 16


def searchsorted(
    a: ArrayLike,
    v: ArrayLike,
    side: str = "left",
    sorter: object = None,
    *,
    method: str = "scan",
) -> Value:
    """Returns the places at which to insert values into a sorted array so that it stays sorted.

    Args:
        a: Sorted vector; NaNs at the end.
        v: Values to insert, of any shape.
        side: 'left' for the first fitting place, 'right' for the last.
        sorter: Indices that sort `a`, if it is not sorted.
        method: 'scan' and 'scan_unrolled' search in logarithmically many steps, except for few
            elements; 'sort' sorts `a` and `v` together; 'compare_all' compares each with each.

    Returns:
        Integers of the shape of `v`.

    Raises:
        ParameterError: for an unknown side or method, and if `a` is no vector.

    >>> import axir.numpy as jnp
    >>> jnp.searchsorted(jnp.array([1, 2, 2, 3]), jnp.array([2, 5]))
    Array([1, 4], dtype=int32)
    """
    if side not in ("left", "right"):
        raise ParameterError(
            f"jnp.searchsorted: {side!r} is an invalid value for argument 'side'.",
            "Pass 'left' or 'right'.",
        )
    if method not in _METHODS:
        raise ParameterError(
            f"jnp.searchsorted: {method!r} is an invalid value for argument 'method'.",
            f"Choose one of {', '.join(_METHODS)}.",
        )
    a, v = promote_arguments("searchsorted", a, v)
    if a.ndim != 1:
        raise ParameterError(
            f"jnp.searchsorted: a should be 1-dimensional, but it is {a.aval}.",
            "Map over further axes with vmap.",
        )
    if sorter is not None:
        a = take_places(a, array_argument("searchsorted", sorter, 3), 0)
    if not a.shape[0] or not v.size:
        return broadcast_in_dim(constant(0, dtypes.int32), v.shape, ())
    flat = reshape(v, (v.size,))
    if method == "sort" or is_open(a.shape):
        found = _by_sorting(a, flat, side)
    elif method == "compare_all" or symbolic_dim_bounds(a.size * v.size)[1] <= _FEW_COMPARISONS:
        found = _by_comparing(a, flat, side)
    else:
        found = _by_bisection(a, flat, side)
    return reshape(found, v.shape)


def comes_before(x: Value, y: Value) -> Value:
    """Tells whether x comes before y in sorted order: NaN comes after all numbers."""
    if dtypes.is_complex(x.dtype):
        is_tie = and_(not_(comes_before(real(y), real(x))), not_(comes_before(real(x), real(y))))
        return or_(comes_before(real(x), real(y)), and_(is_tie, comes_before(imag(x), imag(y))))
    if dtypes.is_float(x.dtype):
        return or_(lt(x, y), and_(ne(y, y), eq(x, x)))
    return lt(x, y)


def _is_passed(a: Value, v: Value, side: str) -> Value:
    """Tells whether the place of v lies behind an element of the sorted array."""
    return comes_before(a, v) if side == "left" else not_(comes_before(v, a))


def _by_comparing(a: Value, v: Value, side: str) -> Value:
    shape = (v.shape[0], a.shape[0])
    elements = broadcast_in_dim(a, shape, (1,))
    values = broadcast_in_dim(v, shape, (0,))
    passed = _is_passed(elements, values, side)
    return reduce_sum(convert_element_type(passed, np.int32), (1,))


def _by_bisection(a: Value, v: Value, side: str) -> Value:
    """Finds the number of elements passed, bit by bit from the highest."""
    extent = a.shape[0]
    count = broadcast_in_dim(constant(0, dtypes.int32), v.shape, ())
    step = 1 << (extent.bit_length() - 1)
    while step:
        candidate = add(count, step)
        passed = _is_passed(take_places(a, sub(candidate, 1), 0), v, side)
        is_taken = and_(passed, le(candidate, extent))
        count = select_n(is_taken, count, candidate)
        step //= 2
    return count


def _by_sorting(a: Value, v: Value, side: str) -> Value:
    """Ranks the values among all elements by a stable sort; the side orders equal values."""
    parts = [v, a] if side == "left" else [a, v]
    extent, count = a.shape[0], v.shape[0]
    first = 0 if side == "left" else extent
    places = iota(np.int32, extent + count)
    order = lax_sort((concatenate(parts, 0), places), 0, num_keys=1)[1]
    ranks = lax_sort((order, places), 0, num_keys=1)[1]
    own = take_places(ranks, add(iota(np.int32, count), first), 0)
    # A value's rank counts the values before it, too.
    by_value = lax_sort((v, iota(np.int32, count)), 0, num_keys=1)[1]
    return sub(own, lax_sort((by_value, iota(np.int32, count)), 0, num_keys=1)[1])


def digitize(
    x: ArrayLike, bins: object, right: bool = False, *, method: str | None = None
) -> Value:
    """Returns the number of the bin in which each value lies.

    Args:
        x: Values.
        bins: Increasing or decreasing vector of the bins' edges.
        right: Whether bins contain their right instead of their left edge.
        method: As of `searchsorted`.

    Returns:
        Integers of the shape of `x`; 0 and `len(bins)` for values outside.

    Raises:
        ParameterError: if `bins` is no vector.

    >>> import axir.numpy as jnp
    >>> jnp.digitize(jnp.array([0.5, 2.0, 9.0]), jnp.array([1.0, 2.0, 3.0]))
    Array([0, 2, 3], dtype=int32)
    """
    bins = array_argument("digitize", bins, 1)
    x = array_argument("digitize", x)
    if bins.ndim != 1:
        raise ParameterError(
            f"jnp.digitize: bins must be a 1-dimensional array, but it is {bins.aval}.",
            "Flatten it.",
        )
    side = "left" if right else "right"
    method = method or "scan"
    extent = bins.shape[0]
    if not extent:
        return broadcast_in_dim(constant(0, dtypes.int32), x.shape, ())
    rising = searchsorted(bins, x, side, method=method)
    falling = sub(extent, searchsorted(rev(bins, (0,)), x, side, method=method))
    first, last = (index_in_dim(bins, place, keepdims=False) for place in (0, -1))
    is_rising = broadcast_in_dim(le(first, last), x.shape, ())
    return select_n(is_rising, falling, rising)
