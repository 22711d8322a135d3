"""Continuous distributions on the whole line, by formulas of y = (x - loc) / scale."""

from __future__ import annotations

import math

import axir.numpy as jnp
from axir.dialect.core.array import ArrayLike
from axir.dialect.program.rules import Value
from axir.scipy.special import betaln, expit, gammaincc, gammaln, log_ndtr, logit, ndtr, ndtri

from ._distribution import (
    Arguments,
    Support,
    continuous,
    log_of_rest,
    log_one_plus_square,
    shares,
)

_HALF_LOG_TAU = 0.5 * math.log(2 * math.pi)


def _log_normal_density(y: Value) -> Value:
    return -0.5 * jnp.square(y) - _HALF_LOG_TAU


@continuous(
    logpdf=_log_normal_density,
    cdf=ndtr,
    logcdf=log_ndtr,
    sf=lambda y: ndtr(-y),
    logsf=lambda y: log_ndtr(-y),
    # As SciPy's and JAX's: in the default dtype of floats.
    ppf=lambda q: jnp.asarray(ndtri(q), float),
    isf=lambda q: jnp.asarray(-ndtri(q), float),
)
def norm(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Arguments:
    """The normal distribution, of density exp(-y**2 / 2) / sqrt(2 pi) for y = (x - loc) / scale.

    Quantiles are float64 if 64-bit types are enabled, even of float32 probabilities.

    >>> from axir.scipy.stats import norm
    >>> norm.cdf(1.0, loc=1.0)
    Array(0.5, dtype=float32)
    """
    return Arguments(x, (), loc, scale)


def _cauchy_below(y: Value) -> Value:
    return jnp.arctan2(jnp.ones_like(y), -y) / math.pi


def _upper_cauchy_quantile(q: Value) -> Value:
    # From the nearer end, where the tangent is exact.
    is_low = q < 0.5
    size = 1 / jnp.tan(math.pi * jnp.where(is_low, q, 1 - q))
    return jnp.where(is_low, size, -size)


@continuous(
    logpdf=lambda y: -math.log(math.pi) - log_one_plus_square(y),
    **shares(_cauchy_below, lambda y: _cauchy_below(-y)),
    ppf=lambda q: -_upper_cauchy_quantile(q),
    isf=_upper_cauchy_quantile,
)
def cauchy(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Arguments:
    """The Cauchy distribution, of density 1 / (pi (1 + y**2)) for y = (x - loc) / scale.

    >>> from axir.scipy.stats import cauchy
    >>> cauchy.cdf(0.0)
    Array(0.5, dtype=float32, weak_type=True)
    """
    return Arguments(x, (), loc, scale)


def _with_half_above(half: Value, y: Value) -> Value:
    """Returns the probability below y of a symmetric distribution, from the one beyond |y|."""
    return jnp.where(y < 0, half, 1 - half)


@continuous(
    Support(is_valid=lambda beta: beta > 0),
    logpdf=lambda y, beta: jnp.log(0.5 * beta) - gammaln(1 / beta) - abs(y) ** beta,
    cdf=lambda y, beta: _with_half_above(0.5 * gammaincc(1 / beta, abs(y) ** beta), y),
)
def gennorm(x: ArrayLike, beta: ArrayLike) -> Arguments:
    """The generalized normal distribution, of density beta exp(-|x|**beta) / (2 gamma(1 / beta)).

    >>> from axir.scipy.stats import gennorm
    >>> gennorm.pdf(0.0, 1.0)
    Array(0.5, dtype=float32, weak_type=True)
    """
    return Arguments(x, (beta,))


@continuous(
    Support(high=math.inf),
    logpdf=lambda y: y - jnp.exp(y),
    cdf=lambda y: -jnp.expm1(-jnp.exp(y)),
    logcdf=lambda y: log_of_rest(jnp.exp(y)),
    sf=lambda y: jnp.exp(-jnp.exp(y)),
    logsf=lambda y: -jnp.exp(y),
    ppf=lambda p: jnp.log(-jnp.log1p(-p)),
)
def gumbel_l(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Arguments:
    """The Gumbel distribution of minima, of density exp(y - exp(y)) for y = (x - loc) / scale.

    >>> from axir.scipy.stats import gumbel_l
    >>> gumbel_l.logsf(0.0)
    Array(-1., dtype=float32, weak_type=True)
    """
    return Arguments(x, (), loc, scale)


@continuous(
    Support(low=-math.inf),
    logpdf=lambda y: -y - jnp.exp(-y),
    cdf=lambda y: jnp.exp(-jnp.exp(-y)),
    logcdf=lambda y: -jnp.exp(-y),
    sf=lambda y: -jnp.expm1(-jnp.exp(-y)),
    logsf=lambda y: log_of_rest(jnp.exp(-y)),
    ppf=lambda p: -jnp.log(-jnp.log(p)),
)
def gumbel_r(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Arguments:
    """The Gumbel distribution of maxima, of density exp(-y - exp(-y)) for y = (x - loc) / scale.

    >>> from axir.scipy.stats import gumbel_r
    >>> gumbel_r.logcdf(0.0)
    Array(-1., dtype=float32, weak_type=True)
    """
    return Arguments(x, (), loc, scale)


@continuous(
    logpdf=lambda y: -abs(y) - math.log(2),
    cdf=lambda y: _with_half_above(0.5 * jnp.exp(-abs(y)), y),
)
def laplace(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Arguments:
    """The Laplace distribution, of density exp(-|y|) / 2 for y = (x - loc) / scale.

    >>> from axir.scipy.stats import laplace
    >>> laplace.pdf(2.0, loc=2.0)
    Array(0.5, dtype=float32, weak_type=True)
    """
    return Arguments(x, (), loc, scale)


@continuous(
    # An even function, computed on the half where nothing overflows.
    logpdf=lambda y: -abs(y) - 2 * jnp.log1p(jnp.exp(-abs(y))),
    cdf=expit,
    sf=lambda y: expit(-y),
    ppf=logit,
    isf=lambda x: -logit(x),
)
def logistic(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Arguments:
    """The logistic distribution, with cdf 1 / (1 + exp(-y)) for y = (x - loc) / scale.

    >>> from axir.scipy.stats import logistic
    >>> logistic.pdf(0.0)
    Array(0.25, dtype=float32, weak_type=True)
    """
    return Arguments(x, (), loc, scale)


def _log_student_density(y: Value, df: Value) -> Value:
    is_normal = df == math.inf
    finite = jnp.where(is_normal, 1.0, df)
    constant = betaln(0.5 * finite, jnp.full_like(finite, 0.5)) + 0.5 * jnp.log(finite)
    power = -0.5 * (finite + 1) * log_one_plus_square(y / jnp.sqrt(finite))
    return jnp.where(is_normal, _log_normal_density(y), power - constant)


@continuous(Support(is_valid=lambda df: df > 0), logpdf=_log_student_density)
def t(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Arguments:
    """Student's t distribution with df degrees of freedom, for y = (x - loc) / scale.

    Its density is (1 + y**2 / df)**(-(df + 1) / 2) / (sqrt(df) beta(df / 2, 1 / 2)), and the normal
    one for infinite df.

    >>> from axir.scipy.stats import t
    >>> t.pdf(0.0, 2.0).round(4)
    Array(0.3536, dtype=float32, weak_type=True)
    """
    return Arguments(x, (df,), loc, scale)
