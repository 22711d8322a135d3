"""The Poisson distribution: k has probability mu**k exp(-mu) / k!.

>>> from axir.scipy.stats import poisson
>>> poisson.logpmf(0, 2.0)
Array(-2., dtype=float32, weak_type=True)
"""

from __future__ import annotations

import math

import axir.numpy as jnp
from axir.dialect.core.array import ArrayLike
from axir.dialect.program.rules import Value
from axir.scipy.special import gammaincc, gammaln, xlogy

from ._distribution import Discrete

__all__ = ["cdf", "entropy", "logpmf", "pmf"]


def __dir__() -> list[str]:
    return __all__


_POISSON = Discrete("poisson", is_inside=lambda k, mu: k >= 0, is_valid=lambda mu: mu >= 0)


def logpmf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Value:
    """Returns the logarithm of the probability of k."""
    return _POISSON.log_mass(lambda k, mu: xlogy(k, mu) - gammaln(k + 1) - mu, k, mu, loc=loc)


def pmf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Value:
    """Returns the probability of k."""
    return jnp.exp(logpmf(k, mu, loc))


def cdf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Value:
    """Returns the probability of integers up to k."""
    return _POISSON.share("cdf", _share_below, k, mu, loc=loc)


def entropy(mu: ArrayLike, loc: ArrayLike = 0) -> Value:
    """Returns the entropy, the sum of -p log(p), which does not depend on `loc`.

    Above 50 by its asymptotic series in 1 / mu (R. J. Evans and J. Boersma, SIAM Review 30, 1988).
    """
    return _POISSON.share("entropy", _entropy, loc, mu)


# Of mu**-k in the entropy, beyond log(2 pi e mu) / 2.
_ENTROPY_SERIES = (0.0, -1 / 12, -1 / 24, -19 / 360, -9 / 80, -863 / 2520, -1375 / 1008)
_SUMMED = 140  # integers that have a probability if mu is at most 50


def _entropy(loc: Value, mu: Value) -> Value:
    is_large = mu > 50
    near = jnp.where(is_large, 1.0, mu)[..., None]
    k = jnp.arange(_SUMMED, dtype=mu.dtype)
    logarithms = xlogy(k, near) - gammaln(k + 1) - near
    is_possible = logarithms > -math.inf
    logarithms = jnp.where(is_possible, logarithms, 0.0)
    direct = -jnp.sum(jnp.where(is_possible, jnp.exp(logarithms) * logarithms, 0.0), axis=-1)
    inverse = 1 / jnp.where(is_large, mu, 100.0)
    series = 0.5 * (math.log(2 * math.pi * math.e) - jnp.log(inverse))
    series = series + jnp.polyval(jnp.array(_ENTROPY_SERIES[::-1], mu.dtype), inverse)
    return jnp.where(is_large, series, direct) + jnp.zeros_like(loc)


def _share_below(k: Value, mu: Value) -> Value:
    whole = jnp.floor(jnp.where(k < 0, 0.0, k))
    share = jnp.where(whole == math.inf, 1.0, gammaincc(whole + 1, mu))
    return jnp.where(k < 0, 0.0, share)
