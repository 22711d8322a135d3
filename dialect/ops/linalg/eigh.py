"""`eigh`: eigenvalues and eigenvectors of Hermitian matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import dtypes
from ...errors import ParameterError
from ...primitive import Primitive, Sample
from ...types import ShapedArray
from ..conversion import convert_element_type
from ..elementwise import add, div, mul, select_n, sub
from ..family import Value, as_value
from ..table import declare
from .cholesky import symmetrized
from .jacobi import eigenvectors
from .jacobi_kernel import symmetric_eigenvectors
from .kernels import cut, matrix_kernel
from .matrices import (
    adjoint,
    along_columns,
    along_rows,
    diagonal,
    diagonal_mask,
    filled,
    hermitian_of,
    matmul,
    positions,
    real_part,
    to_dtype,
)
from .rules import (
    DOMAIN,
    NOT_LINEAR,
    batch_in_front,
    check_matrix,
    lower_decomposition,
    random_hermitian,
    zero_tangents,
)
from .stacks import with_stack_beside_nan

# Up to this extent Jacobi's rotations are faster than a call of LAPACK.
_JACOBI_EXTENT = 8


def eigh(
    x: Any,
    *,
    lower: bool = True,
    symmetrize_input: bool = True,
    sort_eigenvalues: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    implementation: Any = None,
) -> tuple[Value, Value]:
    """Returns eigenvectors and eigenvalues of Hermitian matrices.

    Args:
        x: Matrices of shape (..., n, n).
        lower: Whether the lower triangle is read, else the upper one.
        symmetrize_input: Whether (x + x^H) / 2 is decomposed, whose derivative is symmetric.
        sort_eigenvalues: Of no consequence: the eigenvalues ascend.
        subset_by_index: Must be None or (0, n): all eigenvalues are computed.
        implementation: Of no consequence: there is one implementation.

    Returns:
        The orthonormal eigenvectors as columns (..., n, n), each up to a factor of modulus one, and
        the real eigenvalues (..., n). NaN where the matrix holds NaN or infinities.

    Raises:
        ShapeError: unless the matrices are square.
        DTypeError: for dtypes other than float32, float64, complex64 and complex128.
        ParameterError: for another subset.

    >>> eigh(np.array([[2.0, 1.0], [1.0, 2.0]], np.float32))[1]
    Array([1., 3.], dtype=float32)
    """
    x = as_value(x)
    check_matrix("eigh", x.type, is_square=True)
    check_subset("eigh", subset_by_index, x.shape[-1])
    if symmetrize_input:
        x = symmetrized(x)
    vectors, values = _eigh.bind(x, lower=bool(lower), sort_eigenvalues=bool(sort_eigenvalues))
    return vectors, values


def check_subset(name: str, subset_by_index: Any, size: int) -> None:
    """Raises `ParameterError` for a subset that is not the whole."""
    if subset_by_index not in (None, (0, size)):
        raise ParameterError(
            f"{name}: subset_by_index={subset_by_index} must be None or (0, {size}).",
            "Slice the results.",
        )


def _infer(x: ShapedArray, *, lower: bool, sort_eigenvalues: bool) -> list[ShapedArray]:
    check_matrix("eigh", x, is_square=True)
    real = dtypes.real_dtype(x.dtype)
    return [ShapedArray(x.shape, x.dtype), ShapedArray(x.shape[:-1], real)]


def _evaluate(x: np.ndarray, *, lower: bool, sort_eigenvalues: bool) -> list[np.ndarray]:
    try:
        values, vectors = np.linalg.eigh(x, "L" if lower else "U")
    except np.linalg.LinAlgError:
        if x.ndim == 2:
            return [np.full(x.shape, np.nan, x.dtype), np.full(x.shape[:1], np.nan, x.real.dtype)]
        parts = [_evaluate(m, lower=lower, sort_eigenvalues=sort_eigenvalues) for m in x]
        return [np.stack(results) for results in zip(*parts, strict=True)]
    return [vectors, values]


def _small(
    values: Sequence[Any], types: Sequence[ShapedArray], *, lower: bool, sort_eigenvalues: bool
) -> list[Any] | None:
    *batch, size, _ = types[0].shape
    if size > _JACOBI_EXTENT:
        return None
    kernel = symmetric_eigenvectors(size, types[0].dtype, lower=lower)
    result = matrix_kernel(kernel, values, batch, (size + 1, size))
    return [cut(result, t, row) for t, row in zip(types, (0, size), strict=True)]


def _jvp(
    primals: Any, tangents: Any, outs: Any, *, lower: bool, sort_eigenvalues: bool
) -> list[Any]:
    """Giles (2008), 3.1: with m = v^H dx v, dw = diag m and dv = v (m / (w_j - w_i))."""
    vectors, values = outs
    zeros = zero_tangents(tangents[0], outs)
    if zeros is not None:
        return zeros
    tangent = hermitian_of(tangents[0], lower)
    mixed = matmul(adjoint(vectors), matmul(tangent, vectors))
    gaps = gaps_between(values)
    factors = to_dtype(gaps, vectors.dtype)
    return [matmul(vectors, mul(factors, mixed)), real_part(diagonal(mixed))]


def gaps_between(values: Value) -> Value:
    """Returns 1 / (w_j - w_i) for numbers w (..., n), and 0 on the diagonal."""
    shape = (*values.shape, values.shape[-1])
    gaps = sub(along_rows(values, shape), along_columns(values, shape))
    ones = filled(gaps, shape, 1)
    is_diagonal = diagonal_mask(gaps, shape)
    return select_n(is_diagonal, div(ones, select_n(is_diagonal, gaps, ones)), mul(ones, 0))


def weighted_projector(vectors: Value, others: Value) -> Value:
    """Returns the sum of k v_k u_k^H over columns k = 1, 2, ..., blind to their common phases."""
    weights = add(to_float(positions(vectors, vectors.shape, vectors.ndim - 1), vectors), 1)
    return matmul(mul(vectors, weights), adjoint(others))


def off_zero(x: Value) -> Value:
    """Moves numbers away from zero, next to which no difference is small."""
    return add(x, 1 + 1j if dtypes.is_complex(x.dtype) else 1)


def to_float(x: Value, like: Value) -> Value:
    """Casts integers to the dtype of another value."""
    return convert_element_type(x, like.dtype)


def _invariants(results: Sequence[Value]) -> list[Value]:
    vectors, values = results
    return [values, off_zero(weighted_projector(vectors, vectors))]


def _samples() -> list[Sample]:
    generator = np.random.default_rng(26)
    shapes = [(3, 3), (2, 3, 3), (4, 4), (2, 2), (1, 1), (0, 0), (1, 2, 2, 2), (5, 5), (15, 15)]
    samples = []
    for index, shape in enumerate(shapes):
        x = random_hermitian(generator, shape, DOMAIN[index % 4], least=-1.0)
        params = {"lower": index % 3 != 0, "sort_eigenvalues": True}
        samples.append(Sample((x,), params, tolerance=512.0, invariants=_invariants))
    params = {"lower": True, "sort_eigenvalues": True}
    for special in (np.zeros((3, 3)), np.full((2, 2), np.nan), np.diag([3.0, 1.0, 2.0])):
        x = special.astype(np.float32)
        invariants = _invariants if special[0, 0] == 3 else lambda results: [results[1]]
        samples.append(Sample((x,), params, is_smooth=False, invariants=invariants))
    return with_stack_beside_nan(samples)


_eigh: Primitive = declare(
    "eigh",
    multiple_results=True,
    infer=_infer,
    evaluate=_evaluate,
    jvp=_jvp,
    lower=lower_decomposition("eigh", _evaluate, eigenvectors, _small),
    samples=_samples,
    unsupported=NOT_LINEAR,
)
_eigh.batch = batch_in_front(_eigh)
