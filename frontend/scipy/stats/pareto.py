"""The Pareto distribution, of density b / y**(b + 1) for y = (x - loc) / scale >= 1.

>>> from axir.scipy.stats import pareto
>>> pareto.sf(2.0, 1.0)
Array(0.5, dtype=float32, weak_type=True)
"""

from __future__ import annotations

import axir.numpy as jnp
from axir.dialect.core.array import ArrayLike
from axir.dialect.program.rules import Value

from ._distribution import Continuous, log_of_rest

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


def __dir__() -> list[str]:
    return __all__


_PARETO = Continuous("pareto", low=1.0, inner=2.0, is_valid=lambda b: b > 0)


def logpdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """Returns the logarithm of the density."""
    return _PARETO.log_density(
        lambda y, b: jnp.log(b) - (b + 1) * jnp.log(y), x, b, loc=loc, scale=scale
    )


def pdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """Returns the density."""
    return jnp.exp(logpdf(x, b, loc, scale))


def cdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """Returns the probability of numbers up to x."""
    return _PARETO.share(
        "cdf", lambda y, b: -jnp.expm1(-b * jnp.log(y)), x, b, loc=loc, scale=scale
    )


def logcdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """Returns the logarithm of the probability of numbers up to x."""
    return _PARETO.share(
        "logcdf", lambda y, b: log_of_rest(b * jnp.log(y)), x, b, loc=loc, scale=scale
    )


def sf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """Returns the probability of numbers above x."""
    return _PARETO.share("sf", lambda y, b: y**-b, x, b, loc=loc, scale=scale)


def logsf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """Returns the logarithm of the probability of numbers above x."""
    return _PARETO.share("logsf", lambda y, b: -b * jnp.log(y), x, b, loc=loc, scale=scale)


def ppf(q: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """Returns the quantiles, the inverse of `cdf`."""
    return _PARETO.quantile(
        "ppf", lambda q, b: jnp.exp(-jnp.log1p(-q) / b), q, b, loc=loc, scale=scale
    )
