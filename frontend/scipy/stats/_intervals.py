"""Continuous distributions on half-lines, intervals, circles, by formulas of (x - loc) / scale."""

from __future__ import annotations

import math

import axir.numpy as jnp
from axir.dialect.core.array import ArrayLike
from axir.dialect.program.rules import Value
from axir.scipy.special import (
    betainc,
    betaln,
    erf,
    gammainc,
    gammaincc,
    gammaln,
    i0e,
    log_ndtr,
    ndtr,
    xlog1py,
    xlogy,
)

from ._distribution import Arguments, Support, continuous, log_of_rest, shares

# Half-lines --------------------------------------------------------------------------------------


@continuous(
    Support(low=0.0),
    logpdf=lambda y: -y,
    cdf=lambda y: -jnp.expm1(-y),
    logcdf=log_of_rest,
    sf=lambda y: jnp.exp(-y),
    logsf=lambda y: -y,
    ppf=lambda q: -jnp.log1p(-q),
)
def expon(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Arguments:
    """The exponential distribution, of density exp(-y) for y = (x - loc) / scale >= 0.

    >>> from axir.scipy.stats import expon
    >>> expon.sf(3.0, loc=3.0)
    Array(1., dtype=float32, weak_type=True)
    """
    return Arguments(x, (), loc, scale)


def _log_gamma_density(y: Value, a: Value) -> Value:
    return xlogy(a - 1, y) - y - gammaln(a)


@continuous(
    Support(low=0.0, high=math.inf, is_valid=lambda a: a > 0),
    logpdf=_log_gamma_density,
    **shares(lambda y, a: gammainc(a, y), lambda y, a: gammaincc(a, y)),
)
def gamma(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Arguments:
    """The gamma distribution of positive numbers.

    Its density is y**(a - 1) exp(-y) / gamma(a) for y = (x - loc) / scale > 0.

    >>> from axir.scipy.stats import gamma
    >>> gamma.logpdf(2.0, 1.0)
    Array(-2., dtype=float32, weak_type=True)
    """
    return Arguments(x, (a,), loc, scale)


@continuous(
    Support(low=0.0, high=math.inf, is_valid=lambda df: df > 0),
    logpdf=lambda y, df: _log_gamma_density(0.5 * y, 0.5 * df) - math.log(2),
    **shares(lambda y, df: gammainc(0.5 * df, 0.5 * y), lambda y, df: gammaincc(0.5 * df, 0.5 * y)),
)
def chi2(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Arguments:
    """The chi-squared distribution: of the sum of squares of df standard normal numbers.

    Half of such a sum has the gamma distribution with a = df / 2.

    >>> from axir.scipy.stats import chi2
    >>> chi2.cdf(0.0, 2.0)
    Array(0., dtype=float32, weak_type=True)
    """
    return Arguments(x, (df,), loc, scale)


@continuous(
    Support(low=1.0, inner=2.0, is_valid=lambda b: b > 0),
    logpdf=lambda y, b: jnp.log(b) - (b + 1) * jnp.log(y),
    cdf=lambda y, b: -jnp.expm1(-b * jnp.log(y)),
    logcdf=lambda y, b: log_of_rest(b * jnp.log(y)),
    sf=lambda y, b: y**-b,
    logsf=lambda y, b: -b * jnp.log(y),
    ppf=lambda q, b: jnp.exp(-jnp.log1p(-q) / b),
)
def pareto(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Arguments:
    """The Pareto distribution, of density b / y**(b + 1) for y = (x - loc) / scale >= 1.

    >>> from axir.scipy.stats import pareto
    >>> pareto.sf(2.0, 1.0)
    Array(0.5, dtype=float32, weak_type=True)
    """
    return Arguments(x, (b,), loc, scale)


# Intervals and circles ---------------------------------------------------------------------------


@continuous(Support(low=0.0, high=1.0), logpdf=lambda y: 0 * y, cdf=lambda y: y, ppf=lambda q: q)
def uniform(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Arguments:
    """The uniform distribution, of density 1 / scale from loc to loc + scale.

    >>> from axir.scipy.stats import uniform
    >>> uniform.pdf(1.0, loc=0.5, scale=2.0)
    Array(0.5, dtype=float32, weak_type=True)
    """
    return Arguments(x, (), loc, scale)


@continuous(
    Support(low=0.0, high=1.0, is_valid=lambda a, b: (a > 0) & (b > 0)),
    logpdf=lambda y, a, b: xlogy(a - 1, y) + xlog1py(b - 1, -y) - betaln(a, b),
    **shares(lambda y, a, b: betainc(a, b, y), lambda y, a, b: betainc(b, a, 1 - y)),
)
def beta(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Arguments:
    """The beta distribution of numbers from 0 to 1.

    Its density is y**(a - 1) (1 - y)**(b - 1) / beta(a, b) for y = (x - loc) / scale.

    >>> from axir.scipy.stats import beta
    >>> beta.pdf(0.3, 1.0, 1.0)
    Array(1., dtype=float32, weak_type=True)
    """
    return Arguments(x, (a, b), loc, scale)


def _log_von_mises_density(x: Value, kappa: Value) -> Value:
    # cos(x) - 1 without cancellation, beside i0 without overflow.
    distance = 2 * jnp.square(jnp.sin(0.5 * x))
    return -kappa * distance - jnp.log(i0e(kappa)) - math.log(2 * math.pi)


@continuous(Support(is_valid=lambda kappa: kappa >= 0), logpdf=_log_von_mises_density)
def vonmises(x: ArrayLike, kappa: ArrayLike) -> Arguments:
    """The von Mises distribution of angles, of density exp(kappa cos(x)) / (2 pi i0(kappa)).

    >>> from axir.scipy.stats import vonmises
    >>> (vonmises.pdf(1.0, 0.0) * 2 * 3.14159265).round(6)
    Array(1., dtype=float32, weak_type=True)
    """
    return Arguments(x, (kappa,))


def _log_wrapped_cauchy_density(x: Value, c: Value) -> Value:
    # 1 + c**2 - 2 c cos(x) without cancellation.
    denominator = jnp.square(1 - c) + 4 * c * jnp.square(jnp.sin(0.5 * x))
    return jnp.log1p(-c) + jnp.log1p(c) - jnp.log(denominator) - math.log(2 * math.pi)


@continuous(
    Support(low=0.0, high=2 * math.pi, is_valid=lambda c: (c > 0) & (c < 1)),
    logpdf=_log_wrapped_cauchy_density,
)
def wrapcauchy(x: ArrayLike, c: ArrayLike) -> Arguments:
    """The Cauchy distribution on the circle, of density (1-c**2) / (2 pi (1 + c**2 - 2 c cos(x))).

    Its support is from 0 to 2 pi.

    >>> from axir.scipy.stats import wrapcauchy
    >>> (wrapcauchy.pdf(0.0, 0.5) * 2 * 3.14159265).round(5)
    Array(3., dtype=float32, weak_type=True)
    """
    return Arguments(x, (c,))


# The truncated normal distribution ---------------------------------------------------------------


def _log_truncated_density(y: Value, a: Value, b: Value) -> Value:
    inside = -0.5 * jnp.square(y) - 0.5 * math.log(2 * math.pi) - _log_normal_mass(a, b)
    return jnp.where((y < a) | (y > b), -math.inf, inside)


def _log_truncated_below(y: Value, a: Value, b: Value) -> Value:
    y, a, b = jnp.broadcast_arrays(y, a, b)
    is_outside = (y <= a) | (y >= b)
    middle = jnp.where(is_outside, _between(a, b), y)
    # One evaluation for three intervals: below y, above y, and both.
    lows, highs = jnp.stack([a, middle, a]), jnp.stack([middle, b, b])
    below, above, whole = _log_normal_mass(lows, highs)
    below, above = below - whole, above - whole
    # Where nearly all mass lies below, the mass above is more exact.
    is_most = below > -0.1
    rest = log_of_rest(-jnp.where(is_most, above, -1.0))
    inside = jnp.where(is_most, rest, below)
    return jnp.where(is_outside, jnp.where(y <= a, -math.inf, 0.0), inside)


def _log_truncated_above(y: Value, a: Value, b: Value) -> Value:
    return _log_truncated_below(-y, -b, -a)


def _between(a: Value, b: Value) -> Value:
    """Returns a number between two numbers; each may be infinite."""
    low, high = jnp.maximum(a, -1e4), jnp.minimum(b, 1e4)
    return 0.5 * (low + high)


def _log_normal_mass(a: Value, b: Value) -> Value:
    """Returns the logarithm of the mass of the standard normal distribution between a and b.

    In the tails by the logarithms of the shares, around 0 by the error function, or by its
    complement where most lies between them.
    """
    is_right = a > 0
    # Symmetric: a number to the right of 0 becomes one to the left.
    low, high = jnp.where(is_right, -b, a), jnp.where(is_right, -a, b)
    is_tail = high <= -1
    tail_low, tail_high = jnp.where(is_tail, low, -3.0), jnp.where(is_tail, high, -2.0)
    upper = _log_normal_below(tail_high)
    tail = upper + log_of_rest(upper - _log_normal_below(tail_low))
    low, high = jnp.where(is_tail, -1.0, low), jnp.where(is_tail, 1.0, high)
    beyond = ndtr(low) + ndtr(-high)
    is_most = beyond < 0.5
    between = 0.5 * (erf(math.sqrt(0.5) * high) - erf(math.sqrt(0.5) * low))
    middle = jnp.log(jnp.where(is_most, 1.0, between))
    middle = jnp.where(is_most, jnp.log1p(-jnp.where(is_most, beyond, 0.0)), middle)
    return jnp.where(is_tail, tail, middle)


def _log_normal_below(x: Value) -> Value:
    is_infinite = x == -math.inf
    return jnp.where(is_infinite, -math.inf, log_ndtr(jnp.where(is_infinite, -1.0, x)))


@continuous(
    Support(is_valid=lambda a, b: a < b),
    logpdf=_log_truncated_density,
    logcdf=_log_truncated_below,
    logsf=_log_truncated_above,
)
def truncnorm(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Arguments:
    """The normal distribution truncated to y from a to b, for y = (x - loc) / scale.

    >>> from axir.scipy.stats import truncnorm
    >>> truncnorm.cdf(0.0, -1.0, 1.0).round(6)
    Array(0.5, dtype=float32)
    >>> truncnorm.pdf(3.0, -1.0, 1.0)
    Array(0., dtype=float32)
    """
    return Arguments(x, (a, b), loc, scale)
