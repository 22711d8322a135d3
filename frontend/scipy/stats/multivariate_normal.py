"""The normal distribution of vectors, with a mean vector and a covariance matrix.

>>> import axir.numpy as jnp
>>> from axir.scipy.stats import multivariate_normal
>>> x = jnp.array([1.0, 2.0])
>>> (multivariate_normal.logpdf(x, x, jnp.eye(2)) + jnp.log(2 * jnp.pi)).round(6)
Array(0., dtype=float32)
"""

from __future__ import annotations

import math

import axir.numpy as jnp
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import ShapeError
from axir.dialect.program.rules import Value
from axir.lax.linalg import cholesky, triangular_solve
from axir.numpy._arguments.promotion import promote_inexact, require_real

__all__ = ["logpdf", "pdf"]


def __dir__() -> list[str]:
    return __all__


class CovarianceError(ShapeError, ValueError):
    """A covariance matrix does not fit the mean."""


def logpdf(
    x: ArrayLike, mean: ArrayLike, cov: ArrayLike, allow_singular: bool | None = None
) -> Value:
    """Returns the logarithm of the density.

    Args:
        x: Vectors along the last axis; numbers if `mean` is one.
        mean: Vector or stack of vectors, or a number.
        cov: Matrix or stack of matrices of their size, or a number, the variance of all elements.
            nan where a matrix is not positive definite.
        allow_singular: Must be None or False.

    Raises:
        CovarianceError: for matrices of another size.
        NotImplementedError: for `allow_singular=True`.
    """
    if allow_singular:
        raise NotImplementedError(
            "multivariate_normal: the decomposition of Cholesky needs a covariance of full rank; "
            "project x on its range first."
        )
    x, mean, cov = promote_inexact("multivariate_normal.logpdf", x, mean, cov)
    require_real("multivariate_normal.logpdf", x, mean, cov)
    size = mean.shape[-1] if mean.ndim else 1
    constant = 0.5 * size * math.log(2 * math.pi)
    if not mean.ndim or not cov.ndim:
        squares = jnp.square(x - mean)
        squares = jnp.sum(squares, axis=-1) if mean.ndim else squares
        return -0.5 * (squares / cov + size * jnp.log(cov)) - constant
    if cov.ndim < 2 or cov.shape[-2:] != (size, size):
        raise CovarianceError(
            f"multivariate_normal.logpdf: means of {size} elements need covariances of shape "
            f"{(size, size)}, or a number, but the shape is {cov.shape}.",
            "Make a diagonal matrix of variances with jnp.diag.",
        )
    factor = cholesky(cov)
    deviations = _whitened(factor, x - mean)
    logarithms = jnp.sum(jnp.log(jnp.diagonal(factor, axis1=-2, axis2=-1)), axis=-1)
    return -0.5 * jnp.sum(jnp.square(deviations), axis=-1) - logarithms - constant


def pdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike) -> Value:
    """Returns the density; arguments as of `logpdf`."""
    return jnp.exp(logpdf(x, mean, cov))


def _whitened(factor: Value, x: Value) -> Value:
    """Solves triangular equations for vectors along the last axis."""
    size = x.shape[-1]
    if factor.ndim == 2:  # one matrix for all
        solution = triangular_solve(
            factor, jnp.reshape(x, (-1, size)), transpose_a=True, lower=True
        )
        return jnp.reshape(solution, x.shape)
    batch = jnp.broadcast_shapes(factor.shape[:-2], x.shape[:-1])
    factor = jnp.broadcast_to(factor, (*batch, size, size))
    x = jnp.broadcast_to(x, (*batch, size))[..., None]
    return triangular_solve(factor, x, left_side=True, lower=True)[..., 0]
