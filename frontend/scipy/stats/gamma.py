"""The gamma distribution, of density y**(a - 1) exp(-y) / gamma(a) for y = (x - loc) / scale > 0.

>>> from axir.scipy.stats import gamma
>>> gamma.logpdf(2.0, 1.0)
Array(-2., dtype=float32, weak_type=True)
"""

from __future__ import annotations

import math

import axir.numpy as jnp
from axir.dialect.core.array import ArrayLike
from axir.dialect.program.rules import Value
from axir.scipy.special import gammainc, gammaincc, gammaln, xlogy

from ._distribution import Continuous, log_of_share

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


def __dir__() -> list[str]:
    return __all__


_GAMMA = Continuous("gamma", low=0.0, high=math.inf, is_valid=lambda a: a > 0)


def log_density(y: Value, a: Value) -> Value:
    """Returns the logarithm of the density of y > 0."""
    return xlogy(a - 1, y) - y - gammaln(a)


def _share_below(y: Value, a: Value) -> Value:
    return gammainc(a, y)


def _share_above(y: Value, a: Value) -> Value:
    return gammaincc(a, y)


def _log_share_below(y: Value, a: Value) -> Value:
    return log_of_share(_share_below(y, a), _share_above(y, a))


def _log_share_above(y: Value, a: Value) -> Value:
    return log_of_share(_share_above(y, a), _share_below(y, a))


def logpdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """Returns the logarithm of the density."""
    return _GAMMA.log_density(log_density, x, a, loc=loc, scale=scale)


def pdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """Returns the density."""
    return jnp.exp(logpdf(x, a, loc, scale))


def cdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """Returns the probability of numbers up to x."""
    return _GAMMA.share("cdf", _share_below, x, a, loc=loc, scale=scale)


def logcdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """Returns the logarithm of the probability of numbers up to x."""
    return _GAMMA.share("logcdf", _log_share_below, x, a, loc=loc, scale=scale)


def sf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """Returns the probability of numbers above x."""
    return _GAMMA.share("sf", _share_above, x, a, loc=loc, scale=scale)


def logsf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """Returns the logarithm of the probability of numbers above x."""
    return _GAMMA.share("logsf", _log_share_above, x, a, loc=loc, scale=scale)
