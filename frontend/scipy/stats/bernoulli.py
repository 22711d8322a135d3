"""The Bernoulli distribution: 1 with probability p, else 0.

>>> from axir.scipy.stats import bernoulli
>>> bernoulli.pmf(1, 0.25)
Array(0.25, dtype=float32, weak_type=True)
"""

from __future__ import annotations

import math

import axir.numpy as jnp
from axir.dialect.core.array import ArrayLike
from axir.dialect.program.rules import Value
from axir.scipy.special import xlog1py, xlogy

from ._distribution import Discrete

__all__ = ["cdf", "logpmf", "pmf", "ppf"]


def __dir__() -> list[str]:
    return __all__


_BERNOULLI = Discrete(
    "bernoulli",
    is_inside=lambda k, p: (k >= 0) & (k <= 1),
    is_valid=lambda p: (p >= 0) & (p <= 1),
)


def logpmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Value:
    """Returns the logarithm of the probability of k."""
    return _BERNOULLI.log_mass(lambda k, p: xlogy(k, p) + xlog1py(1 - k, -p), k, p, loc=loc)


def pmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Value:
    """Returns the probability of k."""
    return jnp.exp(logpmf(k, p, loc))


def cdf(k: ArrayLike, p: ArrayLike) -> Value:
    """Returns the probability of integers up to k."""
    return _BERNOULLI.share("cdf", _share_below, k, p)


def ppf(q: ArrayLike, p: ArrayLike) -> Value:
    """Returns the quantiles, the inverse of `cdf`; nan outside [0, 1]."""
    return _BERNOULLI.share("ppf", _quantile, q, p)


def _share_below(k: Value, p: Value) -> Value:
    return jnp.where(k < 0, 0.0, jnp.where(k < 1, 1 - p, 1.0))


def _quantile(q: Value, p: Value) -> Value:
    # As SciPy's: 0 has no quantile but the number below the support.
    is_zero = (q <= 1 - p) & (q < 1)
    value = jnp.where(q == 0, -1, jnp.where(is_zero, 0, jnp.ones_like(q)))
    return jnp.where((q >= 0) & (q <= 1), value, math.nan)
