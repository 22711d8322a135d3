"""`lu_solve`: linear equations with the known factors of a matrix.

The matrix is an operand beside its factors: values come from the factors, derivatives go to the
matrix. So derivatives of a solution of any order do not differentiate the factorization, and
forward and backward equations share the factors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from axir.dialect.core.errors import ShapeError, UnsupportedRuleError
from axir.dialect.core.symbolic_zeros import Zero, is_undefined_primal
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.arithmetic import neg
from axir.dialect.ops.elementwise.comparison import eq, select_n
from axir.dialect.ops.elementwise.conversion import stop_gradient
from axir.dialect.ops.elementwise.family import add_tangents
from axir.dialect.ops.reductions.reduce import reduce_sum
from axir.dialect.ops.shape.movement import batch_size
from axir.dialect.ops.shape.rearranging import move_batch_axis, moveaxis, reshape
from axir.dialect.program.dimensions import Dimensions, with_columns
from axir.dialect.program.op_table import OPS
from axir.dialect.program.operation import Sample
from axir.dialect.program.primitive import Primitive
from axir.dialect.program.rules import Cotangent, Tangent, Tangents, TransposeOperand, Value

from . import kernels
from .blas_threads import routine
from .kernels import matrix_kernel
from .lu import lu, permuted_rows
from .matrices import along_columns, matmul, positions, transposed
from .rules import DOMAIN, check_dtype, check_matrix, declare_decomposition, random_matrix
from .triangular_solve import triangular_solve


def solve(a: Value, b: Value) -> Value:
    """Solves a x = b for x, for square matrices (..., n, n) and right-hand sides (..., n, m)."""
    check_matrix("solve", a.type, is_square=True)
    factors, _, permutation = lu(stop_gradient(a))
    return _lu_solve.bind(a, factors, permutation, b, is_transposed=False)


def solve_with(factors: Value, permutation: Value, b: Value, is_transposed: bool = False) -> Value:
    """Solves l u x = b[permutation], or the transposed equations, from the factors only."""
    if not is_transposed:
        b = permuted_rows(b, permutation)
        b = triangular_solve(factors, b, left_side=True, lower=True, unit_diagonal=True)
        return triangular_solve(factors, b, left_side=True, lower=False)
    b = triangular_solve(factors, b, left_side=True, lower=False, transpose_a=True)
    b = triangular_solve(
        factors, b, left_side=True, lower=True, transpose_a=True, unit_diagonal=True
    )
    return permuted_rows(b, inverse_of(permutation))


def inverse_of(permutation: Value) -> Value:
    """Returns the inverse permutations."""
    shape = (*permutation.shape, permutation.shape[-1])
    rank = len(shape)
    places = positions(permutation, shape, rank - 2)
    is_there = eq(along_columns(permutation, shape), positions(permutation, shape, rank - 1))
    return reduce_sum(select_n(is_there, 0, places), (rank - 2,))


def _infer(
    a: ShapedArray, factors: ShapedArray, permutation: ShapedArray, b: ShapedArray, **params: object
) -> ShapedArray:
    check_matrix("solve", a, is_square=True)
    check_dtype("solve", a, factors, b)
    if b.ndim != a.ndim or b.shape[:-1] != a.shape[:-1] or factors.shape != a.shape:
        raise ShapeError(
            f"solve: right-hand sides of shape {b.shape} do not fit matrices of shape {a.shape}.",
            "They have the shape (..., n, m), with the batch dimensions of the matrices.",
        )
    return ShapedArray(b.shape, b.dtype)


def _evaluate(
    a: np.ndarray, factors: np.ndarray, permutation: np.ndarray, b: np.ndarray,
    *, is_transposed: bool,
) -> np.ndarray:  # fmt: skip
    result = np.zeros(b.shape, b.dtype)
    if not b.size:
        return result
    # Two calls of trsm: getrs wakes all threads of the library even for the smallest matrices. BLAS
    # reads a row-major matrix as its transpose, so it solves from the other side.
    trsm = routine("trsm", b.dtype)
    for place in np.ndindex(*b.shape[:-2]):
        order, packed = permutation[place], factors[place].T
        right = b[place] if is_transposed else b[place][order]
        if is_transposed:
            found = trsm(1, packed, right.T, side=1, lower=1, trans_a=1)
            result[place][order] = trsm(1, packed, found, side=1, diag=1, trans_a=1).T
        else:
            found = trsm(1, packed, right.T, side=1, diag=1)
            result[place] = trsm(1, packed, found, side=1, lower=1).T
    return result


def _small(
    values: Sequence[Value], types: Sequence[ShapedArray], *, is_transposed: bool
) -> list[Value]:
    solve = kernels.lu_substitution(is_transposed=is_transposed)
    return matrix_kernel(solve, values[1:], types, types[0].shape[:-2])


def _jvp(
    primals: Sequence[Value], tangents: Sequence[Tangent], x: Value, *, is_transposed: bool
) -> Tangents:
    a, factors, permutation, _ = primals
    change: Any = tangents[3]
    if type(tangents[0]) is not Zero:
        moved = transposed(tangents[0]) if is_transposed else tangents[0]
        change = add_tangents(change, neg(matmul(moved, x)))
    if type(change) is Zero:
        return Zero(x.aval.to_tangent_aval())
    return _lu_solve.bind(a, factors, permutation, change, is_transposed=is_transposed)


def _transpose(
    ct: Value,
    a: Value,
    factors: Value,
    permutation: Value,
    b: TransposeOperand,
    *,
    is_transposed: bool,
) -> Sequence[Cotangent | None]:
    if is_undefined_primal(a) or is_undefined_primal(factors):
        raise UnsupportedRuleError("solve is linear in the right-hand sides only.")
    turned = not is_transposed
    return [None, None, None, _lu_solve.bind(a, factors, permutation, ct, is_transposed=turned)]


def _batch(
    operands: Sequence[Value], axes: Sequence[int | None], **params: object
) -> tuple[Value, int]:
    size = batch_size(operands, axes)
    a, factors, permutation, b = operands
    if axes[3] is not None and all(axis is None for axis in axes[:3]) and a.ndim == 2:
        # All elements share one matrix: the batch becomes further right-hand sides.
        b = moveaxis(b, axes[3], 2)
        x = _lu_solve.bind(
            a, factors, permutation, reshape(b, (b.shape[0], b.shape[1] * size)), **params
        )
        return reshape(x, b.shape), 2
    moved = [move_batch_axis(x, axis, size, 0) for x, axis in zip(operands, axes, strict=True)]
    return _lu_solve.bind(*moved, **params), 0


def _samples() -> list[Sample]:
    generator = np.random.default_rng(33)
    samples = []
    for index, shape in enumerate([(3, 2), (2, 3, 2), (4, 1), (1, 2), (0, 2), (3, 0), (2, 2)]):
        dtype = DOMAIN[index % 4]
        a = random_matrix(generator, (*shape[:-1], shape[-2]), dtype)
        b = random_matrix(generator, shape, dtype)
        args = (a, *_known_factors(a), b)
        # Finite differences would treat the factors as independent of the matrix.
        params = {"is_transposed": index % 2 == 1}
        samples.append(Sample(args, params, is_smooth=False, tolerance=256.0))
    return samples


def _known_factors(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    evaluate = OPS["lu"].evaluate
    assert evaluate is not None
    factors, _, permutation = evaluate(a)
    return factors, permutation


def _dimensions(
    operands: Sequence[ShapedArray], results: Sequence[ShapedArray], **params: object
) -> Dimensions:
    return with_columns(operands, results, -1)


_lu_solve: Primitive = declare_decomposition(
    "lu_solve",
    parameters={"is_transposed": bool},
    dimensions=_dimensions,
    infer=_infer,
    evaluate=_evaluate,
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    portable=lambda a, factors, permutation, b, is_transposed: [
        solve_with(factors, permutation, b, is_transposed)
    ],
    small=_small,
    public_name="solve",
    samples=_samples,
)
