"""The Cauchy distribution on the circle, of density (1-c**2) / (2 pi (1 + c**2 - 2 c cos(x))).

Its support is from 0 to 2 pi.

>>> from axir.scipy.stats import wrapcauchy
>>> (wrapcauchy.pdf(0.0, 0.5) * 2 * 3.14159265).round(5)
Array(3., dtype=float32, weak_type=True)
"""

from __future__ import annotations

import math

import axir.numpy as jnp
from axir.dialect.core.array import ArrayLike
from axir.dialect.program.rules import Value

from ._distribution import Continuous

__all__ = ["logpdf", "pdf"]


def __dir__() -> list[str]:
    return __all__


_WRAPPED_CAUCHY = Continuous(
    "wrapcauchy", low=0.0, high=2 * math.pi, is_valid=lambda c: (c > 0) & (c < 1)
)


def _log_density(x: Value, c: Value) -> Value:
    # 1 + c**2 - 2 c cos(x) without cancellation.
    denominator = jnp.square(1 - c) + 4 * c * jnp.square(jnp.sin(0.5 * x))
    return jnp.log1p(-c) + jnp.log1p(c) - jnp.log(denominator) - math.log(2 * math.pi)


def logpdf(x: ArrayLike, c: ArrayLike) -> Value:
    """Returns the logarithm of the density."""
    return _WRAPPED_CAUCHY.log_density(_log_density, x, c)


def pdf(x: ArrayLike, c: ArrayLike) -> Value:
    """Returns the density."""
    return jnp.exp(logpdf(x, c))
