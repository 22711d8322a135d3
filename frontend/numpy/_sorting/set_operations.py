"""Arrays as sets: `unique`, unions, intersections, differences, membership.

How many different elements there are is known only with the values. While tracing, the static
argument `size` says how many results there shall be: more are cut off, missing ones filled.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import UserObject
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import ConcretizationTypeError, ParameterError
from axir.dialect.core.symbolic_dims import as_extent, symbolic_dim_bounds
from axir.dialect.ops.elementwise.arithmetic import sub
from axir.dialect.ops.elementwise.comparison import and_, eq, lt, ne, not_, or_, select_n
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.ops.indexing.static_slicing import slice_in_dim
from axir.dialect.ops.reductions.cumulative import cumsum
from axir.dialect.ops.reductions.reduce import reduce_or, reduce_sum
from axir.dialect.ops.shape.broadcasting import broadcast_in_dim
from axir.dialect.ops.shape.concatenation import concatenate
from axir.dialect.ops.shape.constants import full_like, iota
from axir.dialect.ops.shape.rearranging import reshape
from axir.dialect.ops.sorting.sort import sort as lax_sort
from axir.dialect.program.rules import Value
from axir.dialect.program.tracer import Tracer
from axir.numpy._arguments.checks import canonical_axis
from axir.numpy._arguments.promotion import array_argument, constant, promote_arguments
from axir.numpy._shape.joining import take_places
from axir.numpy._shape.manipulation import moveaxis

from .sorting import searchsorted

__all__ = [
    "intersect1d", "isin", "setdiff1d", "setxor1d", "union1d", "unique", "unique_all",
    "unique_counts", "unique_inverse", "unique_values",
]  # fmt: skip


class UniqueAll(NamedTuple):
    """Result of `unique_all`."""

    values: Value
    indices: Value
    inverse_indices: Value
    counts: Value


class UniqueCounts(NamedTuple):
    """Result of `unique_counts`."""

    values: Value
    counts: Value


class UniqueInverse(NamedTuple):
    """Result of `unique_inverse`."""

    values: Value
    inverse_indices: Value


class _Runs(NamedTuple):
    """Sorted rows, and where runs of equal ones begin.

    Attributes:
        rows: The rows, sorted.
        order: Where each of them comes from.
        is_first: Whether it differs from the one before it.
        count: The number of runs, as a value.
    """

    rows: Value
    order: Value
    is_first: Value
    count: Value  # type: ignore[assignment]


def _index_dtype() -> np.dtype:
    return dtypes.canonicalize_dtype(np.int64)


def _sorted_runs(rows: Value, equal_nan: bool) -> _Runs:
    """Sorts rows (entries along axis 0) lexicographically and compares neighbours."""
    extent, width = rows.shape
    if dtypes.is_complex(rows.dtype):
        # Whatever is a NaN in one part: as one value such numbers stand together, at the end.
        rows = select_n(ne(rows, rows), rows, full_like(rows, complex(np.nan, 0)))
    places = iota(_index_dtype(), extent)
    columns = [reshape(slice_in_dim(rows, i, i + 1, axis=1), (extent,)) for i in range(width)]
    if not width:
        is_first = eq(places, constant(0, places.dtype))
        return _Runs(rows, places, is_first, constant(min(extent, 1), dtypes.int32))
    *columns, order = lax_sort((*columns, places), 0, num_keys=width)
    before = [_shifted(column) for column in columns]
    differs = [_differs(x, y, equal_nan) for x, y in zip(columns, before, strict=True)]
    is_first = eq(places, constant(0, places.dtype))
    for column in differs:
        is_first = or_(is_first, column)
    ordered = concatenate([reshape(column, (extent, 1)) for column in columns], 1)
    count = reduce_sum(convert_element_type(is_first, np.int32), (0,))
    return _Runs(ordered, order, is_first, count)


def _shifted(column: Value) -> Value:
    """Puts each entry one place back."""
    extent = column.shape[0]
    head = slice_in_dim(column, 0, min(1, extent))
    return concatenate([head, slice_in_dim(column, 0, max(extent - 1, 0))], 0) if extent else column


def _differs(x: Value, y: Value, equal_nan: bool) -> Value:
    differs = ne(x, y)
    if equal_nan and dtypes.is_inexact(x.dtype):
        differs = and_(differs, not_(and_(ne(x, x), ne(y, y))))
    return differs


def _number_of(name: str, count: Value, size: object) -> int:
    if size is not None:
        return as_extent(size)
    if type(count) is Tracer:
        count = count.known(
            ConcretizationTypeError,
            f"for the shape of the result of jnp.{name} (pass the static argument size)",
        )
        return _number_of(name, count, None)
    return int(count)


def _places_of(mask: Value, number: int) -> Value:
    """Returns the first places at which a mask is True; the extent of the mask for missing ones."""
    extent = mask.shape[0]
    dtype = _index_dtype()
    places = iota(dtype, extent)
    keyed = select_n(mask, broadcast_in_dim(constant(extent, dtype), (extent,), ()), places)
    ordered = lax_sort(keyed, 0)
    if number <= extent:
        return slice_in_dim(ordered, 0, number)
    missing = broadcast_in_dim(constant(extent, dtype), (number - extent,), ())
    return concatenate([ordered, missing], 0)


def unique(
    ar: object,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: UserObject = None,
    sorted: bool = True,
) -> UserObject:
    """Returns the different elements of an array, sorted.

    Args:
        ar: Array.
        return_index: Whether to return where each occurs first.
        return_inverse: Whether to return the indices that rebuild `ar` from the result.
        return_counts: Whether to return how often each occurs.
        axis: Axis along which whole entries are compared; by default elements are compared.
        equal_nan: Whether NaNs count as equal.
        size: How many results to return; needed while tracing.
        fill_value: What to fill up with; the smallest element by default.
        sorted: Accepted for compatibility; the result is always sorted.

    Returns:
        The elements, or a tuple of them and the other requested results.

    Raises:
        ConcretizationTypeError: while tracing without `size`.
        ParameterError: if nothing but `fill_value`, which is not given, could be the result.

    >>> import axir.numpy as jnp
    >>> jnp.unique(jnp.array([3, 1, 3]), return_counts=True)
    (Array([1, 3], dtype=int32), Array([1, 2], dtype=int32))
    """
    ar = array_argument("unique", ar)
    shape = ar.shape
    if axis is None:
        entry: tuple[int, ...] = ()
        rows = reshape(ar, (ar.size, 1))
        inverse_shape = shape
    else:
        axis = canonical_axis("unique", axis, ar.ndim)
        moved = moveaxis(ar, axis, 0)
        entry = moved.shape[1:]
        rows = reshape(moved, (moved.shape[0], int(np.prod(entry))))
        inverse_shape = (moved.shape[0],)
    runs = _sorted_runs(rows, equal_nan)
    number = _number_of("unique", runs.count, size)
    starts = _places_of(runs.is_first, number)
    values = _filled_rows(runs, starts, rows, fill_value, size)
    values = reshape(values, (number, *entry))
    results = [values if axis is None else moveaxis(values, 0, axis)]
    if return_index:
        results.append(_first_occurrences(runs, starts))
    if return_inverse:
        results.append(reshape(_inverse(runs), inverse_shape))
    if return_counts:
        results.append(_counts(runs, starts))
    return results[0] if len(results) == 1 else tuple(results)


def _filled_rows(
    runs: _Runs, starts: Value, rows: Value, fill_value: ArrayLike | None, size: int | None
) -> Value:
    number, width = starts.shape[0], rows.shape[1]
    if not rows.shape[0]:
        if number and fill_value is None:
            raise ParameterError(
                f"jnp.unique: there is nothing to fill {number} results with: the input is of "
                "size zero, and fill_value is not given.",
                "Pass fill_value.",
            )
        fill = 0 if fill_value is None else fill_value
        filler = convert_element_type(array_argument("unique", fill), rows.dtype)
        return broadcast_in_dim(filler, (number, width), ())
    values = take_places(runs.rows, starts, 0)
    if size is None:
        return values
    is_missing = _spread(not_(lt(starts, runs.rows.shape[0])), values.shape)
    if fill_value is None:
        filler = broadcast_in_dim(slice_in_dim(runs.rows, 0, 1), values.shape, (0, 1))
    else:
        filler = convert_element_type(array_argument("unique", fill_value), rows.dtype)
        filler = broadcast_in_dim(filler, values.shape, (1,) if filler.ndim else ())
    return select_n(is_missing, values, filler)


def _spread(mask: Value, shape: tuple[int, ...]) -> Value:
    return broadcast_in_dim(mask, shape, (0,))


def _first_occurrences(runs: _Runs, starts: Value) -> Value:
    if not runs.order.shape[0]:
        return broadcast_in_dim(constant(0, runs.order.dtype), starts.shape, ())
    found = take_places(runs.order, starts, 0)
    is_missing = not_(lt(starts, runs.order.shape[0]))
    smallest = broadcast_in_dim(slice_in_dim(runs.order, 0, 1), starts.shape, (0,))
    return select_n(is_missing, found, smallest)


def _inverse(runs: _Runs) -> Value:
    dtype = _index_dtype()
    numbers = sub(cumsum(convert_element_type(runs.is_first, dtype)), constant(1, dtype))
    return lax_sort((runs.order, numbers), 0, num_keys=1)[1]


def _counts(runs: _Runs, starts: Value) -> Value:
    """Returns the distances of the starts of runs; zero for missing runs."""
    # The last run of those that were not cut off ends where the next one begins.
    number = starts.shape[0]
    following = _places_of(runs.is_first, number + 1)
    return sub(slice_in_dim(following, 1, number + 1), starts)


def unique_all(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> UniqueAll:
    """Returns different elements, first places, inverse and counts; NaNs count as different.

    See `unique`.
    """
    return UniqueAll(
        *unique(x, True, True, True, equal_nan=False, size=size, fill_value=fill_value)
    )


def unique_counts(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> UniqueCounts:
    """Returns different elements and counts; NaNs count as different. See `unique`."""
    return UniqueCounts(
        *unique(x, return_counts=True, equal_nan=False, size=size, fill_value=fill_value)
    )


def unique_inverse(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> UniqueInverse:
    """Returns different elements and the inverse; NaNs count as different. See `unique`."""
    return UniqueInverse(
        *unique(x, return_inverse=True, equal_nan=False, size=size, fill_value=fill_value)
    )


def unique_values(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> Value:
    """Returns different elements; NaNs count as different. See `unique`."""
    return unique(x, equal_nan=False, size=size, fill_value=fill_value)


# Two sets --------------------------------------------------------------------------------------


def _two(name: str, ar1: ArrayLike, ar2: ArrayLike) -> list[Value]:
    return [reshape(x, (x.size,)) for x in promote_arguments(name, ar1, ar2)]


def union1d(
    ar1: ArrayLike, ar2: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> Value:
    """Returns the elements that are in either array, sorted; see `unique`.

    >>> import axir.numpy as jnp
    >>> jnp.union1d(jnp.array([3, 1]), jnp.array([1, 2]))
    Array([1, 2, 3], dtype=int32)
    """
    both = concatenate(_two("union1d", ar1, ar2), 0)
    return unique(both, size=size, fill_value=fill_value)


def isin(
    element: ArrayLike,
    test_elements: ArrayLike,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    method: str = "auto",
) -> Value:
    """Tells for each element whether it is in another array.

    Args:
        element: Array.
        test_elements: Array of the values to look for.
        assume_unique: Accepted for compatibility; not needed.
        invert: Whether to tell the opposite.
        method: 'compare_all' compares each with each, 'binary_search' and 'sort' sort first;
            'auto' chooses.

    >>> import axir.numpy as jnp
    >>> jnp.isin(jnp.array([1, 2, 3]), jnp.array([3, 1]))
    Array([ True, False,  True], dtype=bool)
    """
    element, tests = promote_arguments("isin", element, test_elements)
    tests = reshape(tests, (tests.size,))
    flat = reshape(element, (element.size,))
    are_few = symbolic_dim_bounds(flat.size * tests.size)[1] <= 1 << 16
    if tests.size == 0 or flat.size == 0:
        found = broadcast_in_dim(constant(False, dtypes.bool_), flat.shape, ())
    elif method == "compare_all" or (method == "auto" and are_few):
        shape = (flat.shape[0], tests.shape[0])
        pairs = eq(broadcast_in_dim(flat, shape, (0,)), broadcast_in_dim(tests, shape, (1,)))
        found = reduce_or(pairs, (1,))
    else:
        ordered = lax_sort(tests, 0)
        nearest = take_places(ordered, searchsorted(ordered, flat), 0)
        found = eq(nearest, flat)
    found = reshape(found, element.shape)
    return not_(found) if invert else found


def setdiff1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: UserObject = None,
) -> Value:
    """Returns the elements of the first array that are not in the second, sorted.

    Args:
        ar1, ar2: Arrays.
        assume_unique: Whether the elements of each differ; `ar1`'s elements then keep their order.
        size, fill_value: As of `unique`; missing results are 0 by default.

    >>> import axir.numpy as jnp
    >>> jnp.setdiff1d(jnp.array([3, 1, 2]), jnp.array([2]))
    Array([1, 3], dtype=int32)
    """
    first = array_argument("setdiff1d", ar1)
    first = reshape(first, (first.size,))
    mask = isin(first, ar2, invert=True)
    if not assume_unique:
        runs = _sorted_runs(reshape(first, (first.size, 1)), True)
        mask = and_(take_places(mask, runs.order, 0), runs.is_first) if first.size else mask
        first = reshape(runs.rows, (first.size,))
    return _chosen("setdiff1d", first, mask, size, fill_value)


def _chosen(name: str, x: Value, mask: Value, size: object, fill_value: ArrayLike) -> Value:
    """Returns the elements that a mask chooses, filled up to a size."""
    count = reduce_sum(convert_element_type(mask, np.int32), (0,))
    number = _number_of(name, count, size)
    fill = array_argument(name, 0 if fill_value is None else fill_value)
    filler = broadcast_in_dim(convert_element_type(fill, x.dtype), (number,), ())
    if not x.shape[0]:
        return filler
    places = _places_of(mask, number)
    return select_n(lt(places, x.shape[0]), filler, take_places(x, places, 0))


def _smallest(ordered: Value, mask: Value) -> Value:
    """Returns the first element that a mask chooses of sorted ones; 0 if it chooses none."""
    return reshape(_chosen("unique", ordered, mask, 1, 0), ())


def intersect1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    size: int | None = None,
    fill_value: UserObject = None,
) -> UserObject:
    """Returns the elements that are in both arrays, sorted.

    Args:
        ar1, ar2: Arrays.
        assume_unique: Accepted for compatibility; not needed.
        return_indices: Whether to return where they occur first in each array as well.
        size, fill_value: As of `unique`; missing results are the smallest one by default, or 0
            for an empty result.

    >>> import axir.numpy as jnp
    >>> jnp.intersect1d(jnp.array([3, 1, 2]), jnp.array([2, 3]))
    Array([2, 3], dtype=int32)
    """
    first, second = _two("intersect1d", ar1, ar2)
    runs = _sorted_runs(reshape(first, (first.size, 1)), True)
    ordered = reshape(runs.rows, (first.size,))
    mask = and_(runs.is_first, isin(ordered, second))
    if fill_value is None and size is not None:
        fill_value = _smallest(ordered, mask)
    values = _chosen("intersect1d", ordered, mask, size, fill_value)
    if not return_indices:
        return values
    number = values.shape[0]
    if not (first.size and second.size):
        extents = [constant(x.size, runs.order.dtype) for x in (first, second)]
        return values, *(broadcast_in_dim(extent, (number,), ()) for extent in extents)
    places = _places_of(mask, number)
    own = take_places(runs.order, places, 0)
    other = _sorted_runs(reshape(second, (second.size, 1)), True)
    found = searchsorted(reshape(other.rows, (second.size,)), values)
    theirs = take_places(other.order, found, 0)
    is_missing = not_(lt(places, ordered.shape[0]))

    def limited(indices: Value, extent: int) -> Value:
        filler = broadcast_in_dim(constant(extent, indices.dtype), (number,), ())
        return select_n(is_missing, indices, filler)

    return values, limited(own, first.size), limited(theirs, second.size)


def setxor1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: UserObject = None,
) -> Value:
    """Returns the elements that are in one of two arrays, but not in both, sorted.

    Args:
        ar1, ar2: Arrays.
        assume_unique: Accepted for compatibility; not needed.
        size, fill_value: As of `unique`; missing results are the smallest one by default, or 0
            for an empty result.

    Returns:
        The elements. NaNs are equal to nothing: a NaN in both arrays occurs twice in the result.

    >>> import axir.numpy as jnp
    >>> jnp.setxor1d(jnp.array([3, 1]), jnp.array([1, 2]))
    Array([2, 3], dtype=int32)
    """
    first, second = _two("setxor1d", ar1, ar2)
    both = concatenate([first, second], 0)
    runs = _sorted_runs(reshape(both, (both.size, 1)), True)
    ordered = reshape(runs.rows, (both.size,))
    is_shared = and_(isin(ordered, first), isin(ordered, second))
    mask = and_(runs.is_first, not_(is_shared))
    if dtypes.is_inexact(both.dtype):
        # NaNs are a run at the end. The first of them is chosen, and if both arrays contain NaN,
        # the last.
        has_nan = [reduce_or(ne(x, x), (0,)) for x in (first, second)]
        is_last = eq(iota(np.int32, both.size), constant(both.size - 1, np.dtype(np.int32)))
        mask = or_(mask, and_(is_last, and_(*has_nan)))
    if fill_value is None and size is not None:
        fill_value = _smallest(ordered, mask)
    return _chosen("setxor1d", ordered, mask, size, fill_value)
