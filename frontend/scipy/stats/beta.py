"""The beta distribution, of density y**(a-1) (1-y)**(b-1) / beta(a, b) for y = (x - loc) / scale.

Its support is from 0 to 1.

>>> from axir.scipy.stats import beta
>>> beta.pdf(0.3, 1.0, 1.0)
Array(1., dtype=float32, weak_type=True)
"""

from __future__ import annotations

import axir.numpy as jnp
from axir.dialect.core.array import ArrayLike
from axir.dialect.program.rules import Value
from axir.scipy.special import betainc, betaln, xlog1py, xlogy

from ._distribution import Continuous, log_of_share

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


def __dir__() -> list[str]:
    return __all__


_BETA = Continuous("beta", low=0.0, high=1.0, is_valid=lambda a, b: (a > 0) & (b > 0))


def _log_density(y: Value, a: Value, b: Value) -> Value:
    return xlogy(a - 1, y) + xlog1py(b - 1, -y) - betaln(a, b)


def _share_below(y: Value, a: Value, b: Value) -> Value:
    return betainc(a, b, y)


def _share_above(y: Value, a: Value, b: Value) -> Value:
    return betainc(b, a, 1 - y)


def _log_share_below(y: Value, a: Value, b: Value) -> Value:
    return log_of_share(_share_below(y, a, b), _share_above(y, a, b))


def _log_share_above(y: Value, a: Value, b: Value) -> Value:
    return log_of_share(_share_above(y, a, b), _share_below(y, a, b))


def logpdf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Value:
    """Returns the logarithm of the density."""
    return _BETA.log_density(_log_density, x, a, b, loc=loc, scale=scale)


def pdf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Value:
    """Returns the density."""
    return jnp.exp(logpdf(x, a, b, loc, scale))


def cdf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Value:
    """Returns the probability of numbers up to x."""
    return _BETA.share("cdf", _share_below, x, a, b, loc=loc, scale=scale)


def logcdf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Value:
    """Returns the logarithm of the probability of numbers up to x."""
    return _BETA.share("logcdf", _log_share_below, x, a, b, loc=loc, scale=scale)


def sf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """Returns the probability of numbers above x."""
    return _BETA.share("sf", _share_above, x, a, b, loc=loc, scale=scale)


def logsf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Value:
    """Returns the logarithm of the probability of numbers above x."""
    return _BETA.share("logsf", _log_share_above, x, a, b, loc=loc, scale=scale)
