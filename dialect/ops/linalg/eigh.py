"""`eigh`: eigenvalues and eigenvectors of Hermitian matrices."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Params, UserFunction
from axir.dialect.core.errors import ParameterError
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.arithmetic import add, mul, sub
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.ops.elementwise.family import as_value
from axir.dialect.program.dimensions import stack_of
from axir.dialect.program.operation import Sample
from axir.dialect.program.primitive import Primitive
from axir.dialect.program.rules import Operand, OperandTangents, Results, Tangent, Value

from .cholesky import symmetrized
from .jacobi import eigenvectors
from .jacobi_kernel import symmetric_eigenvectors
from .kernels import matrix_kernel
from .matrices import (
    adjoint,
    along_columns,
    along_rows,
    diagonal,
    hermitian_of,
    inverse_gaps,
    matmul,
    positions,
    real_part,
    to_dtype,
)
from .rules import (
    check_matrix,
    declare_decomposition,
    decomposed_or_nan,
    drawn_samples,
    random_hermitian,
    zero_tangents,
)

# Up to this extent Jacobi's rotations are faster than a call of LAPACK.
_JACOBI_EXTENT = 8
_JACOBI_COST = 16


def eigh(
    x: Operand,
    *,
    lower: bool = True,
    symmetrize_input: bool = True,
    sort_eigenvalues: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    implementation: object = None,
) -> tuple[Value, Value]:
    """Returns eigenvectors and eigenvalues of Hermitian matrices.

    Args:
        x: Matrices of shape (..., n, n).
        lower: Whether the lower triangle is read, else the upper one.
        symmetrize_input: Whether to decompose (x + x^H) / 2, with a symmetric derivative.
        sort_eigenvalues: Has no effect: the eigenvalues always ascend.
        subset_by_index: Must be None or (0, n): all eigenvalues are computed.
        implementation: Has no effect: there is one implementation.

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


def check_subset(name: str, subset_by_index: object, size: int) -> None:
    """Raises `ParameterError` for a subset that is not the whole."""
    if subset_by_index not in (None, (0, size)):
        raise ParameterError(
            f"{name}: subset_by_index={subset_by_index} must be None or (0, {size}).",
            "Slice the results.",
        )


def _infer(
    x: ShapedArray, *, lower: bool, sort_eigenvalues: bool
) -> tuple[ShapedArray, ShapedArray]:
    check_matrix("eigh", x, is_square=True)
    real = dtypes.real_dtype(x.dtype)
    return ShapedArray(x.shape, x.dtype), ShapedArray(x.shape[:-1], real)


def _evaluate(x: np.ndarray, *, lower: bool, sort_eigenvalues: bool) -> list[np.ndarray]:
    def decompose(x: np.ndarray) -> list[np.ndarray]:
        values, vectors = np.linalg.eigh(x, "L" if lower else "U")
        return [vectors, values]

    infer = partial(_infer, lower=lower, sort_eigenvalues=sort_eigenvalues)
    return decomposed_or_nan(decompose, x, infer)


def _small(
    values: Sequence[Value], types: Sequence[ShapedArray], *, lower: bool, sort_eigenvalues: bool
) -> list[Value] | None:
    *batch, size, _ = types[0].shape
    if size > _JACOBI_EXTENT:
        return None
    kernel = symmetric_eigenvectors(types[0].dtype, lower=lower)
    return matrix_kernel(kernel, values, types, batch, cost=_JACOBI_COST)


def _jvp(
    primals: Sequence[Value],
    tangents: OperandTangents,
    outs: Results,
    *,
    lower: bool,
    sort_eigenvalues: bool,
) -> Sequence[Tangent]:
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
    return inverse_gaps(sub(along_rows(values, shape), along_columns(values, shape)))


def weighted_projector(vectors: Value, others: Value) -> Value:
    """Returns the sum of k v_k u_k^H over columns k = 1, 2, ..., independent of common phases."""
    columns = positions(vectors, vectors.shape, vectors.ndim - 1)
    weights = add(convert_element_type(columns, vectors.dtype), 1)
    return matmul(mul(vectors, weights), adjoint(others))


def off_zero(x: Value) -> Value:
    """Moves numbers away from zero, because near zero no relative difference is small."""
    return add(x, 1 + 1j if dtypes.is_complex(x.dtype) else 1)


def _invariants(results: Sequence[Value]) -> list[Value]:
    vectors, values = results
    return [values, off_zero(weighted_projector(vectors, vectors))]


def _draw(generator: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    return random_hermitian(generator, shape, dtype, least=-1.0)


def _samples() -> list[Sample]:
    shapes = [(3, 3), (2, 3, 3), (4, 4), (2, 2), (1, 1), (0, 0), (1, 2, 2, 2), (5, 5), (15, 15)]

    def params(index: int) -> Params:
        return {"lower": index % 3 != 0, "sort_eigenvalues": True}

    def special(x: np.ndarray, invariants: UserFunction) -> Sample:
        args = (x.astype(np.float32),)
        return Sample(args, params(1), is_smooth=False, invariants=invariants)

    return [
        *drawn_samples(26, shapes, _draw, params, tolerance=512.0, invariants=_invariants),
        special(np.zeros((3, 3)), lambda results: [results[1]]),
        special(np.full((2, 2), np.nan), lambda results: [results[1]]),
        special(np.diag([3.0, 1.0, 2.0]), _invariants),
    ]


_eigh: Primitive = declare_decomposition(
    "eigh",
    parameters={"lower": bool, "sort_eigenvalues": bool},
    multiple_results=True,
    dimensions=stack_of(2),
    infer=_infer,
    evaluate=_evaluate,
    jvp=_jvp,
    portable=eigenvectors,
    small=_small,
    samples=_samples,
)
