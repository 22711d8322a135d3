"""The Dirichlet distribution: of shares x that sum to 1.

Its density is prod(x**(alpha - 1)) over the beta function of alpha.

>>> import axir.numpy as jnp
>>> from axir.scipy.stats import dirichlet
>>> dirichlet.pdf(jnp.array([0.5, 0.5]), jnp.array([1.0, 1.0]))
Array(1., dtype=float32)
"""

from __future__ import annotations

import math

import axir.numpy as jnp
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import ShapeError
from axir.dialect.program.rules import Value
from axir.numpy._arguments.promotion import promote_inexact, require_real
from axir.scipy.special import gammaln, xlogy

__all__ = ["logpdf", "pdf"]


def __dir__() -> list[str]:
    return __all__


_TOLERANCE = 1e-6  # by which the sum of shares may differ from 1


class SharesError(ShapeError, ValueError):
    """Shares and parameters of a Dirichlet distribution do not fit."""


def logpdf(x: ArrayLike, alpha: ArrayLike) -> Value:
    """Returns the logarithm of the density.

    Args:
        x: Shares along the first axis; the last one may be left out. -inf where they are negative
            or do not sum to 1.
        alpha: Vector of positive numbers; nan if one is not positive.

    Raises:
        SharesError: if alpha is no vector, or x has another number of shares.
    """
    x, alpha = promote_inexact("dirichlet.logpdf", x, alpha)
    require_real("dirichlet.logpdf", x, alpha)
    if alpha.ndim != 1 or not x.ndim or x.shape[0] not in (alpha.size, alpha.size - 1):
        raise SharesError(
            f"dirichlet.logpdf: alpha must be a vector, and x have as many shares along its first "
            f"axis or one less, but the shapes are {alpha.shape} and {x.shape}.",
            "Move the axis of shares to the front with jnp.moveaxis(x, -1, 0).",
        )
    if x.shape[0] < alpha.size:
        x = jnp.concatenate([x, 1 - jnp.sum(x, axis=0, keepdims=True)])
    constant = jnp.sum(gammaln(alpha)) - gammaln(jnp.sum(alpha))
    powers = jnp.expand_dims(alpha - 1, tuple(range(1, x.ndim)))
    is_inside = jnp.all(x >= 0, axis=0) & (abs(jnp.sum(x, axis=0) - 1) < _TOLERANCE)
    value = jnp.sum(xlogy(powers, jnp.where(is_inside, x, 0.5)), axis=0) - constant
    return jnp.where(jnp.all(alpha > 0), jnp.where(is_inside, value, -math.inf), math.nan)


def pdf(x: ArrayLike, alpha: ArrayLike) -> Value:
    """Returns the density; arguments as of `logpdf`."""
    return jnp.exp(logpdf(x, alpha))
