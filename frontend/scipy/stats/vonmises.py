"""The von Mises distribution of angles, of density exp(kappa cos(x)) / (2 pi i0(kappa)).

>>> from axir.scipy.stats import vonmises
>>> (vonmises.pdf(1.0, 0.0) * 2 * 3.14159265).round(6)
Array(1., dtype=float32, weak_type=True)
"""

from __future__ import annotations

import math

import axir.numpy as jnp
from axir.dialect.core.array import ArrayLike
from axir.dialect.program.rules import Value
from axir.scipy.special import i0e

from ._distribution import Continuous

__all__ = ["logpdf", "pdf"]


def __dir__() -> list[str]:
    return __all__


_VON_MISES = Continuous("vonmises", is_valid=lambda kappa: kappa >= 0)


def _log_density(x: Value, kappa: Value) -> Value:
    # cos(x) - 1 without cancellation, beside i0 without overflow.
    distance = 2 * jnp.square(jnp.sin(0.5 * x))
    return -kappa * distance - jnp.log(i0e(kappa)) - math.log(2 * math.pi)


def logpdf(x: ArrayLike, kappa: ArrayLike) -> Value:
    """Returns the logarithm of the density."""
    return _VON_MISES.log_density(_log_density, x, kappa)


def pdf(x: ArrayLike, kappa: ArrayLike) -> Value:
    """Returns the density."""
    return jnp.exp(logpdf(x, kappa))
