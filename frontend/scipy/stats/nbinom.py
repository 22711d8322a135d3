"""The negative binomial distribution: of failures before n successes of probability p.

>>> from axir.scipy.stats import nbinom
>>> nbinom.pmf(0, 1, 0.5)
Array(0.5, dtype=float32, weak_type=True)
"""

from __future__ import annotations

import axir.numpy as jnp
from axir.dialect.core.array import ArrayLike
from axir.dialect.program.rules import Value
from axir.scipy.special import betaln, xlog1py

from ._distribution import Discrete

__all__ = ["logpmf", "pmf"]


def __dir__() -> list[str]:
    return __all__


_NEGATIVE_BINOMIAL = Discrete(
    "nbinom",
    is_inside=lambda k, n, p: k >= 0,
    is_valid=lambda n, p: (n > 0) & (p > 0) & (p <= 1),
)


def _log_probability(k: Value, n: Value, p: Value) -> Value:
    orders = jnp.where(k == 0, 0.0, -jnp.log(n + k) - betaln(n, k + 1))
    return n * jnp.log(p) + xlog1py(k, -p) + orders


def logpmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Value:
    """Returns the logarithm of the probability of k."""
    return _NEGATIVE_BINOMIAL.log_mass(_log_probability, k, n, p, loc=loc)


def pmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Value:
    """Returns the probability of k."""
    return jnp.exp(logpmf(k, n, p, loc))
