"""`svd`: singular values and vectors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.errors import UnsupportedRuleError
from axir.dialect.core.symbolic_dims import smaller
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.arithmetic import add, div, mul, sub
from axir.dialect.ops.elementwise.comparison import eq, select_n
from axir.dialect.ops.elementwise.family import as_value
from axir.dialect.program.dimensions import stack_of
from axir.dialect.program.operation import Sample
from axir.dialect.program.primitive import Primitive
from axir.dialect.program.rules import Operand, OperandTangents, Results, Tangent, Value

from .eigh import check_subset, off_zero, weighted_projector
from .jacobi import singular_vectors
from .matrices import (
    adjoint,
    along_columns,
    along_rows,
    diagonal,
    imaginary_only,
    inverse_gaps,
    matmul,
    on_diagonal,
    part,
    real_part,
    to_dtype,
)
from .rules import (
    DOMAIN,
    check_matrix,
    declare_decomposition,
    decomposed_or_nan,
    random_matrix,
    zero_tangents,
)


def svd(
    x: Operand,
    *,
    full_matrices: bool = True,
    compute_uv: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    algorithm: object = None,
) -> Results:
    """Factors matrices into u diag(s) v^H, with orthonormal columns of u and v.

    Args:
        x: Matrices of shape (..., m, n).
        full_matrices: Whether u and v are square, else they have min(m, n) columns.
        compute_uv: Whether u and v^H are returned.
        subset_by_index: Must be None or (0, min(m, n)): all singular values are computed.
        algorithm: Has no effect: there is one implementation.

    Returns:
        u, s and v^H, or only s. s is real, of shape (..., min(m, n)), and descends; columns of u
        and v are determined up to a common factor of modulus one. NaN where x holds NaN.

    Raises:
        ShapeError: for arrays of fewer than two axes.
        DTypeError: for dtypes other than float32, float64, complex64 and complex128.
        ParameterError: for another subset.

    >>> svd(np.array([[3.0, 0.0], [0.0, -4.0]], np.float32), compute_uv=False)
    Array([4., 3.], dtype=float32)
    """
    x = as_value(x)
    check_matrix("svd", x.type)
    check_subset("svd", subset_by_index, smaller(*x.shape[-2:]))
    results = _svd.bind(x, full_matrices=bool(full_matrices), compute_uv=bool(compute_uv))
    if not compute_uv:
        return results[0]
    values, left, right = results
    return left, values, right


def _infer(x: ShapedArray, *, full_matrices: bool, compute_uv: bool) -> list[ShapedArray]:
    check_matrix("svd", x)
    batch, (height, width) = x.shape[:-2], x.shape[-2:]
    size = smaller(height, width)
    values = ShapedArray((*batch, size), dtypes.real_dtype(x.dtype))
    if not compute_uv:
        return [values]
    left, right = (height, width) if full_matrices else (size, size)
    return [
        values,
        ShapedArray((*batch, height, left), x.dtype),
        ShapedArray((*batch, right, width), x.dtype),
    ]


def _evaluate(x: np.ndarray, *, full_matrices: bool, compute_uv: bool) -> list[np.ndarray]:
    def decompose(x: np.ndarray) -> list[np.ndarray]:
        if not compute_uv:
            return [np.linalg.svd(x, compute_uv=False)]
        left, values, right = np.linalg.svd(x, full_matrices)
        return [values, left, right]

    infer = partial(_infer, full_matrices=full_matrices, compute_uv=compute_uv)
    return decomposed_or_nan(decompose, x, infer)


def _jvp(
    primals: Sequence[Value],
    tangents: OperandTangents,
    outs: Results,
    *,
    full_matrices: bool,
    compute_uv: bool,
) -> Sequence[Tangent]:
    """Giles (2008), 3.2; complex matrices: Wan & Zhang (2019), arXiv:1909.02659.

    The free common phase of columns of u and v is attributed to u.
    """
    zeros = zero_tangents(tangents[0], outs)
    if zeros is not None:
        return zeros
    (x,), (tangent,) = primals, tangents
    height, width = x.shape[-2:]
    if compute_uv and full_matrices and height != width:
        raise UnsupportedRuleError(
            "svd with full_matrices=True has a derivative for square matrices only: the further "
            f"columns of u or v of {height} by {width} matrices are not determined by them.",
            "Use full_matrices=False.",
        )
    if not compute_uv:
        outs = _svd.bind(x, full_matrices=False, compute_uv=True)
    values, left, right_adjoint = outs
    right = adjoint(right_adjoint)
    moved = matmul(tangent, right)
    mixed = matmul(adjoint(left), moved)
    values_tangent = real_part(diagonal(mixed))
    if not compute_uv:
        return [values_tangent]
    scaled, factors = _factors(values, mixed)
    left_turn = mul(factors, add(mul(mixed, scaled[0]), mul(scaled[1], adjoint(mixed))))
    right_turn = mul(factors, add(mul(scaled[1], mixed), mul(adjoint(mixed), scaled[0])))
    if dtypes.is_complex(x.dtype):
        left_turn = add(left_turn, div(imaginary_only(on_diagonal(mixed)), scaled[0]))
    left_tangent, right_tangent = matmul(left, left_turn), matmul(right, right_turn)
    size = smaller(height, width)
    if height > size:
        left_tangent = add(left_tangent, _outside(left, moved, values))
    if width > size:
        pulled = matmul(adjoint(tangent), left)
        right_tangent = add(right_tangent, _outside(right, pulled, values))
    return [values_tangent, left_tangent, adjoint(right_tangent)]


def _factors(values: Value, like: Value) -> tuple[tuple[Value, Value], Value]:
    """Returns s_j and s_i as matrices, and 1 / (s_j^2 - s_i^2) with zeros on the diagonal."""
    by_column, by_row = along_rows(values, like.shape), along_columns(values, like.shape)
    factors = inverse_gaps(mul(sub(by_column, by_row), add(by_column, by_row)))
    by_column, by_row, factors = (to_dtype(x, like.dtype) for x in (by_column, by_row, factors))
    return (by_column, by_row), factors


def _outside(basis: Value, moved: Value, values: Value) -> Value:
    """Returns the part of moved / s that is orthogonal to a basis; zero where s is zero."""
    rest = sub(moved, matmul(basis, matmul(adjoint(basis), moved)))
    divisors = to_dtype(along_rows(values, moved.shape), moved.dtype)
    is_null = eq(divisors, 0)
    return select_n(is_null, div(rest, select_n(is_null, divisors, 1)), 0)


def _invariants(results: Sequence[Value]) -> list[Value]:
    """Returns values that the matrix determines: u and v have a free common phase."""
    if len(results) == 1:
        return list(results)
    values, left, right_adjoint = results
    size = values.shape[-1]
    thin_left = part(left, (0, left.shape[-2]), (0, size))
    thin_right = adjoint(part(right_adjoint, (0, size), (0, right_adjoint.shape[-1])))
    products = [
        weighted_projector(thin_left, thin_right),
        weighted_projector(thin_left, thin_left),
    ]
    return [values, *map(off_zero, products)]


def _invariants_of_bases(results: Sequence[Value]) -> list[Value]:
    """Returns the invariants, and the constant products that show that u and v are unitary."""
    _, left, right_adjoint = results
    products = [matmul(left, adjoint(left)), matmul(adjoint(right_adjoint), right_adjoint)]
    return [*_invariants(results), *map(off_zero, products)]


def _samples() -> list[Sample]:
    generator = np.random.default_rng(27)
    samples = []
    variants = [
        ((3, 3), True, True), ((4, 2), False, True), ((2, 4), False, True), ((2, 3, 3), True, True),
        ((1, 2, 2, 3), False, True), ((4, 2), True, True), ((2, 3), True, True),
        ((3, 2), False, False), ((1, 1), True, True), ((0, 2), True, True), ((2, 0), False, True),
        ((9, 7), False, False),
    ]  # fmt: skip
    for index, (shape, full_matrices, compute_uv) in enumerate(variants):
        x = random_matrix(generator, shape, DOMAIN[index % 4])
        params = {"full_matrices": full_matrices, "compute_uv": compute_uv}
        is_smooth = not full_matrices or shape[-1] == shape[-2]
        invariants = _invariants if is_smooth else _invariants_of_bases
        samples.append(Sample((x,), params, is_smooth, tolerance=1024.0, invariants=invariants))
    params = {"full_matrices": False, "compute_uv": False}
    for special in (np.zeros((2, 3)), np.full((2, 2), np.nan)):
        samples.append(Sample((special.astype(np.float32),), params, is_smooth=False))
    deficient = np.outer([1.0, 2.0, 3.0], [1.0, -1.0]).astype(np.float32)
    samples.append(Sample((deficient,), params, is_smooth=False, tolerance=64.0))
    return samples


_svd: Primitive = declare_decomposition(
    "svd",
    parameters={"full_matrices": bool, "compute_uv": bool},
    multiple_results=True,
    dimensions=stack_of(2),
    infer=_infer,
    evaluate=_evaluate,
    jvp=_jvp,
    portable=singular_vectors,
    samples=_samples,
)
