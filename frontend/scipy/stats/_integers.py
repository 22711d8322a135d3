"""Distributions of integers, by formulas of k - loc."""

from __future__ import annotations

import math

import axir.numpy as jnp
from axir.dialect.core.array import ArrayLike
from axir.dialect.program.rules import Value
from axir.scipy.special import betaln, gammaincc, gammaln, xlog1py, xlogy

from ._distribution import Arguments, discrete, real_arguments


def _is_probability(p: Value) -> Value:
    return (p >= 0) & (p <= 1)


def _is_count(n: Value) -> Value:
    return (n >= 0) & (n == jnp.floor(n))


def _bernoulli_below(k: Value, p: Value) -> Value:
    return jnp.where(k < 0, 0.0, jnp.where(k < 1, 1 - p, 1.0))


def _bernoulli_quantile(q: Value, p: Value) -> Value:
    # As SciPy's: 0 has no quantile but the number below the support.
    is_zero = (q <= 1 - p) & (q < 1)
    value = jnp.where(q == 0, -1, jnp.where(is_zero, 0, jnp.ones_like(q)))
    return jnp.where((q >= 0) & (q <= 1), value, math.nan)


@discrete(
    is_inside=lambda k, p: (k >= 0) & (k <= 1),
    is_valid=_is_probability,
    log_mass=lambda k, p: xlogy(k, p) + xlog1py(1 - k, -p),
    cdf=_bernoulli_below,
    ppf=_bernoulli_quantile,
    without={"cdf": "loc", "ppf": "loc"},
)
def bernoulli(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Arguments:
    """The Bernoulli distribution: 1 with probability p, else 0.

    >>> from axir.scipy.stats import bernoulli
    >>> bernoulli.pmf(1, 0.25)
    Array(0.25, dtype=float32, weak_type=True)
    """
    return Arguments(k, (p,), loc)


def _log_choices(n: Value, k: Value) -> Value:
    """Returns the logarithm of the number of ways to choose k of n things."""
    is_one = (k == 0) | (k == n)
    return jnp.where(is_one, 0.0, -jnp.log1p(n) - betaln(n - k + 1, k + 1))


@discrete(
    is_inside=lambda k, n, p: (k >= 0) & (k <= n),
    is_valid=lambda n, p: _is_count(n) & _is_probability(p),
    log_mass=lambda k, n, p: _log_choices(n, k) + xlogy(k, p) + xlog1py(n - k, -p),
)
def binom(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Arguments:
    """The binomial distribution: how often a thing of probability p happens in n trials.

    >>> from axir.scipy.stats import binom
    >>> binom.pmf(1, 2, 0.5)
    Array(0.5, dtype=float32, weak_type=True)
    """
    return Arguments(k, (n, p), loc)


@discrete(
    is_inside=lambda k, n, a, b: (k >= 0) & (k <= n),
    is_valid=lambda n, a, b: _is_count(n) & (a > 0) & (b > 0),
    log_mass=lambda k, n, a, b: _log_choices(n, k) + betaln(k + a, n - k + b) - betaln(a, b),
)
def betabinom(
    k: ArrayLike, n: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0
) -> Arguments:
    """The beta-binomial distribution: binomial with p drawn from the beta distribution.

    >>> from axir.scipy.stats import betabinom
    >>> betabinom.pmf(0, 1, 1.0, 1.0).round(6)
    Array(0.5, dtype=float32, weak_type=True)
    """
    return Arguments(k, (n, a, b), loc)


@discrete(
    is_inside=lambda k, p: k >= 1,
    is_valid=lambda p: (p > 0) & (p <= 1),
    log_mass=lambda k, p: xlog1py(k - 1, -p) + jnp.log(p),
    inner=1,
)
def geom(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Arguments:
    """The geometric distribution: of the number of trials until the first success of probability p.

    >>> from axir.scipy.stats import geom
    >>> geom.pmf(2, 0.5)
    Array(0.25, dtype=float32, weak_type=True)
    """
    return Arguments(k, (p,), loc)


def _log_orders(k: Value, n: Value) -> Value:
    """Returns the logarithm of the number of orders of k failures before n successes."""
    return jnp.where(k == 0, 0.0, -jnp.log(n + k) - betaln(n, k + 1))


@discrete(
    is_inside=lambda k, n, p: k >= 0,
    is_valid=lambda n, p: (n > 0) & (p > 0) & (p <= 1),
    log_mass=lambda k, n, p: n * jnp.log(p) + xlog1py(k, -p) + _log_orders(k, n),
)
def nbinom(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Arguments:
    """The negative binomial distribution: of failures before n successes of probability p.

    >>> from axir.scipy.stats import nbinom
    >>> nbinom.pmf(0, 1, 0.5)
    Array(0.5, dtype=float32, weak_type=True)
    """
    return Arguments(k, (n, p), loc)


# Of mu**-k in the entropy, beyond log(2 pi e mu) / 2.
_ENTROPY_SERIES = (0.0, -1 / 12, -1 / 24, -19 / 360, -9 / 80, -863 / 2520, -1375 / 1008)
_SUMMED = 140  # integers that have a probability if mu is at most 50


def _poisson_entropy(mu: ArrayLike, loc: ArrayLike = 0) -> Value:
    """Returns the entropy, the sum of -p log(p), which does not depend on `loc`.

    Above 50 by its asymptotic series in 1 / mu (R. J. Evans and J. Boersma, SIAM Review 30, 1988).
    """
    mu, shift = real_arguments("poisson.entropy", mu, loc)
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
    return jnp.where(mu >= 0, jnp.where(is_large, series, direct), math.nan + jnp.zeros_like(shift))


def _poisson_below(k: Value, mu: Value) -> Value:
    whole = jnp.floor(jnp.where(k < 0, 0.0, k))
    share = jnp.where(whole == math.inf, 1.0, gammaincc(whole + 1, mu))
    return jnp.where(k < 0, 0.0, share)


@discrete(
    is_inside=lambda k, mu: k >= 0,
    is_valid=lambda mu: mu >= 0,
    log_mass=lambda k, mu: xlogy(k, mu) - gammaln(k + 1) - mu,
    cdf=_poisson_below,
    others={"entropy": _poisson_entropy},
)
def poisson(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Arguments:
    """The Poisson distribution: k has probability mu**k exp(-mu) / k!.

    >>> from axir.scipy.stats import poisson
    >>> poisson.logpmf(0, 2.0)
    Array(-2., dtype=float32, weak_type=True)
    """
    return Arguments(k, (mu,), loc)
