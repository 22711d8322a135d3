"""QR of elementary ops, by Householder reflections with LAPACK's signs.

A reflection is I - tau v v^H; its vector v has a one where the column meets the diagonal. See
Golub & Van Loan (2013), Matrix Computations, 5.1 and 5.2; the sign and complex tau are those of
LAPACK's `larfg`.
"""

from __future__ import annotations

import numpy as np

from ... import dtypes
from ..arg_reduce import argmax
from ..conversion import complex_, imag, real
from ..elementwise import and_, div, eq, ge, gt, lt, mul, neg, select_n, sub
from ..family import Value
from ..reduce import reduce_sum
from ..shape import concatenate, reshape
from .matrices import conjugated, filled, part, positions, to_dtype, upper_part
from .stacks import (
    columns_at,
    columns_of,
    is_zero,
    norm_over,
    repeat,
    rows_at,
    rows_of,
    spread,
    squared,
    stacked,
    sum_over,
    unstacked,
)


def factor_qr(x: Value, is_pivoting: bool = False) -> list[Value]:
    """Returns the packed reflections above which r stands, their factors tau, and column pivots."""
    batch, (height, width) = x.shape[:-2], x.shape[-2:]
    size = min(height, width)
    a = stacked(x)
    taus = filled(a, (a.shape[0], 1, size), 0)
    order = positions(a, (a.shape[0], 1, width), 2)

    def step(j: Value, a: Value, taus: Value, order: Value) -> list[Value]:
        if is_pivoting:
            chosen = _largest_column(a, j)
            a, order = _exchange_columns(a, j, chosen), _exchange_columns(order, j, chosen)
        a, tau = _reflect_column(a, j)
        is_here = eq(columns_of(taus, taus.shape), j)
        return [a, select_n(is_here, taus, spread(tau, taus.shape)), order]

    if size:
        a, taus, order = repeat(size, step, a, taus, order)
    return [
        unstacked(a, batch), reshape(taus, (*batch, size)), reshape(order, (*batch, width))
    ]  # fmt: skip


def _reflect_column(a: Value, j: Value) -> tuple[Value, Value]:
    """Annihilates column j below the diagonal, and reflects the columns behind it."""
    column = columns_at(a, j, 1)
    rows = rows_of(a, column.shape)
    alpha = rows_at(column, j, 1)
    tail = norm_over(select_n(gt(rows, j), 0, column), 1)
    beta, tau, scale = _reflector(alpha, tail)
    vector = mul(column, spread(scale, column.shape))
    vector = select_n(eq(rows, j), vector, filled(column, column.shape, 1))
    vector = select_n(ge(rows, j), 0, vector)
    products = sum_over(mul(conjugated(spread(vector, a.shape)), a), 1)
    products = mul(spread(conjugated(tau), products.shape), products)
    reflected = sub(a, mul(spread(vector, a.shape), spread(products, a.shape)))
    columns, all_rows = columns_of(a, a.shape), rows_of(a, a.shape)
    packed = select_n(eq(all_rows, j), spread(vector, a.shape), spread(beta, a.shape))
    here = select_n(ge(all_rows, j), a, packed)
    return select_n(gt(columns, j), select_n(eq(columns, j), a, here), reflected), tau


def _reflector(alpha: Value, tail: Value) -> tuple[Value, Value, Value]:
    """Returns beta, tau and the factor that makes the tail of a column that of the vector v."""
    is_complex = dtypes.is_complex(alpha.dtype)
    alpha_real = real(alpha) if is_complex else alpha
    is_done = is_zero(tail)
    if is_complex:
        is_done = and_(is_done, is_zero(imag(alpha)))
        length = norm_over(_side_by_side(alpha_real, imag(alpha), tail), 2)
    else:
        length = norm_over(_side_by_side(alpha, tail), 2)
    beta = select_n(lt(alpha_real, 0), neg(length), length)
    safe = select_n(is_done, beta, filled(beta, beta.shape, 1))
    tau = div(sub(beta, alpha_real), safe)
    if is_complex:
        tau = complex_(tau, neg(div(imag(alpha), safe)))
    beta = to_dtype(beta, alpha.dtype)
    difference = sub(alpha, beta)
    one = filled(alpha, alpha.shape, 1)
    scale = div(one, select_n(is_done, difference, one))
    return (
        select_n(is_done, beta, alpha),
        select_n(is_done, tau, mul(one, 0)),
        select_n(is_done, scale, mul(one, 0)),
    )


def _side_by_side(*values: Value) -> Value:
    return concatenate(values, 2)


def _largest_column(a: Value, j: Value) -> Value:
    """Returns which column from j on is longest below the diagonal, as (batch, 1, 1)."""
    squares = select_n(ge(rows_of(a, a.shape), j), 0, squared(a))
    lengths = sum_over(squares, 1)
    is_behind = ge(columns_of(a, lengths.shape), j)
    lengths = select_n(is_behind, filled(lengths, lengths.shape, -1), lengths)
    return reshape(argmax(lengths, 2, np.int32), (a.shape[0], 1, 1))


def _exchange_columns(x: Value, first: Value, second: Value) -> Value:
    """Exchanges two columns: the first the same, the second its own in each matrix."""
    columns = columns_of(x, x.shape)
    is_second = eq(columns, spread(second, x.shape))
    other = reshape(reduce_sum(select_n(is_second, 0, x), (2,)), (*x.shape[:2], 1))
    result = select_n(is_second, x, spread(columns_at(x, first, 1), x.shape))
    return select_n(eq(columns, first), result, spread(other, x.shape))


def multiply_reflections(packed: Value, taus: Value, width: int | None = None) -> Value:
    """Returns the first `width` columns of the product of reflections; by default as packed."""
    batch, count = packed.shape[:-2], taus.shape[-1]
    a = stacked(packed)
    factors = reshape(taus, (a.shape[0], 1, count))
    width = a.shape[2] if width is None else width
    shape = (a.shape[0], a.shape[1], width)
    is_diagonal = eq(rows_of(a, shape), columns_of(a, shape))
    ones = filled(a, shape, 1)
    start = select_n(is_diagonal, mul(ones, 0), ones)

    def step(index: Value, product: Value) -> list[Value]:
        j = sub(np.int32(count - 1), index)
        column = columns_at(a, j, 1)
        rows = rows_of(a, column.shape)
        vector = select_n(eq(rows, j), column, filled(column, column.shape, 1))
        vector = select_n(ge(rows, j), 0, vector)
        products = sum_over(mul(conjugated(spread(vector, shape)), product), 1)
        products = mul(spread(columns_at(factors, j, 1), products.shape), products)
        return [sub(product, mul(spread(vector, shape), spread(products, shape)))]

    (product,) = repeat(count, step, start) if count else (start,)
    return unstacked(product, batch)


def orthonormal_and_triangle(
    x: Value, *, full_matrices: bool, pivoting: bool = False
) -> list[Value]:
    """Returns q and r as the op `qr` does, and the pivots if asked for."""
    height, width = x.shape[-2:]
    size = min(height, width)
    packed, taus, order = factor_qr(x, pivoting)
    columns = height if full_matrices else size
    q = multiply_reflections(packed, taus, columns)
    triangle = upper_part(packed)
    triangle = part(triangle, (0, columns), (0, width))
    return [q, triangle, order] if pivoting else [q, triangle]
