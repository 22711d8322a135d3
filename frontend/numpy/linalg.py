"""`axir.numpy.linalg`: NumPy's linear algebra with JAX's names, batching and derivatives.

Matrices are in the last two axes; axes before them are batch axes. Integers become floats. Here:
decompositions, and the functions with another signature in the array API standard. Elsewhere:
equations, determinants and norms (`_products/`), which this module exports as well.

>>> import axir.numpy as jnp
>>> jnp.linalg.eigvalsh(jnp.array([[2.0, 1.0], [1.0, 2.0]]))
Array([1., 3.], dtype=float32)
"""

from __future__ import annotations

from typing import NamedTuple

from axir.dialect.core.annotations import (
    Axes,
    DTypeLike,
    PrecisionLike,
    UserObject,
)
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import MatrixShapeError, ParameterError
from axir.dialect.ops.elementwise.arithmetic import abs as absolute
from axir.dialect.ops.elementwise.arithmetic import mul, neg, sign
from axir.dialect.ops.linalg import matrices
from axir.dialect.ops.linalg.cholesky import cholesky as lower_triangle
from axir.dialect.ops.linalg.eig import eig as general_eigen
from axir.dialect.ops.linalg.eigh import check_subset
from axir.dialect.ops.linalg.eigh import eigh as hermitian_eigen
from axir.dialect.ops.linalg.geqrf import geqrf
from axir.dialect.ops.linalg.qr import qr as orthogonal_factors
from axir.dialect.ops.linalg.rules import check_matrix
from axir.dialect.ops.linalg.svd import svd as singular_factors
from axir.dialect.ops.sorting.sort import sort
from axir.dialect.program.rules import Value

from ._arguments.promotion import promote_arguments, promote_inexact
from ._indexing.taking import take_along_axis
from ._products import outer_products
from ._products import products as linear_algebra
from ._products.determinants import SlogdetResult, det, slogdet
from ._products.linear_equations import (
    inv,
    lstsq,
    matrix_power,
    multi_dot,
    pinv,
    solve,
    tensorinv,
    tensorsolve,
)
from ._products.norms import cond, matrix_norm, matrix_rank, norm, vector_norm
from ._shape import diagonals
from ._shape.manipulation import matrix_transpose
from ._sorting.sorting import argsort

__all__ = [
    "EigResult", "EighResult", "QRResult", "SVDResult", "SlogdetResult", "cholesky", "cond",
    "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "lstsq", "matmul",
    "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "multi_dot", "norm", "outer",
    "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot", "tensorinv", "tensorsolve",
    "trace", "vecdot", "vector_norm",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


class EigResult(NamedTuple):
    """Eigenvalues, and eigenvectors as columns."""

    eigenvalues: Value
    eigenvectors: Value


class EighResult(NamedTuple):
    """Eigenvalues in ascending order, and orthonormal eigenvectors as columns."""

    eigenvalues: Value
    eigenvectors: Value


class QRResult(NamedTuple):
    """Orthonormal columns, and a triangle."""

    Q: Value
    R: Value


class SVDResult(NamedTuple):
    """Left singular vectors as columns, singular values, right singular vectors as rows."""

    U: Value
    S: Value
    Vh: Value


# Decompositions --------------------------------------------------------------------------------


def cholesky(a: ArrayLike, *, upper: bool = False, symmetrize_input: bool = True) -> Value:
    """Returns the triangle l with l l^H = a, or u with u^H u = a.

    Args:
        a: Hermitian positive definite matrices of shape (..., n, n).
        upper: Whether the upper triangle is returned.
        symmetrize_input: Whether (a + a^H) / 2 is decomposed; else only the lower triangle of a is
            read.

    Returns:
        Triangles of the shape of a; NaN for matrices that are not positive definite.

    Raises:
        MatrixShapeError: unless the matrices are square.

    >>> import axir.numpy as jnp
    >>> jnp.linalg.cholesky(jnp.array([[4, 2], [2, 5]]), upper=True)
    Array([[2., 1.],
           [0., 2.]], dtype=float32)
    """
    (a,) = promote_inexact("linalg.cholesky", a)
    check_matrix("jnp.linalg.cholesky", a.type, is_square=True)
    factor = lower_triangle(a, symmetrize_input=symmetrize_input)
    return matrices.adjoint(factor) if upper else factor


def eig(a: ArrayLike) -> EigResult:
    """Returns eigenvalues and eigenvectors of general matrices; on the CPU only.

    Args:
        a: Matrices of shape (..., n, n).

    Returns:
        Complex eigenvalues (..., n), in no order, and eigenvectors as columns (..., n, n).

    Raises:
        MatrixShapeError: unless the matrices are square.

    >>> import axir.numpy as jnp
    >>> jnp.linalg.eig(jnp.diag(jnp.array([1.0, 2.0]))).eigenvalues
    Array([1.+0.j, 2.+0.j], dtype=complex64)
    """
    (a,) = promote_inexact("linalg.eig", a)
    check_matrix("jnp.linalg.eig", a.type, is_square=True)
    return EigResult(*general_eigen(a, compute_left_eigenvectors=False))


def eigvals(a: ArrayLike) -> Value:
    """Returns the complex eigenvalues (..., n) of general matrices; on the CPU only.

    Raises:
        MatrixShapeError: unless the matrices are square.

    >>> import axir.numpy as jnp
    >>> jnp.linalg.eigvals(jnp.array([[0.0, 1.0], [-1.0, 0.0]]))
    Array([0.+1.j, 0.-1.j], dtype=complex64)
    """
    (a,) = promote_inexact("linalg.eigvals", a)
    check_matrix("jnp.linalg.eigvals", a.type, is_square=True)
    return general_eigen(a, compute_left_eigenvectors=False, compute_right_eigenvectors=False)[0]


def eigh(a: ArrayLike, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:
    """Returns eigenvalues and eigenvectors of Hermitian matrices.

    Args:
        a: Matrices of shape (..., n, n).
        UPLO: 'L' (the default) or 'U': which triangle is read.
        symmetrize_input: Whether (a + a^H) / 2 is decomposed.

    Returns:
        Real eigenvalues (..., n) in ascending order, and eigenvectors as columns (..., n, n).

    Raises:
        MatrixShapeError: unless the matrices are square.
        ParameterError: for another UPLO.

    >>> import axir.numpy as jnp
    >>> jnp.linalg.eigh(jnp.array([[2.0, 1.0], [1.0, 2.0]])).eigenvalues
    Array([1., 3.], dtype=float32)
    """
    (a,) = promote_inexact("linalg.eigh", a)
    check_matrix("jnp.linalg.eigh", a.type, is_square=True)
    if UPLO not in (None, "L", "U"):
        raise ParameterError(f"jnp.linalg.eigh: UPLO={UPLO!r} must be None, 'L' or 'U'.")
    vectors, values = hermitian_eigen(a, lower=UPLO != "U", symmetrize_input=symmetrize_input)
    return EighResult(values, vectors)


def eigvalsh(a: ArrayLike, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Value:
    """Returns the real eigenvalues (..., n), in ascending order, of Hermitian matrices.

    Raises:
        MatrixShapeError: unless the matrices are square.
        ParameterError: for an UPLO that is neither None nor 'L' nor 'U'.

    >>> import axir.numpy as jnp
    >>> jnp.linalg.eigvalsh(jnp.array([[2.0, 1.0], [1.0, 2.0]]))
    Array([1., 3.], dtype=float32)
    """
    return eigh(a, UPLO, symmetrize_input).eigenvalues


def qr(a: ArrayLike, mode: str = "reduced") -> UserObject:
    """Factors matrices into q r.

    Args:
        a: Matrices of shape (..., m, n).
        mode: 'reduced' (or 'full'): q has min(m, n) columns; 'complete': m columns; 'r': only r of
            the reduced form; 'raw': the reflections with the product q, packed with r.

    Returns:
        `QRResult`, or r; for 'raw' a `QRResult` of the transposed packed form (..., n, m) and the
        factors of the reflections, of shape (..., min(m, n)), as `axir.lax.linalg.ormqr` takes
        them.

    Raises:
        MatrixShapeError: for fewer than two axes.
        ParameterError: for another mode.

    >>> import axir.numpy as jnp
    >>> jnp.linalg.qr(jnp.array([[3.0], [4.0]]), mode="r")
    Array([[-5.]], dtype=float32)
    """
    (a,) = promote_inexact("linalg.qr", a)
    check_matrix("jnp.linalg.qr", a.type)
    if mode == "raw":
        packed, taus = geqrf(a)
        return QRResult(matrix_transpose(packed), taus)
    if mode not in ("reduced", "full", "r", "complete"):
        raise ParameterError(
            f"jnp.linalg.qr: mode={mode!r} must be 'reduced', 'complete', 'r' or 'raw'."
        )
    q, r = orthogonal_factors(a, full_matrices=mode == "complete")
    return r if mode == "r" else QRResult(q, r)


def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> UserObject:
    """Factors matrices into u diag(s) v^H.

    Args:
        a: Matrices of shape (..., m, n).
        full_matrices: Whether u and v are square, else they have min(m, n) columns.
        compute_uv: Whether u and v^H are returned.
        hermitian: Whether the matrices are Hermitian: then the vectors come from `eigh`.
        subset_by_index: Must be None or (0, min(m, n)).

    Returns:
        `SVDResult`, or s. s is real and descends.

    Raises:
        MatrixShapeError: for fewer than two axes.
        ParameterError: for another subset.

    >>> import axir.numpy as jnp
    >>> jnp.linalg.svd(jnp.diag(jnp.array([1.0, -2.0]))).S
    Array([2., 1.], dtype=float32)
    """
    (a,) = promote_inexact("linalg.svd", a)
    check_matrix("jnp.linalg.svd", a.type)
    if hermitian:
        check_subset("jnp.linalg.svd", subset_by_index, a.shape[-1])
        return _hermitian_svd(a, compute_uv)
    results = singular_factors(
        a, full_matrices=full_matrices, compute_uv=compute_uv, subset_by_index=subset_by_index
    )
    return SVDResult(*results) if compute_uv else results


def _hermitian_svd(a: Value, compute_uv: bool) -> object:
    vectors, values = hermitian_eigen(a)
    sizes = absolute(values)
    if not compute_uv:
        return neg(sort(neg(sizes)))
    order = argsort(neg(sizes), axis=-1)
    signs, sizes = (take_along_axis(x, order, -1) for x in (sign(values), sizes))
    vectors = take_along_axis(vectors, order[..., None, :], -1)
    signs = matrices.to_dtype(matrices.along_rows(signs, vectors.shape), vectors.dtype)
    return SVDResult(vectors, sizes, matrices.adjoint(mul(vectors, signs)))


def svdvals(x: ArrayLike, /) -> Value:
    """Returns the singular values (..., min(m, n)), in descending order.

    Raises:
        MatrixShapeError: for fewer than two axes.

    >>> import axir.numpy as jnp
    >>> jnp.linalg.svdvals(jnp.diag(jnp.array([1.0, -2.0])))
    Array([2., 1.], dtype=float32)
    """
    return svd(x, compute_uv=False)


# Functions of the array API standard -----------------------------------------------------------


def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Value:
    """Returns the cross products of vectors of three elements along an axis.

    Raises:
        ParameterError: for vectors of another size.

    >>> import axir.numpy as jnp
    >>> jnp.linalg.cross(jnp.array([1.0, 0.0, 0.0]), jnp.array([0.0, 1.0, 0.0]))
    Array([0., 0., 1.], dtype=float32)
    """
    x1, x2 = promote_arguments("linalg.cross", x1, x2)
    if x1.shape[axis] != 3 or x2.shape[axis] != 3:
        raise ParameterError(
            f"jnp.linalg.cross takes vectors of three elements, not {x1.shape[axis]} and "
            f"{x2.shape[axis]}.",
            "Use jnp.cross for vectors of two.",
        )
    return outer_products.cross(x1, x2, axis=axis)


def outer(x1: ArrayLike, x2: ArrayLike, /) -> Value:
    """Returns the products of each element of one vector with each of the other.

    Raises:
        ParameterError: for arrays of other ranks than 1.

    >>> import axir.numpy as jnp
    >>> jnp.linalg.outer(jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0]))
    Array([[3., 4.],
           [6., 8.]], dtype=float32)
    """
    x1, x2 = promote_arguments("linalg.outer", x1, x2)
    if x1.ndim != 1 or x2.ndim != 1:
        raise ParameterError(
            f"jnp.linalg.outer takes vectors, but got {x1.aval} and {x2.aval}.",
            "Use jnp.outer, which flattens its operands.",
        )
    return outer_products.outer(x1, x2)


def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Value:
    """Returns diagonals of matrices in the last two axes.

    Raises:
        MatrixShapeError: for fewer than two axes.

    >>> import axir.numpy as jnp
    >>> jnp.linalg.diagonal(jnp.array([[1.0, 2.0], [3.0, 4.0]]), offset=1)
    Array([2.], dtype=float32)
    """
    (x,) = promote_arguments("linalg.diagonal", x)
    _require_matrix("diagonal", x)
    return diagonals.diagonal(x, offset=offset, axis1=-2, axis2=-1)


def trace(x: ArrayLike, /, *, offset: int = 0, dtype: DTypeLike = None) -> Value:
    """Returns the sums along diagonals of matrices in the last two axes.

    Raises:
        MatrixShapeError: for fewer than two axes.

    >>> import axir.numpy as jnp
    >>> jnp.linalg.trace(jnp.ones((4, 2, 2)))
    Array([2., 2., 2., 2.], dtype=float32)
    """
    (x,) = promote_arguments("linalg.trace", x)
    _require_matrix("trace", x)
    return diagonals.trace(x, offset=offset, axis1=-2, axis2=-1, dtype=dtype)


def _require_matrix(name: str, x: Value) -> None:
    if x.ndim < 2:
        raise MatrixShapeError(f"jnp.linalg.{name} requires a matrix, but got {x.aval}.")


def matmul(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike = None,
) -> Value:
    """Multiplies matrices, as `jnp.matmul` does.

    >>> import axir.numpy as jnp
    >>> jnp.linalg.matmul(jnp.ones((2, 3)), jnp.ones(3))
    Array([3., 3.], dtype=float32)
    """
    return linear_algebra.matmul(
        x1, x2, precision=precision, preferred_element_type=preferred_element_type
    )


def tensordot(
    x1: ArrayLike, x2: ArrayLike, /, *, axes: Axes = 2, precision: PrecisionLike = None,
    preferred_element_type: DTypeLike = None, out_sharding: object = None,
) -> Value:  # fmt: skip
    """Sums products over several axes, as `jnp.tensordot` does.

    >>> import axir.numpy as jnp
    >>> jnp.linalg.tensordot(jnp.ones((2, 3)), jnp.ones((2, 3)))
    Array(6., dtype=float32)
    """
    return linear_algebra.tensordot(
        x1, x2, axes, precision=precision, preferred_element_type=preferred_element_type,
        out_sharding=out_sharding,
    )  # fmt: skip


def vecdot(
    x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1, precision: PrecisionLike = None,
    preferred_element_type: DTypeLike = None,
) -> Value:  # fmt: skip
    """Returns inner products along an axis, as `jnp.vecdot` does.

    >>> import axir.numpy as jnp
    >>> jnp.linalg.vecdot(jnp.ones((2, 3)), jnp.ones(3))
    Array([3., 3.], dtype=float32)
    """
    return linear_algebra.vecdot(
        x1, x2, axis=axis, precision=precision, preferred_element_type=preferred_element_type
    )
