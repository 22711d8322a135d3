"""Reductions that skip NaNs: `nansum`, `nanmax`, `nanmean`, `nanvar`, and similar functions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Axes, DTypeLike, UserObject
from axir.dialect.core.array import ArrayLike
from axir.dialect.ops.elementwise.arithmetic import div, sub
from axir.dialect.ops.elementwise.comparison import eq, ne, select_n
from axir.dialect.ops.elementwise.transcendental import sqrt
from axir.dialect.ops.reductions.folding import accumulator_dtype, greatest, least
from axir.dialect.program.rules import Value
from axir.numpy._arguments.checks import reject_out
from axir.numpy._arguments.promotion import (
    array_argument,
    broadcast_arguments,
    constant,
    inexact_dtype,
)

from . import moments, reductions

__all__ = [
    "nanmax", "nanmean", "nanmin", "nanprod", "nanstd", "nansum", "nanvar",
]  # fmt: skip


def without_nans(a: Value, substitute: object) -> Value:
    """Replaces NaNs by a number."""
    neutral = constant(substitute, a.dtype)
    return select_n(ne(a, a), a, neutral) if dtypes.is_inexact(a.dtype) else a


def _where_any_number(
    a: Value, axis: Axes, keepdims: bool, result: Value, otherwise: object
) -> Value:
    """Replaces results for lines of nothing but NaNs."""
    is_nothing = reductions.all(ne(a, a), axis, keepdims=keepdims)
    return select_n(is_nothing, result, constant(otherwise, result.dtype))


def nansum(
    a: ArrayLike,
    axis: Axes = None,
    dtype: DTypeLike = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Value:
    """Adds elements along axes, taking NaN for zero; otherwise like `sum`.

    >>> import axir.numpy as jnp
    >>> jnp.nansum(jnp.array([1.0, jnp.nan, 2.0]))
    Array(3., dtype=float32)
    """
    a = without_nans(array_argument("nansum", a), 0)
    return reductions.sum(a, axis, dtype, out, keepdims, initial, where)


def nanprod(
    a: ArrayLike,
    axis: Axes = None,
    dtype: DTypeLike = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Value:
    """Multiplies elements along axes, taking NaN for one; otherwise like `prod`.

    >>> import axir.numpy as jnp
    >>> jnp.nanprod(jnp.array([3.0, jnp.nan, 2.0]))
    Array(6., dtype=float32)
    """
    a = without_nans(array_argument("nanprod", a), 1)
    return reductions.prod(a, axis, dtype, out, keepdims, initial, where)


def nanmax(
    a: object,
    axis: Axes = None,
    out: None = None,
    keepdims: bool = False,
    initial: object = None,
    where: UserObject = None,
) -> Value:
    """Returns the maximum along axes, ignoring NaN; NaN if all elements are NaN.

    Takes the arguments and raises the errors of `max`.

    >>> import axir.numpy as jnp
    >>> jnp.nanmax(jnp.array([3.0, jnp.nan, 2.0]))
    Array(3., dtype=float32)
    """
    return _extremum("nanmax", reductions.max, least, a, axis, out, keepdims, initial, where)


def nanmin(
    a: object,
    axis: Axes = None,
    out: None = None,
    keepdims: bool = False,
    initial: object = None,
    where: UserObject = None,
) -> Value:
    """Returns the minimum along axes, ignoring NaN; NaN if all elements are NaN.

    Takes the arguments and raises the errors of `min`.

    >>> import axir.numpy as jnp
    >>> jnp.nanmin(jnp.array([3.0, jnp.nan, 2.0]))
    Array(2., dtype=float32)
    """
    return _extremum("nanmin", reductions.min, greatest, a, axis, out, keepdims, initial, where)


def _extremum(
    name: str,
    reduce: Callable[..., Value],
    identity: Callable[[np.dtype], object],
    a: object,
    axis: Axes,
    out: object,
    keepdims: bool,
    initial: object,
    where: ArrayLike,
) -> Value:
    reject_out(name, out)
    a = array_argument(name, a)
    numbers = without_nans(a, identity(a.dtype))
    result = reduce(numbers, axis, None, keepdims, initial, where)
    if initial is not None or not dtypes.is_inexact(a.dtype):
        return result
    return _where_any_number(a, axis, keepdims, result, np.nan)


def _count_numbers(
    name: str, a: Value, axis: Axes, keepdims: bool, where: ArrayLike, dtype: np.dtype
) -> Value:
    return reductions.sum(eq(a, a), axis, dtype, None, keepdims, None, where)


def nanmean(
    a: object,
    axis: Axes = None,
    dtype: DTypeLike = None,
    out: None = None,
    keepdims: bool = False,
    where: UserObject = None,
) -> Value:
    """Averages the elements along axes that are not NaN; otherwise like `mean`.

    >>> import axir.numpy as jnp
    >>> jnp.nanmean(jnp.array([3.0, jnp.nan, 2.0]))
    Array(2.5, dtype=float32)
    """
    reject_out("nanmean", out)
    a = array_argument("nanmean", a)
    if not dtypes.is_inexact(a.dtype):
        return moments.mean(a, axis, dtype, None, keepdims, where=where)
    result = a.dtype if dtype is None else dtypes.canonicalize_dtype(dtype)
    computed = accumulator_dtype(inexact_dtype(result))
    total = nansum(a, axis, computed, None, keepdims, None, where)
    count = _count_numbers("nanmean", a, axis, keepdims, where, computed)
    return reductions.converted(div(total, count), result)


def nanvar(
    a: object,
    axis: Axes = None,
    dtype: DTypeLike = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    where: UserObject = None,
    mean: ArrayLike | None = None,
) -> Value:
    """Returns the variance along axes of the elements that are not NaN; otherwise like `var`.

    >>> import axir.numpy as jnp
    >>> jnp.nanvar(jnp.array([3.0, jnp.nan, 1.0]))
    Array(1., dtype=float32)
    """
    reject_out("nanvar", out)
    a = array_argument("nanvar", a)
    computed, result = moments.variance_dtypes("nanvar", a.dtype, dtype)
    a = reductions.converted(a, computed)
    if mean is None:
        mean = nanmean(a, axis, None, None, True, where)
    center = reductions.converted(array_argument("nanvar", mean), computed)
    spread_a, center = broadcast_arguments("nanvar", a, center)
    distance = select_n(ne(spread_a, spread_a), sub(spread_a, center), constant(0, computed))
    squares = moments.squared_magnitude(distance)
    total = reductions.sum(squares, axis, None, None, keepdims, None, where)
    count = _count_numbers("nanvar", a, axis, keepdims, where, squares.dtype)
    return moments.normalized_squares(total, count, ddof, result)


def nanstd(
    a: ArrayLike,
    axis: Axes = None,
    dtype: DTypeLike = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
) -> Value:
    """Returns the standard deviation along axes of the elements that are not NaN; see `nanvar`.

    >>> import axir.numpy as jnp
    >>> jnp.nanstd(jnp.array([3.0, jnp.nan, 1.0]))
    Array(1., dtype=float32)
    """
    return sqrt(nanvar(a, axis, dtype, out, ddof, keepdims, where, mean))
