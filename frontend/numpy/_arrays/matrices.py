"""Matrices of a given form: identity, diagonals, triangles."""

from __future__ import annotations

from collections.abc import Callable
from operator import index

import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import DTypeLike
from axir.dialect.core.array import Array, ArrayLike, from_numpy
from axir.dialect.core.errors import ShapeError
from axir.dialect.core.symbolic_dims import is_open
from axir.dialect.ops.elementwise.arithmetic import add
from axir.dialect.ops.elementwise.comparison import eq, ge, lt, select_n
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.ops.elementwise.family import full
from axir.dialect.ops.shape.broadcasting import broadcast_in_dim
from axir.dialect.ops.shape.constants import broadcasted_iota, iota_beside
from axir.dialect.ops.shape.padding import pad
from axir.dialect.ops.shape.rearranging import reshape
from axir.dialect.program.rules import Value
from axir.numpy._arguments.promotion import array_argument, constant, dtype_argument
from axir.numpy._shape.diagonals import diagonal

from .creation import canonical_shape, to_device

__all__ = [
    "diag", "diagflat", "eye", "identity", "tri", "tril", "triu",
]  # fmt: skip


def eye(
    N: int, M: int | None = None, k: int = 0, dtype: DTypeLike = None, *, device: object = None
) -> Array:
    """Returns a matrix with ones on a diagonal and zeros elsewhere.

    Args:
        N: Number of rows.
        M: Number of columns, by default as many.
        k: Which diagonal: positive ones lie above the main one.
        dtype: Its dtype, by default the default float dtype.
        device: Where to put it.

    >>> import axir.numpy as jnp
    >>> jnp.eye(2, 3, k=1)
    Array([[0., 1., 0.],
           [0., 0., 1.]], dtype=float32)
    """
    rows, columns = _extents("eye", N, M)
    new_dtype = dtype_argument("eye", float if dtype is None else dtype)
    if is_open((rows, columns)):
        numbers = [broadcasted_iota(np.int32, (rows, columns), d) for d in (0, 1)]
        is_on = eq(add(numbers[0], constant(index(k), np.dtype(np.int32))), numbers[1])
        return convert_element_type(is_on, new_dtype)
    host = np.eye(rows, columns, index(k), dtype=np.bool_).astype(new_dtype)
    return to_device(from_numpy(host), device)


def _extents(name: str, rows: object, columns: object) -> tuple[int, int]:
    shape = canonical_shape(name, (rows, rows if columns is None else columns))
    return shape[0], shape[1]


def identity(n: int, dtype: DTypeLike = None) -> Array:
    """Returns the identity matrix of `n` rows.

    >>> import axir.numpy as jnp
    >>> jnp.identity(2)
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    return eye(n, dtype=dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike = None) -> Array:
    """Returns a matrix with ones at and below a diagonal and zeros above.

    Args:
        N: Number of rows.
        M: Number of columns, by default as many.
        k: Which diagonal: positive ones lie above the main one.
        dtype: Its dtype, by default the default float dtype.

    >>> import axir.numpy as jnp
    >>> jnp.tri(2)
    Array([[1., 0.],
           [1., 1.]], dtype=float32)
    """
    rows, columns = _extents("tri", N, M)
    new_dtype = dtype_argument("tri", float if dtype is None else dtype)
    if is_open((rows, columns)):
        return tril(full((rows, columns), 1, new_dtype), k)
    return from_numpy(np.tri(rows, columns, index(k), dtype=np.bool_).astype(new_dtype))


def _triangle(name: str, m: ArrayLike, k: int, keeps_lower: bool) -> Value:
    m = array_argument(name, m)
    if m.ndim < 2:
        raise ShapeError(
            f"jnp.{name} takes arrays of at least two axes, not {m.type}.",
            "Add an axis with x[None, :].",
        )
    highest = index(k) if keeps_lower else index(k) - 1
    mask = _compared_diagonals(m, m.shape[-2:], highest, ge if keeps_lower else lt)
    kept = broadcast_in_dim(mask, m.shape, (m.ndim - 2, m.ndim - 1))
    return select_n(kept, constant(0, m.dtype, m.dtype != dtypes.bool_), m)


def _compared_diagonals(
    x: Value, shape: tuple[int, ...], k: int, compare: Callable[[Value, Value], Value]
) -> Value:
    """Returns the mask `compare(row + k, column)` of a matrix's elements."""
    rows, columns = iota_beside(x, (shape[0], 1), 0), iota_beside(x, (1, shape[1]), 1)
    return compare(add(rows, np.int32(k)), columns)


def tril(m: ArrayLike, k: int = 0) -> Value:
    """Returns the lower triangle of matrices, with zeros above.

    Args:
        m: Array; its last two axes are the matrices.
        k: The highest diagonal that stays: positive ones lie above the main one.

    Raises:
        ShapeError: for fewer than two axes.

    >>> import axir.numpy as jnp
    >>> jnp.tril(jnp.ones((2, 2)))
    Array([[1., 0.],
           [1., 1.]], dtype=float32)
    """
    return _triangle("tril", m, k, True)


def triu(m: ArrayLike, k: int = 0) -> Value:
    """Returns the upper triangle of matrices, with zeros below.

    Args:
        m: Array; its last two axes are the matrices.
        k: The lowest diagonal that stays: positive ones lie above the main one.

    Raises:
        ShapeError: for fewer than two axes.

    >>> import axir.numpy as jnp
    >>> jnp.triu(jnp.ones((2, 2)))
    Array([[1., 1.],
           [0., 1.]], dtype=float32)
    """
    return _triangle("triu", m, k, False)


def diag(v: ArrayLike, k: int = 0) -> Value:
    """Returns the diagonal of a matrix, or a matrix with a given diagonal.

    Args:
        v: A vector, which becomes a diagonal, or a matrix.
        k: Which diagonal: positive ones lie above the main one.

    Raises:
        ShapeError: for an array of another rank.

    >>> import axir.numpy as jnp
    >>> jnp.diag(jnp.array([1, 2]))
    Array([[1, 0],
           [0, 2]], dtype=int32)
    """
    v = array_argument("diag", v)
    if v.ndim == 1:
        return _from_diagonal(v, index(k))
    if v.ndim == 2:
        return diagonal(v, k)
    raise ShapeError(f"jnp.diag takes a vector or a matrix, not {v.type}.")


def _from_diagonal(v: Value, k: int) -> Value:
    size = v.shape[0] + (k if k > 0 else -k)
    zero = full((), 0, v.dtype)
    # Row r has its element in column r + k: shift the vector, then keep one diagonal.
    padded = pad(v, zero, [(max(k, 0), max(-k, 0), 0)])
    rows = broadcast_in_dim(padded, (size, size), (1,))
    kept = _compared_diagonals(v, (size, size), k, eq)
    return select_n(kept, zero, rows)


def diagflat(v: ArrayLike, k: int = 0) -> Value:
    """Returns a matrix with all elements of an array on a diagonal, in row-major order.

    >>> import axir.numpy as jnp
    >>> jnp.diagflat(jnp.array([[1], [2]]))
    Array([[1, 0],
           [0, 2]], dtype=int32)
    """
    v = array_argument("diagflat", v)
    return diag(reshape(v, (v.size,)), k)
