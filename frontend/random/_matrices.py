"""Random vectors and matrices: correlated normal numbers, orthogonal matrices."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index

import axir.numpy as jnp
from axir._devices.placement import lies_where_told
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import DTypeLike, UserObject
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import MatrixShapeError, ParameterError
from axir.dialect.program.rules import Value
from axir.numpy._arguments.promotion import promote_inexact

from ._gaussian import draw_normal, normal
from ._parameters import check_key, check_shape, float_dtype, result_shape, to_value


def _square_root(covariance: Value, method: str) -> Value:
    """Returns a matrix a with a a^T equal to the covariance."""
    if method == "cholesky":
        return jnp.linalg.cholesky(covariance)
    if method == "eigh":
        values, vectors = jnp.linalg.eigh(covariance)
        return vectors * jnp.sqrt(values[..., None, :])
    left, values, _ = jnp.linalg.svd(covariance)
    return left * jnp.sqrt(values[..., None, :])


@lies_where_told
def multivariate_normal(
    key: ArrayLike,
    mean: ArrayLike,
    cov: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike = None,
    method: str = "cholesky",
    *,
    out_sharding: object = None,
) -> Value:
    """Draws vectors of correlated normal numbers.

    Differentiable in mean and covariance.

    Args:
        key: The key.
        mean: Means, of shape `(..., n)`.
        cov: Covariances, of shape `(..., n, n)`: symmetric and positive definite, or semidefinite
            where the method is not `"cholesky"`.
        shape: Leading axes of the result; by default the broadcast axes of mean and covariance.
        dtype: Float dtype; by default the mean's.
        method: `"cholesky"`, or `"eigh"` or `"svd"`, which take longer.
        out_sharding: Placement of the result: a sharding, or a `PartitionSpec`.

    Returns:
        Array of shape `(*shape, n)`; nan where the covariance has no such factor.

    Raises:
        MatrixShapeError: if the shapes of mean and covariance do not fit.
        ParameterError: for another method or dtype, or if they do not broadcast to the shape.

    >>> from axir import random
    >>> import axir.numpy as jnp
    >>> random.multivariate_normal(random.key(0), jnp.zeros(2), jnp.eye(2), (3,)).shape
    (3, 2)
    """
    name = "multivariate_normal"
    key = check_key(name, key)
    mean, cov = promote_inexact(name, to_value(name, "mean", mean), to_value(name, "cov", cov))
    if method not in ("cholesky", "eigh", "svd"):
        raise ParameterError(
            f"random.{name}: there is no method {method!r}.",
            "Pass 'cholesky', 'eigh' or 'svd'.",
        )
    dtype = float_dtype(name, mean.dtype if dtype is None else dtype)
    size = mean.shape[-1:]
    if mean.ndim < 1 or cov.shape[-2:] != size * 2:
        raise MatrixShapeError(
            f"random.{name}: mean has shape (..., n) and cov has shape (..., n, n), but they are "
            f"{mean.aval} and {cov.aval}."
        )
    extents = result_shape(name, shape, mean.shape[:-1], cov.shape[:-2])
    draws = draw_normal(key, (*extents, *size), dtype)
    factor = _square_root(cov, method)
    offsets = jnp.einsum("...ij,...j->...i", factor, draws)
    return jnp.add(jnp.broadcast_to(mean, offsets.shape), offsets)


@lies_where_told
def orthogonal(
    key: ArrayLike,
    n: int,
    shape: Sequence[int] = (),
    dtype: DTypeLike = None,
    m: int | None = None,
    *,
    out_sharding: object = None,
) -> Value:
    """Draws orthogonal matrices, uniformly: from the Haar measure.

    Source: F. Mezzadri, "How to generate random matrices from the classical compact groups", 2007.

    Args:
        key: The key.
        n: Number of rows.
        shape: Leading axes of the result.
        dtype: Float or complex dtype; complex matrices are unitary.
        m: Number of columns, n by default. If there are more rows, the columns are orthonormal,
            else the rows.
        out_sharding: Placement of the result: a sharding, or a `PartitionSpec`.

    Returns:
        Array of shape `(*shape, n, m)`.

    Raises:
        ParameterError: for another dtype, or negative sizes.

    >>> from axir import random
    >>> import axir.numpy as jnp
    >>> q = random.orthogonal(random.key(0), 3)
    >>> bool(jnp.allclose(q @ q.T, jnp.eye(3), atol=1e-6))
    True
    """
    key, extents = check_key("orthogonal", key), check_shape("orthogonal", shape)
    rows = _size("n", n)
    columns = rows if m is None else _size("m", m)
    if dtype is None or not dtypes.is_complex(dtypes.canonicalize_dtype(dtype)):
        dtype = float_dtype("orthogonal", dtype)
    draws = normal(key, (*extents, max(rows, columns), min(rows, columns)), dtype)
    q, r = jnp.linalg.qr(draws)
    # The signs that make the factorization unique, and thereby the matrix uniform.
    signs = jnp.sign(jnp.diagonal(r, axis1=-2, axis2=-1))
    result = q * signs[..., None, :]
    return jnp.matrix_transpose(result) if rows < columns else result


def _size(name: str, value: UserObject) -> int:
    size = index(value)
    if size < 0:
        raise ParameterError(f"random.orthogonal: {name}={value} must not be negative.")
    return size
