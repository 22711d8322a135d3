"""`eig`: eigenvalues and eigenvectors of general matrices, by LAPACK only."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Params
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.arithmetic import div, mul, sub
from axir.dialect.ops.elementwise.comparison import eq, select_n
from axir.dialect.ops.elementwise.conversion import complex_, imag
from axir.dialect.ops.elementwise.family import as_value
from axir.dialect.ops.reductions.arg_reduce import argmax
from axir.dialect.ops.reductions.reduce import reduce_sum
from axir.dialect.program.dimensions import stack_of
from axir.dialect.program.operation import Sample
from axir.dialect.program.primitive import Primitive
from axir.dialect.program.rules import Operand, OperandTangents, Results, Tangent, Value

from .blas_threads import routine
from .eigh import gaps_between
from .lu_solve import solve
from .matrices import (
    adjoint,
    along_rows,
    conjugated,
    diagonal,
    matmul,
    positions,
    real_part,
    to_dtype,
)
from .rules import (
    check_matrix,
    declare_decomposition,
    drawn_samples,
    each_matrix,
    random_general,
    zero_tangents,
)
from .stacks import (
    squared,
)


def eig(
    x: Operand,
    *,
    compute_left_eigenvectors: bool = True,
    compute_right_eigenvectors: bool = True,
    enable_eigvec_derivs: bool = True,
    implementation: object = None,
    use_magma: bool | None = None,
) -> list[Value]:
    """Returns eigenvalues, and left and right eigenvectors, of general matrices.

    Args:
        x: Matrices of shape (..., n, n).
        compute_left_eigenvectors: Whether to return u with u^H x = w u^H.
        compute_right_eigenvectors: Whether to return v with x v = v w.
        enable_eigvec_derivs: Has no effect: eigenvectors always have derivatives.
        implementation, use_magma: Have no effect: there is one implementation.

    Returns:
        A list of complex arrays: eigenvalues (..., n) in LAPACK's order, and the requested
        eigenvectors as columns (..., n, n), of length one and with a real largest component. NaN
        where x holds NaN or infinities.

    Raises:
        ShapeError: unless the matrices are square.
        DTypeError: for dtypes other than float32, float64, complex64 and complex128.
        HostCallNeededError: if it is compiled for anything but the CPU of this process.

    >>> eig(np.array([[0.0, 1.0], [-1.0, 0.0]], np.float32))[0]
    Array([0.+1.j, 0.-1.j], dtype=complex64)
    """
    return list(
        _eig.bind(
            as_value(x),
            compute_left_eigenvectors=bool(compute_left_eigenvectors),
            compute_right_eigenvectors=bool(compute_right_eigenvectors),
        )
    )


_COMPLEX: dict[np.dtype, np.dtype] = {
    dtypes.float32: dtypes.complex64,
    dtypes.float64: dtypes.complex128,
    dtypes.complex64: dtypes.complex64,
    dtypes.complex128: dtypes.complex128,
}


def _infer(
    x: ShapedArray, *, compute_left_eigenvectors: bool, compute_right_eigenvectors: bool
) -> list[ShapedArray]:
    check_matrix("eig", x, is_square=True)
    dtype = _COMPLEX[x.dtype]
    count = compute_left_eigenvectors + compute_right_eigenvectors
    return [ShapedArray(x.shape[:-1], dtype), *[ShapedArray(x.shape, dtype)] * count]


def _evaluate(
    x: np.ndarray, *, compute_left_eigenvectors: bool, compute_right_eigenvectors: bool
) -> list[np.ndarray]:
    flags = (compute_left_eigenvectors, compute_right_eigenvectors)
    dtype = _COMPLEX[x.dtype]
    results = [np.empty(shape, dtype) for shape in (x.shape[:-1], *[x.shape] * sum(flags))]
    return each_matrix(lambda matrix: _eigen(matrix, *flags), x, results) if x.size else results


def _eigen(x: np.ndarray, has_left: bool, has_right: bool) -> list[np.ndarray] | None:
    if not np.isfinite(x).all():
        return None
    results = routine("geev", x.dtype)(x, compute_vl=has_left, compute_vr=has_right)
    *values, left, right, failure = results
    if failure:
        return None
    if x.dtype.kind == "c":
        numbers = values[0]
    else:
        numbers = values[0] + 1j * values[1]
        is_paired = values[1] > 0  # the first eigenvalue of each conjugate pair
        left, right = (_complex_columns(vectors, is_paired) for vectors in (left, right))
    chosen = [v for v, is_wanted in ((left, has_left), (right, has_right)) if is_wanted]
    return [numbers, *chosen]


def _complex_columns(vectors: np.ndarray, is_paired: np.ndarray) -> np.ndarray:
    """Combines real and imaginary parts; LAPACK stores them in two columns per pair."""
    if vectors.shape[0] != is_paired.shape[0]:
        return vectors
    result = vectors.astype(_COMPLEX[vectors.dtype])
    for column in np.flatnonzero(is_paired):
        result[:, column] = vectors[:, column] + 1j * vectors[:, column + 1]
        result[:, column + 1] = result[:, column].conj()
    return result


def _jvp(
    primals: Sequence[Value],
    tangents: OperandTangents,
    outs: Results,
    *,
    compute_left_eigenvectors: bool,
    compute_right_eigenvectors: bool,
) -> Sequence[Tangent]:
    """Giles (2008), 3.1: with m = v^-1 dx v, dw = diag m and dv = v (m / (w_j - w_i)).

    Then the length and the phase of each column are restored.
    """
    zeros = zero_tangents(tangents[0], outs)
    if zeros is not None:
        return zeros
    values, *vectors = outs
    tangent = to_dtype(tangents[0], values.dtype)
    right = vectors[-1] if compute_right_eigenvectors else eig(primals[0])[2]
    mixed = solve(right, matmul(tangent, right))
    results = [diagonal(mixed)]
    if compute_left_eigenvectors:
        # Left eigenvectors are the right ones of the adjoint.
        left = vectors[0]
        pulled = solve(left, matmul(adjoint(tangent), left))
        results.append(_vector_tangent(left, conjugated(values), pulled))
    if compute_right_eigenvectors:
        results.append(_vector_tangent(right, values, mixed))
    return results


def _vector_tangent(vectors: Value, values: Value, mixed: Value) -> Value:
    tangent = matmul(vectors, mul(gaps_between(values), mixed))
    growth = reduce_sum(real_part(mul(conjugated(vectors), tangent)), (vectors.ndim - 2,))
    growth = along_rows(to_dtype(growth, vectors.dtype), vectors.shape)
    tangent = sub(tangent, mul(vectors, growth))
    sizes = squared(vectors)
    largest = argmax(sizes, vectors.ndim - 2, np.int32)
    rows = positions(vectors, vectors.shape, vectors.ndim - 2)
    is_largest = eq(rows, along_rows(largest, vectors.shape))
    ratio = select_n(is_largest, 0, div(tangent, select_n(is_largest, 1, vectors)))
    turn = imag(reduce_sum(ratio, (vectors.ndim - 2,)))
    turn = along_rows(complex_(mul(turn, 0), turn), vectors.shape)
    return sub(tangent, mul(vectors, turn))


def _with_gaps(
    generator: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype
) -> np.ndarray:
    """Draws matrices with separate eigenvalues."""
    distinct = np.diag(1.5 * np.arange(shape[-1]))
    return (distinct + random_general(generator, shape, dtype) / 3).astype(dtype)


def _samples() -> list[Sample]:
    shapes = [(3, 3), (2, 3, 3), (2, 2), (4, 4), (1, 1), (0, 0), (1, 2, 2, 2), (5, 5)]

    def params(index: int) -> Params:
        left, right = index % 3 != 1, index % 3 != 2
        return {"compute_left_eigenvectors": left, "compute_right_eigenvectors": right}

    rotation = np.array([[1.0, 2.0, 0.3], [-2.0, 1.0, 0.2], [0.1, 0.4, 3.0]], np.float32)
    return [
        *drawn_samples(28, shapes, _with_gaps, params, tolerance=512.0),
        Sample((rotation,), params(0), tolerance=512.0),
        Sample((np.full((2, 2), np.nan, np.float32),), params(0), is_smooth=False),
    ]


_eig: Primitive = declare_decomposition(
    "eig",
    parameters={"compute_left_eigenvectors": bool, "compute_right_eigenvectors": bool},
    multiple_results=True,
    dimensions=stack_of(2),
    infer=_infer,
    evaluate=_evaluate,
    jvp=_jvp,
    samples=_samples,
)
