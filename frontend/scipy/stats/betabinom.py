"""The beta-binomial distribution: binomial with p drawn from the beta distribution.

>>> from axir.scipy.stats import betabinom
>>> betabinom.pmf(0, 1, 1.0, 1.0).round(6)
Array(0.5, dtype=float32, weak_type=True)
"""

from __future__ import annotations

import axir.numpy as jnp
from axir.dialect.core.array import ArrayLike
from axir.dialect.program.rules import Value
from axir.scipy.special import betaln

from ._distribution import Discrete
from .binom import log_choices

__all__ = ["logpmf", "pmf"]


def __dir__() -> list[str]:
    return __all__


_BETA_BINOMIAL = Discrete(
    "betabinom",
    is_inside=lambda k, n, a, b: (k >= 0) & (k <= n),
    is_valid=lambda n, a, b: (n >= 0) & (n == jnp.floor(n)) & (a > 0) & (b > 0),
)


def _log_probability(k: Value, n: Value, a: Value, b: Value) -> Value:
    return log_choices(n, k) + betaln(k + a, n - k + b) - betaln(a, b)


def logpmf(k: ArrayLike, n: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0) -> Value:
    """Returns the logarithm of the probability of k."""
    return _BETA_BINOMIAL.log_mass(_log_probability, k, n, a, b, loc=loc)


def pmf(k: ArrayLike, n: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0) -> Value:
    """Returns the probability of k."""
    return jnp.exp(logpmf(k, n, a, b, loc))
