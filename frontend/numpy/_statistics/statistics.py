"""Interpolation, covariances and phases: `interp`, `cov`, `corrcoef`, `unwrap`.

Elsewhere: means, variances and quantiles (`axir.numpy._reductions`), and histograms
(`histograms.py`).
"""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import DTypeLike, UserObject
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import DTypeError, ParameterError, ShapeError
from axir.dialect.core.symbolic_dims import check_decided
from axir.dialect.ops.elementwise import arithmetic as lax
from axir.dialect.ops.elementwise import comparison
from axir.dialect.ops.elementwise.conversion import complex_ as complex_of
from axir.dialect.ops.elementwise.conversion import conj, imag, real
from axir.dialect.ops.shape.rearranging import transpose
from axir.dialect.program.rules import Value
from axir.numpy._arguments.checks import canonical_axis
from axir.numpy._arguments.promotion import (
    array_argument,
    constant,
    dtype_argument,
    promote_arguments,
    promote_inexact,
)
from axir.numpy._arrays.creation import asarray, converted
from axir.numpy._elementwise.arithmetic import add, divide, maximum, multiply, remainder, subtract
from axir.numpy._elementwise.exponential import sqrt
from axir.numpy._elementwise.logic import less, less_equal
from axir.numpy._indexing.selection import clip, where
from axir.numpy._products.products import dot
from axir.numpy._reductions.cumulative import cumsum
from axir.numpy._reductions.differences import diff
from axir.numpy._reductions.moments import average
from axir.numpy._reductions.reductions import sum
from axir.numpy._shape.diagonals import diagonal
from axir.numpy._shape.joining import concatenate
from axir.numpy._sorting.sorting import argsort, searchsorted

__all__ = ["corrcoef", "cov", "interp", "unwrap"]


# Interpolation ---------------------------------------------------------------------------------


def interp(
    x: object,
    xp: object,
    fp: object,
    left: UserObject = None,
    right: UserObject = None,
    period: object = None,
) -> Value:
    """Interpolates linearly between points.

    Args:
        x: Where to evaluate, of any shape.
        xp: Coordinates of the points, of rank 1, increasing (unless there is a period).
        fp: Values at the points, real or complex.
        left: The value for x below the first point; by default the first value. "extrapolate"
            continues the first line.
        right: The same for x above the last point.
        period: The period of the coordinates; `left` and `right` then have no effect.

    Raises:
        ShapeError: unless `xp` and `fp` are of rank 1, equally long, and not empty.
        ParameterError: for another word than "extrapolate", and a period of 0.

    >>> import axir.numpy as jnp
    >>> jnp.interp(jnp.array([0.5, 3.0]), jnp.array([0.0, 1.0]), jnp.array([2.0, 4.0]))
    Array([3., 4.], dtype=float32)
    """
    name = "interp"
    x, xp = promote_inexact(name, x, xp)
    fp = array_argument(name, fp, 2)
    if not dtypes.is_inexact(fp.dtype):
        (fp,) = promote_inexact(name, fp)
    if dtypes.is_complex(x.dtype):
        raise DTypeError("jnp.interp: coordinates must be real.")
    if xp.ndim != 1 or fp.ndim != 1 or xp.shape != fp.shape or not xp.size:
        raise ShapeError(
            f"jnp.interp: xp {xp.type} and fp {fp.type} must be of rank 1, equally long, and not "
            "empty."
        )
    if period is not None:
        x, xp, fp = _periodic(x, xp, fp, period)
        left = right = None
    if xp.size == 1:
        inner: Value = where(less(x, xp[0]), fp[0], fp[0])
        return _with_ends(inner, x, xp, fp, left, right)
    place = clip(searchsorted(xp, x, side="right"), 1, xp.shape[0] - 1)
    before = subtract(place, 1)
    rise, run = subtract(fp[place], fp[before]), subtract(xp[place], xp[before])
    distance = subtract(x, xp[before])
    tiny = constant(float(ml_dtypes.finfo(xp.dtype).eps) * 2**-20, xp.dtype)
    is_vertical = less_equal(lax.abs(run), tiny)
    share = divide(distance, where(is_vertical, constant(1, run.dtype), run))
    inner = where(is_vertical, fp[before], add(fp[before], multiply(share, rise)))
    return _with_ends(inner, x, xp, fp, left, right)


def _with_ends(
    inner: Value, x: Value, xp: Value, fp: Value, left: ArrayLike | str, right: ArrayLike | str
) -> Value:
    ends = ((left, fp[0], less(x, xp[0])), (right, fp[-1], less(xp[-1], x)))
    for given, default, is_outside in ends:
        if isinstance(given, str):
            if given != "extrapolate":
                raise ParameterError(
                    f"jnp.interp: {given!r} is not a value; the only word is 'extrapolate'."
                )
            continue
        end = default if given is None else asarray(given)
        inner = where(is_outside, end, inner)
    return inner


def _periodic(x: Value, xp: Value, fp: Value, period: UserObject) -> tuple[Value, Value, Value]:
    if isinstance(period, (int, float)) and not period:
        raise ParameterError("jnp.interp: the period must not be 0.")
    period = lax.abs(converted(asarray(period), xp.dtype))
    x, xp = remainder(x, period), remainder(xp, period)
    order = argsort(xp)
    xp, fp = xp[order], fp[order]
    xp = concatenate([subtract(xp[-1:], period), xp, add(xp[:1], period)])
    return x, xp, concatenate([fp[-1:], fp, fp[:1]])


def unwrap(
    p: ArrayLike, discont: object = None, axis: int = -1, period: UserObject = 2 * math.pi
) -> Value:
    """Takes multiples of the period off so that neighbours differ by no more than half of it.

    Args:
        p: Phases.
        discont: Differences up to this one stay as they are; at least half the period.
        axis: Along which axis.
        period: The period.

    Raises:
        DTypeError: for complex numbers.
        AxisError: if the axis does not exist.

    >>> import axir.numpy as jnp
    >>> jnp.unwrap(jnp.array([0, 3, 2, 1]), period=4)
    Array([ 0, -1, -2, -3], dtype=int32)
    """
    p = array_argument("unwrap", p, 0)
    if dtypes.is_complex(p.dtype):
        raise DTypeError("jnp.unwrap: phases must be real.")
    if not (dtypes.is_integer(p.dtype) and isinstance(period, int)):
        (p,) = promote_inexact("unwrap", p)
    axis = canonical_axis("unwrap", axis, p.ndim)
    if not p.shape[axis]:
        return p
    is_whole = dtypes.is_integer(p.dtype)
    half = period // 2 if is_whole else period / 2
    steps = diff(p, axis=axis)
    lowest = -half
    wrapped = add(remainder(subtract(steps, lowest), period), lowest)
    if not is_whole or not period % 2:
        # A step of half a period keeps its direction.
        is_edge = comparison.and_(
            comparison.eq(wrapped, constant(lowest, p.dtype)),
            comparison.gt(steps, constant(0, p.dtype)),
        )
        wrapped = where(is_edge, constant(half, p.dtype), wrapped)
    correction = subtract(wrapped, steps)
    least = half if discont is None else discont
    correction = where(less(lax.abs(steps), least), constant(0, p.dtype), correction)
    start = (slice(None),) * axis
    first, later = (*start, slice(0, 1)), (*start, slice(1, None))
    rest = add(p[later], cumsum(correction, axis=axis))
    return concatenate([p[first], converted(rest, p.dtype)], axis=axis)


# Covariances -----------------------------------------------------------------------------------


def cov(
    m: UserObject,
    y: UserObject = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: object = None,
    aweights: object = None,
    dtype: DTypeLike = None,
) -> Value:
    """Estimates the covariances of variables.

    Args:
        m: One variable, or several as the rows of a matrix.
        y: Further variables.
        rowvar: Whether rows are variables and columns observations, or the other way around.
        bias: Whether to divide by the number of observations rather than by one less.
        ddof: What to subtract from the number of observations; overrides `bias`.
        fweights: How often each observation occurs: integers of rank 1.
        aweights: How much each observation weighs, of rank 1.
        dtype: Of the result.

    Returns:
        The square matrix of covariances; of one variable its variance, a scalar.

    Raises:
        ShapeError: for arrays of rank above 2, and weights that are not one for each observation.
        DTypeError: for frequencies that are not integers.

    >>> import axir.numpy as jnp
    >>> jnp.cov(jnp.array([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]])).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    variables = _variables(m, y, rowvar)
    if dtype is not None:
        variables = converted(variables, dtype_argument("cov", dtype))
    count = variables.shape[1]
    if ddof is None:
        ddof = 0 if bias else 1
    weights = _weights(fweights, aweights, count)
    factor: UserObject = count - ddof
    if weights is not None:
        factor = total = sum(weights)
        lost: UserObject = ddof
        if aweights is not None and ddof:
            squares = sum(multiply(weights, array_argument("cov", aweights, 6)))
            lost = multiply(ddof, divide(squares, total))
        factor = subtract(total, lost)
    centred = subtract(variables, average(variables, axis=1, weights=weights)[:, None])
    weighted = centred if weights is None else multiply(centred, weights)
    swapped = transpose(weighted, (1, 0))
    product = dot(centred, conj(swapped) if dtypes.is_complex(swapped.dtype) else swapped)
    factor = maximum(converted(asarray(factor), _real(product.dtype)), 0)
    result = divide(product, factor)
    check_decided(result.shape[:1], 1)
    return result.reshape(()) if result.shape == (1, 1) else result


def _real(dtype: np.dtype) -> np.dtype:
    return np.zeros((), dtype).real.dtype if dtypes.is_complex(dtype) else dtype


def _variables(m: ArrayLike, y: ArrayLike, rowvar: bool) -> Value:
    arrays = promote_arguments("cov", m) if y is None else promote_arguments("cov", m, y)
    rows = []
    for x in promote_inexact("cov", *arrays):
        if x.ndim > 2:
            raise ShapeError(f"jnp.cov: arrays have at most 2 axes, but one is {x.type}.")
        x = x if x.ndim == 2 else x.reshape((1, x.size))
        if not rowvar:
            check_decided(x.shape[:1], 1)
        rows.append(x if rowvar or x.shape[0] == 1 else transpose(x, (1, 0)))
    if len(rows) == 2 and rows[0].shape[1] != rows[1].shape[1]:
        raise ShapeError(
            f"jnp.cov: m has {rows[0].shape[1]} observations, but y has {rows[1].shape[1]}."
        )
    return rows[0] if len(rows) == 1 else concatenate(rows)


def _weights(fweights: object, aweights: object, count: int) -> Value | None:
    weights = None
    for name, given, position in (("fweights", fweights, 5), ("aweights", aweights, 6)):
        if given is None:
            continue
        given = array_argument("cov", given, position)
        if given.shape != (count,):
            raise ShapeError(
                f"jnp.cov: {name} {given.type} must be one number for each of the {count} "
                "observations."
            )
        if name == "fweights" and not dtypes.is_integer(given.dtype):
            raise DTypeError(f"jnp.cov: fweights must be integers, not {given.dtype}.")
        weights = given if weights is None else multiply(weights, given)
    return weights


def corrcoef(
    x: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, dtype: DTypeLike = None
) -> Value:
    """Estimates the correlation coefficients of variables.

    Args:
        x: One variable, or several as the rows of a matrix.
        y: Further variables.
        rowvar: Whether rows are variables and columns observations, or the other way around.
        dtype: Of the result.

    Returns:
        The square matrix of coefficients, each between -1 and 1; of one variable the scalar 1.

    >>> import axir.numpy as jnp
    >>> jnp.corrcoef(jnp.array([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]])).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    covariances = cov(x, y, rowvar, dtype=dtype)
    if not covariances.ndim:
        return divide(covariances, covariances)
    variances = diagonal(covariances)
    if dtypes.is_complex(variances.dtype):
        variances = real(variances)
    deviations = sqrt(variances)
    result = divide(divide(covariances, deviations[:, None]), deviations[None, :])
    if dtypes.is_complex(result.dtype):
        return complex_of(clip(real(result), -1, 1), clip(imag(result), -1, 1))
    return clip(result, -1, 1)
