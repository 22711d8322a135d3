"""Diagonals of matrices, and their sums."""

from __future__ import annotations

from collections.abc import Sequence

from axir.dialect.core.annotations import DTypeLike
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import ParameterError
from axir.dialect.core.symbolic_dims import is_open, is_same, larger, smaller
from axir.dialect.ops.indexing.static_slicing import slice as lax_slice
from axir.dialect.ops.indexing.static_slicing import slice_in_dim
from axir.dialect.ops.shape.concatenation import concatenate
from axir.dialect.ops.shape.rearranging import reshape, transpose
from axir.dialect.program.rules import Value
from axir.numpy._arguments.checks import canonical_axes, reject_out
from axir.numpy._arguments.promotion import array_argument
from axir.numpy._reductions.reductions import converted
from axir.numpy._reductions.reductions import sum as sum_elements

__all__ = ["diagonal", "trace"]


def diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Value:
    """Returns a diagonal of each matrix in two axes, as the last axis of the result.

    Args:
        a: Array of at least two axes.
        offset: Which diagonal; positive ones lie above the main diagonal.
        axis1, axis2: Axes of the rows and of the columns.

    Raises:
        ParameterError: if there are fewer than two axes.
        AxisError: if the axes are out of range or equal.

    >>> import axir.numpy as jnp
    >>> jnp.diagonal(jnp.array([[1, 2], [3, 4]]))
    Array([1, 4], dtype=int32)
    """
    a = array_argument("diagonal", a)
    if a.ndim < 2:
        raise ParameterError(
            f"jnp.diagonal: needs an array of at least two axes, not {a.aval}.",
            "jnp.diag makes a matrix of a vector.",
        )
    axes = canonical_axes("diagonal", (axis1, axis2), a.ndim)
    return converted(diagonal_of(a, axes, int(offset)), a.dtype)


def diagonal_of(a: Value, axes: Sequence[int], offset: int = 0) -> Value:
    """Returns the diagonal along two axes as the last axis, by one strided slice."""
    kept = [d for d in range(a.ndim) if d not in axes]
    order = (*kept, *axes)
    a = a if order == tuple(range(a.ndim)) else transpose(a, order)
    lead, (rows, columns) = a.shape[:-2], a.shape[-2:]
    first_row, first_column = max(-offset, 0), max(offset, 0)
    length = larger(smaller(rows - first_row, columns - first_column), 0)
    is_square = is_open((length, columns)) and not is_same(length, columns)
    width = length if is_square else columns - smaller(first_column, columns)
    if not length:
        return reshape(_corner(a, 0, 0, 0, 0), (*lead, 0))
    a = _corner(a, first_row, length, first_column, width)
    flat = reshape(a, (*lead, length * width))
    if length == 1 and width == 1:
        return flat
    if is_square:  # the diagonal is the first column of rows that are longer by one
        rest = slice_in_dim(flat, 0, length, axis=-1)
        longer = reshape(concatenate([flat, rest], flat.ndim - 1), (*lead, length, length + 1))
        return reshape(slice_in_dim(longer, 0, 1, axis=-1), (*lead, length))
    start = (0,) * flat.ndim
    return lax_slice(flat, start, flat.shape, (*([1] * len(lead)), width + 1))


def _corner(a: Value, row: int, rows: int, column: int, columns: int) -> Value:
    lead = a.shape[:-2]
    shape = (*lead, rows, columns)
    if shape == a.shape:
        return a
    start = (*([0] * len(lead)), row, column)
    return lax_slice(a, start, (*lead, row + rows, column + columns))


def trace(
    a: ArrayLike,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: DTypeLike = None,
    out: None = None,
) -> Value:
    """Sums a diagonal of each matrix in two axes; see `diagonal` and `sum`.

    >>> import axir.numpy as jnp
    >>> jnp.trace(jnp.array([[1, 2], [3, 4]]))
    Array(5, dtype=int32)
    """
    reject_out("trace", out)
    return sum_elements(diagonal(a, offset, axis1, axis2), axis=-1, dtype=dtype)
