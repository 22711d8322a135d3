"""The Cauchy distribution, of density 1 / (pi (1 + y**2)) for y = (x - loc) / scale.

>>> from axir.scipy.stats import cauchy
>>> cauchy.cdf(0.0)
Array(0.5, dtype=float32, weak_type=True)
"""

from __future__ import annotations

import math

import axir.numpy as jnp
from axir.dialect.core.array import ArrayLike
from axir.dialect.program.rules import Value

from ._distribution import Continuous, log_of_share, log_one_plus_square

__all__ = ["cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


def __dir__() -> list[str]:
    return __all__


_CAUCHY = Continuous("cauchy")


def _share_below(y: Value) -> Value:
    return jnp.arctan2(jnp.ones_like(y), -y) / math.pi


def _upper_quantile(q: Value) -> Value:
    # From the nearer end, where the tangent is exact.
    is_low = q < 0.5
    size = 1 / jnp.tan(math.pi * jnp.where(is_low, q, 1 - q))
    return jnp.where(is_low, size, -size)


def _log_share_below(y: Value) -> Value:
    return log_of_share(_share_below(y), _share_below(-y))


def _log_share_above(y: Value) -> Value:
    return log_of_share(_share_below(-y), _share_below(y))


def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """Returns the logarithm of the density."""
    return _CAUCHY.log_density(
        lambda y: -math.log(math.pi) - log_one_plus_square(y), x, loc=loc, scale=scale
    )


def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """Returns the density."""
    return jnp.exp(logpdf(x, loc, scale))


def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """Returns the probability of numbers up to x."""
    return _CAUCHY.share("cdf", _share_below, x, loc=loc, scale=scale)


def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """Returns the logarithm of the probability of numbers up to x."""
    return _CAUCHY.share("logcdf", _log_share_below, x, loc=loc, scale=scale)


def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """Returns the probability of numbers above x."""
    return _CAUCHY.share("sf", lambda y: _share_below(-y), x, loc=loc, scale=scale)


def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """Returns the logarithm of the probability of numbers above x."""
    return _CAUCHY.share("logsf", _log_share_above, x, loc=loc, scale=scale)


def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """Returns the quantiles, the inverse of `cdf`."""
    return _CAUCHY.quantile("ppf", lambda q: -_upper_quantile(q), q, loc=loc, scale=scale)


def isf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """Returns the inverse of `sf`."""
    return _CAUCHY.quantile("isf", _upper_quantile, q, loc=loc, scale=scale)
