"""The logistic distribution, of distribution function 1 / (1 + exp(-y)) for y = (x - loc) / scale.

>>> from axir.scipy.stats import logistic
>>> logistic.pdf(0.0)
Array(0.25, dtype=float32, weak_type=True)
"""

from __future__ import annotations

import axir.numpy as jnp
from axir.dialect.core.array import ArrayLike
from axir.dialect.program.rules import Value
from axir.scipy.special import expit, logit

from ._distribution import Continuous

__all__ = ["cdf", "isf", "logpdf", "pdf", "ppf", "sf"]


def __dir__() -> list[str]:
    return __all__


_LOGISTIC = Continuous("logistic")


def _log_density(y: Value) -> Value:
    # An even function, computed on the half where nothing overflows.
    return -abs(y) - 2 * jnp.log1p(jnp.exp(-abs(y)))


def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """Returns the logarithm of the density."""
    return _LOGISTIC.log_density(_log_density, x, loc=loc, scale=scale)


def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """Returns the density."""
    return jnp.exp(logpdf(x, loc, scale))


def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """Returns the probability of numbers up to x."""
    return _LOGISTIC.share("cdf", expit, x, loc=loc, scale=scale)


def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """Returns the probability of numbers above x."""
    return _LOGISTIC.share("sf", lambda y: expit(-y), x, loc=loc, scale=scale)


def ppf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """Returns the quantiles, the inverse of `cdf`."""
    return _LOGISTIC.quantile("ppf", logit, x, loc=loc, scale=scale)


def isf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """Returns the inverse of `sf`."""
    return _LOGISTIC.quantile("isf", lambda q: -logit(q), x, loc=loc, scale=scale)
