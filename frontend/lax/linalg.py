"""`axir.lax.linalg`: decompositions of matrices, and equations with special ones.

Matrices are in the last two axes; any axes before are batch axes. Elsewhere: functions that
promote dtypes and broadcast (`axir.numpy.linalg`, `axir.scipy.linalg`).

>>> import axir.numpy as jnp
>>> from axir.lax import linalg
>>> linalg.cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]]))
Array([[2., 0.],
       [1., 2.]], dtype=float32)
"""

from __future__ import annotations

import enum

import axir.numpy as jnp
from axir._primitive_names import primitive_named
from axir.dialect.core.annotations import UserObject
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import ParameterError, ShapeError
from axir.dialect.ops.elementwise.arithmetic import add, mul
from axir.dialect.ops.elementwise.family import as_value
from axir.dialect.ops.linalg.cholesky import cholesky, symmetrized
from axir.dialect.ops.linalg.eig import eig
from axir.dialect.ops.linalg.eigh import eigh
from axir.dialect.ops.linalg.lu import lu, lu_pivots_to_permutation
from axir.dialect.ops.linalg.matrices import (
    adjoint,
    along_rows,
    lower_part,
    matmul,
    part,
    to_dtype,
    transposed,
)
from axir.dialect.ops.linalg.qr import householder_product, qr
from axir.dialect.ops.linalg.schur import hessenberg, schur, tridiagonal
from axir.dialect.ops.linalg.svd import svd
from axir.dialect.ops.linalg.triangular_solve import triangular_solve
from axir.dialect.ops.linalg.tridiagonal_solve import tridiagonal_solve
from axir.dialect.ops.shape.rearranging import reshape
from axir.dialect.program.op_table import OPS
from axir.dialect.program.rules import Value

__all__ = [
    "EigImplementation", "EighImplementation", "SvdAlgorithm", "cholesky", "cholesky_p",
    "cholesky_update", "eig", "eig_p", "eigh", "eigh_p", "hessenberg", "hessenberg_p",
    "householder_product", "householder_product_p", "lu", "lu_p", "lu_pivots_to_permutation",
    "lu_pivots_to_permutation_p", "ormqr", "qdwh", "qr", "qr_p", "schur", "schur_p", "svd", "svd_p",
    "symmetric_product", "triangular_solve", "triangular_solve_p", "tridiagonal", "tridiagonal_p",
    "tridiagonal_solve", "tridiagonal_solve_p",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


cholesky_p = OPS["cholesky"]
eig_p = OPS["eig"]
eigh_p = OPS["eigh"]
hessenberg_p = OPS["hessenberg"]
householder_product_p = OPS["householder_product"]
lu_p = OPS["lu"]
lu_pivots_to_permutation_p = OPS["lu_pivots_to_permutation"]
qr_p = OPS["qr"]
schur_p = OPS["schur"]
svd_p = OPS["svd"]
triangular_solve_p = OPS["triangular_solve"]
tridiagonal_p = OPS["tridiagonal"]
tridiagonal_solve_p = OPS["tridiagonal_solve"]


class EigImplementation(enum.Enum):
    """Names of implementations that `eig` accepts; all mean LAPACK."""

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


class EighImplementation(enum.Enum):
    """Names of implementations that `eigh` accepts; the target decides which one it is."""

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


class SvdAlgorithm(enum.Enum):
    """Names of algorithms that `svd` accepts; the target decides which one it is."""

    DEFAULT = "default"
    QR = "qr"
    JACOBI = "jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"


def cholesky_update(r_matrix: object, w_vector: object) -> Value:
    """Returns the upper triangle r' with r'^T r' = r^T r + w w^T.

    Args:
        r_matrix: Upper triangles of shape (..., n, n), real.
        w_vector: Vectors of shape (..., n).

    Raises:
        ShapeError: if the shapes do not fit.

    >>> import axir.numpy as jnp
    >>> cholesky_update(jnp.eye(1) * 3.0, jnp.array([4.0]))
    Array([[5.]], dtype=float32)
    """
    r, w = as_value(r_matrix), as_value(w_vector)
    if r.ndim < 2 or r.shape[-1] != r.shape[-2] or w.shape != r.shape[:-1]:
        raise ShapeError(
            f"cholesky_update takes matrices (..., n, n) and vectors (..., n), not {r.aval} and "
            f"{w.aval}."
        )
    column = reshape(w, (*w.shape, 1))
    total = add(matmul(adjoint(r), r), matmul(column, adjoint(column)))
    return transposed(cholesky(total, symmetrize_input=False))


def symmetric_product(
    a_matrix: object,
    c_matrix: object,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    symmetrize_output: bool = False,
) -> Value:
    """Returns alpha a a^T + beta c.

    Args:
        a_matrix: Matrices of shape (..., n, k).
        c_matrix: Symmetric matrices of shape (..., n, n).
        alpha, beta: Factors.
        symmetrize_output: Whether the lower triangle is repeated above the diagonal.

    Raises:
        ShapeError: if the shapes do not fit.

    >>> import axir.numpy as jnp
    >>> symmetric_product(jnp.array([[1.0], [2.0]]), jnp.zeros((2, 2)))
    Array([[1., 2.],
           [2., 4.]], dtype=float32)
    """
    a, c = as_value(a_matrix), as_value(c_matrix)
    if a.ndim < 2 or c.shape != (*a.shape[:-1], a.shape[-2]):
        raise ShapeError(
            f"symmetric_product takes matrices (..., n, k) and (..., n, n), not {a.aval} and "
            f"{c.aval}."
        )
    result = add(mul(alpha, matmul(a, transposed(a))), mul(beta, c))
    if symmetrize_output:
        result = add(lower_part(result), transposed(lower_part(result, -1)))
    return result


def ormqr(
    a: ArrayLike, taus: UserObject, c: ArrayLike, *, left: bool = True, transpose: bool = False
) -> Value:
    """Multiplies a matrix by a product of Householder reflections.

    Args:
        a: Vectors of the reflections, of shape (..., m, k), as in `householder_product`.
        taus: Their factors, of shape (..., k).
        c: Matrices, of shape (..., m, n), or (..., n, m) if not `left`.
        left: Whether the product stands on the left.
        transpose: Whether its adjoint is meant.

    Raises:
        ShapeError: if the shapes do not fit.

    >>> import axir.numpy as jnp
    >>> ormqr(jnp.array([[0.0], [1.0]]), jnp.array([1.0]), jnp.eye(2))
    Array([[ 0., -1.],
           [-1.,  0.]], dtype=float32)
    """
    a, c = as_value(a), as_value(c)
    height = a.shape[-2]
    if c.shape[-2 if left else -1] != height:
        raise ShapeError(
            f"ormqr: c of shape {c.shape} does not fit reflections of {height} rows (left={left})."
        )
    # Columns of zeros complete the vectors to a square matrix.
    wide = mul(0, matmul(a, adjoint(a)))
    packed = OPS["concatenate"].bind(
        a, part(wide, (0, height), (0, height - a.shape[-1])), dimension=a.ndim - 1
    )
    q = householder_product(packed, taus)
    q = adjoint(q) if transpose else q
    return matmul(q, c) if left else matmul(c, q)


def qdwh(
    x: ArrayLike,
    *,
    is_hermitian: bool = False,
    max_iterations: int | None = None,
    eps: float | None = None,
    dynamic_shape: tuple[int, int] | None = None,
) -> tuple[Value, Value, Value, Value]:
    """Factors matrices into u h, with orthonormal columns of u and Hermitian h.

    Args:
        x: Matrices of shape (..., m, n), m at least n.
        is_hermitian: Ignored.
        max_iterations, eps: Ignored: the factors come from singular vectors.
        dynamic_shape: Must be None.

    Returns:
        u, h, the number of iterations (always 1) and whether they converged (always True).

    Raises:
        ShapeError: for matrices with more columns than rows.
        ParameterError: for a dynamic shape.

    >>> import axir.numpy as jnp
    >>> qdwh(jnp.array([[-2.0]]))[1]
    Array([[2.]], dtype=float32)
    """
    if dynamic_shape is not None:
        raise ParameterError("qdwh: dynamic_shape must be None.", "Slice the matrix.")
    x = as_value(x)
    if x.ndim < 2 or x.shape[-2] < x.shape[-1]:
        raise ShapeError(
            f"qdwh takes matrices with at least as many rows as columns, not {x.aval}."
        )
    unitary, hermitian = polar_factors(x)
    return unitary, hermitian, jnp.asarray(1), jnp.asarray(True)


def polar_factors(x: Value) -> tuple[Value, Value]:
    """Returns u and h with u h = x, u with orthonormal columns (or rows), h Hermitian."""
    left, values, right = svd(x, full_matrices=False)
    scaled = mul(to_dtype(along_rows(values, adjoint(right).shape), x.dtype), adjoint(right))
    return matmul(left, right), symmetrized(matmul(scaled, right))


def __getattr__(name: str) -> UserObject:
    """Returns the primitives that are composed of others, such as `ormqr_p`."""
    if name in ("cholesky_update_p", "ormqr_p", "symmetric_product_p"):
        return primitive_named(name)
    raise AttributeError(f"module 'axir.lax.linalg' has no attribute {name!r}")
