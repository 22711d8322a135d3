"""`axir.experimental.sparse.linalg`: equations with sparse matrices, solved by factoring them."""

from __future__ import annotations

import warnings

import numpy as np

import axir.numpy as jnp
from axir import lax
from axir._composite_primitives import CompositePrimitive
from axir._devices.shape_dtype_struct import ShapeDtypeStruct
from axir._transforms.callbacks import pure_callback
from axir.dialect.core.annotations import HostArray
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import MatrixShapeError
from axir.dialect.core.late_modules import scipy_sparse, scipy_sparse_linalg
from axir.dialect.program.rules import Value
from axir.numpy._arguments.promotion import promote_inexact

from ._eigenvectors import lobpcg_standard
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
