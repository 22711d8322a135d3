"""Distributions of vectors, each by the logarithm of its density."""

from __future__ import annotations

import math

import axir.numpy as jnp
from axir.dialect.core import dtypes
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import DTypeError, ShapeError
from axir.dialect.program.rules import Value
from axir.lax.linalg import cholesky, triangular_solve
from axir.numpy._arguments.promotion import promote_numeric
from axir.scipy.special import gammaln, xlogy

from ._distribution import of_vectors, real_arguments

_TOLERANCE = 1e-6  # by which the sum of shares may differ from 1


class SharesError(ShapeError, ValueError):
    """Shares and parameters of a Dirichlet distribution do not fit."""


@of_vectors("pdf")
def dirichlet(x: ArrayLike, alpha: ArrayLike) -> Value:
    """The Dirichlet distribution, of shares x that sum to 1.

    Its density is prod(x**(alpha - 1)) over the beta function of alpha.

    Args:
        x: Shares along the first axis; the last one may be left out. -inf where they are negative
            or do not sum to 1.
        alpha: Vector of positive numbers; nan if one is not positive.

    Raises:
        SharesError: if alpha is no vector, or x has another number of shares.

    >>> import axir.numpy as jnp
    >>> from axir.scipy.stats import dirichlet
    >>> dirichlet.pdf(jnp.array([0.5, 0.5]), jnp.array([1.0, 1.0]))
    Array(1., dtype=float32)
    """
    x, alpha = real_arguments("dirichlet.logpdf", x, alpha)
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


class CountsError(DTypeError, ValueError):
    """The counts of a multinomial distribution are not integers."""


@of_vectors("pmf")
def multinomial(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Value:
    """The multinomial distribution: how often each of several things happens in n trials.

    Args:
        x: Integers, how often each thing happened along the last axis; -inf where they do not sum
            to n.
        n: Number of trials.
        p: Probabilities of the things, along the last axis; nan where one is not in [0, 1].

    Raises:
        CountsError: if x or n is not of an integer dtype.

    >>> import axir.numpy as jnp
    >>> from axir.scipy.stats import multinomial
    >>> multinomial.pmf(jnp.array([2, 0]), 2, jnp.array([0.5, 0.5]))
    Array(0.25, dtype=float32)
    """
    (p,) = real_arguments("multinomial.logpmf", p)
    x, n = promote_numeric("multinomial.logpmf", x, n)
    if not dtypes.is_integer(x.dtype):
        raise CountsError(
            f"multinomial.logpmf: x and n must be integers, but together have dtype {x.dtype}.",
            "Convert with x.astype(int).",
        )
    is_possible = (jnp.sum(x, axis=-1) == n) & jnp.all(x >= 0, axis=-1)
    counts = jnp.where(is_possible[..., None], x, 0).astype(p.dtype)
    total = gammaln(n.astype(p.dtype) + 1)
    value = total + jnp.sum(xlogy(counts, p) - gammaln(counts + 1), axis=-1)
    value = jnp.where(is_possible, value, -math.inf)
    return jnp.where(jnp.all((p >= 0) & (p <= 1), axis=-1) & (n >= 0), value, math.nan)


class CovarianceError(ShapeError, ValueError):
    """A covariance matrix does not fit the mean."""


@of_vectors("pdf", without={"pdf": "allow_singular"})
def multivariate_normal(
    x: ArrayLike, mean: ArrayLike, cov: ArrayLike, allow_singular: bool | None = None
) -> Value:
    """The normal distribution of vectors, with a mean vector and a covariance matrix.

    Args:
        x: Vectors along the last axis; numbers if `mean` is one.
        mean: Vector or stack of vectors, or a number.
        cov: Matrix or stack of matrices of their size, or a number, the variance of all elements.
            nan where a matrix is not positive definite.
        allow_singular: Must be None or False.

    Raises:
        CovarianceError: for matrices of another size.
        NotImplementedError: for `allow_singular=True`.

    >>> import axir.numpy as jnp
    >>> from axir.scipy.stats import multivariate_normal
    >>> x = jnp.array([1.0, 2.0])
    >>> (multivariate_normal.logpdf(x, x, jnp.eye(2)) + jnp.log(2 * jnp.pi)).round(6)
    Array(0., dtype=float32)
    """
    if allow_singular:
        raise NotImplementedError(
            "multivariate_normal: the decomposition of Cholesky needs a covariance of full rank; "
            "project x on its range first."
        )
    x, mean, cov = real_arguments("multivariate_normal.logpdf", x, mean, cov)
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
