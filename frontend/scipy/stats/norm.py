"""The normal distribution, of density exp(-y**2 / 2) / sqrt(2 pi) for y = (x - loc) / scale.

>>> from axir.scipy.stats import norm
>>> norm.cdf(1.0, loc=1.0)
Array(0.5, dtype=float32)
"""

from __future__ import annotations

import math

import axir.numpy as jnp
from axir.dialect.core.array import ArrayLike
from axir.dialect.program.rules import Value
from axir.scipy.special import log_ndtr, ndtr, ndtri

from ._distribution import Continuous

__all__ = ["cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


def __dir__() -> list[str]:
    return __all__


_NORMAL = Continuous("norm")


def _log_density(y: Value) -> Value:
    return -0.5 * jnp.square(y) - 0.5 * math.log(2 * math.pi)


def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """Returns the logarithm of the density."""
    return _NORMAL.log_density(_log_density, x, loc=loc, scale=scale)


def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """Returns the density."""
    return jnp.exp(logpdf(x, loc, scale))


def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """Returns the probability of numbers up to x."""
    return _NORMAL.share("cdf", ndtr, x, loc=loc, scale=scale)


def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """Returns the logarithm of the probability of numbers up to x."""
    return _NORMAL.share("logcdf", log_ndtr, x, loc=loc, scale=scale)


def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """Returns the probability of numbers above x."""
    return _NORMAL.share("sf", lambda y: ndtr(-y), x, loc=loc, scale=scale)


def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """Returns the logarithm of the probability of numbers above x."""
    return _NORMAL.share("logsf", lambda y: log_ndtr(-y), x, loc=loc, scale=scale)


def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """Returns the quantiles, the inverse of `cdf`, as SciPy and JAX in the default float dtype.

    The result is float64 if 64-bit types are enabled, also for float32.
    """
    return _in_default_dtype(_NORMAL.quantile("ppf", ndtri, q, loc=loc, scale=scale))


def isf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """Returns the inverse of `sf`, in the dtype of `ppf`."""
    return _in_default_dtype(_NORMAL.quantile("isf", lambda q: -ndtri(q), q, loc=loc, scale=scale))


def _in_default_dtype(x: Value) -> Value:
    return jnp.asarray(x, float)
