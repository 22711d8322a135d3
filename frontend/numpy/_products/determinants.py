"""Determinants: `det` and `slogdet` (found in `axir.numpy.linalg`)."""

from __future__ import annotations

from typing import NamedTuple

from axir.custom_derivatives import custom_jvp
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import DTypeLike, PyTree
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import ParameterError
from axir.dialect.ops.elementwise.arithmetic import abs as absolute
from axir.dialect.ops.elementwise.arithmetic import add, div, mul, rem, sign, sub
from axir.dialect.ops.elementwise.comparison import eq, ne, select_n
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.ops.elementwise.transcendental import log
from axir.dialect.ops.indexing.static_slicing import index_in_dim
from axir.dialect.ops.linalg.lu import lu
from axir.dialect.ops.linalg.matrices import (
    along_columns,
    along_rows,
    conjugated,
    diagonal,
    diagonal_mask,
    matmul,
    to_dtype,
    transposed,
)
from axir.dialect.ops.linalg.rules import check_matrix
from axir.dialect.ops.linalg.svd import svd
from axir.dialect.ops.reductions.reduce import reduce_prod, reduce_sum
from axir.dialect.ops.shape.broadcasting import broadcast_in_dim
from axir.dialect.ops.shape.constants import iota
from axir.dialect.program.rules import Value
from axir.numpy._arguments.promotion import promote_inexact

__all__ = ["SlogdetResult", "det", "slogdet"]


class SlogdetResult(NamedTuple):
    """Sign (for complex numbers phase) and logarithm of the modulus of a determinant."""

    sign: Value
    logabsdet: Value


def slogdet(a: ArrayLike, *, method: str | None = None) -> SlogdetResult:
    """Returns sign and logarithm of the modulus of determinants.

    Args:
        a: Square matrices of shape (..., n, n).
        method: None or 'lu'; 'qr' is accepted and gives the same.

    Returns:
        `SlogdetResult` of arrays of shape (...): for singular matrices 0 and minus infinity.

    Raises:
        ShapeError: unless the matrices are square.
        ParameterError: for an unknown method.

    >>> import axir.numpy as jnp
    >>> jnp.linalg.slogdet(jnp.diag(jnp.array([-1.0, 1.0])))
    SlogdetResult(sign=Array(-1., dtype=float32), logabsdet=Array(0., dtype=float32))
    """
    if method not in (None, "lu", "qr"):
        raise ParameterError(f"jnp.linalg.slogdet: method={method!r} must be None, 'lu' or 'qr'.")
    (a,) = promote_inexact("linalg.slogdet", a)
    check_matrix("jnp.linalg.slogdet", a.type, is_square=True)
    factors, pivots, _ = lu(a)
    main = diagonal(factors)
    axis = (main.ndim - 1,)
    parity = _parity(pivots, main.dtype)
    if dtypes.is_complex(a.dtype):
        modulus = absolute(main)
        is_null = eq(modulus, 0)
        safe = to_dtype(select_n(is_null, modulus, 1), main.dtype)
        phases = div(main, safe)
    else:
        modulus, phases = absolute(main), sign(main)
    return SlogdetResult(mul(parity, reduce_prod(phases, axis)), reduce_sum(log(modulus), axis))


def _parity(pivots: Value, dtype: DTypeLike) -> Value:
    """Returns 1 for an even number of exchanges and -1 for an odd one."""
    places = iota(pivots.dtype, pivots.shape[-1])
    is_exchange = ne(pivots, _along_vectors(places, pivots.shape))
    count = reduce_sum(convert_element_type(is_exchange, pivots.dtype), (pivots.ndim - 1,))
    return convert_element_type(sub(1, mul(2, rem(count, 2))), dtype)


def _along_vectors(vector: Value, shape: tuple[int, ...]) -> Value:
    """Broadcasts (n,) to (..., n)."""
    return broadcast_in_dim(vector, shape, (len(shape) - 1,))


def det(a: ArrayLike) -> Value:
    """Returns determinants.

    Args:
        a: Square matrices of shape (..., n, n).

    Returns:
        An array of shape (...). The gradient is the matrix of cofactors, of singular matrices too.

    Raises:
        ShapeError: unless the matrices are square.

    >>> import axir.numpy as jnp
    >>> jnp.linalg.det(jnp.array([[1.0, 2.0], [3.0, 4.0]]))
    Array(-2., dtype=float32)
    """
    (a,) = promote_inexact("linalg.det", a)
    check_matrix("jnp.linalg.det", a.type, is_square=True)
    if a.shape[-1] in (2, 3):
        return _expanded(a)
    return _det(a)


def _expanded(a: Value) -> Value:
    """Expands small determinants along the first row."""
    size = a.shape[-1]
    rows = [[_entry(a, i, j) for j in range(size)] for i in range(size)]
    if size == 2:
        return _minor(rows, 0, 1)
    below = rows[1:]
    first = mul(rows[0][0], _minor(below, 1, 2))
    second = mul(rows[0][1], _minor(below, 0, 2))
    third = mul(rows[0][2], _minor(below, 0, 1))
    return add(sub(first, second), third)


def _entry(a: Value, row: int, column: int) -> Value:
    return index_in_dim(index_in_dim(a, row, a.ndim - 2, False), column, a.ndim - 2, False)


def _minor(rows: list[list[Value]], left: int, right: int) -> Value:
    return sub(mul(rows[0][left], rows[1][right]), mul(rows[0][right], rows[1][left]))


@custom_jvp
def _det(a: Value) -> Value:
    factors, pivots, _ = lu(a)
    main = diagonal(factors)
    return mul(_parity(pivots, main.dtype), reduce_prod(main, (main.ndim - 1,)))


@_det.defjvp
def _det_jvp(primals: PyTree, tangents: PyTree) -> tuple[Value, Value]:
    (a,), (tangent,) = primals, tangents
    change = mul(_cofactors(a), tangent)
    return _det(a), reduce_sum(change, (a.ndim - 2, a.ndim - 1))


@custom_jvp
def _cofactors(a: Value) -> Value:
    """Returns the derivatives of determinants by their elements, of singular matrices too.

    For a = u s v^H they are the cofactors of s (products of the other singular values), times
    conj(u) and v^T and the determinants of u and v^H.
    """
    left, values, right = svd(a)
    shape = a.shape
    others = select_n(diagonal_mask(a, shape), along_rows(values, shape), 1)
    others = to_dtype(reduce_prod(others, (len(shape) - 1,)), a.dtype)
    phase = mul(_det(left), _det(right))
    scaled = mul(conjugated(left), along_rows(mul(others, _along_last(phase, others)), shape))
    return matmul(scaled, conjugated(right))


def _along_last(x: Value, like: Value) -> Value:
    """Broadcasts (...) to (..., n)."""
    return broadcast_in_dim(x, like.shape, tuple(range(x.ndim)))


@_cofactors.defjvp
def _cofactors_jvp(primals: PyTree, tangents: PyTree) -> tuple[Value, Value]:
    """With c the cofactors, dc = (tr(c^T da) c - c da^T c) / det a: of regular matrices."""
    (a,), (tangent,) = primals, tangents
    cofactors = _cofactors(a)
    trace = reduce_sum(mul(cofactors, tangent), (a.ndim - 2, a.ndim - 1))
    turned = matmul(matmul(cofactors, transposed(tangent)), cofactors)
    numerator = sub(mul(_everywhere(trace, a), cofactors), turned)
    return cofactors, div(numerator, _everywhere(_det(a), a))


def _everywhere(x: Value, like: Value) -> Value:
    return along_columns(_along_last(x, index_in_dim(like, 0, like.ndim - 1, False)), like.shape)
