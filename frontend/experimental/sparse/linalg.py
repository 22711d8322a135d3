"""`axir.experimental.sparse.linalg`: sparse equations, eigenvalues of large matrices."""

from __future__ import annotations

import warnings

import numpy as np

import axir.numpy as jnp
from axir import lax
from axir._composite_primitives import CompositePrimitive
from axir._devices.shape_dtype_struct import ShapeDtypeStruct
from axir._transforms.callbacks import pure_callback
from axir.dialect.core.annotations import HostArray, UserFunction, UserObject
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import DTypeError, MatrixShapeError, ParameterError, ShapeError
from axir.dialect.core.late_modules import scipy_sparse, scipy_sparse_linalg
from axir.dialect.program.rules import Value
from axir.numpy._arguments.promotion import promote_inexact

from ._matrices import CSR

__all__ = ["lobpcg_standard", "spsolve", "spsolve_p"]


def __dir__() -> list[str]:
    return __all__


def spsolve(
    data: ArrayLike,
    indices: ArrayLike,
    indptr: ArrayLike,
    b: ArrayLike,
    tol: float = 1e-6,
    reorder: int = 1,
) -> Value:
    """Solves A x = b for a sparse matrix by rows, with SciPy's factorization, on the host.

    Args:
        data, indices, indptr: The parts of a `CSR` matrix of shape (n, n).
        b: The right-hand side, of shape (n,).
        tol: Ignored: no iteration is made.
        reorder: Ignored: SciPy reorders the columns.

    Returns:
        x, of shape (n,), with derivatives with regard to `data` and `b`; NaN or infinities if the
        matrix is singular.

    Raises:
        MatrixShapeError: if `b` does not have the shape (n,).

    >>> import axir.numpy as jnp
    >>> from axir.experimental.sparse import CSR
    >>> a = CSR.fromdense(jnp.array([[2.0, 0.0], [1.0, 4.0]]))
    >>> spsolve(a.data, a.indices, a.indptr, jnp.array([2.0, 9.0]))
    Array([1., 2.], dtype=float32)
    """
    data, b = promote_inexact("spsolve", data, b)
    indices, indptr = jnp.asarray(indices), jnp.asarray(indptr)
    size = indptr.size - 1
    if b.shape != (size,):
        raise MatrixShapeError(
            f"spsolve: b of shape {b.shape} does not fit a matrix of {size} rows.",
            f"b has the shape ({size},).",
        )
    shape = (size, size)

    def solve(is_transposed: bool, right: Value) -> Value:
        def on_host(*parts: HostArray) -> HostArray:
            return _solved(is_transposed, *parts)

        kind = ShapeDtypeStruct(right.shape, right.dtype)
        return pure_callback(on_host, kind, data, indices, indptr, right, vmap_method="sequential")

    return lax.custom_linear_solve(
        lambda x: CSR((data, indices, indptr), shape=shape) @ x,
        b,
        lambda _, right: solve(False, right),
        lambda _, right: solve(True, right),
    )


def _solved(
    is_transposed: bool, data: HostArray, indices: HostArray, indptr: HostArray, b: HostArray
) -> HostArray:
    parts = [np.ascontiguousarray(x) for x in (data, indices, indptr)]
    matrix = scipy_sparse.csr_matrix(tuple(parts), shape=(b.size, b.size))
    matrix = (matrix.T if is_transposed else matrix).tocsc()
    with warnings.catch_warnings():
        # That a matrix is singular is seen in the result.
        warnings.simplefilter("ignore", scipy_sparse_linalg.MatrixRankWarning)
        solution = scipy_sparse_linalg.spsolve(matrix, np.asarray(b))
    return solution.astype(b.dtype)


spsolve_p = CompositePrimitive("spsolve", spsolve)


# Eigenvalues --------------------------------------------------------------------------------------


# A block method spans three blocks, and needs room for them.
_BLOCKS = 5


def lobpcg_standard(
    A: ArrayLike | UserFunction, X: ArrayLike, m: int = 100, tol: ArrayLike | None = None
) -> tuple[Value, Value, Value]:
    """Returns the k greatest eigenvalues of a symmetric matrix, with eigenvectors.

    The locally optimal block method of conjugate gradients (Knyazev, SIAM J. Sci. Comput. 23,
    2001), without a preconditioner: each step takes the best vectors from the space spanned by the
    current vectors, their residuals and the last changes, after orthonormalizing these.

    Args:
        A: The matrix of shape (n, n), symmetric or Hermitian, an array or a sparse one; or a
            function that multiplies it by arrays of shape (n, k).
        X: Vectors to begin with, of shape (n, k), linearly independent; 0 < 5 k < n.
        m: How many steps to make at most.
        tol: An eigenpair is good once its residual |A v - l v| is below 10 n (|l| + |A v|) tol; by
            default the distance of 1 to the next number.

    Returns:
        The eigenvalues, of shape (k,), the greatest first; eigenvectors, of shape (n, k); how many
        steps were made.

    Raises:
        ShapeError: if the shapes do not fit. DTypeError: if the dtypes differ.
        ParameterError: for too many vectors, or none.

    >>> import axir.numpy as jnp
    >>> values, vectors, steps = lobpcg_standard(jnp.diag(jnp.arange(20.0)), jnp.eye(20, 2) + 0.1)
    >>> values.round(3)
    Array([19., 18.], dtype=float32)
    """
    X = jnp.asarray(X)
    if X.ndim != 2:
        raise ShapeError(f"lobpcg_standard: X must be a matrix, but has shape {X.shape}.")
    n, count = X.shape
    if not 0 < _BLOCKS * count < n:
        raise ParameterError(
            f"lobpcg_standard: X has {count} vectors of {n} elements, but the method takes from 1 "
            f"to {max(0, (n - 1) // _BLOCKS)} of them.",
            "Use axir.numpy.linalg.eigh for small matrices.",
        )
    multiply = A if callable(A) else lambda x: A @ x
    product = multiply(X)
    if product.shape != X.shape:
        raise ShapeError(
            f"lobpcg_standard: A is not square: of {X.shape} it makes {product.shape}."
        )
    if product.dtype != X.dtype:
        raise DTypeError(
            f"lobpcg_standard: A @ X has dtype {product.dtype}, X has {X.dtype}.", "Convert one."
        )
    limit = jnp.finfo(X.dtype).eps if tol is None else tol
    found = _iterate(multiply, X, m, 10 * n * jnp.asarray(limit, jnp.finfo(X.dtype).dtype))
    values, vectors, iterations = found
    return values, vectors, iterations


def _iterate(multiply: UserFunction, X: Value, most: int, limit: Value) -> tuple[Value, ...]:
    def best(basis: Value, count: int) -> tuple[Value, Value]:
        """Returns the best vectors in a space (Rayleigh-Ritz), their eigenvalues falling."""
        small = basis.conj().T @ multiply(basis)
        values, coefficients = jnp.linalg.eigh((small + small.conj().T) / 2)
        return values[::-1][:count], basis @ coefficients[:, ::-1][:, :count]

    def residual(values: Value, vectors: Value) -> tuple[Value, Value]:
        product = multiply(vectors)
        difference = product - vectors * values
        norm, scale = (jnp.linalg.norm(x, axis=0) for x in (difference, product))
        return difference, jnp.all(norm <= limit * (jnp.abs(values) + scale))

    def goes_on(state: tuple[Value, ...]) -> Value:
        step, *_, is_good = state
        return (step < most) & ~is_good

    def advance(state: tuple[Value, ...]) -> tuple[Value, ...]:
        step, _, vectors, change, rest, _ = state
        basis = jnp.linalg.qr(jnp.concatenate([vectors, rest, change], axis=1))[0]
        values, following = best(basis, vectors.shape[1])
        change = following - vectors @ (vectors.conj().T @ following)
        rest, is_good = residual(values, following)
        return step + 1, values, following, change, rest, is_good

    values, vectors = best(jnp.linalg.qr(X)[0], X.shape[1])
    rest, is_good = residual(values, vectors)
    state: UserObject = (0, values, vectors, jnp.zeros_like(vectors), rest, is_good)
    step, values, vectors, *_ = lax.while_loop(goes_on, advance, state)
    return values, vectors, step
