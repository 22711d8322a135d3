"""Cholesky, triangular solution and LU of elementary ops: blocks within loops.

A loop over blocks of columns holds a loop over the columns of a block, so that the program does not
grow with the matrix, while most of the arithmetic is in matrix products. Golub & Van Loan (2013),
Matrix Computations, 3.1, 3.4 and 4.2.
"""

from __future__ import annotations

import numpy as np

from ..elementwise import add, div, eq, ge, gt, lt, mul, ne, select_n, sub
from ..family import Value
from ..indexing import GatherDimensionNumbers, gather
from ..reduce import reduce_or, reduce_sum
from ..shape import reshape, rev
from ..transcendental import sqrt
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
    is_zero,
    padded,
    padded_with_identity,
    repeat,
    rows_at,
    rows_of,
    spread,
    stacked,
    taxicab,
    unstacked,
    with_columns,
    with_rows,
)


def _blocks(size: int) -> tuple[int, int]:
    """Returns the extent of blocks and their number."""
    block = min(size, BLOCK)
    return block, -(-size // block)


# Cholesky --------------------------------------------------------------------------------------


def factor_cholesky(x: Value) -> Value:
    """Returns the lower triangle l with l l^H = x; NaN where x is not positive definite."""
    size = x.shape[-1]
    block, count = _blocks(size)
    a = padded_with_identity(stacked(x), block * count)

    def factor_block(index: Value, factor: Value) -> list[Value]:
        start = mul(index, block)
        panel = columns_at(a, start, block)
        if count > 1:
            panel = sub(panel, matmul(factor, adjoint(rows_at(factor, start, block))))
        (panel,) = repeat(block, lambda j, panel: [_cholesky_column(panel, j, start)], panel)
        return [with_columns(factor, panel, start)]

    (factor,) = repeat(count, factor_block, filled(a, a.shape, 0))
    factor = part(factor, (0, size), (0, size))
    main = diagonal(factor)
    has_failed = reshape(reduce_or(ne(main, main), (1,)), (main.shape[0], 1, 1))
    nan = filled(factor, factor.shape, np.nan)
    factor = select_n(spread(has_failed, factor.shape), factor, nan)
    return unstacked(lower_part(factor), x.shape[:-2])


def _cholesky_column(panel: Value, j: Value, start: Value) -> Value:
    """Eliminates column j of a panel whose diagonal begins in row `start`."""
    column = columns_at(panel, j, 1)
    place = add(start, j)
    pivot = real_part(rows_at(column, place, 1))
    # Not positive, hence NaN: so the failure is seen on the diagonal.
    root = sqrt(select_n(gt(pivot, 0), filled(pivot, pivot.shape, np.nan), pivot))
    root = to_dtype(root, panel.dtype)
    rows = rows_of(panel, column.shape)
    below = div(column, spread(root, column.shape))
    at_pivot = spread(root, column.shape)
    scaled = select_n(gt(rows, place), select_n(eq(rows, place), column, at_pivot), below)
    multipliers = adjoint(rows_at(scaled, start, panel.shape[2]))
    columns = columns_of(panel, panel.shape)
    update = mul(spread(scaled, panel.shape), spread(multipliers, panel.shape))
    rest = select_n(gt(columns, j), panel, sub(panel, update))
    return select_n(eq(columns, j), rest, spread(scaled, panel.shape))


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
        if count > 1:
            known = select_n(lt(columns_of(rows, rows.shape), start), 0, rows)
            right = sub(right, matmul(known, x))
        corner = columns_at(rows, start, block)
        return [with_rows(x, _substitute_rows(corner, right, unit_diagonal), start)]

    (x,) = repeat(count, solve_block, padded(b, block * count, width))
    return part(x, (0, size), (0, width))


def _substitute_rows(corner: Value, right: Value, unit_diagonal: bool) -> Value:
    """Solves with one block of the diagonal."""

    def solve_row(j: Value, x: Value) -> list[Value]:
        row, column = rows_at(x, j, 1), columns_at(corner, j, 1)
        if not unit_diagonal:
            row = div(row, spread(rows_at(column, j, 1), row.shape))
        rows = rows_of(x, x.shape)
        known = spread(row, x.shape)
        rest = sub(x, mul(spread(column, x.shape), known))
        return [select_n(gt(rows, j), select_n(eq(rows, j), x, known), rest)]

    return repeat(corner.shape[1], solve_row, right)[0]


# LU --------------------------------------------------------------------------------------------


def factor_lu(x: Value) -> list[Value]:
    """Returns the packed factors, the pivots, and the permutation, by partial pivoting."""
    (height, width), batch = x.shape[-2:], x.shape[:-2]
    size = min(height, width)
    block, count = _blocks(size)
    a = padded(stacked(x), max(height, block * count), max(width, block * count))
    stack = a.shape[0]
    pivots = filled(a, (stack, 1, block * count), 0, np.int32)
    order = positions(a, (stack, a.shape[1], 1), 1)

    def factor_block(index: Value, a: Value, pivots: Value, order: Value) -> list[Value]:
        start = mul(index, block)
        panel, chosen, moved = _factor_panel(columns_at(a, start, block), start)
        if block * count > block or a.shape[2] > block:
            a = _eliminate(with_columns(permuted(a, moved), panel, start), panel, start)
        else:
            a = panel
        return [a, with_columns(pivots, chosen, start), permuted(order, moved)]

    a, pivots, order = repeat(count, factor_block, a, pivots, order)
    a = part(a, (0, height), (0, width))
    pivots = part(pivots, (0, 1), (0, size))
    order = part(order, (0, height), (0, 1))
    return [
        unstacked(a, batch), reshape(pivots, (*batch, size)), reshape(order, (*batch, height))
    ]  # fmt: skip


def _factor_panel(panel: Value, start: Value) -> list[Value]:
    """Factors columns whose diagonal begins in row `start`: panel, pivots, order of the rows."""
    stack, height, block = panel.shape
    order = positions(panel, (stack, height, 1), 1)

    def step(j: Value, panel: Value, chosen: Value, order: Value) -> list[Value]:
        place = add(start, j)
        column = columns_at(panel, j, 1)
        rows = rows_of(panel, column.shape)
        weight = taxicab(column)
        weight = select_n(ge(rows, place), filled(weight, weight.shape, -1), weight)
        pivot = _first_largest(weight)
        panel, order = (_exchanged(x, place, pivot) for x in (panel, order))
        chosen = select_n(
            eq(columns_of(chosen, chosen.shape), j), chosen, spread(pivot, chosen.shape)
        )
        return [_lu_column(panel, j, place), chosen, order]

    return repeat(block, step, panel, filled(panel, (stack, 1, block), 0, np.int32), order)


def _first_largest(weight: Value) -> Value:
    """Returns the row of the largest element of columns (batch, rows, 1), as (batch, 1, 1)."""
    from ..arg_reduce import argmax

    return reshape(argmax(weight, 1, np.int32), (weight.shape[0], 1, 1))


def _exchanged(x: Value, first: Value, second: Value) -> Value:
    """Exchanges two rows: the first the same, the second its own in each matrix."""
    rows = rows_of(x, x.shape)
    is_second = eq(rows, spread(second, x.shape))
    second_row = reduce_sum(select_n(is_second, 0, x), (1,))
    second_row = reshape(second_row, (x.shape[0], 1, x.shape[2]))
    first_row = rows_at(x, first, 1)
    result = select_n(is_second, x, spread(first_row, x.shape))
    return select_n(eq(rows, first), result, spread(second_row, x.shape))


def _lu_column(panel: Value, j: Value, place: Value) -> Value:
    column, row = columns_at(panel, j, 1), rows_at(panel, place, 1)
    pivot = columns_at(row, j, 1)
    one = filled(pivot, pivot.shape, 1)
    pivot = select_n(is_zero(pivot), pivot, one)  # a singular matrix is not scaled there
    below = div(column, spread(pivot, column.shape))
    update = mul(spread(below, panel.shape), spread(row, panel.shape))
    columns, rows = columns_of(panel, panel.shape), rows_of(panel, panel.shape)
    changed = select_n(gt(columns, j), panel, sub(panel, update))
    changed = select_n(eq(columns, j), changed, spread(below, panel.shape))
    return select_n(gt(rows, place), panel, changed)


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
    is_behind = ge(columns_of(top, top.shape), end)
    a = with_rows(a, select_n(is_behind, top, solved), start)
    below = select_n(ge(rows_of(panel, panel.shape), end), 0, panel)
    return sub(a, matmul(below, select_n(is_behind, 0, solved)))


def apply_pivots(pivots: Value, size: int) -> Value:
    """Returns the permutation of `size` rows that a sequence of exchanges amounts to."""
    batch, count = pivots.shape[:-1], pivots.shape[-1]
    flat = reshape(pivots, (int(np.prod(batch)), count, 1))
    order = positions(flat, (flat.shape[0], size, 1), 1)
    if count:
        (order,) = repeat(
            count, lambda j, order: [_exchanged(order, j, rows_at(flat, j, 1))], order
        )
    return reshape(order, (*batch, size))
