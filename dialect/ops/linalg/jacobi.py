"""Eigenvalues and singular values of elementary ops, by Jacobi's rotations in parallel.

Half as many rotations as there are columns, of disjoint pairs, make a round. Column i is paired
with column i + n/2; between rounds all columns but the first move on by one place, so that in n - 1
rounds (a sweep) each meets each, and all are back. Brent & Luk (1985), SIAM J. Sci. Stat. Comput.
6; Demmel & Veselic (1992), SIAM J. Matrix Anal. Appl. 13, for the accuracy of singular values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from ... import dtypes
from ..conversion import complex_, imag, real
from ..elementwise import abs as absolute
from ..elementwise import add, and_, div, eq, gt, lt, max, mul, neg, select_n, sub
from ..family import Value
from ..indexing import GatherDimensionNumbers, gather
from ..reduce import reduce_max, reduce_or, reduce_sum
from ..shape import concatenate, reshape
from ..sort import sort
from ..static_slicing import slice_in_dim
from ..transcendental import rsqrt, sqrt
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
    is_zero,
    modulus,
    norm_over,
    padded,
    repeat,
    spread,
    squared,
    stacked,
    sum_over,
    unstacked,
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
    one = filled(size, size.shape, 1)
    is_done = is_zero(size)
    safe = select_n(is_done, size, one)
    ratio = div(sub(second, first), mul(2, safe))
    tangent = div(one, add(absolute(ratio), sqrt(add(one, mul(ratio, ratio)))))
    tangent = select_n(lt(ratio, 0), tangent, neg(tangent))
    tangent = select_n(is_done, tangent, mul(0, one))
    cosine = rsqrt(add(one, mul(tangent, tangent)))
    phase = div(mixed, to_dtype(safe, mixed.dtype))
    return cosine, mul(to_dtype(mul(cosine, tangent), mixed.dtype), phase)


def _rotate_columns(x: Value, cosine: Value, sine: Value) -> Value:
    """Rotates pairs of columns by (batch, 1, pairs) angles."""
    half = x.shape[2] // 2
    first, second = part(x, (0, x.shape[1]), (0, half)), part(x, (0, x.shape[1]), (half, 2 * half))
    c = spread(to_dtype(cosine, x.dtype), first.shape)
    s = spread(sine, first.shape)
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
    from ..loops import while_values

    def goes_on(count: Value, *values: Value) -> Value:
        return and_(lt(count, _MOST_SWEEPS), is_rough(*values))

    def body(count: Value, *values: Value) -> list[Value]:
        return [add(count, np.int32(1)), *sweep(*values)]

    return list(while_values(goes_on, body, [filled(init[0], (), 0, np.int32), *init]))[1:]


# Hermitian eigenvalues -------------------------------------------------------------------------


def eigenvectors(x: Value, *, lower: bool, **options: Any) -> list[Value]:
    """Returns eigenvectors, and eigenvalues in ascending order, as the op `eigh` does."""
    batch, size = x.shape[:-2], x.shape[-1]
    a = hermitian_of(stacked(x), lower)
    scale = reduce_max(modulus(a), (1, 2))
    scale = select_n(is_zero(scale), scale, filled(scale, scale.shape, 1))
    scale = reshape(scale, (scale.shape[0], 1, 1))
    even = size + size % 2 if size > 1 else 1
    a = padded(div(a, spread(to_dtype(scale, a.dtype), a.shape)), even, even)
    vectors = identity(a, a.shape)
    if size > 1:
        a, vectors = _sweep_until(_is_not_diagonal, _hermitian_sweep, a, vectors)
    values = slice_in_dim(real_part(diagonal(a)), 0, size, axis=1)
    values = mul(values, reshape(spread(scale, (*scale.shape[:2], size)), values.shape))
    values, order = _sorted(values)
    vectors = unstacked(_columns_in(vectors, order, size), batch)
    return [vectors, reshape(values, (*batch, size))]


def _is_not_diagonal(a: Value, vectors: Value) -> Value:
    squares = squared(a)
    rows, columns = (positions(a, a.shape, dimension) for dimension in (1, 2))
    apart = select_n(eq(rows, columns), squares, mul(squares, 0))
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
    """Returns numbers (batch, n) in ascending order, and where they stood."""
    places = positions(values, values.shape, 1)
    return sort((values, places), dimension=1, num_keys=1)


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
    x: Value, *, full_matrices: bool, compute_uv: bool, **options: Any
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
    scale = reshape(reduce_max(modulus(a), (1, 2)), (a.shape[0], 1, 1))
    scale = select_n(is_zero(scale), scale, filled(scale, scale.shape, 1))
    a = div(a, spread(to_dtype(scale, a.dtype), a.shape))
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
    values = mul(neg(values), reshape(spread(scale, (*scale.shape[:2], size)), values.shape))
    return values, left, _directions(rows)


def _directions(rows: Value) -> Value:
    """Returns orthogonal columns at length one, and some further direction for zeros."""
    packed, taus, _ = factor_qr(rows)
    signs = real_part(diagonal(upper_part(packed)))
    ones = filled(signs, signs.shape, 1)
    signs = to_dtype(select_n(lt(signs, 0), ones, neg(ones)), rows.dtype)
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
        one = filled(product, product.shape, 1)
        is_empty = is_zero(product)
        cosines = div(absolute(mixed), select_n(is_empty, product, one))
        cosines = select_n(is_empty, cosines, mul(0, one))
        worst = max(worst, reshape(reduce_max(cosines, (1, 2)), worst.shape))
        angles = _rotations(squares[0], squares[1], mixed)
        return [
            _next_pairs(_rotate_columns(rows, *angles)),
            _next_pairs(_rotate_columns(vectors, *angles)),
            worst,
        ]

    return repeat(2 * half - 1, step, rows, vectors, mul(worst, 0))
