"""`gaussian_kde`: a density estimated from samples (found in `axir.scipy.stats`)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import axir.numpy as jnp
from axir import random
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import ShapeLike, UserObject
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import DTypeError, ParameterError, ShapeError
from axir.dialect.program.rules import Value
from axir.numpy._arguments.promotion import array_argument, promote_inexact
from axir.scipy.linalg import solve_triangular
from axir.scipy.special import logsumexp, ndtr
from axir.tree_util import register_pytree_node_class

__all__ = ["gaussian_kde"]

Bandwidth: TypeAlias = str | ArrayLike | Callable[["gaussian_kde"], ArrayLike] | None
_CHILDREN = ("neff", "dataset", "weights", "covariance", "inv_cov")


class DensityShapeError(ShapeError, ValueError):
    """Samples, weights, points or distributions of a kernel density do not fit each other."""


@register_pytree_node_class
class gaussian_kde:
    """A density estimated from samples: the mean of normal densities around them.

    It is a tree, so it can be an argument and a result of transformed functions.

    Args:
        dataset: Samples: a vector, or a matrix of shape (d, n) of n vectors.
        bw_method: The width of the normal densities, as a part of the samples' covariance's root:
            'scott' (the default) for neff**(-1 / (d + 4)), 'silverman' for
            (neff (d + 2) / 4)**(-1 / (d + 4)), a number, or a function of this object.
        weights: Vector of the samples' weights; equal by default.

    Attributes:
        dataset: Matrix of shape (d, n).
        weights: Vector of n numbers that sum to 1.
        neff: Effective number of samples, 1 / sum(weights**2).
        covariance: Covariance of the normal densities, of shape (d, d).
        inv_cov: Its inverse.

    Raises:
        DTypeError: for complex samples.
        DensityShapeError: for fewer than two numbers, or weights of another number.
        ParameterError: for another `bw_method`.

    >>> import axir.numpy as jnp
    >>> from axir.scipy.stats import gaussian_kde
    >>> density = gaussian_kde(jnp.array([-1.0, 1.0, 0.0]))
    >>> density.integrate_box_1d(-jnp.inf, 0.0).round(4)
    Array(0.5, dtype=float32)
    """

    __slots__ = _CHILDREN
    neff: Value
    dataset: Value
    weights: Value
    covariance: Value
    inv_cov: Value

    def __init__(
        self, dataset: ArrayLike, bw_method: Bandwidth = None, weights: ArrayLike | None = None
    ):
        samples = jnp.atleast_2d(array_argument("gaussian_kde", dataset))
        _require_real("samples", samples)
        if samples.size < 2:
            raise DensityShapeError("gaussian_kde: the dataset must have more than one element.")
        size = samples.shape[-1]
        if weights is None:
            (samples,) = promote_inexact("gaussian_kde", samples)
            shares = jnp.full(size, 1 / size, samples.dtype)
        else:
            samples, shares = promote_inexact("gaussian_kde", samples, weights)
            shares = jnp.atleast_1d(shares)
            if shares.shape != (size,):
                raise DensityShapeError(
                    f"gaussian_kde: {size} samples need as many weights in a vector, but the "
                    f"weights have shape {shares.shape}."
                )
            shares = shares / jnp.sum(shares)
        self._set("dataset", samples)
        self._set("weights", shares)
        self._set("neff", 1 / jnp.sum(jnp.square(shares)))
        scale = jnp.square(self._bandwidth(bw_method))
        covariance = jnp.atleast_2d(jnp.cov(samples, bias=False, aweights=shares))
        self._set("covariance", covariance * scale)
        self._set("inv_cov", jnp.linalg.inv(covariance) / scale)

    def _bandwidth(self, method: Bandwidth) -> ArrayLike:
        power = -1 / (self.d + 4)
        if method is None or (isinstance(method, str) and method == "scott"):
            return self.neff**power
        if isinstance(method, str) and method == "silverman":
            return (self.neff * ((self.d + 2) / 4)) ** power
        if callable(method):
            return method(self)
        if not isinstance(method, str) and jnp.ndim(method) == 0:
            return method
        raise ParameterError(
            f"gaussian_kde: bw_method {method!r} is neither 'scott' nor 'silverman', a number, or "
            "a function.",
            "Pass one of them.",
        )

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"gaussian_kde objects are immutable: {name} cannot be set.")

    def tree_flatten(self) -> tuple[tuple[UserObject, ...], None]:
        """Returns the arrays."""
        return tuple(getattr(self, name) for name in _CHILDREN), None

    @classmethod
    def tree_unflatten(cls, aux_data: None, children: tuple[object, ...]) -> gaussian_kde:
        """Makes a density of its arrays."""
        density = cls.__new__(cls)
        for name, child in zip(_CHILDREN, children, strict=True):
            density._set(name, child)
        return density

    @property
    def d(self) -> int:
        """Number of dimensions."""
        return self.dataset.shape[0]

    @property
    def n(self) -> int:
        """Number of samples."""
        return self.dataset.shape[1]

    # Densities -----------------------------------------------------------------------------

    def evaluate(self, points: ArrayLike) -> Value:
        """Returns the density at points, a matrix of shape (d, m) or, for d = 1, a vector."""
        exponents = self._exponents(points)
        return jnp.sum(self.weights * jnp.exp(exponents), axis=-1)

    __call__ = evaluate

    def pdf(self, x: ArrayLike) -> Value:
        """Returns the density at points; see `evaluate`."""
        return self.evaluate(x)

    def logpdf(self, x: ArrayLike) -> Value:
        """Returns the logarithm of the density at points."""
        return logsumexp(self._exponents(x), axis=-1, b=self.weights)

    def _exponents(self, points: ArrayLike) -> Value:
        """Returns the logarithms of the normal densities, for points along the first axis."""
        points, samples, precision = promote_inexact(
            "gaussian_kde", self._as_points(points), self.dataset, self.inv_cov
        )
        root = jnp.linalg.cholesky(precision)
        points, samples = points.T @ root, samples.T @ root
        squares = jnp.sum(jnp.square(points[:, None] - samples), axis=-1)
        constant = jnp.sum(jnp.log(jnp.diagonal(root))) - 0.5 * self.d * math.log(2 * math.pi)
        return constant - 0.5 * squares

    def _as_points(self, points: ArrayLike) -> Value:
        x = jnp.atleast_2d(array_argument("gaussian_kde", points))
        _require_real("points", x)
        if x.shape[0] != self.d and x.shape == (1, self.d):
            x = x.T  # one point
        if x.ndim != 2 or x.shape[0] != self.d:
            raise DensityShapeError(
                f"gaussian_kde: the samples have {self.d} dimensions, but the points have shape "
                f"{x.shape}.",
                "Points are columns: pass x.T.",
            )
        return x

    # Integrals -----------------------------------------------------------------------------

    def integrate_gaussian(self, mean: ArrayLike, cov: ArrayLike) -> Value:
        """Returns the integral of this density times a normal one."""
        center, spread = jnp.atleast_1d(jnp.squeeze(mean)), jnp.atleast_2d(cov)
        if center.shape != (self.d,) or spread.shape != (self.d, self.d):
            raise DensityShapeError(
                f"gaussian_kde.integrate_gaussian: a normal density in {self.d} dimensions has "
                f"a mean and a covariance of shapes {(self.d,)} and {(self.d, self.d)}, but got "
                f"{center.shape} and {spread.shape}."
            )
        return self._overlap(center[:, None], spread, jnp.ones(1, self.dataset.dtype))

    def integrate_box_1d(self, low: ArrayLike, high: ArrayLike) -> Value:
        """Returns the integral from one number to another, for d = 1."""
        if self.d != 1 or jnp.ndim(low) or jnp.ndim(high):
            raise DensityShapeError(
                "gaussian_kde.integrate_box_1d takes two numbers, and samples of one dimension, "
                f"which have {self.d}."
            )
        deviation, samples = jnp.sqrt(self.covariance[0, 0]), self.dataset[0]
        shares = ndtr((high - samples) / deviation) - ndtr((low - samples) / deviation)
        return jnp.sum(self.weights * shares)

    def integrate_kde(self, other: gaussian_kde) -> Value:
        """Returns the integral of the product of this density and another."""
        if other.d != self.d:
            raise DensityShapeError(
                f"gaussian_kde.integrate_kde: the densities have {self.d} and {other.d} dimensions."
            )
        return self._overlap(other.dataset, other.covariance, other.weights)

    def _overlap(self, centers: Value, covariance: Value, weights: Value) -> Value:
        """Integrates the product with normal densities of one covariance around centers."""
        root = jnp.linalg.cholesky(self.covariance + covariance)
        own, others = (solve_triangular(root, x, lower=True) for x in (self.dataset, centers))
        squares = jnp.sum(jnp.square(own[:, :, None] - others[:, None, :]), axis=0)
        size = math.sqrt(2 * math.pi) ** self.d * jnp.prod(jnp.diagonal(root))
        return self.weights @ jnp.exp(-0.5 * squares) @ weights / size

    def integrate_box(
        self, low_bounds: ArrayLike, high_bounds: ArrayLike, maxpts: int | None = None
    ) -> Value:
        """Raises: in more dimensions a box has no closed integral; `integrate_box_1d` has."""
        raise NotImplementedError(
            "gaussian_kde.integrate_box: only intervals in one dimension, by integrate_box_1d."
        )

    def set_bandwidth(self, bw_method: Bandwidth = None) -> None:
        """Raises: an object does not change; make another one with `bw_method`."""
        raise NotImplementedError(
            "gaussian_kde.set_bandwidth: make another one with gaussian_kde(dataset, bw_method)."
        )

    # Samples -------------------------------------------------------------------------------

    def resample(self, key: Value, shape: ShapeLike = ()) -> Value:
        """Draws from the density.

        Args:
            key: Random key.
            shape: Of the draws.

        Returns:
            Array of shape (d, *shape).
        """
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        index_key, deviation_key = random.split(key)
        index = random.choice(index_key, self.n, shape=shape, p=self.weights)
        normal = random.normal(deviation_key, (*shape, self.d), self.dataset.dtype)
        deviations = normal @ jnp.linalg.cholesky(self.covariance).T
        return self.dataset[:, index] + jnp.moveaxis(deviations, -1, 0)


def _require_real(what: str, x: Value) -> None:
    if dtypes.is_complex(x.dtype):
        raise DTypeError(
            f"gaussian_kde does not accept complex {what}.",
            "Make two dimensions of real and imaginary part.",
        )
