"""The Laplace distribution, of density exp(-|y|) / 2 for y = (x - loc) / scale.

>>> from axir.scipy.stats import laplace
>>> laplace.pdf(2.0, loc=2.0)
Array(0.5, dtype=float32, weak_type=True)
"""

from __future__ import annotations

import math

import axir.numpy as jnp
from axir.dialect.core.array import ArrayLike
from axir.dialect.program.rules import Value

from ._distribution import Continuous

__all__ = ["cdf", "logpdf", "pdf"]


def __dir__() -> list[str]:
    return __all__


_LAPLACE = Continuous("laplace")


def _share_below(y: Value) -> Value:
    half = 0.5 * jnp.exp(-abs(y))
    return jnp.where(y < 0, half, 1 - half)


def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """Returns the logarithm of the density."""
    return _LAPLACE.log_density(lambda y: -abs(y) - math.log(2), x, loc=loc, scale=scale)


def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """Returns the density."""
    return jnp.exp(logpdf(x, loc, scale))


def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """Returns the probability of numbers up to x."""
    return _LAPLACE.share("cdf", _share_below, x, loc=loc, scale=scale)
