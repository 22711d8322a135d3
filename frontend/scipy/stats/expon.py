"""The exponential distribution, of density exp(-y) for y = (x - loc) / scale >= 0.

>>> from axir.scipy.stats import expon
>>> expon.sf(3.0, loc=3.0)
Array(1., dtype=float32, weak_type=True)
"""

from __future__ import annotations

import axir.numpy as jnp
from axir.dialect.core.array import ArrayLike
from axir.dialect.program.rules import Value

from ._distribution import Continuous, log_of_rest

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


def __dir__() -> list[str]:
    return __all__


_EXPONENTIAL = Continuous("expon", low=0.0)


def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """Returns the logarithm of the density."""
    return _EXPONENTIAL.log_density(lambda y: -y, x, loc=loc, scale=scale)


def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """Returns the density."""
    return jnp.exp(logpdf(x, loc, scale))


def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """Returns the probability of numbers up to x."""
    return _EXPONENTIAL.share("cdf", lambda y: -jnp.expm1(-y), x, loc=loc, scale=scale)


def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """Returns the logarithm of the probability of numbers up to x."""
    return _EXPONENTIAL.share("logcdf", log_of_rest, x, loc=loc, scale=scale)


def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """Returns the probability of numbers above x."""
    return _EXPONENTIAL.share("sf", lambda y: jnp.exp(-y), x, loc=loc, scale=scale)


def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """Returns the logarithm of the probability of numbers above x."""
    return _EXPONENTIAL.share("logsf", lambda y: -y, x, loc=loc, scale=scale)


def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """Returns the quantiles, the inverse of `cdf`."""
    return _EXPONENTIAL.quantile("ppf", lambda q: -jnp.log1p(-q), q, loc=loc, scale=scale)
