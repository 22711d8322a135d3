"""Eigenvalues and singular values by parallel Jacobi rotations, written with elementary ops.

A round rotates n/2 disjoint pairs of the n columns. Column i is paired with column i + n/2. Between
rounds all columns but the first move on by one position. In n - 1 rounds (a sweep) each column
meets each other column, and all return to their positions. Brent & Luk (1985), SIAM J. Sci. Stat.
Comput. 6. On the accuracy of singular values: Demmel & Veselic (1992), SIAM J. Matrix Anal. Appl.
13.
"""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.ops.control_flow.flat_loops import while_values
from axir.dialect.ops.elementwise.arithmetic import abs as absolute
from axir.dialect.ops.elementwise.arithmetic import add, div, max, mul, neg, sub
from axir.dialect.ops.elementwise.comparison import and_, eq, gt, lt
from axir.dialect.ops.elementwise.conversion import complex_, imag, real
from axir.dialect.ops.elementwise.transcendental import rsqrt, sqrt
from axir.dialect.ops.indexing.gather import GatherDimensionNumbers, gather
from axir.dialect.ops.indexing.static_slicing import slice_in_dim
from axir.dialect.ops.reductions.reduce import reduce_max, reduce_or, reduce_sum
from axir.dialect.ops.shape.concatenation import concatenate
from axir.dialect.ops.shape.rearranging import reshape
from axir.dialect.ops.sorting.sort import sort
from axir.dialect.program.rules import Value

from .householder import factor_qr, multiply_reflections, orthonormal_and_triangle
from .matrices import (
    adjoint,
    along_rows,
    conjugated,
    diagonal,
    filled,
    hermitian_of,
    identity,
    matmul,
    part,
    positions,
    real_part,
    to_dtype,
    upper_part,
)
from .stacks import (
    columns_of,
    is_zero,
    modulus,
    nonzero,
    norm_over,
    padded,
    repeat,
    rows_of,
    squared,
    stacked,
    sum_over,
    unstacked,
    where,
)

_MOST_SWEEPS = 30


def _resolution(x: Value) -> float:
    return float(ml_dtypes.finfo(dtypes.real_dtype(x.dtype)).eps)


# Rotations -------------------------------------------------------------------------------------


def _rotations(first: Value, second: Value, mixed: Value) -> tuple[Value, Value]:
    """Returns c and s of the rotations that diagonalize [[first, mixed], [conj(mixed), second]].

    The columns p and q become c p - conj(s) q and s p + c q; c is real.
    """
    size = absolute(mixed)
    safe = nonzero(size)
    ratio = div(sub(second, first), mul(2, safe))
    tangent = div(1, add(absolute(ratio), sqrt(add(1, mul(ratio, ratio)))))
    tangent = where(is_zero(size), 0, where(lt(ratio, 0), neg(tangent), tangent))
    cosine = rsqrt(add(1, mul(tangent, tangent)))
    phase = div(mixed, to_dtype(safe, mixed.dtype))
    return cosine, mul(to_dtype(mul(cosine, tangent), mixed.dtype), phase)


def _rotate_columns(x: Value, cosine: Value, sine: Value) -> Value:
    """Rotates pairs of columns by (batch, 1, pairs) angles."""
    half = x.shape[2] // 2
    first, second = part(x, (0, x.shape[1]), (0, half)), part(x, (0, x.shape[1]), (half, 2 * half))
    c, s = to_dtype(cosine, x.dtype), sine
    return concatenate(
        [sub(mul(c, first), mul(conjugated(s), second)), add(mul(s, first), mul(c, second))], 2
    )


def _next_pairs(x: Value) -> Value:
    """Moves all columns but the first on by one place around the two halves."""
    half = x.shape[2] // 2
    if half < 2:
        return x
    cuts = [(0, 1), (half, half + 1), (1, half - 1), (half + 1, 2 * half), (half - 1, half)]
    rows = (0, x.shape[1])
    return concatenate([part(x, rows, cut) for cut in cuts if cut[0] < cut[1]], 2)


def _sweep_until(
    is_rough: Callable[..., Value], sweep: Callable[..., list[Value]], *init: Value
) -> list[Value]:
    """Repeats sweeps while `is_rough(*values)` holds for any matrix, a limited number of times."""

    def goes_on(count: Value, *values: Value) -> Value:
        return and_(lt(count, _MOST_SWEEPS), is_rough(*values))

    def body(count: Value, *values: Value) -> list[Value]:
        return [add(count, np.int32(1)), *sweep(*values)]

    return list(while_values(goes_on, body, [filled(init[0], (), 0, np.int32), *init]))[1:]


def _scaled(a: Value) -> tuple[Value, Value]:
    """Returns the largest modulus in each matrix (batch, 1), or one, and the scaled matrices."""
    scale = nonzero(reduce_max(modulus(a), (1, 2)))
    divisor = reshape(scale, (a.shape[0], 1, 1))
    return reshape(scale, (a.shape[0], 1)), div(a, to_dtype(divisor, a.dtype))


# Hermitian eigenvalues -------------------------------------------------------------------------


def eigenvectors(x: Value, *, lower: bool, **options: object) -> list[Value]:
    """Returns eigenvectors, and eigenvalues in ascending order, as the op `eigh` does."""
    batch, size = x.shape[:-2], x.shape[-1]
    a = hermitian_of(stacked(x), lower)
    scale, a = _scaled(a)
    even = size + size % 2 if size > 1 else 1
    a = padded(a, even, even)
    vectors = identity(a, a.shape)
    if size > 1:
        a, vectors = _sweep_until(_is_not_diagonal, _hermitian_sweep, a, vectors)
    values = slice_in_dim(real_part(diagonal(a)), 0, size, axis=1)
    values = mul(values, scale)
    values, order = _sorted(values)
    vectors = unstacked(_columns_in(vectors, order, size), batch)
    return [vectors, reshape(values, (*batch, size))]


def _is_not_diagonal(a: Value, vectors: Value) -> Value:
    squares = squared(a)
    apart = where(eq(rows_of(a), columns_of(a)), 0, squares)
    total, rest = (reduce_sum(x, (1, 2)) for x in (squares, apart))
    return _any(gt(rest, mul(total, a.shape[1] * _resolution(a) ** 2)))


def _any(x: Value) -> Value:
    return reduce_or(x, tuple(range(x.ndim)))


def _hermitian_sweep(a: Value, vectors: Value) -> list[Value]:
    even = a.shape[1]
    half = even // 2

    def step(index: Value, a: Value, vectors: Value) -> list[Value]:
        first = real_part(diagonal(part(a, (0, half), (0, half))))
        second = real_part(diagonal(part(a, (half, even), (half, even))))
        mixed = diagonal(part(a, (0, half), (half, even)))
        shape = (a.shape[0], 1, half)
        angles = _rotations(*(reshape(x, shape) for x in (first, second, mixed)))
        # Of a Hermitian matrix, rotating the columns of the adjoint rotates the rows.
        a = _next_pairs(_rotate_columns(a, *angles))
        a = _next_pairs(_rotate_columns(adjoint(a), *angles))
        return [a, _next_pairs(_rotate_columns(vectors, *angles))]

    return repeat(even - 1, step, a, vectors)


def _sorted(values: Value) -> tuple[Value, Value]:
    """Returns numbers (batch, n) in ascending order, and their former places."""
    places = positions(values, values.shape, 1)
    values, places = sort((values, places), dimension=1, num_keys=1)
    return values, places


def _columns_in(x: Value, order: Value, height: int) -> Value:
    """Returns the first rows of columns in an order (batch, n)."""
    if dtypes.is_complex(x.dtype):
        # IREE loses track of the buffer of c128 numbers that leave a loop and are cut directly.
        return complex_(_columns_in(real(x), order, height), _columns_in(imag(x), order, height))
    numbers = GatherDimensionNumbers((1,), (2,), (2,), (0,), (0,))
    indices = reshape(order, (*order.shape, 1))
    return gather(
        x, indices, numbers, (1, height, 1), unique_indices=True, mode="promise_in_bounds"
    )


# Singular values -------------------------------------------------------------------------------


def singular_vectors(
    x: Value, *, full_matrices: bool, compute_uv: bool, **options: object
) -> list[Value]:
    """Returns singular values in descending order, and u and v^H, as the op `svd` does."""
    batch, (height, width) = x.shape[:-2], x.shape[-2:]
    a = stacked(x)
    is_wide = height < width
    values, left, right = _tall_singular_vectors(adjoint(a) if is_wide else a, full_matrices)
    values = reshape(values, (*batch, min(height, width)))
    if not compute_uv:
        return [values]
    if is_wide:
        left, right = right, left
    return [values, unstacked(left, batch), unstacked(adjoint(right), batch)]


def _tall_singular_vectors(a: Value, full_matrices: bool) -> tuple[Value, Value, Value]:
    """Returns s, u, v of matrices with at least as many rows as columns.

    1. a = q r. The rows of r are already more nearly orthogonal than the columns of a.
    2. Rotate the columns of r^H until they are orthogonal: r^H v = w. Then a = (q v) w^H.
    3. Sort; the lengths of the columns of w are the singular values.
    4. Directions of w by another QR, which completes them where a singular value is zero.
    """
    size = a.shape[2]
    scale, a = _scaled(a)
    q, triangle = orthonormal_and_triangle(a, full_matrices=full_matrices)
    rows = adjoint(part(triangle, (0, size), (0, size)))
    even = size + size % 2 if size > 1 else 1
    rows = padded(rows, size, even)
    vectors = identity(rows, (a.shape[0], even, even))
    if size > 1:
        worst = filled(rows, (a.shape[0], 1, 1), 1, dtypes.real_dtype(a.dtype))
        rows, vectors, _ = _sweep_until(_is_not_orthogonal, _one_sided_sweep, rows, vectors, worst)
    lengths = slice_in_dim(norm_over(rows, 1), 0, size, axis=2)
    values, order = _sorted(neg(reshape(lengths, (a.shape[0], size))))
    rows, vectors = (_columns_in(x, order, size) for x in (rows, vectors))
    left = matmul(part(q, (0, q.shape[1]), (0, size)), vectors)
    if full_matrices and q.shape[2] > size:
        left = concatenate([left, part(q, (0, q.shape[1]), (size, q.shape[2]))], 2)
    values = mul(neg(values), scale)
    return values, left, _directions(rows)


def _directions(rows: Value) -> Value:
    """Returns orthogonal columns scaled to length one; zero columns become other directions."""
    packed, taus, _ = factor_qr(rows)
    signs = real_part(diagonal(upper_part(packed)))
    signs = where(lt(signs, 0), filled(signs, signs.shape, -1), 1)
    signs = to_dtype(signs, rows.dtype)
    return mul(multiply_reflections(packed, taus), along_rows(signs, rows.shape))


def _is_not_orthogonal(rows: Value, vectors: Value, worst: Value) -> Value:
    return _any(gt(worst, _resolution(rows) * rows.shape[1] ** 0.5))


def _one_sided_sweep(rows: Value, vectors: Value, worst: Value) -> list[Value]:
    half = rows.shape[2] // 2

    def step(index: Value, rows: Value, vectors: Value, worst: Value) -> list[Value]:
        first, second = (
            part(rows, (0, rows.shape[1]), cut) for cut in ((0, half), (half, 2 * half))
        )
        squares = [sum_over(squared(x), 1) for x in (first, second)]
        mixed = sum_over(mul(conjugated(first), second), 1)
        product = mul(sqrt(squares[0]), sqrt(squares[1]))
        cosines = where(is_zero(product), 0, div(absolute(mixed), nonzero(product)))
        worst = max(worst, reshape(reduce_max(cosines, (1, 2)), worst.shape))
        angles = _rotations(squares[0], squares[1], mixed)
        return [
            _next_pairs(_rotate_columns(rows, *angles)),
            _next_pairs(_rotate_columns(vectors, *angles)),
            worst,
        ]

    return repeat(2 * half - 1, step, rows, vectors, mul(worst, 0))
