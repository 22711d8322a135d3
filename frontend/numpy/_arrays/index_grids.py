"""Index arrays for parts of matrices, open meshes, and Vandermonde matrices."""

from __future__ import annotations

from operator import index

import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.array import Array, ArrayLike, from_numpy
from axir.dialect.core.errors import ParameterError
from axir.dialect.core.symbolic_dims import as_extent, is_symbolic_dim
from axir.dialect.ops.elementwise.family import full
from axir.dialect.ops.reductions.cumulative import cumprod
from axir.dialect.ops.shape.broadcasting import broadcast_in_dim
from axir.dialect.ops.shape.concatenation import concatenate
from axir.dialect.ops.shape.constants import iota
from axir.dialect.ops.shape.rearranging import reshape, rev
from axir.dialect.program.rules import Value
from axir.numpy._arguments.promotion import array_argument

__all__ = [
    "diag_indices", "diag_indices_from", "ix_", "tril_indices", "tril_indices_from",
    "triu_indices", "triu_indices_from", "vander",
]  # fmt: skip


def _indices(arrays: tuple[np.ndarray, ...]) -> tuple[Array, ...]:
    dtype = dtypes.canonicalize_dtype(np.int64)
    return tuple(from_numpy(x.astype(dtype)) for x in arrays)


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """Returns the rows and columns of the elements on and below a diagonal.

    Args:
        n: Number of rows.
        k: Which diagonal; positive ones lie above the main diagonal.
        m: Number of columns; by default n.

    >>> import axir.numpy as jnp
    >>> jnp.tril_indices(2)
    (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    """
    rows, columns = _indices(np.tril_indices(index(n), index(k), m if m is None else index(m)))
    return rows, columns


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """Returns the rows and columns of the elements on and above a diagonal; see `tril_indices`.

    >>> import axir.numpy as jnp
    >>> jnp.triu_indices(2)
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    rows, columns = _indices(np.triu_indices(index(n), index(k), m if m is None else index(m)))
    return rows, columns


def tril_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """Returns `tril_indices` for the shape of a matrix.

    Raises:
        ParameterError: unless it has two axes.
    """
    rows, columns = _matrix_shape("tril_indices_from", arr)
    return tril_indices(rows, k, columns)


def triu_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """Returns `triu_indices` for the shape of a matrix.

    Raises:
        ParameterError: unless it has two axes.
    """
    rows, columns = _matrix_shape("triu_indices_from", arr)
    return triu_indices(rows, k, columns)


def _matrix_shape(name: str, arr: ArrayLike) -> tuple[int, int]:
    shape = arr.shape if hasattr(arr, "shape") else array_argument(name, arr).shape
    if len(shape) != 2:
        raise ParameterError(
            f"jnp.{name}: only 2-D inputs are accepted, but the shape is {shape}.",
            "Pass a matrix.",
        )
    rows, columns = shape
    return rows, columns


def diag_indices(n: int, ndim: int = 2) -> tuple[Array, ...]:
    """Returns the indices of the main diagonal of an array of `ndim` axes of extent n.

    Raises:
        ParameterError: for negative numbers.

    >>> import axir.numpy as jnp
    >>> jnp.diag_indices(2)
    (Array([0, 1], dtype=int32), Array([0, 1], dtype=int32))
    """
    n = as_extent(n)
    if n < 0 or index(ndim) < 0:
        raise ParameterError(
            f"jnp.diag_indices: n={n} and ndim={ndim} must be non-negative.", "Pass extents."
        )
    if is_symbolic_dim(n):
        return (iota(dtypes.canonicalize_dtype(np.int64), n),) * ndim
    return _indices((np.arange(n),) * ndim)


def diag_indices_from(arr: ArrayLike) -> tuple[Array, ...]:
    """Returns `diag_indices` for an array with axes of equal extents.

    Raises:
        ParameterError: if there are fewer than two axes, or their extents differ.
    """
    arr = array_argument("diag_indices_from", arr)
    if arr.ndim < 2 or len(set(arr.shape)) != 1:
        raise ParameterError(
            f"jnp.diag_indices_from: takes arrays of at least two axes of equal extent, not "
            f"{arr.aval}.",
            "Pass a square matrix.",
        )
    return diag_indices(arr.shape[0], arr.ndim)


def ix_(*args: object) -> tuple[Value, ...]:
    """Shapes vectors of indices so that together they select a grid of elements.

    Bool vectors stand for the places where they are True.

    Raises:
        ParameterError: for arrays of other ranks than 1.

    >>> import axir.numpy as jnp
    >>> rows, columns = jnp.ix_(jnp.array([0, 2]), jnp.array([1, 3, 4]))
    >>> rows.shape, columns.shape
    ((2, 1), (1, 3))
    """
    vectors = []
    for position, x in enumerate(args):
        if isinstance(x, (tuple, list)):
            x = np.asarray(x)
            x = x.astype(np.int32) if not x.size else x
        x = array_argument("ix_", x, position)
        if x.ndim != 1:
            raise ParameterError(
                f"jnp.ix_: arguments must be 1-dimensional, but argument {position} is {x.aval}.",
                "Flatten it.",
            )
        if x.dtype == dtypes.bool_:
            (x,) = _indices(np.nonzero(np.asarray(x)))
        vectors.append(x)
    count = len(vectors)
    return tuple(
        reshape(x, tuple(x.size if d == place else 1 for d in range(count)))
        for place, x in enumerate(vectors)
    )


def vander(x: ArrayLike, N: int | None = None, increasing: bool = False) -> Value:
    """Returns the matrix of the powers of a vector's elements.

    Args:
        x: Vector.
        N: Number of columns; by default as many as rows.
        increasing: Whether the powers increase from left to right.

    Raises:
        ParameterError: if x is not a vector, or N negative.

    >>> import axir.numpy as jnp
    >>> jnp.vander(jnp.array([2, 3]), 3)
    Array([[4, 2, 1],
           [9, 3, 1]], dtype=int32)
    """
    x = array_argument("vander", x)
    if x.ndim != 1:
        raise ParameterError(
            f"jnp.vander: x must be a one-dimensional array, but it is {x.aval}.", "Flatten it."
        )
    count = x.shape[0] if N is None else index(N)
    if count < 0:
        raise ParameterError(f"jnp.vander: N={N} must be non-negative.")
    rows = x.shape[0]
    ones = full((rows, min(count, 1)), 1, x.dtype)
    repeated = broadcast_in_dim(x, (rows, max(count - 1, 0)), (0,))
    powers = cumprod(concatenate([ones, repeated], 1), 1)
    return powers if increasing else rev(powers, (1,))
