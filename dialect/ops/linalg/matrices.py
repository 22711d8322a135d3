"""Small functions of matrices in the last two axes of arrays; rules and lowerings share them.

They are traceable, and take any batch axes in front. Their masks are ops instead of constants, so
that a program over large matrices stays small.
"""

from __future__ import annotations

import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import AnyDtype
from axir.dialect.core.array import as_array, scalar
from axir.dialect.core.symbolic_dims import smaller
from axir.dialect.ops.contraction.dot_general import dot_general
from axir.dialect.ops.elementwise.arithmetic import add, div, mul, sub
from axir.dialect.ops.elementwise.comparison import eq, ge, select_n
from axir.dialect.ops.elementwise.conversion import complex_, conj, imag, real
from axir.dialect.ops.indexing.static_slicing import slice as static_slice
from axir.dialect.ops.reductions.reduce import reduce_sum
from axir.dialect.ops.shape.broadcasting import broadcast_in_dim
from axir.dialect.ops.shape.rearranging import transpose
from axir.dialect.program.op_table import OPS
from axir.dialect.program.rules import Value
from axir.dialect.program.tracer import Tracer


def positions(like: Value, shape: tuple[int, ...], dimension: int) -> Value:
    """Returns int32 numbers that count along a dimension, as an op if `like` is traced."""
    iota = OPS["iota"]
    params = {"dtype": dtypes.int32, "shape": shape, "dimension": dimension}
    if type(like) is Tracer:
        return like.owner.record(iota, (), params)
    return iota.bind(**params)


def filled(like: Value, shape: tuple[int, ...], value: complex, dtype: AnyDtype = None) -> Value:
    """Returns an array of equal elements with the dtype of `like`, as an op if `like` is traced."""
    one = scalar(value, like.dtype if dtype is None else dtype, weak_type=False)
    broadcast = OPS["broadcast_in_dim"]
    params = {"shape": shape, "broadcast_dimensions": ()}
    if type(like) is Tracer:
        return like.owner.record(broadcast, (one,), params)
    return broadcast.bind(one, **params)


def diagonal_mask(like: Value, shape: tuple[int, ...]) -> Value:
    """Returns a mask that is true where the row number equals the column number."""
    rank = len(shape)
    return eq(positions(like, shape, rank - 2), positions(like, shape, rank - 1))


def identity(like: Value, shape: tuple[int, ...]) -> Value:
    """Returns matrices with ones on the diagonal, of the dtype of `like`."""
    if type(like) is not Tracer:
        matrix = np.eye(*shape[-2:], dtype=like.dtype)
        return as_array(matrix if len(shape) == 2 else np.broadcast_to(matrix, shape).copy())
    ones = filled(like, shape, 1)
    return select_n(diagonal_mask(like, shape), mul(ones, 0), ones)


def lower_part(x: Value, offset: int = 0) -> Value:
    """Returns x with zeros above the diagonal number `offset`."""
    if type(x) is not Tracer:
        return as_array(np.tril(x.host(), offset))  # type: ignore[attr-defined]
    return select_n(ge(_below_main(x), -offset), 0, x)


def upper_part(x: Value, offset: int = 0) -> Value:
    """Returns x with zeros below the diagonal number `offset`."""
    if type(x) is not Tracer:
        return as_array(np.triu(x.host(), offset))  # type: ignore[attr-defined]
    return select_n(ge(-offset, _below_main(x)), 0, x)


def _below_main(x: Value) -> Value:
    """Returns the distance of each element below the main diagonal."""
    return sub(positions(x, x.shape, x.ndim - 2), positions(x, x.shape, x.ndim - 1))


def transposed(x: Value) -> Value:
    """Exchanges the last two axes."""
    return transpose(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def conjugated(x: Value) -> Value:
    """Returns the conjugate; real numbers stay."""
    return conj(x) if dtypes.is_complex(x.dtype) else x


def adjoint(x: Value) -> Value:
    """Returns the conjugate transpose."""
    return conjugated(transposed(x))


def real_part(x: Value) -> Value:
    """Returns the real part; real numbers stay."""
    return real(x) if dtypes.is_complex(x.dtype) else x


def imaginary_only(x: Value) -> Value:
    """Returns x without its real part."""
    imaginary = imag(x)
    return complex_(filled(imaginary, imaginary.shape, 0), imaginary)


def to_dtype(x: Value, dtype: np.dtype) -> Value:
    """Turns real numbers into complex ones if the dtype is complex."""
    if dtypes.is_complex(dtype) and not dtypes.is_complex(x.dtype):
        return complex_(x, filled(x, x.shape, 0))
    return x


def matmul(lhs: Value, rhs: Value) -> Value:
    """Multiplies matrices with equal batch axes."""
    batch = tuple(range(lhs.ndim - 2))
    return dot_general(lhs, rhs, (((lhs.ndim - 1,), (lhs.ndim - 2,)), (batch, batch)))


def diagonal(x: Value) -> Value:
    """Returns the main diagonals."""
    size = smaller(*x.shape[-2:])
    x = part(x, (0, size), (0, size))
    return reduce_sum(select_n(diagonal_mask(x, x.shape), 0, x), (x.ndim - 1,))


def on_diagonal(x: Value) -> Value:
    """Returns x with zeros off the diagonal."""
    return select_n(diagonal_mask(x, x.shape), 0, x)


def inverse_gaps(gaps: Value) -> Value:
    """Returns 1 / gaps, and 0 on the diagonal, because the gaps are zero there."""
    is_diagonal = diagonal_mask(gaps, gaps.shape)
    return select_n(is_diagonal, div(1, select_n(is_diagonal, gaps, 1)), 0)


def along_rows(vector: Value, shape: tuple[int, ...]) -> Value:
    """Broadcasts (..., n) to (..., m, n): an entry for each column."""
    rank = len(shape)
    return broadcast_in_dim(vector, shape, (*range(rank - 2), rank - 1))


def along_columns(vector: Value, shape: tuple[int, ...]) -> Value:
    """Broadcasts (..., m) to (..., m, n): an entry for each row."""
    return broadcast_in_dim(vector, shape, tuple(range(len(shape) - 1)))


def part(x: Value, rows: tuple[int, int], columns: tuple[int, int]) -> Value:
    """Returns a block, from a row to before a row, from a column to before a column."""
    batch = x.shape[:-2]
    starts = (*(0 for _ in batch), rows[0], columns[0])
    limits = (*batch, rows[1], columns[1])
    if not any(starts) and limits == tuple(x.shape):
        return x
    return static_slice(x, starts, limits)


def hermitian_of(x: Value, is_lower: bool) -> Value:
    """Returns the Hermitian matrix with a given triangle (and its real diagonal)."""
    triangle = lower_part(x, -1) if is_lower else upper_part(x, 1)
    main = to_dtype(real_part(on_diagonal(x)), x.dtype)
    return add(add(triangle, adjoint(triangle)), main)
