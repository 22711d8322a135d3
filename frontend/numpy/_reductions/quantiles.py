"""Order statistics along axes: `quantile`, `percentile`, `median`, and those that skip NaNs.

All sort once and read the elements on both sides of the wanted position.
"""

from __future__ import annotations

import math

import numpy as np

from axir._devices.placement import lies_where_told
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Axes, UserObject
from axir.dialect.core.array import ArrayLike, scalar
from axir.dialect.core.errors import ParameterError, ShapeError
from axir.dialect.ops.elementwise.arithmetic import add, ceil, clamp, div, floor, mul, sub
from axir.dialect.ops.elementwise.comparison import eq, le, lt, ne, not_, or_, select_n
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.ops.indexing.gather import GatherDimensionNumbers, gather
from axir.dialect.ops.indexing.static_slicing import index_in_dim
from axir.dialect.ops.reductions.cumulative import cumsum
from axir.dialect.ops.reductions.reduce import reduce_or, reduce_sum
from axir.dialect.ops.shape.broadcasting import broadcast_in_dim, expand_dims
from axir.dialect.ops.shape.rearranging import reshape, transpose
from axir.dialect.ops.sorting.sort import sort
from axir.dialect.program.rules import Value
from axir.numpy._arguments.checks import accepts_older_keyword, canonical_axes, reject_out, spread
from axir.numpy._arguments.promotion import (
    array_argument,
    constant,
    promote_arguments,
    promote_inexact,
)

__all__ = [
    "median", "nanmedian", "nanpercentile", "nanquantile", "percentile", "quantile",
]  # fmt: skip

METHODS = ("linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf")


@accepts_older_keyword("interpolation", "method")
def quantile(
    a: object,
    q: UserObject,
    axis: Axes = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: UserObject = None,
) -> Value:
    """Returns quantiles along axes: the values below which a fraction of the elements lies.

    Args:
        a: Array of real numbers.
        q: Fraction between 0 and 1, or a vector of them.
        axis: Axis or tuple of axes; all by default.
        out: Not supported.
        overwrite_input: Has no effect; arrays are immutable.
        method: What to return between two elements: 'linear' interpolates, 'lower', 'higher' and
            'nearest' choose one, 'midpoint' averages them; 'inverted_cdf' inverts the step function
            of the cumulative distribution.
        keepdims: Whether the axes stay, with extent 1.
        weights: Weights of the elements, of the shape of `a` or of the axes' extents; only with
            'inverted_cdf'.

    Returns:
        An array of the shape of `q`, followed by the axes that stay; NaN for a line with a NaN.

    Raises:
        ParameterError: for complex numbers, an unknown method, weights with another method than
            'inverted_cdf', or if `q` has several axes.
        ShapeError: if the weights do not fit.

    >>> import axir.numpy as jnp
    >>> jnp.quantile(jnp.array([1.0, 2.0, 4.0]), 0.75)
    Array(3., dtype=float32)
    """
    reject_out("quantile", out)
    return _quantile("quantile", a, _fractions("quantile", q), axis, method, keepdims, weights)


@accepts_older_keyword("interpolation", "method")
def nanquantile(
    a: object,
    q: ArrayLike,
    axis: Axes = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: UserObject = None,
) -> Value:
    """Returns quantiles of the elements that are not NaN; otherwise like `quantile`.

    >>> import axir.numpy as jnp
    >>> jnp.nanquantile(jnp.array([1.0, jnp.nan, 2.0, 4.0]), 0.75)
    Array(3., dtype=float32)
    """
    reject_out("nanquantile", out)
    fractions = _fractions("nanquantile", q)
    return _quantile("nanquantile", a, fractions, axis, method, keepdims, weights, skips_nan=True)


@accepts_older_keyword("interpolation", "method")
@lies_where_told
def percentile(
    a: object,
    q: ArrayLike,
    axis: Axes = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: UserObject = None,
    out_sharding: object = None,
) -> Value:
    """Returns quantiles for fractions in percent; otherwise like `quantile`.

    >>> import axir.numpy as jnp
    >>> jnp.percentile(jnp.array([1.0, 2.0, 4.0]), jnp.array([50, 75]))
    Array([2., 3.], dtype=float32)
    """
    reject_out("percentile", out)
    fractions = _percent("percentile", q)
    return _quantile("percentile", a, fractions, axis, method, keepdims, weights)


@accepts_older_keyword("interpolation", "method")
def nanpercentile(
    a: object,
    q: ArrayLike,
    axis: Axes = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: UserObject = None,
) -> Value:
    """Returns percentiles of the elements that are not NaN; otherwise like `percentile`.

    >>> import axir.numpy as jnp
    >>> jnp.nanpercentile(jnp.array([1.0, jnp.nan, 2.0, 4.0]), 75)
    Array(3., dtype=float32)
    """
    reject_out("nanpercentile", out)
    fractions = _percent("nanpercentile", q)
    return _quantile("nanpercentile", a, fractions, axis, method, keepdims, weights, skips_nan=True)


def median(
    a: object,
    axis: Axes = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Value:
    """Returns the middle element along axes, or the mean of the two in the middle.

    Takes the arguments and raises the errors of `quantile`.

    >>> import axir.numpy as jnp
    >>> jnp.median(jnp.array([5, 1, 2, 3]))
    Array(2.5, dtype=float32)
    """
    reject_out("median", out)
    return _quantile("median", a, scalar(0.5), axis, "midpoint", keepdims, None)


def nanmedian(
    a: object,
    axis: Axes = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Value:
    """Returns the median of the elements that are not NaN; otherwise like `median`.

    >>> import axir.numpy as jnp
    >>> jnp.nanmedian(jnp.array([5, jnp.nan, 2]))
    Array(3.5, dtype=float32)
    """
    reject_out("nanmedian", out)
    return _quantile("nanmedian", a, scalar(0.5), axis, "midpoint", keepdims, None, skips_nan=True)


def _fractions(name: str, q: ArrayLike) -> Value:
    (fractions,) = promote_inexact(name, array_argument(name, q, 1))
    if fractions.ndim > 1:
        raise ParameterError(
            f"jnp.{name}: q must have rank 0 or 1, but its shape is {fractions.shape}.",
            "Flatten it, and reshape the result.",
        )
    return convert_element_type(fractions, fractions.dtype)


def _percent(name: str, q: ArrayLike) -> Value:
    fractions = _fractions(name, q)
    return div(fractions, constant(100, fractions.dtype))


def _check(name: str, a: Value, method: str, weights: ArrayLike | None) -> None:
    if method not in METHODS:
        raise ParameterError(
            f"jnp.{name}: method {method!r} is unknown.", f"Choose one of {', '.join(METHODS)}."
        )
    if dtypes.is_complex(a.dtype):
        raise ParameterError(
            f"jnp.{name} does not take complex numbers, which have no order; a is {a.aval}.",
            "Take the real part or the absolute value first.",
        )
    if weights is not None and method != "inverted_cdf":
        raise ParameterError(
            f"jnp.{name}: method {method!r} does not take weights.", "Use method='inverted_cdf'."
        )


def _quantile(
    name: str,
    a: object,
    q: Value,
    axis: Axes,
    method: str,
    keepdims: bool,
    weights: ArrayLike | None,
    skips_nan: bool = False,
) -> Value:
    a = array_argument(name, a)
    _check(name, a, method, weights)
    axes = canonical_axes(name, axis, a.ndim)
    if weights is None:
        (a,) = promote_inexact(name, a)
    else:
        a, weights = _with_weights(name, a, weights, axis, axes)
    a = convert_element_type(a, a.dtype)
    shape = a.shape
    lines = _lines(a, axes)
    if not lines.shape[-1]:
        raise ParameterError(
            f"jnp.{name}: zero-size array has no quantiles; the shape is {shape}.",
            "There must be at least one element.",
        )
    fractions = reshape(q, (q.size,))
    if method == "inverted_cdf":
        found = _inverse_of_distribution(lines, fractions, weights, axes, skips_nan)
    else:
        found = _between(lines, fractions, method, skips_nan)
    return _in_place(convert_element_type(found, a.dtype), q.shape, shape, axes, keepdims)


def _with_weights(
    name: str, a: Value, weights: ArrayLike, axis: Axes, axes: tuple[int, ...]
) -> tuple[Value, Value]:
    a, weights = promote_inexact(name, *promote_arguments(name, a, weights))
    if weights.shape != a.shape:
        if axis is None or weights.shape != tuple(a.shape[i] for i in axes):
            raise ShapeError(
                f"jnp.{name}: weights of shape {weights.shape} do not fit axis={axis} of an array "
                f"of shape {a.shape}.",
                "They have the shape of a, or the extents of the axes.",
            )
        weights = broadcast_in_dim(weights, a.shape, axes)
    return a, weights


def _lines(a: Value, axes: tuple[int, ...]) -> Value:
    """Merges the axes into one, the last."""
    kept = tuple([d for d in range(a.ndim) if d not in axes])
    merged = math.prod([a.shape[d] for d in axes])
    order = (*kept, *sorted(axes))
    moved = a if order == tuple(range(a.ndim)) else transpose(a, order)
    return reshape(moved, (*[a.shape[d] for d in kept], merged))


def _in_place(
    found: Value,
    q_shape: tuple[int, ...],
    shape: tuple[int, ...],
    axes: tuple[int, ...],
    keepdims: bool,
) -> Value:
    """Moves the last axis (the fractions) to the front, and adds the kept axes."""
    last = found.ndim - 1
    if last:
        found = transpose(found, (last, *range(last)))
    kept = [
        1 if d in axes else extent for d, extent in enumerate(shape) if keepdims or d not in axes
    ]
    return reshape(found, (*q_shape, *kept))


def _take(lines: Value, positions: Value) -> Value:
    """Reads each line at its own positions, or all lines at the same ones."""
    last = lines.ndim - 1
    batch = tuple(range(last))
    indices = expand_dims(convert_element_type(positions, np.int32), (positions.ndim,))
    if positions.ndim == lines.ndim:
        numbers = GatherDimensionNumbers((), (last,), (last,), batch, batch)
        sizes = (1,) * lines.ndim
    else:
        numbers = GatherDimensionNumbers(batch, (last,), (last,))
        sizes = (*lines.shape[:last], 1)
    return gather(lines, indices, numbers, sizes, mode="clip")


def _poisoned(found: Value, is_invalid: Value) -> Value:
    """Makes the results of invalid lines NaN."""
    mask = broadcast_in_dim(is_invalid, found.shape, tuple(range(found.ndim - 1)))
    return select_n(mask, found, constant(np.nan, found.dtype))


def _between(lines: Value, fractions: Value, method: str, skips_nan: bool) -> Value:
    """Finds quantiles of lines along the last axis; the result's last axis is the fractions'."""
    dtype, last = fractions.dtype, lines.ndim - 1
    ordered = sort(lines, last)
    zero, one = (constant(x, dtype) for x in (0, 1))
    if skips_nan:
        numbers = convert_element_type(eq(ordered, ordered), dtype)
        counts = reduce_sum(numbers, (last,))
        shape = (*counts.shape, fractions.shape[0])
        top = sub(broadcast_in_dim(counts, shape, tuple(range(last))), one)
        positions = mul(spread(fractions, shape), top)
    else:
        top = constant(lines.shape[last] - 1, dtype)
        positions = mul(fractions, top)
    low, high = floor(positions), ceil(positions)
    high_weight = sub(positions, low)
    if skips_nan:
        top = select_n(lt(top, zero), top, zero)
    low, high = (clamp(zero, x, top) for x in (low, high))
    pair = _take(ordered, low), _take(ordered, high)
    found = _interpolated(method, pair, high_weight, dtype)
    if skips_nan:
        return found
    final = index_in_dim(ordered, -1, last, keepdims=False)
    return _poisoned(found, ne(final, final))


def _interpolated(
    method: str, pair: tuple[Value, Value], high_weight: Value, dtype: np.dtype
) -> Value:
    low_value, high_value = pair
    if method == "lower":
        return low_value
    if method == "higher":
        return high_value
    if method == "midpoint":
        return mul(add(low_value, high_value), 0.5)
    high_weight = spread(high_weight, low_value.shape)
    if method == "nearest":
        is_low = le(high_weight, constant(0.5, dtype))
        return select_n(is_low, high_value, low_value)
    low_weight = sub(constant(1, dtype), high_weight)
    low_value, high_value = (convert_element_type(x, dtype) for x in pair)
    return add(mul(low_value, low_weight), mul(high_value, high_weight))


def _inverse_of_distribution(
    lines: Value, fractions: Value, weights: Value | None, axes: tuple[int, ...], skips_nan: bool
) -> Value:
    """Finds the first element at which the accumulated weight reaches a fraction of the total."""
    last, dtype = lines.ndim - 1, fractions.dtype
    count = lines.shape[last]
    if weights is None:
        ordered = sort(lines, last)
        weights = broadcast_in_dim(constant(1, dtype), ordered.shape, ())
    else:
        ordered, weights = sort((lines, _lines(weights, axes)), last, num_keys=1)
        weights = convert_element_type(weights, dtype)
    is_nan = ne(ordered, ordered)
    zero = constant(0, dtype)
    is_bad = not_(le(broadcast_in_dim(zero, weights.shape, ()), weights))
    accumulated = cumsum(select_n(or_(is_bad, is_nan), weights, zero), last)
    total = index_in_dim(accumulated, -1, last, keepdims=False)
    shape = (*total.shape, fractions.shape[0])
    target = mul(spread(fractions, shape), broadcast_in_dim(total, shape, tuple(range(last))))
    grid = (*shape, count)
    steps = broadcast_in_dim(accumulated, grid, (*range(last), last + 1))
    is_before = lt(steps, broadcast_in_dim(target, grid, tuple(range(last + 1))))
    places = reduce_sum(convert_element_type(is_before, np.int32), (last + 1,))
    numbers = reduce_sum(convert_element_type(not_(is_nan), np.int32), (last,))
    limit = sub(broadcast_in_dim(numbers, shape, tuple(range(last))), 1)
    limit = select_n(lt(limit, 0), limit, constant(0, np.dtype(np.int32)))
    places = select_n(lt(places, limit), limit, places)
    invalid = reduce_or(is_bad, (last,))
    nans = eq(numbers, 0) if skips_nan else reduce_or(is_nan, (last,))
    return _poisoned(_take(ordered, places), or_(invalid, nans))
