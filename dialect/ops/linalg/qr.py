"""`qr` and `householder_product`: orthogonal factors, by Householder reflections."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core import dtypes
from axir.dialect.core.errors import ShapeError
from axir.dialect.core.late_modules import scipy_linalg
from axir.dialect.core.symbolic_dims import smaller
from axir.dialect.core.symbolic_zeros import Zero
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.arithmetic import add, sub
from axir.dialect.ops.elementwise.family import as_value
from axir.dialect.ops.shape.concatenation import concatenate
from axir.dialect.program.dimensions import stack_of
from axir.dialect.program.operation import Sample
from axir.dialect.program.primitive import Primitive
from axir.dialect.program.rules import Operand, OperandTangents, Results, Tangent, Value

from . import kernels
from .blas_threads import routine
from .householder import multiply_reflections, orthonormal_and_triangle
from .kernels import matrix_kernel
from .lu import permuted_rows
from .lu_solve import solve
from .matrices import (
    adjoint,
    filled,
    identity,
    imaginary_only,
    lower_part,
    matmul,
    on_diagonal,
    part,
    transposed,
)
from .rules import (
    DOMAIN,
    KERNEL_EXTENT,
    check_dtype,
    check_matrix,
    declare_decomposition,
    each_matrix,
    random_matrix,
    zero_tangents,
)
from .triangular_solve import triangular_solve

# Limits of the kernel for a few long columns: their length, and the number of products.
_TALL_EXTENT = 512
_WORK_OF_TALL = 1 << 14


def qr(
    x: Operand, *, pivoting: bool = False, full_matrices: bool = True, use_magma: bool | None = None
) -> tuple[Value, ...]:
    """Factors matrices into q r, with orthonormal columns of q and an upper triangle r.

    Args:
        x: Matrices of shape (..., m, n).
        pivoting: Whether columns are exchanged so that the diagonal of r descends.
        full_matrices: Whether q has m columns, else min(m, n).
        use_magma: Has no effect: there is one implementation.

    Returns:
        q, r, and if pivoting the int32 permutation p with x[:, p] = q r. The diagonal of r is real,
        of the sign opposite to the part of the column that it replaces, as in LAPACK.

    Raises:
        ShapeError: for arrays of fewer than two axes.
        DTypeError: for dtypes other than float32, float64, complex64 and complex128.

    >>> q, r = qr(np.array([[3.0], [4.0]], np.float32), full_matrices=False)
    >>> r
    Array([[-5.]], dtype=float32)
    """
    return tuple(_qr.bind(as_value(x), pivoting=bool(pivoting), full_matrices=bool(full_matrices)))


def _infer(x: ShapedArray, *, pivoting: bool, full_matrices: bool) -> list[ShapedArray]:
    check_matrix("qr", x)
    batch, (height, width) = x.shape[:-2], x.shape[-2:]
    inner = height if full_matrices else smaller(height, width)
    types = [
        ShapedArray((*batch, height, inner), x.dtype),
        ShapedArray((*batch, inner, width), x.dtype),
    ]
    return [*types, ShapedArray((*batch, width), np.int32)] if pivoting else types


def _evaluate(x: np.ndarray, *, pivoting: bool, full_matrices: bool) -> list[np.ndarray]:
    if not pivoting:
        return list(np.linalg.qr(x, "complete" if full_matrices else "reduced"))
    types = _infer(ShapedArray(x.shape, x.dtype), pivoting=True, full_matrices=full_matrices)
    mode = "full" if full_matrices else "economic"
    factor = partial(scipy_linalg.qr, mode=mode, pivoting=True, check_finite=False)
    return each_matrix(factor, x, [np.empty(t.shape, t.dtype) for t in types])


def _small(
    values: Sequence[Value], types: Sequence[ShapedArray], *, pivoting: bool, full_matrices: bool
) -> list[Value] | None:
    height, inner, width = *types[0].shape[-2:], types[1].shape[-1]
    is_tall = max(height, inner, width) > KERNEL_EXTENT
    if pivoting or (is_tall and height * inner * width > _WORK_OF_TALL):
        return None
    return matrix_kernel(kernels.qr, values, types, types[0].shape[:-2])


def _jvp(
    primals: Sequence[Value],
    tangents: OperandTangents,
    outs: Results,
    *,
    pivoting: bool,
    full_matrices: bool,
) -> Sequence[Tangent]:
    """Walter & Lehmann (2010), Algorithmic differentiation of linear algebra functions.

    With m = q^H dx r^-1, dq = q w + (1 - q q^H) dx r^-1, where w is skew-Hermitian: below the
    diagonal it is m, and on it i Im m, because r keeps a real diagonal. Columns behind the square
    part of a wide r follow from r = q^H x.
    """
    q, r, *order = outs
    fixed = [Zero(x.aval.to_tangent_aval()) for x in order]
    zeros = zero_tangents(tangents[0], outs)
    if zeros is not None:
        return zeros
    (x,), (tangent,) = primals, tangents
    height, width = x.shape[-2:]
    if order:
        x, tangent = (_permuted_columns(value, order[0]) for value in (x, tangent))
    size = smaller(height, width)
    rows, square, rest = (0, height), (0, size), (size, width)
    corner, all_q = part(r, square, square), q
    q = part(q, rows, square)
    ratio = triangular_solve(corner, part(tangent, rows, square))
    mixed = matmul(adjoint(q), ratio)
    below = lower_part(mixed, -1)
    rotation = sub(below, adjoint(below))
    if dtypes.is_complex(q.dtype):
        rotation = add(rotation, imaginary_only(on_diagonal(mixed)))
    q_tangent = add(matmul(q, sub(rotation, mixed)), ratio)
    r_tangent = matmul(sub(mixed, rotation), corner)
    if width > size:
        behind = add(
            matmul(adjoint(q_tangent), part(x, rows, rest)),
            matmul(adjoint(q), part(tangent, rows, rest)),
        )
        r_tangent = concatenate([r_tangent, behind], r.ndim - 1)
    if full_matrices and height > width:
        q_tangent = _with_further_columns(all_q, q_tangent)
        below_square = filled(r, (*r.shape[:-2], height - size, width), 0)
        r_tangent = concatenate([r_tangent, below_square], r.ndim - 2)
    return [q_tangent, r_tangent, *fixed]


def _with_further_columns(q: Value, tangent: Value) -> Value:
    """Returns the tangent of all columns of q, given the tangent of the first n.

    A product of n reflections is 1 - y t y^H, with n columns of y. So q - 1, cut into (c, d; e, f)
    behind row and column n, has rank n, and its rows and columns span the same space: z = e c^-1
    also gives (d; f) = (c; e) z^H. Schreiber & Van Loan (1989) show the form of the product.
    """
    height, size = q.shape[-1], tangent.shape[-1]
    rows, first, rest = (0, height), (0, size), (size, height)
    less = sub(q, identity(q, q.shape))
    core = adjoint(part(less, first, first))
    ratio = solve(core, adjoint(part(less, rest, first)))
    moved = sub(part(tangent, rest, first), matmul(adjoint(ratio), part(tangent, first, first)))
    ratio_tangent = solve(core, adjoint(moved))
    further = add(matmul(tangent, ratio), matmul(part(less, rows, first), ratio_tangent))
    return concatenate([tangent, further], q.ndim - 1)


def _permuted_columns(x: Value, order: Value) -> Value:
    return transposed(permuted_rows(transposed(x), order))


def _samples() -> list[Sample]:
    generator = np.random.default_rng(24)
    shapes = [(3, 3), (4, 2), (2, 4), (2, 4, 3), (1, 1), (0, 2), (3, 0), (12, 9)]
    samples = []
    for index, shape in enumerate(shapes):
        for full_matrices in (False, True) if index < 3 else (index % 2 == 0,):
            x = random_matrix(generator, shape, DOMAIN[(index + full_matrices) % 4])
            params = {"pivoting": False, "full_matrices": full_matrices}
            samples.append(Sample((x,), params, tolerance=256.0))
    for dtype, shape in [(np.float32, (3, 3)), (np.complex128, (2, 4, 3)), (np.float64, (2, 3))]:
        x = random_matrix(generator, shape, np.dtype(dtype))
        x = x * (1 + np.arange(shape[-1])).astype(dtype)
        params = {"pivoting": True, "full_matrices": False}
        samples.append(Sample((x.astype(dtype),), params, tolerance=256.0))
    return samples


_qr: Primitive = declare_decomposition(
    "qr",
    parameters={"pivoting": bool, "full_matrices": bool},
    multiple_results=True,
    dimensions=stack_of(2),
    infer=_infer,
    evaluate=_evaluate,
    jvp=_jvp,
    portable=orthonormal_and_triangle,
    small=_small,
    small_extent=_TALL_EXTENT,
    samples=_samples,
)


# householder_product ---------------------------------------------------------------------------


def householder_product(a: Operand, taus: Operand) -> Value:
    """Multiplies out Householder reflections 1 - tau v v^H.

    Args:
        a: Matrices of shape (..., m, n), m at least n: the vectors v below the diagonal, their ones
            on it not stored.
        taus: Array of shape (..., k), k at most n.

    Returns:
        The first n columns of the product of the k reflections.

    Raises:
        ShapeError: if the shapes do not fit.
        DTypeError: for dtypes other than float32, float64, complex64 and complex128.

    >>> householder_product(np.array([[0.0], [1.0]], np.float32), np.array([1.0], np.float32))
    Array([[ 0.],
           [-1.]], dtype=float32)
    """
    return _householder_product.bind(as_value(a), as_value(taus))


def _infer_product(a: ShapedArray, taus: ShapedArray) -> ShapedArray:
    check_matrix("householder_product", a)
    check_dtype("householder_product", a, taus)
    if (
        a.shape[-2] < a.shape[-1]
        or taus.shape[:-1] != a.shape[:-2]
        or taus.ndim != a.ndim - 1
        or taus.shape[-1] > a.shape[-1]
    ):
        raise ShapeError(
            f"householder_product takes matrices (..., m, n) with m >= n and taus (..., k) with "
            f"k <= n, but got {a} and {taus}."
        )
    return ShapedArray(a.shape, a.dtype)


def _evaluate_product(a: np.ndarray, taus: np.ndarray) -> np.ndarray:
    result = np.empty(a.shape, a.dtype)
    if not a.size:
        return result
    if not taus.shape[-1]:
        result[...] = np.eye(*a.shape[-2:])
        return result
    multiply = routine("ungqr" if a.dtype.kind == "c" else "orgqr", a.dtype)
    for place in np.ndindex(*a.shape[:-2]):
        result[place] = multiply(a[place], taus[place])[0]
    return result


def _small_product(
    values: Sequence[ir.Value], types: Sequence[ShapedArray]
) -> list[ir.Value] | None:
    if not hlo.shape_of(values[1])[-1]:
        return None
    return matrix_kernel(kernels.product_of_reflections, values, types, types[0].shape[:-2])


def _product_samples() -> list[Sample]:
    generator = np.random.default_rng(25)
    samples = []
    for index, shape in enumerate([(3, 3), (4, 2), (2, 4, 3), (1, 1), (3, 0), (2, 0, 0), (5, 3)]):
        dtype = DOMAIN[index % 4]
        factor = np.linalg.qr(random_matrix(generator, shape, dtype), "raw")
        a, taus = np.ascontiguousarray(np.swapaxes(factor[0], -1, -2)), factor[1]
        if index == 6:
            taus = taus[:2]
        args = (a.astype(dtype), taus.astype(dtype))
        samples.append(Sample(args, is_smooth=False, tolerance=256.0))
    return samples


_householder_product: Primitive = declare_decomposition(
    "householder_product",
    dimensions=stack_of(2),
    infer=_infer_product,
    evaluate=_evaluate_product,
    portable=multiply_reflections,
    small=_small_product,
    samples=_product_samples,
    unsupported={
        "jvp": "reflections are an intermediate form; differentiate qr instead.",
        "transpose": "it is not linear in the vectors of the reflections.",
    },
)
