"""`cholesky`: a positive definite matrix as the product of a triangle and its adjoint."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from axir.dialect.core.symbolic_zeros import Zero
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.arithmetic import add, div, mul, sub
from axir.dialect.ops.elementwise.family import as_value
from axir.dialect.program.dimensions import stack_of
from axir.dialect.program.operation import Sample
from axir.dialect.program.primitive import Primitive
from axir.dialect.program.rules import Operand, Tangent, Tangents, Value

from . import kernels
from .blocked import factor_cholesky
from .kernels import matrix_kernel
from .matrices import adjoint, hermitian_of, lower_part, matmul, on_diagonal
from .rules import check_matrix, declare_decomposition, drawn_samples, random_hermitian
from .triangular_solve import triangular_solve

# Up to this extent vectorized sums along rows are as fast as LAPACK's blocks.
_SMALL = 256


def cholesky(x: Operand, *, symmetrize_input: bool = True) -> Value:
    """Returns the lower triangle l with l l^H = x.

    Args:
        x: Hermitian positive definite matrices of shape (..., n, n).
        symmetrize_input: Whether to decompose (x + x^H) / 2, with a symmetric derivative; else the
            lower triangle of x is decomposed.

    Returns:
        Lower triangles of the shape of x; NaN for matrices that are not positive definite.

    Raises:
        ShapeError: unless the matrices are square.
        DTypeError: for dtypes other than float32, float64, complex64 and complex128.

    >>> cholesky(np.array([[4.0, 2.0], [2.0, 5.0]], np.float32))
    Array([[2., 0.],
           [1., 2.]], dtype=float32)
    """
    x = as_value(x)
    if symmetrize_input:
        check_matrix("cholesky", x.type, is_square=True)
        x = symmetrized(x)
    return _cholesky.bind(x)


def symmetrized(x: Value) -> Value:
    """Returns (x + x^H) / 2."""
    return div(add(x, adjoint(x)), 2)


def _infer(x: ShapedArray) -> ShapedArray:
    check_matrix("cholesky", x, is_square=True)
    return ShapedArray(x.shape, x.dtype)


def _evaluate(x: np.ndarray) -> np.ndarray:
    try:
        return np.linalg.cholesky(x)
    except np.linalg.LinAlgError:
        if x.ndim > 2:
            return np.stack([_evaluate(matrix) for matrix in x])
    return np.tril(np.full(x.shape, np.nan, x.dtype))


def _small(values: Sequence[Value], types: Sequence[ShapedArray]) -> list[Value]:
    return matrix_kernel(kernels.cholesky, values, types, types[0].shape[:-2])


def _jvp(primals: Sequence[Value], tangents: Sequence[Tangent], factor: Value) -> Tangents:
    """Murray (2016): dl = l phi(l^-1 dx l^-H), where phi takes the triangle, half the diagonal."""
    if type(tangents[0]) is Zero:
        return Zero(factor.aval.to_tangent_aval())
    tangent = hermitian_of(tangents[0], is_lower=True)
    right = triangular_solve(
        factor, tangent, left_side=False, transpose_a=True, conjugate_a=True, lower=True
    )
    middle = triangular_solve(factor, right, left_side=True, lower=True)
    halved = sub(lower_part(middle), mul(on_diagonal(middle), 0.5))
    return matmul(factor, halved)


def _samples() -> list[Sample]:
    shapes = [(3, 3), (2, 3, 3), (1, 1), (4, 4), (0, 0), (2, 0, 0), (1, 2, 2, 2), (40, 40)]
    indefinite = np.stack([np.eye(2), np.array([[1, 2], [2, 1]]), 4 * np.eye(2)])
    return [
        *drawn_samples(22, shapes, random_hermitian, tolerance=256.0),
        Sample((indefinite.astype(np.float32),), is_smooth=False),
        # Only the lower triangle counts.
        Sample((np.array([[4, 9], [2, 5]], np.float32),)),
    ]


_cholesky: Primitive = declare_decomposition(
    "cholesky",
    dimensions=stack_of(2),
    infer=_infer,
    evaluate=_evaluate,
    jvp=_jvp,
    portable=factor_cholesky,
    small=_small,
    small_extent=_SMALL,
    samples=_samples,
)
