"""Counts of values: `bincount`, and histograms in one or more dimensions.

Elsewhere: the positions of values among edges (`searchsorted`, `digitize`, in
`frontend/numpy/_sorting/sorting.py`).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence

import numpy as np

from axir._devices.placement import laid_out, lies_where_told
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import UserObject
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import DTypeError, ParameterError, ShapeError
from axir.dialect.core.symbolic_dims import as_extent
from axir.dialect.ops.elementwise import arithmetic as lax
from axir.dialect.ops.elementwise import comparison
from axir.dialect.ops.shape.rearranging import reshape
from axir.dialect.program.rules import Value
from axir.numpy._arguments.promotion import array_argument, constant, inexact_dtype, promote_inexact
from axir.numpy._arrays.creation import asarray, converted
from axir.numpy._arrays.filled import full
from axir.numpy._arrays.grids import linspace
from axir.numpy._elementwise.arithmetic import divide, multiply
from axir.numpy._indexing.index_update import update
from axir.numpy._indexing.selection import concrete_host, where
from axir.numpy._reductions.differences import diff
from axir.numpy._reductions.reductions import max as maximum
from axir.numpy._reductions.reductions import min as minimum
from axir.numpy._reductions.reductions import sum
from axir.numpy._sorting.sorting import searchsorted

__all__ = [
    "bincount", "histogram", "histogram2d", "histogram_bin_edges", "histogramdd",
]  # fmt: skip


@lies_where_told
def bincount(
    x: object,
    weights: object = None,
    minlength: int = 0,
    *,
    length: int | None = None,
    out_sharding: object = None,
) -> Value:
    """Counts how often each of the numbers 0, 1, 2 ... occurs.

    Args:
        x: Integers of rank 1. Negative ones count as 0.
        weights: What each element counts; 1 by default.
        minlength: How many counts there are at least.
        length: How many counts there are; larger numbers are left out. Without it there are as
            many as the largest number asks for, which must be known while tracing.
        out_sharding: Placement of the result: a sharding, or a `PartitionSpec`.

    Returns:
        The counts: integers, or of the dtype of the weights.

    Raises:
        ShapeError: unless x, and the weights, are of rank 1 and equally long.
        DTypeError: unless x holds integers.
        ConcretizationTypeError: under `jit` without `length`.

    >>> import axir.numpy as jnp
    >>> jnp.bincount(jnp.array([1, 1, 3]))
    Array([0, 2, 0, 1], dtype=int32)
    """
    x = array_argument("bincount", x, 0)
    if dtypes.kind(x.dtype) not in "biu":
        raise DTypeError(f"jnp.bincount: x must hold integers, not {x.dtype}.")
    if x.ndim != 1:
        raise ShapeError(f"jnp.bincount: x must be of rank 1, but it is {x.type}.")
    if dtypes.kind(x.dtype) == "b":
        x = converted(x, dtypes.int32)
    if length is None:
        host = concrete_host(x, "to count its values (pass length=n, how many counts there are)")
        length = max(operator.index(minlength), int(host.max(initial=-1)) + 1)
    length = as_extent(length)
    if weights is None:
        weights = constant(1, dtypes.canonicalize_dtype(np.dtype(int)))
    else:
        weights = array_argument("bincount", weights, 1)
        if weights.shape != x.shape:
            raise ShapeError(
                f"jnp.bincount: the weights {weights.type} must have the shape of x, {x.shape}."
            )
    counts = full((length,), 0, weights.dtype)
    if not dtypes.is_unsigned(x.dtype):
        x = lax.max(x, constant(0, x.dtype))
    return update(counts, x, "add", weights, mode="drop")


# Edges -----------------------------------------------------------------------------------------


def histogram_bin_edges(
    a: ArrayLike, bins: UserObject = 10, range: object = None, weights: ArrayLike | None = None
) -> Value:
    """Returns the edges of the bins of a histogram.

    Args:
        a: Array.
        bins: How many bins of equal width, or the edges themselves.
        range: The outer edges (low, high); by default the least and the largest element.
        weights: Have no effect.

    Raises:
        ParameterError: for names of rules that choose the number of bins from the data.

    >>> import axir.numpy as jnp
    >>> jnp.histogram_bin_edges(jnp.array([0.0, 4.0]), bins=4)
    Array([0., 1., 2., 3., 4.], dtype=float32)
    """
    if isinstance(bins, str):
        raise ParameterError(
            f"jnp.histogram_bin_edges: the rule {bins!r} would make the shape of the result depend "
            "on values.",
            "Pass the number of bins, or edges from numpy.histogram_bin_edges.",
        )
    a = array_argument("histogram_bin_edges", a, 0)
    dtype = inexact_dtype(a.dtype)
    edges = bins if isinstance(bins, np.ndarray) or hasattr(bins, "aval") else asarray(bins)
    edges = array_argument("histogram_bin_edges", edges, 1)
    if edges.ndim == 1:
        return converted(edges, dtype)
    count = operator.index(bins)
    low, high = _limits(a, range, dtype)
    return linspace(low, high, count + 1, dtype=dtype)


def _limits(a: Value, limits: UserObject, dtype: np.dtype) -> tuple[Value, Value]:
    """Returns the outer edges, half a unit around a single value."""
    if limits is not None:
        low, high = (converted(asarray(limit), dtype) for limit in limits)
    elif a.size:
        low, high = (converted(f(a), dtype) for f in (minimum, maximum))
    else:
        low, high = constant(0, dtype), constant(1, dtype)
    is_single = comparison.eq(low, high)
    half = constant(0.5, dtype)
    return (
        comparison.select_n(is_single, low, lax.sub(low, half)),
        comparison.select_n(is_single, high, lax.add(high, half)),
    )


def _bin_numbers(x: Value, edges: Value) -> Value:
    """Returns the number of the bin of each element: from 1 on, 0 and the last one for outside.

    The last bin contains its upper edge.
    """
    numbers = searchsorted(edges, x, side="right")
    is_last = comparison.eq(*_spread_last(x, edges))
    last = constant(edges.shape[0] - 1, numbers.dtype)
    return where(is_last, last, numbers)


def _spread_last(x: Value, edges: Value) -> tuple[Value, Value]:
    x, edges = promote_inexact("histogram", x, edges)
    return x, edges[-1]


# Histograms ------------------------------------------------------------------------------------


def histogram(
    a: object,
    bins: object = 10,
    range: object = None,
    weights: UserObject = None,
    density: bool | None = None,
    out_sharding: object = None,
) -> tuple[Value, Value]:
    """Counts the elements in each bin.

    Args:
        a: Array of any shape.
        bins: As of `histogram_bin_edges`, like `range`.
        range: See there.
        weights: What each element counts, of the shape of `a`; 1 by default.
        density: Whether to divide by the sum and the width of the bins, for an integral of 1.
        out_sharding: Placement of the counts: a sharding, or a `PartitionSpec`.

    Returns:
        The counts, and the edges, one more. A bin contains its lower edge; the last bin both.

    Raises:
        ShapeError: for weights of another shape.

    >>> import axir.numpy as jnp
    >>> jnp.histogram(jnp.array([1.0, 2.0, 2.5, 3.0]), bins=2)[0]
    Array([1., 3.], dtype=float32)
    """
    a = array_argument("histogram", a, 0)
    edges = histogram_bin_edges(a, bins, range)
    a, weights = _weighted("histogram", a, weights)
    numbers = reshape(_bin_numbers(a, edges), (a.size,))
    counts = full((edges.shape[0],), 0, weights.dtype)
    flat = reshape(weights, (weights.size,)) if weights.ndim else weights
    counts = update(counts, numbers, "add", flat, mode="drop")[1:]
    if density:
        counts = divide(divide(counts, diff(edges)), sum(counts))
    if out_sharding is not None:
        counts = laid_out(counts, "histogram", out_sharding)
    return counts, edges


def _weighted(name: str, a: UserObject, weights: ArrayLike | None) -> tuple[Value, Value]:
    if weights is None:
        dtype = inexact_dtype(a.dtype)
        return converted(a, dtype), constant(1, dtype)
    weights = array_argument(name, weights, 1)
    if weights.shape != a.shape:
        raise ShapeError(
            f"jnp.{name}: the weights {weights.type} must have the shape of the array, {a.shape}."
        )
    a, weights = promote_inexact(name, a, weights)
    return a, weights


def histogramdd(
    sample: UserObject,
    bins: UserObject = 10,
    range: object = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Value, list[Value]]:
    """Counts points in each box of a grid.

    Args:
        sample: The points, of shape `(N, D)`, or a list of D arrays of coordinates.
        bins: How many bins, for all or for each dimension, or the edges of each dimension.
        range: For each dimension its outer edges, or None.
        weights: What each point counts; 1 by default.
        density: Whether to divide by the sum and the volume of the boxes.

    Returns:
        The counts, of rank D, and a list of edges for each dimension.

    Raises:
        ShapeError: for points that are no such array, and weights of another length.
        ParameterError: unless bins and ranges are as many as dimensions.

    >>> import axir.numpy as jnp
    >>> points = jnp.array([[0.0, 0.0], [1.0, 3.0], [1.0, 2.9]])
    >>> jnp.histogramdd(points, bins=2)[0].tolist()
    [[1, 0], [0, 2]]
    """
    columns = _columns(sample)
    count, rank = columns[0].shape[0], len(columns)
    if weights is not None:
        weights = array_argument("histogramdd", weights, 3)
        if weights.shape != (count,):
            raise ShapeError(
                f"jnp.histogramdd: the weights {weights.type} must be one for each of the {count} "
                "points."
            )
    is_each = _is_list(bins) or np.ndim(bins) > 0
    each_bins = _for_each("bins", bins, rank) if is_each else [bins] * rank
    ranges = [None] * rank if range is None else _for_each("range", range, rank)
    edges = [
        histogram_bin_edges(x, b, r) for x, b, r in zip(columns, each_bins, ranges, strict=True)
    ]
    shape = [e.shape[0] + 1 for e in edges]
    flat = constant(0, dtypes.int32)
    for x, e, extent in zip(columns, edges, shape, strict=True):
        flat = lax.add(multiply(flat, extent), converted(_bin_numbers(x, e), dtypes.int32))
    counts = bincount(flat, weights, length=math.prod(shape))
    counts = reshape(counts, shape)[(slice(1, -1),) * rank]
    if density:
        counts = divide(counts, sum(counts))
        for axis, e in enumerate(edges):
            widths = diff(e)
            widths = reshape(widths, [1] * axis + [widths.shape[0]] + [1] * (rank - axis - 1))
            counts = divide(counts, widths)
    return counts, edges


def _is_list(bins: object) -> bool:
    return isinstance(bins, (list, tuple))


def _columns(sample: Value) -> list[Value]:
    """Returns the coordinates of points, dimension by dimension, in one inexact dtype."""
    if _is_list(sample):
        columns = [array_argument("histogramdd", x, 0) for x in sample]
    else:
        points = array_argument("histogramdd", sample, 0)
        if points.ndim != 2:
            raise ShapeError(
                f"jnp.histogramdd: the sample {points.type} must have the shape (N, D)."
            )
        columns = [points[:, axis] for axis in np.arange(points.shape[1]).tolist()]
    if any(x.ndim != 1 or x.shape != columns[0].shape for x in columns):
        raise ShapeError(
            "jnp.histogramdd: the coordinates must be arrays of rank 1 and of one length, but are "
            f"{', '.join(str(x.type) for x in columns)}."
        )
    return list(promote_inexact("histogramdd", *columns))


def _for_each(what: str, values: UserObject, rank: int) -> list[object]:
    values = list(values)
    if len(values) != rank:
        raise ParameterError(
            f"jnp.histogramdd: {what} has {len(values)} entries for {rank} dimensions."
        )
    return values


def histogram2d(
    x: object,
    y: object,
    bins: UserObject = 10,
    range: Sequence[object] | None = None,
    weights: UserObject = None,
    density: bool | None = None,
) -> tuple[Value, Value, Value]:
    """Counts points of the plane in each box of a grid.

    Args:
        x: First coordinates.
        y: Second coordinates.
        bins: How many bins, for both dimensions or for each, or edges for both or for each.
        range: For each dimension its outer edges, or None.
        weights: What each point counts; 1 by default.
        density: Whether to divide by the sum and the area of the boxes.

    Returns:
        The counts, and the edges in the two dimensions.

    >>> import axir.numpy as jnp
    >>> x, y = jnp.array([0.0, 1.0, 1.0]), jnp.array([0.0, 3.0, 2.9])
    >>> jnp.histogram2d(x, y, bins=2)[0].tolist()
    [[1, 0], [0, 2]]
    """
    if not _is_list(bins) and np.ndim(bins) == 1:
        bins = [bins] * 2  # edges for both
    counts, (first, second) = histogramdd([x, y], bins, range, weights, density)
    return counts, first, second
