"""`lu`: elimination with partial pivoting, and the meaning of its pivots."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.errors import DTypeError, ParameterError, ShapeError
from axir.dialect.core.symbolic_dims import smaller
from axir.dialect.core.symbolic_zeros import Zero
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.arithmetic import add, sub
from axir.dialect.ops.elementwise.family import as_value, zero_tangent
from axir.dialect.ops.shape.concatenation import concatenate
from axir.dialect.ops.shape.rearranging import reshape
from axir.dialect.program.dimensions import stack_of
from axir.dialect.program.operation import Sample
from axir.dialect.program.primitive import Primitive
from axir.dialect.program.rules import Operand, OperandTangents, Results, Tangent, Value

from . import kernels
from .blas_threads import routine
from .blocked import apply_pivots, factor_lu, permuted
from .kernels import matrix_kernel
from .matrices import identity, lower_part, matmul, part, upper_part
from .rules import check_matrix, declare_decomposition, drawn_samples, random_matrix, zero_tangents
from .stacks import (
    stacked,
    unstacked,
)
from .triangular_solve import triangular_solve


def lu(x: Operand) -> tuple[Value, Value, Value]:
    """Factors matrices with permuted rows into l u, by partial pivoting.

    Args:
        x: Matrices of shape (..., m, n).

    Returns:
        The packed factors (l below the diagonal, its ones not stored), the int32 pivots of shape
        (..., min(m, n)): row i was exchanged with row pivots[i], in this order; and the int32
        permutation of shape (..., m): x[permutation] = l u. Singular matrices have zeros on the
        diagonal of u.

    Raises:
        ShapeError: for arrays of fewer than two axes.
        DTypeError: for dtypes other than float32, float64, complex64 and complex128.

    >>> factors, pivots, permutation = lu(np.array([[1.0, 2.0], [4.0, 4.0]], np.float32))
    >>> factors, permutation
    (Array([[4.  , 4.  ],
           [0.25, 1.  ]], dtype=float32), Array([1, 0], dtype=int32))
    """
    factors, pivots, permutation = _lu.bind(as_value(x))
    return factors, pivots, permutation


def permuted_rows(x: Value, permutation: Value) -> Value:
    """Returns x[..., permutation, :], with the permutation of each matrix of a stack."""
    if not x.size:
        return x
    order = reshape(permutation, (*permutation.shape, 1))
    return unstacked(permuted(stacked(x), stacked(order)), x.shape[:-2])


def unit_lower(packed: Value) -> Value:
    """Returns the factor l (..., m, min(m, n)) from packed factors."""
    height, width = packed.shape[-2:]
    left = part(packed, (0, height), (0, smaller(height, width)))
    return add(lower_part(left, -1), identity(left, left.shape))


def _infer(x: ShapedArray) -> tuple[ShapedArray, ShapedArray, ShapedArray]:
    check_matrix("lu", x)
    batch, (height, width) = x.shape[:-2], x.shape[-2:]
    return (
        ShapedArray(x.shape, x.dtype),
        ShapedArray((*batch, smaller(height, width)), np.int32),
        ShapedArray((*batch, height), np.int32),
    )


def _evaluate(x: np.ndarray) -> list[np.ndarray]:
    factors = np.empty(x.shape, x.dtype)
    batch, (height, width) = x.shape[:-2], x.shape[-2:]
    pivots = np.zeros((*batch, min(height, width)), np.int32)
    if x.size:
        factor = routine("getrf", x.dtype)
        for place in np.ndindex(*batch):
            factors[place], pivots[place], _ = factor(x[place])
    return [factors, pivots, _permutation(pivots, height)]


# From this number of matrices on, their exchanges run side by side.
_MANY = 64


def _permutation(pivots: np.ndarray, size: int) -> np.ndarray:
    batch = pivots.shape[:-1]
    # A row out of range is not exchanged.
    is_row = (pivots >= 0) & (pivots < size)
    pivots = np.where(is_row, pivots, np.arange(pivots.shape[-1], dtype=np.int32))
    order = np.empty((*batch, size), np.int32)
    order[...] = np.arange(size, dtype=np.int32)
    count = math.prod(batch)
    flat, flat_pivots = order.reshape(count, size), pivots.reshape(count, pivots.shape[-1])
    if count < _MANY:
        exchange = routine("laswp", np.dtype(np.float64))
        for row, exchanged in zip(flat, flat_pivots, strict=True):
            if exchanged.size:
                row[:] = exchange(row.astype(np.float64)[:, None], exchanged)[:, 0]
        return order
    stack = np.arange(count)
    for i in range(pivots.shape[-1]):
        j = flat_pivots[:, i]
        flat[stack, j], flat[:, i] = flat[:, i].copy(), flat[stack, j]
    return order


def _small(values: Sequence[Value], types: Sequence[ShapedArray]) -> list[Value]:
    return matrix_kernel(kernels.lu, values, types, types[0].shape[:-2])


def _jvp(primals: Sequence[Value], tangents: OperandTangents, outs: Results) -> Sequence[Tangent]:
    """With m = l^-1 dx u^-1: dl = l times the triangle of m below the diagonal, du = rest of m u.

    The elements outside the first min(m, n) rows and columns follow from x = l u.
    """
    packed, pivots, permutation = outs
    fixed = [Zero(x.aval.to_tangent_aval()) for x in (pivots, permutation)]
    zeros = zero_tangents(tangents[0], outs)
    if zeros is not None:
        return zeros
    height, width = packed.shape[-2:]
    size = smaller(height, width)
    square = (0, size)
    tangent = permuted_rows(tangents[0], permutation)
    corner = part(packed, square, square)
    middle = _right_solve(corner, _left_solve(corner, part(tangent, square, square)))
    left, right = lower_part(middle, -1), upper_part(middle)
    l_tangent = matmul(unit_lower(corner), left)
    u_tangent = matmul(right, upper_part(corner))
    result = add(l_tangent, u_tangent)
    if height > size:
        rest = part(tangent, (size, height), square)
        known = matmul(part(packed, (size, height), square), u_tangent)
        result = concatenate([result, _right_solve(corner, sub(rest, known))], result.ndim - 2)
    if width > size:
        rest = part(tangent, square, (size, width))
        known = matmul(l_tangent, part(packed, square, (size, width)))
        result = concatenate([result, _left_solve(corner, sub(rest, known))], result.ndim - 1)
    return [result, *fixed]


def _left_solve(packed: Value, b: Value) -> Value:
    return triangular_solve(packed, b, left_side=True, lower=True, unit_diagonal=True)


def _right_solve(packed: Value, b: Value) -> Value:
    return triangular_solve(packed, b, left_side=False, lower=False)


def _samples() -> list[Sample]:
    shapes = [(3, 3), (2, 3, 3), (4, 2), (2, 4), (1, 1), (0, 3), (2, 0), (2, 2, 1), (37, 36)]
    singular = np.array([[1, 2, 3], [2, 4, 6], [0, 0, 1]], np.float32)
    return [
        *drawn_samples(23, [*shapes, (4, 4)], random_matrix, tolerance=256.0),
        Sample((singular,), is_smooth=False),
    ]


_lu: Primitive = declare_decomposition(
    "lu",
    multiple_results=True,
    dimensions=stack_of(2),
    infer=_infer,
    evaluate=_evaluate,
    jvp=_jvp,
    portable=factor_lu,
    small=_small,
    samples=_samples,
)


# Pivots ----------------------------------------------------------------------------------------


def lu_pivots_to_permutation(pivots: Operand, permutation_size: int) -> Value:
    """Returns the permutation of rows that equals a sequence of exchanges.

    Args:
        pivots: int32 array of shape (..., k): row i was exchanged with row pivots[i].
        permutation_size: Number of rows, at least k.

    Returns:
        An int32 array of shape (..., permutation_size).

    Raises:
        DTypeError: unless the pivots are int32.
        ParameterError: for fewer rows than pivots.

    >>> lu_pivots_to_permutation(np.array([1, 2], np.int32), 3)
    Array([1, 2, 0], dtype=int32)
    """
    return _pivots_to_permutation.bind(as_value(pivots), permutation_size=int(permutation_size))


def _infer_permutation(pivots: ShapedArray, *, permutation_size: int) -> ShapedArray:
    if pivots.dtype != dtypes.int32:
        raise DTypeError(
            f"lu_pivots_to_permutation: pivots must be int32, not {pivots.dtype}.",
            "Cast with x.astype('int32').",
        )
    if pivots.ndim < 1:
        raise ShapeError("lu_pivots_to_permutation: pivots must have at least one axis.")
    if permutation_size < pivots.shape[-1]:
        raise ParameterError(
            f"lu_pivots_to_permutation: permutation_size={permutation_size} is less than the "
            f"number of pivots, {pivots.shape[-1]}."
        )
    return ShapedArray((*pivots.shape[:-1], permutation_size), np.int32)


def _small_permutation(
    values: Sequence[Value], types: Sequence[ShapedArray], *, permutation_size: int
) -> list[Value] | None:
    if not permutation_size:
        return None
    return matrix_kernel(kernels.exchanges, values, types, types[0].shape[:-1])


def _permutation_samples() -> list[Sample]:
    variants = [([1, 1], 2), ([2, 2, 2], 5), ([[0, 1], [1, 1]], 3), ([], 2), ([[[3, 1]]], 4)]
    return [
        Sample((np.array(pivots, np.int32),), {"permutation_size": size}, is_smooth=False)
        for pivots, size in variants
    ]


_pivots_to_permutation: Primitive = declare_decomposition(
    "lu_pivots_to_permutation",
    parameters={"permutation_size": int},
    dimensions=stack_of(1),
    infer=_infer_permutation,
    evaluate=lambda pivots, *, permutation_size: _permutation(pivots, permutation_size),
    jvp=zero_tangent,
    portable=lambda pivots, *, permutation_size: apply_pivots(pivots, permutation_size),
    small=_small_permutation,
    samples=_permutation_samples,
    unsupported={"transpose": "a permutation does not depend linearly on its exchanges."},
)
