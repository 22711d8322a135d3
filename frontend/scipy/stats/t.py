"""Student's t distribution with df degrees of freedom, for y = (x - loc) / scale.

Its density is (1 + y**2 / df)**(-(df + 1) / 2) / (sqrt(df) beta(df / 2, 1 / 2)), and the normal one
for infinite df.

>>> from axir.scipy.stats import t
>>> t.pdf(0.0, 2.0).round(4)
Array(0.3536, dtype=float32, weak_type=True)
"""

from __future__ import annotations

import math

import axir.numpy as jnp
from axir.dialect.core.array import ArrayLike
from axir.dialect.program.rules import Value
from axir.scipy.special import betaln

from ._distribution import Continuous, log_one_plus_square

__all__ = ["logpdf", "pdf"]


def __dir__() -> list[str]:
    return __all__


_STUDENT = Continuous("t", is_valid=lambda df: df > 0)


def _log_density(y: Value, df: Value) -> Value:
    is_normal = df == math.inf
    finite = jnp.where(is_normal, 1.0, df)
    constant = betaln(0.5 * finite, jnp.full_like(finite, 0.5)) + 0.5 * jnp.log(finite)
    power = -0.5 * (finite + 1) * log_one_plus_square(y / jnp.sqrt(finite))
    normal = -0.5 * jnp.square(y) - 0.5 * math.log(2 * math.pi)
    return jnp.where(is_normal, normal, power - constant)


def logpdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """Returns the logarithm of the density."""
    return _STUDENT.log_density(_log_density, x, df, loc=loc, scale=scale)


def pdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """Returns the density."""
    return jnp.exp(logpdf(x, df, loc, scale))
