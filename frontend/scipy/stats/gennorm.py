"""The generalized normal distribution, of density beta exp(-|x|**beta) / (2 gamma(1 / beta)).

>>> from axir.scipy.stats import gennorm
>>> gennorm.pdf(0.0, 1.0)
Array(0.5, dtype=float32, weak_type=True)
"""

from __future__ import annotations

import axir.numpy as jnp
from axir.dialect.core.array import ArrayLike
from axir.dialect.program.rules import Value
from axir.scipy.special import gammaincc, gammaln

from ._distribution import Continuous

__all__ = ["cdf", "logpdf", "pdf"]


def __dir__() -> list[str]:
    return __all__


_GENERALIZED_NORMAL = Continuous("gennorm", is_valid=lambda beta: beta > 0)


def _log_density(x: Value, beta: Value) -> Value:
    return jnp.log(0.5 * beta) - gammaln(1 / beta) - abs(x) ** beta


def _share_below(x: Value, beta: Value) -> Value:
    # The half of the numbers beyond |x|, on whichever side.
    half = 0.5 * gammaincc(1 / beta, abs(x) ** beta)
    return jnp.where(x < 0, half, 1 - half)


def logpdf(x: ArrayLike, beta: ArrayLike) -> Value:
    """Returns the logarithm of the density."""
    return _GENERALIZED_NORMAL.log_density(_log_density, x, beta)


def pdf(x: ArrayLike, beta: ArrayLike) -> Value:
    """Returns the density."""
    return jnp.exp(logpdf(x, beta))


def cdf(x: ArrayLike, beta: ArrayLike) -> Value:
    """Returns the probability of numbers up to x."""
    return _GENERALIZED_NORMAL.share("cdf", _share_below, x, beta)
