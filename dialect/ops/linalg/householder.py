"""QR written with elementary ops: Householder reflections with LAPACK's signs.

A reflection is I - tau v v^H; its vector v has a one where the column meets the diagonal. See
Golub & Van Loan (2013), Matrix Computations, 5.1 and 5.2; the sign and the complex tau follow
LAPACK's `larfg`.
"""

from __future__ import annotations

import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.symbolic_dims import smaller
from axir.dialect.ops.elementwise.arithmetic import div, mul, neg, sub
from axir.dialect.ops.elementwise.comparison import and_, eq, ge, gt, lt
from axir.dialect.ops.elementwise.conversion import complex_, imag, real
from axir.dialect.ops.reductions.arg_reduce import argmax
from axir.dialect.ops.shape.concatenation import concatenate
from axir.dialect.ops.shape.rearranging import reshape
from axir.dialect.program.rules import Value

from .matrices import conjugated, filled, identity, part, positions, to_dtype, upper_part
from .stacks import (
    columns_at,
    columns_of,
    exchanged,
    is_zero,
    norm_over,
    repeat,
    rows_at,
    rows_of,
    squared,
    stacked,
    sum_over,
    unstacked,
    where,
)


def factor_qr(x: Value, is_pivoting: bool = False) -> list[Value]:
    """Returns r with the packed reflections below it, their factors tau, and column pivots."""
    batch, (height, width) = x.shape[:-2], x.shape[-2:]
    size = smaller(height, width)
    a = stacked(x)
    taus = filled(a, (a.shape[0], 1, size), 0)
    order = positions(a, (a.shape[0], 1, width), 2)

    def step(j: Value, a: Value, taus: Value, order: Value) -> list[Value]:
        if is_pivoting:
            chosen = _largest_column(a, j)
            a, order = (exchanged(x, j, chosen, 2) for x in (a, order))
        a, tau = _reflect_column(a, j)
        return [a, where(eq(columns_of(taus), j), tau, taus), order]

    if size:
        a, taus, order = repeat(size, step, a, taus, order)
    return [unstacked(a, batch), reshape(taus, (*batch, size)), reshape(order, (*batch, width))]


def _reflect_column(a: Value, j: Value) -> tuple[Value, Value]:
    """Annihilates column j below the diagonal, and reflects the columns behind it."""
    column = columns_at(a, j, 1)
    rows, columns = rows_of(a), columns_of(a)
    tail = norm_over(where(gt(rows_of(column), j), column, 0), 1)
    beta, tau, scale = _reflector(rows_at(column, j, 1), tail)
    vector = _vector(mul(column, scale), j)
    packed = where(eq(rows, j), beta, vector)
    here = where(ge(rows, j), packed, a)
    behind = _reflected(a, vector, conjugated(tau))
    return where(gt(columns, j), behind, where(eq(columns, j), here, a)), tau


def _vector(column: Value, j: Value) -> Value:
    """Returns the vector of a reflection: a column below row j, one in row j, zeros above."""
    rows = rows_of(column)
    return where(ge(rows, j), where(eq(rows, j), 1, column), 0)


def _reflected(x: Value, vector: Value, tau: Value) -> Value:
    """Returns (1 - tau v v^H) x."""
    return sub(x, mul(vector, mul(tau, sum_over(mul(conjugated(vector), x), 1))))


def _reflector(alpha: Value, tail: Value) -> tuple[Value, Value, Value]:
    """Returns beta, tau and the factor from the tail of a column to the tail of v."""
    is_complex = dtypes.is_complex(alpha.dtype)
    alpha_real = real(alpha) if is_complex else alpha
    is_done = is_zero(tail)
    if is_complex:
        is_done = and_(is_done, is_zero(imag(alpha)))
        length = norm_over(_side_by_side(alpha_real, imag(alpha), tail), 2)
    else:
        length = norm_over(_side_by_side(alpha, tail), 2)
    beta = where(lt(alpha_real, 0), length, neg(length))
    safe = where(is_done, 1, beta)
    tau = div(sub(beta, alpha_real), safe)
    if is_complex:
        tau = complex_(tau, neg(div(imag(alpha), safe)))
    beta = to_dtype(beta, alpha.dtype)
    scale = div(1, where(is_done, 1, sub(alpha, beta)))
    return where(is_done, alpha, beta), where(is_done, 0, tau), where(is_done, 0, scale)


def _side_by_side(*values: Value) -> Value:
    return concatenate(values, 2)


def _largest_column(a: Value, j: Value) -> Value:
    """Returns the number of the longest column from j on, below the diagonal, as (batch, 1, 1)."""
    lengths = sum_over(where(ge(rows_of(a), j), squared(a), 0), 1)
    lengths = where(ge(columns_of(lengths), j), lengths, -1)
    return reshape(argmax(lengths, 2, np.int32), (a.shape[0], 1, 1))


def multiply_reflections(packed: Value, taus: Value, width: int | None = None) -> Value:
    """Returns the first `width` columns of the product of reflections; by default as packed."""
    batch, count = packed.shape[:-2], taus.shape[-1]
    a = stacked(packed)
    factors = reshape(taus, (a.shape[0], 1, count))
    width = a.shape[2] if width is None else width
    start = identity(a, (a.shape[0], a.shape[1], width))

    def step(index: Value, product: Value) -> list[Value]:
        j = sub(np.int32(count - 1), index)
        return [_reflected(product, _vector(columns_at(a, j, 1), j), columns_at(factors, j, 1))]

    (product,) = repeat(count, step, start) if count else (start,)
    return unstacked(product, batch)


def orthonormal_and_triangle(
    x: Value, *, full_matrices: bool, pivoting: bool = False
) -> list[Value]:
    """Returns q and r as the op `qr` does, and the pivots if requested."""
    height, width = x.shape[-2:]
    size = smaller(height, width)
    packed, taus, order = factor_qr(x, pivoting)
    columns = height if full_matrices else size
    q = multiply_reflections(packed, taus, columns)
    triangle = upper_part(packed)
    triangle = part(triangle, (0, columns), (0, width))
    return [q, triangle, order] if pivoting else [q, triangle]
