"""`axir.scipy.linalg`: SciPy's linear algebra with JAX's names, batching and derivatives.

Integers become floats. The arguments `overwrite_a`, `overwrite_b` and `check_finite` are ignored:
arrays are immutable, and nonfinite values give NaN. Here: decompositions. Elsewhere: equations
(`_linear_systems.py`), functions of matrices (`_matrix_functions.py`) and matrices of special forms
(`_special_matrices.py`), which this module exports as well.

>>> import axir.numpy as jnp
>>> from axir.scipy import linalg
>>> linalg.solve_triangular(jnp.array([[2.0, 1.0], [0.0, 4.0]]), jnp.array([3.0, 4.0]))
Array([1., 1.], dtype=float32)
"""

from __future__ import annotations

import axir.numpy as jnp
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import UserObject
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import MatrixShapeError, ParameterError
from axir.dialect.ops.linalg import matrices
from axir.dialect.ops.linalg.cholesky import cholesky as lower_triangle
from axir.dialect.ops.linalg.eigh import eigh as hermitian_eigen
from axir.dialect.ops.linalg.qr import householder_product
from axir.dialect.ops.linalg.qr import qr as orthogonal_factors
from axir.dialect.ops.linalg.rules import check_matrix
from axir.dialect.ops.linalg.schur import hessenberg as packed_hessenberg
from axir.dialect.ops.linalg.schur import schur as schur_factors
from axir.dialect.ops.linalg.triangular_solve import triangular_solve
from axir.dialect.program.rules import Value
from axir.lax.linalg import polar_factors
from axir.numpy import linalg as numpy_linalg
from axir.numpy import tril, triu
from axir.numpy._arguments.promotion import promote_inexact

from ._linear_systems import (
    cho_factor,
    cho_solve,
    cholesky,
    det,
    inv,
    lu,
    lu_factor,
    lu_solve,
    matrix_argument,
    solve,
    solve_sylvester,
    solve_triangular,
)
from ._matrix_functions import expm, expm_frechet, funm, sqrtm
from ._special_matrices import (
    block_diag,
    circulant,
    companion,
    convolution_matrix,
    dft,
    fiedler,
    fiedler_companion,
    hadamard,
    hankel,
    helmert,
    hilbert,
    invhilbert,
    invpascal,
    leslie,
    pascal,
    toeplitz,
)

__all__ = [
    "block_diag", "cho_factor", "cho_solve", "cholesky", "circulant", "companion",
    "convolution_matrix", "det", "dft", "eigh", "eigh_tridiagonal", "expm", "expm_frechet",
    "fiedler", "fiedler_companion", "funm", "hadamard", "hankel", "helmert", "hessenberg",
    "hilbert", "inv", "invhilbert", "invpascal", "leslie", "lu", "lu_factor", "lu_solve", "pascal",
    "polar", "qr", "qr_multiply", "rsf2csf", "schur", "solve", "solve_sylvester",
    "solve_triangular", "sqrtm", "svd", "toeplitz", "tril", "triu",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


# Orthogonal factors ----------------------------------------------------------------------------


def qr(
    a: ArrayLike,
    overwrite_a: bool = False,
    lwork: object = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> tuple[Value, ...]:
    """Factors matrices into q r, with pivoting into a[:, p] = q r.

    Args:
        a: Matrices of shape (..., m, n).
        overwrite_a, lwork, check_finite: Ignored.
        mode: 'full': q has m columns; 'economic': min(m, n); 'r': only r is returned.
        pivoting: Whether columns are exchanged; then p is returned as well.

    Raises:
        MatrixShapeError: for fewer than two axes.
        ParameterError: for another mode.

    >>> import axir.numpy as jnp
    >>> from axir.scipy.linalg import qr
    >>> qr(jnp.array([[3.0], [4.0]]), mode="economic")[1]
    Array([[-5.]], dtype=float32)
    """
    if mode not in ("full", "economic", "r"):
        raise ParameterError(f"scipy.linalg.qr: mode={mode!r} must be 'full', 'economic' or 'r'.")
    a = matrix_argument("qr", a, is_square=False)
    results = orthogonal_factors(a, pivoting=pivoting, full_matrices=mode != "economic")
    return tuple(results[1:] if mode == "r" else results)


def qr_multiply(
    a: ArrayLike,
    c: ArrayLike,
    mode: str = "right",
    pivoting: bool = False,
    conjugate: bool = False,
    overwrite_a: bool = False,
    overwrite_c: bool = False,
) -> tuple[Value, ...]:
    """Returns c q (or q c) and r of the factors of a.

    Args:
        a: A matrix of shape (m, n).
        c: A vector or a matrix.
        mode: 'right': c q; 'left': q c.
        pivoting: Whether columns are exchanged; then p is returned as well.
        conjugate: Whether q is conjugated.
        overwrite_a, overwrite_c: Ignored.

    Raises:
        MatrixShapeError: if the shapes do not fit.
        ParameterError: for another mode.

    >>> import axir.numpy as jnp
    >>> from axir.scipy.linalg import qr_multiply
    >>> qr_multiply(jnp.array([[3.0], [4.0]]), jnp.array([5.0, 0.0]))[0]
    Array([-3.], dtype=float32)
    """
    if mode not in ("right", "left"):
        raise ParameterError(f"scipy.linalg.qr_multiply: mode={mode!r} must be 'right' or 'left'.")
    a, c = promote_inexact("scipy.linalg.qr_multiply", a, c)
    check_matrix("scipy.linalg.qr_multiply", a.type)
    q, *rest = orthogonal_factors(a, pivoting=pivoting, full_matrices=False)
    q = matrices.conjugated(q) if conjugate else q
    if mode == "left":
        fits = c.shape[0] == q.shape[1]
    else:
        fits = c.shape[-1] == q.shape[0]
    if not fits:
        raise MatrixShapeError(
            f"scipy.linalg.qr_multiply: c of shape {c.shape} does not fit q of shape {q.shape}."
        )
    product = numpy_linalg.matmul(q, c) if mode == "left" else numpy_linalg.matmul(c, q)
    return (product, *rest)


def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> UserObject:
    """Factors matrices into u diag(s) v^H, as `jnp.linalg.svd` does.

    >>> import axir.numpy as jnp
    >>> from axir.scipy.linalg import svd
    >>> svd(jnp.array([[-2.0]]), compute_uv=False)
    Array([2.], dtype=float32)
    """
    results = numpy_linalg.svd(a, full_matrices, compute_uv)
    return tuple(results) if compute_uv else results


def polar(
    a: ArrayLike,
    side: str = "right",
    *,
    method: str = "qdwh",
    eps: float | None = None,
    max_iterations: int | None = None,
) -> tuple[Value, Value]:
    """Factors a matrix into u p (or p u), with a unitary u and a positive semidefinite p.

    Args:
        a: Matrices of shape (..., m, n).
        side: 'right': u p; 'left': p u.
        method: 'qdwh' or 'svd', which give the same.
        eps, max_iterations: Ignored.

    Raises:
        MatrixShapeError: for fewer than two axes.
        ParameterError: for another side or method.

    >>> import axir.numpy as jnp
    >>> from axir.scipy.linalg import polar
    >>> polar(jnp.array([[-2.0]]))
    (Array([[-1.]], dtype=float32), Array([[2.]], dtype=float32))
    """
    if side not in ("right", "left") or method not in ("qdwh", "svd"):
        raise ParameterError(
            f"scipy.linalg.polar: side={side!r} must be 'right' or 'left', and method={method!r} "
            "'qdwh' or 'svd'."
        )
    a = matrix_argument("polar", a, is_square=False)
    if side == "right":
        return polar_factors(a)
    unitary, positive = polar_factors(matrices.adjoint(a))
    return matrices.adjoint(unitary), positive


# Eigenvalues -----------------------------------------------------------------------------------


def eigh(
    a: ArrayLike,
    b: ArrayLike | None = None,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: None = None,
    type: int = 1,
    check_finite: bool = True,
) -> UserObject:
    """Returns eigenvalues, and eigenvectors, of Hermitian matrices.

    Args:
        a: Matrices of shape (..., n, n).
        b: Positive definite matrices for the equation a v = w b v, or None for a v = w v.
        lower: Whether the lower triangle of a is read, else the upper one.
        eigvals_only: Whether only the eigenvalues are returned.
        overwrite_a, overwrite_b, turbo, check_finite: Ignored.
        eigvals: Must be None.
        type: 1: a v = w b v; 2: a b v = w v; 3: b a v = w v.

    Raises:
        MatrixShapeError: unless the matrices are square.
        ParameterError: for a subset of the eigenvalues, or another type.

    >>> import axir.numpy as jnp
    >>> from axir.scipy.linalg import eigh
    >>> eigh(jnp.array([[2.0]]), jnp.array([[4.0]]), eigvals_only=True)
    Array([0.5], dtype=float32)
    """
    if eigvals is not None or type not in (1, 2, 3):
        raise ParameterError(
            f"scipy.linalg.eigh: eigvals={eigvals} must be None, and type={type} 1, 2 or 3.",
            "Slice the results.",
        )
    a = matrix_argument("eigh", a)
    if b is None:
        vectors, values = hermitian_eigen(a, lower=lower, symmetrize_input=False)
        return values if eigvals_only else (values, vectors)
    a, b = promote_inexact("scipy.linalg.eigh", a, b)
    check_matrix("scipy.linalg.eigh", b.type, is_square=True)
    a, b = (matrices.hermitian_of(x, lower) for x in (a, b))
    values, vectors = _generalized(a, b, type)
    return values if eigvals_only else (values, vectors)


def _generalized(a: Value, b: Value, kind: int) -> tuple[Value, Value]:
    """Reduces to an ordinary problem by b = l l^H: Golub & Van Loan (2013), 8.7.2."""
    factor = lower_triangle(b, symmetrize_input=False)
    conjugates = dtypes.is_complex(factor.dtype)
    back = {"lower": True, "transpose_a": True, "conjugate_a": conjugates}
    if kind == 1:
        half = triangular_solve(factor, a, left_side=True, lower=True)
        middle = triangular_solve(factor, half, left_side=False, **back)
    else:
        middle = matrices.matmul(matrices.matmul(matrices.adjoint(factor), a), factor)
    vectors, values = hermitian_eigen(middle)
    if kind == 3:
        return values, matrices.matmul(factor, vectors)
    return values, triangular_solve(factor, vectors, left_side=True, **back)


def eigh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    *,
    eigvals_only: bool = False,
    select: str = "a",
    select_range: tuple[float, float] | None = None,
    tol: float | None = None,
    key: ArrayLike | None = None,
) -> UserObject:
    """Returns eigenvalues, and eigenvectors, of real symmetric (or Hermitian) tridiagonal matrices.

    Args:
        d: Main diagonals, of shape (n,).
        e: Diagonals above it, of shape (n - 1,).
        eigvals_only: Whether only the eigenvalues are returned.
        select: 'a': all; 'i': those with the indices of `select_range`, both included.
        select_range: First and last index.
        tol, key: Ignored.

    Raises:
        MatrixShapeError: if the shapes do not fit.
        ParameterError: for another selection.

    >>> import axir.numpy as jnp
    >>> from axir.scipy.linalg import eigh_tridiagonal
    >>> eigh_tridiagonal(jnp.array([2.0, 2.0]), jnp.array([1.0]), eigvals_only=True)
    Array([1., 3.], dtype=float32)
    """
    d, e = promote_inexact("scipy.linalg.eigh_tridiagonal", d, e)
    if d.ndim != 1 or e.shape != (max(d.shape[0] - 1, 0),):
        raise MatrixShapeError(
            f"scipy.linalg.eigh_tridiagonal takes d (n,) and e (n - 1,), but got {d.shape} and "
            f"{e.shape}."
        )
    if select not in ("a", "i") or (select == "i" and select_range is None):
        raise ParameterError(
            f"scipy.linalg.eigh_tridiagonal: select={select!r} must be 'a', or 'i' with a "
            "select_range."
        )
    dense = jnp.diag(d) + jnp.diag(e, 1) + jnp.diag(matrices.conjugated(e), -1)
    vectors, values = hermitian_eigen(dense)
    if select == "i" and select_range is not None:
        first, last = (int(place) for place in select_range)
        values, vectors = values[first : last + 1], vectors[:, first : last + 1]
    return values if eigvals_only else (values, vectors)


def schur(a: ArrayLike, output: str = "real") -> tuple[Value, Value]:
    """Factors matrices into z t z^H, on the CPU only.

    Args:
        a: Matrices of shape (..., n, n).
        output: 'real': t is real where a is, with 2 by 2 blocks; 'complex': t is a triangle.

    Raises:
        MatrixShapeError: unless the matrices are square.
        ParameterError: for another output.

    >>> import axir.numpy as jnp
    >>> from axir.scipy.linalg import schur
    >>> schur(jnp.array([[1.0, 2.0], [0.0, 3.0]]))[0]
    Array([[1., 2.],
           [0., 3.]], dtype=float32)
    """
    if output not in ("real", "complex"):
        raise ParameterError(f"scipy.linalg.schur: output={output!r} must be 'real' or 'complex'.")
    a = matrix_argument("schur", a)
    if output == "complex":
        a = matrices.to_dtype(a, _complex_dtype(a))
    triangle, vectors = schur_factors(a)
    return triangle, vectors


def _complex_dtype(a: Value) -> UserObject:
    is_wide = dtypes.real_dtype(a.dtype) == dtypes.float64
    return dtypes.complex128 if is_wide else dtypes.complex64


def rsf2csf(T: object, Z: object, check_finite: bool = True) -> tuple[Value, Value]:
    """Turns a real Schur form into a complex one, on the CPU only.

    Args:
        T: The quasi-triangle, of shape (n, n).
        Z: Its vectors, of shape (n, n).
        check_finite: Ignored.

    Raises:
        MatrixShapeError: unless the matrices are square.

    >>> import axir.numpy as jnp
    >>> from axir.scipy.linalg import rsf2csf
    >>> rsf2csf(jnp.eye(2), jnp.eye(2))[0].real
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    t, z = promote_inexact("scipy.linalg.rsf2csf", T, Z)
    for x in (t, z):
        check_matrix("scipy.linalg.rsf2csf", x.type, is_square=True)
    dtype = _complex_dtype(t)
    triangle, vectors = schur_factors(matrices.to_dtype(t, dtype))
    return triangle, matrices.matmul(matrices.to_dtype(z, dtype), vectors)


def hessenberg(
    a: ArrayLike, *, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> UserObject:
    """Factors matrices into q h q^H, where h is zero below the first subdiagonal; on the CPU only.

    Args:
        a: Matrices of shape (..., n, n).
        calc_q: Whether q is returned as well.
        overwrite_a, check_finite: Ignored.

    Raises:
        MatrixShapeError: unless the matrices are square and not empty.

    >>> import axir.numpy as jnp
    >>> from axir.scipy.linalg import hessenberg
    >>> hessenberg(jnp.eye(2))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    a = matrix_argument("hessenberg", a)
    packed, taus = packed_hessenberg(a)
    h = matrices.upper_part(packed, -1)
    if not calc_q:
        return h
    size = a.shape[-1]
    inner = householder_product(matrices.part(packed, (1, size), (0, size - 1)), taus)
    q = matrices.identity(a, a.shape)
    if size > 1:
        q = q.at[..., 1:, 1:].set(inner)
    return h, q
