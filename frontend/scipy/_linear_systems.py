"""Linear equations by factors: Cholesky, LU, triangles (found in `axir.scipy.linalg`)."""

from __future__ import annotations

import axir.numpy as jnp
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import UserObject
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import MatrixShapeError, ParameterError
from axir.dialect.core.symbolic_dims import smaller
from axir.dialect.ops.elementwise.arithmetic import mul
from axir.dialect.ops.elementwise.comparison import eq, select_n
from axir.dialect.ops.linalg import matrices
from axir.dialect.ops.linalg.cholesky import cholesky as lower_triangle
from axir.dialect.ops.linalg.lu import lu as packed_lu
from axir.dialect.ops.linalg.lu import lu_pivots_to_permutation, unit_lower
from axir.dialect.ops.linalg.lu_solve import inverse_of, solve_with
from axir.dialect.ops.linalg.rules import check_matrix
from axir.dialect.ops.linalg.triangular_solve import triangular_solve
from axir.dialect.ops.shape.rearranging import reshape
from axir.dialect.program.rules import Value
from axir.numpy import linalg as numpy_linalg
from axir.numpy._arguments.checks import accepts_older_keyword
from axir.numpy._arguments.promotion import broadcast_shape, broadcast_value, promote_inexact

__all__ = [
    "cho_factor", "cho_solve", "cholesky", "det", "inv", "lu", "lu_factor", "lu_solve", "solve",
    "solve_sylvester", "solve_triangular",
]  # fmt: skip


def matrix_argument(name: str, a: ArrayLike, is_square: bool = True) -> Value:
    """Returns an argument as (square) matrices of an inexact dtype."""
    (a,) = promote_inexact(f"scipy.linalg.{name}", a)
    check_matrix(f"scipy.linalg.{name}", a.type, is_square=is_square)
    return a


def _pair(name: str, a: ArrayLike, b: ArrayLike) -> tuple[Value, Value, bool]:
    """Promotes square matrices and right-hand sides, which get columns and a common batch."""
    a, b = promote_inexact(f"scipy.linalg.{name}", a, b)
    check_matrix(f"scipy.linalg.{name}", a.type, is_square=True)
    if b.ndim == 0:
        raise MatrixShapeError(
            f"scipy.linalg.{name}: b must have at least one axis, but is a scalar."
        )
    is_vector = b.ndim == 1
    b = reshape(b, (*b.shape, 1)) if is_vector else b
    if b.shape[-2] != a.shape[-1]:
        raise MatrixShapeError(
            f"scipy.linalg.{name}: b of shape {b.shape} does not fit matrices of shape {a.shape}.",
            "b has the shape (n,) or (..., n, m).",
        )
    batch = broadcast_shape(f"scipy.linalg.{name}", [a.shape[:-2], b.shape[:-2]])
    a, b = (broadcast_value(x, (*batch, *x.shape[-2:])) for x in (a, b))
    return a, b, is_vector


def _vector_again(x: Value, is_vector: bool) -> Value:
    return reshape(x, x.shape[:-1]) if is_vector else x


# Cholesky --------------------------------------------------------------------------------------


def cholesky(
    a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Value:
    """Returns the triangle u with u^H u = a, or l with l l^H = a.

    Args:
        a: Hermitian positive definite matrices of shape (..., n, n).
        lower: Whether l is returned.
        overwrite_a, check_finite: Ignored.

    Returns:
        Triangles of the shape of a; NaN for matrices that are not positive definite.

    Raises:
        MatrixShapeError: unless the matrices are square.

    >>> import axir.numpy as jnp
    >>> from axir.scipy.linalg import cholesky
    >>> cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]]))
    Array([[2., 1.],
           [0., 2.]], dtype=float32)
    """
    a = matrix_argument("cholesky", a)
    factor = lower_triangle(a if lower else matrices.adjoint(a), symmetrize_input=False)
    return factor if lower else matrices.adjoint(factor)


def cho_factor(
    a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Value, bool]:
    """Returns the triangle of `cholesky` and `lower`, for `cho_solve`.

    Raises:
        MatrixShapeError: unless the matrices are square.

    >>> import axir.numpy as jnp
    >>> from axir.scipy.linalg import cho_factor, cho_solve
    >>> cho_solve(cho_factor(4.0 * jnp.eye(2)), jnp.ones(2))
    Array([0.25, 0.25], dtype=float32)
    """
    return cholesky(a, lower), lower


def cho_solve(
    c_and_lower: tuple[UserObject, bool],
    b: ArrayLike,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Value:
    """Solves a x = b by the triangle that `cho_factor` returned.

    Raises:
        MatrixShapeError: if the shapes do not fit.

    >>> import axir.numpy as jnp
    >>> from axir.scipy.linalg import cho_solve
    >>> cho_solve((2.0 * jnp.eye(2), True), jnp.ones(2))
    Array([0.25, 0.25], dtype=float32)
    """
    c, lower = c_and_lower
    c, b, is_vector = _pair("cho_solve", c, b)
    is_complex = dtypes.is_complex(c.dtype)
    for transposes in (not lower, bool(lower)):
        b = triangular_solve(
            c, b, left_side=True, lower=lower, transpose_a=transposes,
            conjugate_a=transposes and is_complex,
        )  # fmt: skip
    return _vector_again(b, is_vector)


# Equations -------------------------------------------------------------------------------------


def solve_triangular(
    a: ArrayLike,
    b: ArrayLike,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    debug: object = None,
    check_finite: bool = True,
) -> Value:
    """Solves op(a) x = b for triangular matrices.

    Args:
        a: Matrices of shape (..., n, n); only one triangle is read.
        b: A vector of n elements, or right-hand sides of shape (..., n, m).
        trans: 0 or 'N': op(a) is a; 1 or 'T': its transpose; 2 or 'C': its adjoint.
        lower: Whether the lower triangle is read, else the upper one.
        unit_diagonal: Whether the diagonal is taken as ones.
        overwrite_b, debug, check_finite: Ignored.

    Raises:
        MatrixShapeError: if the shapes do not fit.
        ParameterError: for another `trans`.

    >>> import axir.numpy as jnp
    >>> from axir.scipy.linalg import solve_triangular
    >>> solve_triangular(jnp.array([[2.0, 0.0], [1.0, 1.0]]), jnp.array([2.0, 3.0]), lower=True)
    Array([1., 2.], dtype=float32)
    """
    if trans not in (0, 1, 2, "N", "T", "C"):
        raise ParameterError(
            f"scipy.linalg.solve_triangular: trans={trans!r} must be 0, 1, 2, 'N', 'T' or 'C'."
        )
    a, b, is_vector = _pair("solve_triangular", a, b)
    x = triangular_solve(
        a,
        b,
        left_side=True,
        lower=lower,
        transpose_a=trans not in (0, "N"),
        conjugate_a=trans in (2, "C"),
        unit_diagonal=unit_diagonal,
    )
    return _vector_again(x, is_vector)


@accepts_older_keyword("sym_pos", "assume_a", lambda is_positive: "pos" if is_positive else "gen")
def solve(
    a: ArrayLike,
    b: ArrayLike,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    debug: bool = False,
    check_finite: bool = True,
    assume_a: str = "gen",
) -> Value:
    """Solves a x = b.

    Args:
        a: Square matrices of shape (..., n, n).
        b: A vector of n elements, or right-hand sides of shape (..., n, m).
        lower: For positive definite matrices, whether the lower triangle is read.
        overwrite_a, overwrite_b, debug, check_finite: Ignored.
        assume_a: 'gen', 'sym', 'her' or 'pos': the known structure of the matrices.

    Raises:
        MatrixShapeError: if the shapes do not fit.
        ParameterError: for another `assume_a`.

    >>> import axir.numpy as jnp
    >>> from axir.scipy.linalg import solve
    >>> solve(4.0 * jnp.eye(2), jnp.ones(2), assume_a="pos")
    Array([0.25, 0.25], dtype=float32)
    """
    if assume_a not in ("gen", "sym", "her", "pos"):
        raise ParameterError(
            f"scipy.linalg.solve: assume_a={assume_a!r} must be 'gen', 'sym', 'her' or 'pos'."
        )
    if assume_a == "pos":
        return cho_solve(cho_factor(a, lower=lower), b)
    return numpy_linalg.solve(a, b)


def inv(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Value:
    """Returns inverses, as `jnp.linalg.inv` does.

    >>> import axir.numpy as jnp
    >>> from axir.scipy.linalg import inv
    >>> inv(jnp.array([[2.0]]))
    Array([[0.5]], dtype=float32)
    """
    return numpy_linalg.inv(a)


def det(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Value:
    """Returns determinants, as `jnp.linalg.det` does.

    >>> import axir.numpy as jnp
    >>> from axir.scipy.linalg import det
    >>> det(jnp.array([[2.0]]))
    Array(2., dtype=float32)
    """
    return numpy_linalg.det(a)


def solve_sylvester(
    A: ArrayLike, B: object, C: object, *, method: str = "schur", tol: float = 1e-8
) -> Value:
    """Solves a x + x b = c.

    Args:
        A: Matrix of shape (m, m).
        B: Matrix of shape (n, n).
        C: Matrix of shape (m, n).
        method: 'schur' or 'eigen', which give the same.
        tol: Ignored.

    Returns:
        x, of shape (m, n): found from the m n linear equations, so that it works everywhere and
        has derivatives.

    Raises:
        MatrixShapeError: if the shapes do not fit.
        ParameterError: for another method.

    >>> import axir.numpy as jnp
    >>> from axir.scipy.linalg import solve_sylvester
    >>> solve_sylvester(jnp.eye(1), jnp.eye(1), jnp.array([[4.0]]))
    Array([[2.]], dtype=float32)
    """
    if method not in ("schur", "eigen"):
        raise ParameterError(f"scipy.linalg.solve_sylvester: method={method!r} is unknown.")
    a, b, c = promote_inexact("scipy.linalg.solve_sylvester", A, B, C)
    if a.ndim != 2 or b.ndim != 2 or a.shape != c.shape[:1] * 2 or b.shape != c.shape[1:] * 2:
        raise MatrixShapeError(
            f"scipy.linalg.solve_sylvester takes a (m, m), b (n, n) and c (m, n), but got "
            f"{a.shape}, {b.shape} and {c.shape}."
        )
    rows, columns = c.shape
    left = jnp.kron(a, jnp.eye(columns, dtype=a.dtype))
    right = jnp.kron(jnp.eye(rows, dtype=a.dtype), matrices.transposed(b))
    x = numpy_linalg.solve(left + right, reshape(c, (rows * columns,)))
    return reshape(x, (rows, columns))


# LU --------------------------------------------------------------------------------------------


def lu_factor(
    a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Value, Value]:
    """Returns the packed factors of matrices and their pivots, for `lu_solve`.

    Raises:
        MatrixShapeError: for fewer than two axes.

    >>> import axir.numpy as jnp
    >>> from axir.scipy.linalg import lu_factor
    >>> lu_factor(jnp.array([[1.0, 2.0], [4.0, 4.0]]))[1]
    Array([1, 1], dtype=int32)
    """
    factors, pivots, _ = packed_lu(matrix_argument("lu_factor", a, is_square=False))
    return factors, pivots


def lu_solve(
    lu_and_piv: tuple[UserObject, UserObject],
    b: ArrayLike,
    trans: int = 0,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Value:
    """Solves op(a) x = b by what `lu_factor` returned.

    Args:
        lu_and_piv: Packed factors (..., n, n) and pivots (..., n).
        b: A vector of n elements, or right-hand sides of shape (..., n, m).
        trans: 0: op(a) is a; 1: its transpose; 2: its adjoint.
        overwrite_b, check_finite: Ignored.

    Raises:
        MatrixShapeError: if the shapes do not fit.
        ParameterError: for another `trans`.

    >>> import axir.numpy as jnp
    >>> from axir.scipy.linalg import lu_factor, lu_solve
    >>> lu_solve(lu_factor(jnp.array([[0.0, 2.0], [4.0, 0.0]])), jnp.array([2.0, 4.0]))
    Array([1., 1.], dtype=float32)
    """
    if trans not in (0, 1, 2):
        raise ParameterError(f"scipy.linalg.lu_solve: trans={trans!r} must be 0, 1 or 2.")
    factors, pivots = lu_and_piv
    factors, b, is_vector = _pair("lu_solve", factors, b)
    permutation = lu_pivots_to_permutation(pivots, factors.shape[-1])
    permutation = broadcast_value(permutation, factors.shape[:-1])
    conjugates = trans == 2 and dtypes.is_complex(b.dtype)
    b = matrices.conjugated(b) if conjugates else b
    x = solve_with(factors, permutation, b, is_transposed=trans != 0)
    return _vector_again(matrices.conjugated(x) if conjugates else x, is_vector)


def lu(
    a: ArrayLike, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Value, ...]:
    """Factors matrices into p l u, with a permutation p.

    Args:
        a: Matrices of shape (..., m, n).
        permute_l: Whether p l is returned in place of p and l.
        overwrite_a, check_finite: Ignored.

    Raises:
        MatrixShapeError: for fewer than two axes.

    >>> import axir.numpy as jnp
    >>> from axir.scipy.linalg import lu
    >>> lu(jnp.array([[1.0, 2.0], [4.0, 4.0]]))[0]
    Array([[0., 1.],
           [1., 0.]], dtype=float32)
    """
    a = matrix_argument("lu", a, is_square=False)
    factors, _, permutation = packed_lu(a)
    height, width = a.shape[-2:]
    left = unit_lower(factors)
    right = matrices.upper_part(matrices.part(factors, (0, smaller(height, width)), (0, width)))
    p = _permutation_matrix(permutation, a)
    return (matrices.matmul(p, left), right) if permute_l else (p, left, right)


def _permutation_matrix(permutation: Value, like: Value) -> Value:
    """Returns p with (p x)[permutation[i]] = x[i]."""
    shape = (*permutation.shape, permutation.shape[-1])
    places = matrices.positions(permutation, shape, len(shape) - 1)
    is_one = eq(matrices.along_columns(inverse_of(permutation), shape), places)
    ones = matrices.filled(like, shape, 1, dtypes.real_dtype(like.dtype))
    return select_n(is_one, mul(ones, 0), ones)
