"""The uniform distribution, of density 1 / scale from loc to loc + scale.

>>> from axir.scipy.stats import uniform
>>> uniform.pdf(1.0, loc=0.5, scale=2.0)
Array(0.5, dtype=float32, weak_type=True)
"""

from __future__ import annotations

import axir.numpy as jnp
from axir.dialect.core.array import ArrayLike
from axir.dialect.program.rules import Value

from ._distribution import Continuous

__all__ = ["cdf", "logpdf", "pdf", "ppf"]


def __dir__() -> list[str]:
    return __all__


_UNIFORM = Continuous("uniform", low=0.0, high=1.0)


def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """Returns the logarithm of the density."""
    return _UNIFORM.log_density(lambda y: 0 * y, x, loc=loc, scale=scale)


def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """Returns the density."""
    return jnp.exp(logpdf(x, loc, scale))


def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """Returns the probability of numbers up to x."""
    return _UNIFORM.share("cdf", lambda y: y, x, loc=loc, scale=scale)


def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """Returns the quantiles, the inverse of `cdf`."""
    return _UNIFORM.quantile("ppf", lambda q: q, q, loc=loc, scale=scale)
