"""`cholesky`: a positive definite matrix as the product of a triangle and its adjoint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...primitive import Primitive, Sample
from ...symbolic import Zero
from ...types import ShapedArray
from ..elementwise import add, div, mul, sub
from ..family import Value, as_value
from ..table import declare
from . import kernels
from .blocked import factor_cholesky
from .kernels import matrix_kernel
from .matrices import adjoint, hermitian_of, lower_part, matmul, on_diagonal
from .rules import (
    DOMAIN,
    NOT_LINEAR,
    batch_in_front,
    check_matrix,
    lower_decomposition,
    random_hermitian,
)
from .stacks import with_stack_beside_nan
from .triangular_solve import triangular_solve


def cholesky(x: Any, *, symmetrize_input: bool = True) -> Value:
    """Returns the lower triangle l with l l^H = x.

    Args:
        x: Hermitian positive definite matrices of shape (..., n, n).
        symmetrize_input: Whether (x + x^H) / 2 is decomposed, whose derivative is symmetric; else
            the lower triangle of x is.

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


def _small(values: Sequence[Any], types: Sequence[ShapedArray]) -> list[Any]:
    *batch, height, width = types[0].shape
    return [matrix_kernel(kernels.cholesky(width), values, batch, (height, width))]


def _jvp(primals: Any, tangents: Any, factor: Value) -> Any:
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
    generator = np.random.default_rng(22)
    shapes = [(3, 3), (2, 3, 3), (1, 1), (4, 4), (0, 0), (2, 0, 0), (1, 2, 2, 2), (40, 40)]
    samples = [
        Sample((random_hermitian(generator, shape, DOMAIN[i % 4]),), tolerance=256.0)
        for i, shape in enumerate(shapes)
    ]
    indefinite = np.stack([np.eye(2), np.array([[1, 2], [2, 1]]), 4 * np.eye(2)])
    samples.append(Sample((indefinite.astype(np.float32),), is_smooth=False))
    # Only the lower triangle counts.
    samples.append(Sample((np.array([[4, 9], [2, 5]], np.float32),)))
    return with_stack_beside_nan(samples)


_cholesky: Primitive = declare(
    "cholesky",
    infer=_infer,
    evaluate=_evaluate,
    jvp=_jvp,
    lower=lower_decomposition("cholesky", _evaluate, lambda x: [factor_cholesky(x)], _small),
    samples=_samples,
    unsupported=NOT_LINEAR,
)
_cholesky.batch = batch_in_front(_cholesky)
