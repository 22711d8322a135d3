"""The chi-squared distribution: of the sum of squares of df standard normal numbers.

The gamma distribution of half of that, with a = df / 2.

>>> from axir.scipy.stats import chi2
>>> chi2.cdf(0.0, 2.0)
Array(0., dtype=float32, weak_type=True)
"""

from __future__ import annotations

import math

import axir.numpy as jnp
from axir.dialect.core.array import ArrayLike
from axir.dialect.program.rules import Value
from axir.scipy.special import gammainc, gammaincc

from ._distribution import Continuous, log_of_share
from .gamma import log_density

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


def __dir__() -> list[str]:
    return __all__


_CHI_SQUARED = Continuous("chi2", low=0.0, high=math.inf, is_valid=lambda df: df > 0)


def _log_density(y: Value, df: Value) -> Value:
    return log_density(0.5 * y, 0.5 * df) - math.log(2)


def _share_below(y: Value, df: Value) -> Value:
    return gammainc(0.5 * df, 0.5 * y)


def _share_above(y: Value, df: Value) -> Value:
    return gammaincc(0.5 * df, 0.5 * y)


def _log_share_below(y: Value, df: Value) -> Value:
    return log_of_share(_share_below(y, df), _share_above(y, df))


def _log_share_above(y: Value, df: Value) -> Value:
    return log_of_share(_share_above(y, df), _share_below(y, df))


def logpdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """Returns the logarithm of the density."""
    return _CHI_SQUARED.log_density(_log_density, x, df, loc=loc, scale=scale)


def pdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """Returns the density."""
    return jnp.exp(logpdf(x, df, loc, scale))


def cdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """Returns the probability of numbers up to x."""
    return _CHI_SQUARED.share("cdf", _share_below, x, df, loc=loc, scale=scale)


def logcdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """Returns the logarithm of the probability of numbers up to x."""
    return _CHI_SQUARED.share("logcdf", _log_share_below, x, df, loc=loc, scale=scale)


def sf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """Returns the probability of numbers above x."""
    return _CHI_SQUARED.share("sf", _share_above, x, df, loc=loc, scale=scale)


def logsf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """Returns the logarithm of the probability of numbers above x."""
    return _CHI_SQUARED.share("logsf", _log_share_above, x, df, loc=loc, scale=scale)
