"""The Gumbel distribution of maxima, of density exp(-y - exp(-y)) for y = (x - loc) / scale.

>>> from axir.scipy.stats import gumbel_r
>>> gumbel_r.logcdf(0.0)
Array(-1., dtype=float32, weak_type=True)
"""

from __future__ import annotations

import math

import axir.numpy as jnp
from axir.dialect.core.array import ArrayLike
from axir.dialect.program.rules import Value

from ._distribution import Continuous, log_of_rest

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


def __dir__() -> list[str]:
    return __all__


_GUMBEL = Continuous("gumbel_r", low=-math.inf)


def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """Returns the logarithm of the density."""
    return _GUMBEL.log_density(lambda y: -y - jnp.exp(-y), x, loc=loc, scale=scale)


def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """Returns the density."""
    return jnp.exp(logpdf(x, loc, scale))


def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """Returns the probability of numbers up to x."""
    return _GUMBEL.share("cdf", lambda y: jnp.exp(-jnp.exp(-y)), x, loc=loc, scale=scale)


def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """Returns the logarithm of the probability of numbers up to x."""
    return _GUMBEL.share("logcdf", lambda y: -jnp.exp(-y), x, loc=loc, scale=scale)


def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """Returns the probability of numbers above x."""
    return _GUMBEL.share("sf", lambda y: -jnp.expm1(-jnp.exp(-y)), x, loc=loc, scale=scale)


def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """Returns the logarithm of the probability of numbers above x."""
    return _GUMBEL.share("logsf", lambda y: log_of_rest(jnp.exp(-y)), x, loc=loc, scale=scale)


def ppf(p: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """Returns the quantiles, the inverse of `cdf`."""
    return _GUMBEL.quantile("ppf", lambda p: -jnp.log(-jnp.log(p)), p, loc=loc, scale=scale)
