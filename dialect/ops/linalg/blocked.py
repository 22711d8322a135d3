"""Cholesky, triangular solution and LU, written with elementary ops: blocks within loops.

A loop over blocks of columns holds a loop over the columns of a block, so that the program does not
grow with the matrix, while most of the arithmetic is in matrix products. Golub & Van Loan (2013),
Matrix Computations, 3.1, 3.4 and 4.2.
"""

from __future__ import annotations

import numpy as np

from axir.dialect.core.symbolic_dims import is_same, is_symbolic_dim
from axir.dialect.ops.elementwise.arithmetic import add, div, mul, sub
from axir.dialect.ops.elementwise.comparison import eq, ge, gt, lt, ne
from axir.dialect.ops.elementwise.transcendental import sqrt
from axir.dialect.ops.indexing.gather import GatherDimensionNumbers, gather
from axir.dialect.ops.reductions.arg_reduce import argmax
from axir.dialect.ops.reductions.reduce import reduce_or
from axir.dialect.ops.shape.rearranging import reshape, rev
from axir.dialect.program.rules import Value

from .matrices import (
    adjoint,
    conjugated,
    diagonal,
    filled,
    lower_part,
    matmul,
    part,
    positions,
    real_part,
    to_dtype,
    transposed,
)
from .stacks import (
    BLOCK,
    columns_at,
    columns_of,
    exchanged,
    nonzero,
    padded,
    padded_with_identity,
    repeat,
    rows_at,
    rows_of,
    stacked,
    taxicab,
    unstacked,
    where,
    with_columns,
    with_rows,
)


def _blocks(size: int) -> tuple[int, int]:
    """Returns the extent of blocks and their number."""
    block = BLOCK if is_symbolic_dim(size) else min(size, BLOCK)
    return block, (size + block - 1) // block


def _are_many(count: int) -> bool:
    return is_symbolic_dim(count) or count > 1


def _padded_extent(extent: int, size: int, padded_size: int) -> int:
    """Returns an extent of a matrix after its smaller extent is padded to blocks."""
    return padded_size if is_same(extent, size) else max(extent, padded_size)


# Cholesky --------------------------------------------------------------------------------------


def factor_cholesky(x: Value) -> Value:
    """Returns the lower triangle l with l l^H = x; NaN where x is not positive definite."""
    size = x.shape[-1]
    block, count = _blocks(size)
    a = padded_with_identity(stacked(x), block * count)

    def factor_block(index: Value, factor: Value) -> list[Value]:
        start = mul(index, block)
        panel = columns_at(a, start, block)
        if _are_many(count):
            panel = sub(panel, matmul(factor, adjoint(rows_at(factor, start, block))))
        (panel,) = repeat(block, lambda j, panel: [_cholesky_column(panel, j, start)], panel)
        return [with_columns(factor, panel, start)]

    (factor,) = repeat(count, factor_block, filled(a, a.shape, 0))
    factor = part(factor, (0, size), (0, size))
    main = diagonal(factor)
    has_failed = reshape(reduce_or(ne(main, main), (1,)), (main.shape[0], 1, 1))
    return unstacked(lower_part(where(has_failed, np.nan, factor)), x.shape[:-2])


def _cholesky_column(panel: Value, j: Value, start: Value) -> Value:
    """Eliminates column j of a panel; its diagonal begins in row `start`."""
    column = columns_at(panel, j, 1)
    place = add(start, j)
    pivot = real_part(rows_at(column, place, 1))
    # A pivot that is not positive becomes NaN, so the diagonal shows the failure.
    root = to_dtype(sqrt(where(gt(pivot, 0), pivot, np.nan)), panel.dtype)
    rows, columns = rows_of(column), columns_of(panel)
    scaled = where(gt(rows, place), div(column, root), where(eq(rows, place), root, column))
    multipliers = adjoint(rows_at(scaled, start, panel.shape[2]))
    rest = where(gt(columns, j), sub(panel, mul(scaled, multipliers)), panel)
    return where(eq(columns, j), scaled, rest)


# Triangular equations --------------------------------------------------------------------------


def solve_triangular(
    a: Value, b: Value, *, left_side: bool, lower: bool, transpose_a: bool, conjugate_a: bool,
    unit_diagonal: bool,
) -> Value:  # fmt: skip
    """Solves as the op `triangular_solve` does, by forward substitution."""
    batch = b.shape[:-2]
    a, b = stacked(a), stacked(b)
    if conjugate_a:
        a = conjugated(a)
    if not left_side:
        b = transposed(b)
    if transpose_a is left_side:
        a, lower = transposed(a), not lower
    if not lower:
        a, b = rev(a, (1, 2)), rev(b, (1,))
    x = _substitute(a, b, unit_diagonal)
    if not lower:
        x = rev(x, (1,))
    return unstacked(x if left_side else transposed(x), batch)


def _substitute(a: Value, b: Value, unit_diagonal: bool) -> Value:
    size, width = b.shape[1:]
    block, count = _blocks(size)
    a = padded_with_identity(a, block * count)

    def solve_block(index: Value, x: Value) -> list[Value]:
        start = mul(index, block)
        rows, right = rows_at(a, start, block), rows_at(x, start, block)
        if _are_many(count):
            right = sub(right, matmul(where(lt(columns_of(rows), start), rows, 0), x))
        corner = columns_at(rows, start, block)
        return [with_rows(x, _substitute_rows(corner, right, unit_diagonal), start)]

    (x,) = repeat(count, solve_block, padded(b, block * count, width))
    return part(x, (0, size), (0, width))


def _substitute_rows(corner: Value, right: Value, unit_diagonal: bool) -> Value:
    """Solves with one block of the diagonal."""

    def solve_row(j: Value, x: Value) -> list[Value]:
        row, column = rows_at(x, j, 1), columns_at(corner, j, 1)
        if not unit_diagonal:
            row = div(row, rows_at(column, j, 1))
        rows = rows_of(x)
        return [where(gt(rows, j), sub(x, mul(column, row)), where(eq(rows, j), row, x))]

    return repeat(corner.shape[1], solve_row, right)[0]


# LU --------------------------------------------------------------------------------------------


def factor_lu(x: Value) -> list[Value]:
    """Returns the packed factors, the pivots, and the permutation, by partial pivoting."""
    (height, width), batch = x.shape[-2:], x.shape[:-2]
    size = min(height, width)
    block, count = _blocks(size)
    a = padded(stacked(x), *(_padded_extent(n, size, block * count) for n in (height, width)))
    stack = a.shape[0]
    pivots = filled(a, (stack, 1, block * count), 0, np.int32)
    order = positions(a, (stack, a.shape[1], 1), 1)

    def factor_block(index: Value, a: Value, pivots: Value, order: Value) -> list[Value]:
        start = mul(index, block)
        panel, chosen, moved = _factor_panel(columns_at(a, start, block), start)
        if _are_many(count) or a.shape[2] > block:
            a = _eliminate(with_columns(permuted(a, moved), panel, start), panel, start)
        else:
            a = panel
        return [a, with_columns(pivots, chosen, start), permuted(order, moved)]

    a, pivots, order = repeat(count, factor_block, a, pivots, order)
    a = part(a, (0, height), (0, width))
    pivots = part(pivots, (0, 1), (0, size))
    order = part(order, (0, height), (0, 1))
    return [unstacked(a, batch), reshape(pivots, (*batch, size)), reshape(order, (*batch, height))]


def _factor_panel(panel: Value, start: Value) -> list[Value]:
    """Factors a panel with its diagonal from row `start`: returns panel, pivots, row order."""
    stack, height, block = panel.shape
    order = positions(panel, (stack, height, 1), 1)

    def step(j: Value, panel: Value, chosen: Value, order: Value) -> list[Value]:
        place = add(start, j)
        column = columns_at(panel, j, 1)
        weight = where(ge(rows_of(column), place), taxicab(column), -1)
        pivot = _first_largest(weight)
        panel, order = (exchanged(x, place, pivot, 1) for x in (panel, order))
        chosen = where(eq(columns_of(chosen), j), pivot, chosen)
        return [_lu_column(panel, j, place), chosen, order]

    return repeat(block, step, panel, filled(panel, (stack, 1, block), 0, np.int32), order)


def _first_largest(weight: Value) -> Value:
    """Returns the row of the largest element of columns (batch, rows, 1), as (batch, 1, 1)."""
    return reshape(argmax(weight, 1, np.int32), (weight.shape[0], 1, 1))


def _lu_column(panel: Value, j: Value, place: Value) -> Value:
    column, row = columns_at(panel, j, 1), rows_at(panel, place, 1)
    below = div(column, nonzero(columns_at(row, j, 1)))  # zero pivots do not scale
    columns = columns_of(panel)
    changed = where(gt(columns, j), sub(panel, mul(below, row)), panel)
    return where(gt(rows_of(panel), place), where(eq(columns, j), below, changed), panel)


def permuted(x: Value, order: Value) -> Value:
    """Returns rows in an order: row i is row order[i]."""
    numbers = GatherDimensionNumbers((2,), (1,), (1,), (0,), (0,))
    return gather(
        x, order, numbers, (1, 1, x.shape[2]), unique_indices=True, mode="promise_in_bounds"
    )


def _eliminate(a: Value, panel: Value, start: Value) -> Value:
    """Continues the elimination of a panel to the columns behind it."""
    block = panel.shape[2]
    end = add(start, block)
    top = rows_at(a, start, block)
    solved = _substitute_rows(rows_at(panel, start, block), top, True)
    is_behind = ge(columns_of(top), end)
    a = with_rows(a, where(is_behind, solved, top), start)
    below = where(ge(rows_of(panel), end), panel, 0)
    return sub(a, matmul(below, where(is_behind, solved, 0)))


def apply_pivots(pivots: Value, size: int) -> Value:
    """Returns the permutation of `size` rows that equals a sequence of exchanges."""
    batch, count = pivots.shape[:-1], pivots.shape[-1]
    flat = reshape(pivots, (int(np.prod(batch)), count, 1))
    order = positions(flat, (flat.shape[0], size, 1), 1)
    if count:
        (order,) = repeat(
            count, lambda j, order: [exchanged(order, j, rows_at(flat, j, 1), 1)], order
        )
    return reshape(order, (*batch, size))
