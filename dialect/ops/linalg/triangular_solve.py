"""`triangular_solve`: equations with a triangular matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from axir.dialect.core.annotations import AnyDtype, Param
from axir.dialect.core.errors import ShapeError, UnsupportedRuleError
from axir.dialect.core.symbolic_zeros import Zero, is_undefined_primal
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.arithmetic import neg
from axir.dialect.ops.elementwise.family import add_tangents, as_value
from axir.dialect.ops.shape.movement import batch_size
from axir.dialect.ops.shape.rearranging import move_batch_axis, moveaxis, reshape
from axir.dialect.program.dimensions import Dimensions, with_columns
from axir.dialect.program.operation import Sample
from axir.dialect.program.primitive import Primitive
from axir.dialect.program.rules import (
    Cotangent,
    Operand,
    Tangent,
    Tangents,
    TransposeOperand,
    Value,
)

from . import kernels
from .blas_threads import routine
from .blocked import solve_triangular
from .kernels import matrix_kernel
from .matrices import conjugated, lower_part, matmul, transposed, upper_part
from .rules import DOMAIN, check_dtype, declare_decomposition, random_matrix

# Up to these, a kernel with rows^2 columns steps is faster than a call of LAPACK.
_MOST_ROWS = 128
_MOST_STEPS = 40**3


def triangular_solve(
    a: Operand,
    b: Operand,
    *,
    left_side: bool = False,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Value:
    """Solves op(a) x = b or x op(a) = b for triangular matrices a.

    Args:
        a: Matrices of shape (..., n, n); one triangle of each is read.
        b: Right-hand sides of shape (..., n, m), or (..., m, n) if not `left_side`; or vectors of
            shape (..., n).
        left_side: Whether a stands on the left.
        lower: Whether the lower triangle of a is read, else the upper one.
        transpose_a: Whether op transposes a.
        conjugate_a: Whether op conjugates a.
        unit_diagonal: Whether the diagonal of a is taken as ones, without being read.

    Returns:
        x, of the shape of b. A zero on the diagonal gives infinities and NaN.

    Raises:
        ShapeError: if the shapes do not fit.
        DTypeError: for dtypes other than float32, float64, complex64 and complex128.

    >>> a = np.array([[2.0, 0.0], [1.0, 1.0]], np.float32)
    >>> triangular_solve(a, np.array([2.0, 3.0], np.float32), left_side=True, lower=True)
    Array([1., 2.], dtype=float32)
    """
    a, b = as_value(a), as_value(b)
    is_vector = b.ndim == a.ndim - 1
    if is_vector:
        b = reshape(b, (*b.shape, 1) if left_side else (*b.shape[:-1], 1, b.shape[-1]))
    x = _triangular_solve.bind(
        a,
        b,
        left_side=bool(left_side),
        lower=bool(lower),
        transpose_a=bool(transpose_a),
        conjugate_a=bool(conjugate_a),
        unit_diagonal=bool(unit_diagonal),
    )
    if not is_vector:
        return x
    return reshape(x, x.shape[:-1] if left_side else (*x.shape[:-2], x.shape[-1]))


def _infer(a: ShapedArray, b: ShapedArray, *, left_side: bool, **params: object) -> ShapedArray:
    check_dtype("triangular_solve", a, b)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ShapeError(
            f"triangular_solve requires square matrices in the last two dimensions of a, but got "
            f"{a}."
        )
    if (
        b.ndim != a.ndim
        or b.shape[:-2] != a.shape[:-2]
        or b.shape[-2 if left_side else -1] != a.shape[-1]
    ):
        wanted = "(..., n, m)" if left_side else "(..., m, n)"
        raise ShapeError(
            f"triangular_solve: b of shape {b.shape} does not fit a of shape {a.shape}: with "
            f"left_side={left_side}, b has the shape {wanted} with the batch dimensions of a.",
            "Broadcast the batch dimensions first, or exchange left_side.",
        )
    return ShapedArray(b.shape, b.dtype)


def _evaluate(
    a: np.ndarray, b: np.ndarray, *, left_side: bool, lower: bool, transpose_a: bool,
    conjugate_a: bool, unit_diagonal: bool,
) -> np.ndarray:  # fmt: skip
    result = np.empty(b.shape, b.dtype)
    if not b.size:
        return result
    if conjugate_a and not transpose_a:
        a = a.conj()
    solve = routine("trsm", b.dtype)
    operation = 0 if not transpose_a else 2 if conjugate_a else 1
    # BLAS expects column-major order and reads a row-major matrix as its transpose. So it solves
    # for the transposed solution from the other side, and nothing is reordered.
    for place in np.ndindex(*a.shape[:-2]):
        result[place] = solve(
            1, a[place].T, b[place].T, side=left_side, lower=not lower, trans_a=operation,
            diag=unit_diagonal,
        ).T  # fmt: skip
    return result


def _small(
    values: Sequence[Value], types: Sequence[ShapedArray], **params: Param
) -> list[Value] | None:
    rows, columns = types[0].shape[-2:][:: 1 if params["left_side"] else -1]
    if rows**2 * columns > _MOST_STEPS:
        return None
    return matrix_kernel(kernels.substitution(**params), values, types, types[0].shape[:-2])


def _jvp(
    primals: Sequence[Value], tangents: Sequence[Tangent], x: Value, **params: object
) -> Tangents:
    a, _ = primals
    a_tangent, b_tangent = tangents
    change: Any = b_tangent
    if type(a_tangent) is not Zero:
        offset = 1 if params["unit_diagonal"] else 0
        moved = lower_part(a_tangent, -offset) if params["lower"] else upper_part(a_tangent, offset)
        if params["transpose_a"]:
            moved = transposed(moved)
        if params["conjugate_a"]:
            moved = conjugated(moved)
        product = matmul(moved, x) if params["left_side"] else matmul(x, moved)
        change = add_tangents(change, neg(product))
    if type(change) is Zero:
        return Zero(x.aval.to_tangent_aval())
    return _triangular_solve.bind(a, change, **params)


def _transpose(
    ct: Value, a: Value, b: TransposeOperand, *, transpose_a: bool, **params: object
) -> Sequence[Cotangent | None]:
    if is_undefined_primal(a):
        raise UnsupportedRuleError("triangular_solve is linear in b only.")
    return [None, _triangular_solve.bind(a, ct, transpose_a=not transpose_a, **params)]


def _batch(
    operands: Sequence[Value], axes: Sequence[int | None], *, left_side: bool, **params: object
) -> tuple[Value, int]:
    a, b = operands
    size = batch_size(operands, axes)
    if axes[0] is None and axes[1] is not None and a.ndim == 2:
        # All elements share one matrix: the batch becomes further right-hand sides.
        place = 2 if left_side else 0
        b = moveaxis(b, axes[1], place)
        first, second, third = b.shape
        flat = (first, second * third) if left_side else (first * second, third)
        x = _triangular_solve.bind(a, reshape(b, flat), left_side=left_side, **params)
        return reshape(x, b.shape), place
    a, b = (move_batch_axis(x, axis, size, 0) for x, axis in zip(operands, axes, strict=True))
    return _triangular_solve.bind(a, b, left_side=left_side, **params), 0


def _samples() -> list[Sample]:
    generator = np.random.default_rng(21)
    samples = []

    def add(
        dtype: AnyDtype, shape: tuple[int, ...], columns: int, left_side: bool, lower: bool,
        transpose_a: bool, conjugate_a: bool, unit_diagonal: bool,
    ) -> None:  # fmt: skip
        size = shape[-1]
        a = random_matrix(generator, shape, dtype) / 3 + 2 * np.eye(size)
        b_shape = (*shape[:-2], *((size, columns) if left_side else (columns, size)))
        b = random_matrix(generator, b_shape, dtype)
        params = {
            "left_side": left_side,
            "lower": lower,
            "transpose_a": transpose_a,
            "conjugate_a": conjugate_a,
            "unit_diagonal": unit_diagonal,
        }
        samples.append(Sample((a.astype(dtype), b.astype(dtype)), params, tolerance=256.0))

    for index in range(16):
        left, lower, transposed, unit = (bool(index >> bit & 1) for bit in range(4))
        add(DOMAIN[index % 4], (3, 3), 2, left, lower, transposed, index % 3 == 0, unit)
    add(np.float32, (2, 3, 3), 2, True, True, False, False, False)
    add(np.complex64, (2, 1, 3, 3), 1, False, False, True, True, False)
    add(np.float32, (1, 1), 2, True, False, False, False, False)
    add(np.float32, (0, 0), 2, True, False, False, False, False)
    add(np.float32, (2, 2), 0, True, False, False, False, False)
    add(np.float32, (37, 37), 2, True, False, False, False, False)
    return samples


def _dimensions(
    operands: Sequence[ShapedArray],
    results: Sequence[ShapedArray],
    *,
    left_side: bool,
    **params: object,
) -> Dimensions:
    return with_columns(operands, results, -1 if left_side else -2)


_triangular_solve: Primitive = declare_decomposition(
    "triangular_solve",
    parameters={
        "left_side": bool,
        "lower": bool,
        "transpose_a": bool,
        "conjugate_a": bool,
        "unit_diagonal": bool,
    },
    dimensions=_dimensions,
    infer=_infer,
    evaluate=_evaluate,
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    portable=solve_triangular,
    small=_small,
    small_extent=_MOST_ROWS,
    samples=_samples,
)
