"""The binomial distribution: how often a thing of probability p happens in n trials.

>>> from axir.scipy.stats import binom
>>> binom.pmf(1, 2, 0.5)
Array(0.5, dtype=float32, weak_type=True)
"""

from __future__ import annotations

import axir.numpy as jnp
from axir.dialect.core.array import ArrayLike
from axir.dialect.program.rules import Value
from axir.scipy.special import betaln, xlog1py, xlogy

from ._distribution import Discrete

__all__ = ["logpmf", "pmf"]


def __dir__() -> list[str]:
    return __all__


_BINOMIAL = Discrete(
    "binom",
    is_inside=lambda k, n, p: (k >= 0) & (k <= n),
    is_valid=lambda n, p: (n >= 0) & (n == jnp.floor(n)) & (p >= 0) & (p <= 1),
)


def _log_probability(k: Value, n: Value, p: Value) -> Value:
    return log_choices(n, k) + xlogy(k, p) + xlog1py(n - k, -p)


def log_choices(n: Value, k: Value) -> Value:
    """Returns the logarithm of the number of ways to choose k of n things."""
    is_one = (k == 0) | (k == n)
    return jnp.where(is_one, 0.0, -jnp.log1p(n) - betaln(n - k + 1, k + 1))


def logpmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Value:
    """Returns the logarithm of the probability of k."""
    return _BINOMIAL.log_mass(_log_probability, k, n, p, loc=loc)


def pmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Value:
    """Returns the probability of k."""
    return jnp.exp(logpmf(k, n, p, loc))
