"""The normal distribution truncated to y from a to b, for y = (x - loc) / scale.

>>> from axir.scipy.stats import truncnorm
>>> truncnorm.cdf(0.0, -1.0, 1.0).round(6)
Array(0.5, dtype=float32)
>>> truncnorm.pdf(3.0, -1.0, 1.0)
Array(0., dtype=float32)
"""

from __future__ import annotations

import math

import axir.numpy as jnp
from axir.dialect.core.array import ArrayLike
from axir.dialect.program.rules import Value
from axir.scipy.special import erf, log_ndtr, ndtr

from ._distribution import Continuous, log_of_rest

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


def __dir__() -> list[str]:
    return __all__


_TRUNCATED_NORMAL = Continuous("truncnorm", is_valid=lambda a, b: a < b)


def logpdf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Value:
    """Returns the logarithm of the density."""
    return _TRUNCATED_NORMAL.log_density(_log_density, x, a, b, loc=loc, scale=scale)


def pdf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Value:
    """Returns the density."""
    return jnp.exp(logpdf(x, a, b, loc, scale))


def logcdf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Value:
    """Returns the logarithm of the probability of numbers up to x."""
    return _TRUNCATED_NORMAL.share("logcdf", _log_share_below, x, a, b, loc=loc, scale=scale)


def cdf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Value:
    """Returns the probability of numbers up to x."""
    return jnp.exp(logcdf(x, a, b, loc, scale))


def logsf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Value:
    """Returns the logarithm of the probability of numbers above x."""
    formula = _log_share_above
    return _TRUNCATED_NORMAL.share("logsf", formula, x, a, b, loc=loc, scale=scale)


def sf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """Returns the probability of numbers above x."""
    return jnp.exp(logsf(x, a, b, loc, scale))


def _log_density(y: Value, a: Value, b: Value) -> Value:
    inside = -0.5 * jnp.square(y) - 0.5 * math.log(2 * math.pi) - _log_mass(a, b)
    return jnp.where((y < a) | (y > b), -math.inf, inside)


def _log_share_below(y: Value, a: Value, b: Value) -> Value:
    y, a, b = jnp.broadcast_arrays(y, a, b)
    is_outside = (y <= a) | (y >= b)
    middle = jnp.where(is_outside, _inner(a, b), y)
    # One evaluation for three intervals: below y, above y, and both.
    lows, highs = jnp.stack([a, middle, a]), jnp.stack([middle, b, b])
    below, above, whole = _log_mass(lows, highs)
    below, above = below - whole, above - whole
    # Where nearly all mass lies below, the mass above is more exact.
    is_most = below > -0.1
    rest = log_of_rest(-jnp.where(is_most, above, -1.0))
    inside = jnp.where(is_most, rest, below)
    return jnp.where(is_outside, jnp.where(y <= a, -math.inf, 0.0), inside)


def _log_share_above(y: Value, a: Value, b: Value) -> Value:
    return _log_share_below(-y, -b, -a)


def _inner(a: Value, b: Value) -> Value:
    """Returns a number between two numbers; each may be infinite."""
    low, high = jnp.maximum(a, -1e4), jnp.minimum(b, 1e4)
    return 0.5 * (low + high)


def _log_mass(a: Value, b: Value) -> Value:
    """Returns the logarithm of the mass of the standard normal distribution between a and b.

    In the tails by the logarithms of the shares, around 0 by the error function, or by its
    complement where most lies between them.
    """
    is_right = a > 0
    # Symmetric: a number to the right of 0 becomes one to the left.
    low, high = jnp.where(is_right, -b, a), jnp.where(is_right, -a, b)
    is_tail = high <= -1
    tail_low, tail_high = jnp.where(is_tail, low, -3.0), jnp.where(is_tail, high, -2.0)
    upper = _log_share(tail_high)
    tail = upper + log_of_rest(upper - _log_share(tail_low))
    low, high = jnp.where(is_tail, -1.0, low), jnp.where(is_tail, 1.0, high)
    beyond = ndtr(low) + ndtr(-high)
    is_most = beyond < 0.5
    between = 0.5 * (erf(math.sqrt(0.5) * high) - erf(math.sqrt(0.5) * low))
    middle = jnp.log(jnp.where(is_most, 1.0, between))
    middle = jnp.where(is_most, jnp.log1p(-jnp.where(is_most, beyond, 0.0)), middle)
    return jnp.where(is_tail, tail, middle)


def _log_share(x: Value) -> Value:
    is_infinite = x == -math.inf
    return jnp.where(is_infinite, -math.inf, log_ndtr(jnp.where(is_infinite, -1.0, x)))
