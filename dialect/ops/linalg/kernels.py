"""Decompositions of small real matrices as kernels: one dispatch for a whole stack of them.

A call of LAPACK costs more than the arithmetic of a small matrix, and the portable forms loop over
blocks, with a dispatch for each. The kernels are the textbook algorithms (Golub, Van Loan, Matrix
Computations, 4th edition: 3.1 triangular systems, 3.4.1 partial pivoting, 4.2 Cholesky), element by
element. Elsewhere: the choice of a kernel (`rules.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.expressions import is_nan, minimum, select, sqrt
from axir.dialect.builders.kernels import (
    Memory,
    Position,
    dispatch,
    each,
    loop,
    rows_of,
    scratch,
    sum_of_lanes,
    when,
)
from axir.dialect.builders.scalars import (
    Scalar,
    broadcast,
    index,
    multiply_add,
    to_index,
    to_integer,
)
from axir.dialect.core.types import ShapedArray, element_type

Kernel = Callable[..., None]
"""From the memory of the operands and results of one matrix, without batch axes."""

Entry = Callable[[Scalar, Scalar], Scalar]
"""From row and column to an element."""

_OPERATIONS_OF_A_WORKGROUP = 1 << 17
_WORKGROUPS = 16
_VECTOR_BITS = 256


def matrix_kernel(
    kernel: Kernel,
    operands: Sequence[ir.Value],
    types: Sequence[ShapedArray],
    batch: Sequence[int],
    cost: int = 1,
) -> list[ir.Value]:
    """Runs a kernel of single matrices on stacks of them, as one dispatch.

    Args:
        kernel: Takes the memory of the operands and of the results, without batch axes.
        operands: Arrays with equal batch axes in front.
        types: Types of the results, including the batch axes.
        batch: The batch axes.
        cost: Number of operations for one matrix, in cubes of the largest extent.
    """
    count, rank = math.prod(batch), len(batch)
    flat = [hlo.reshape(x, (count, *hlo.shape_of(x)[rank:])) for x in operands]
    flat_types = [hlo.tensor_type((count, *t.shape[rank:]), element_type(t.dtype)) for t in types]
    size = max(extent for x in (*flat, *flat_types) for extent in _matrix_extents(x))
    work = count * cost * size**3
    workgroups = max(1, min(_WORKGROUPS, count, work // _OPERATIONS_OF_A_WORKGROUP))

    def stacked(workgroup: Scalar, *arrays: Memory) -> None:
        @each(*rows_of(workgroup, count, workgroups))
        def matrix(number: Scalar) -> None:
            kernel(*(x.at(number) for x in arrays))

    results = dispatch(stacked, flat, flat_types, workgroups=workgroups, name="matrices")
    return [hlo.reshape(x, t.shape) for x, t in zip(results, types, strict=True)]


def _matrix_extents(x: ir.Value | ir.Type) -> Sequence[int]:
    type_ = x.type if isinstance(x, ir.Value) else x
    return tuple(type_.shape[1:])


# Cholesky --------------------------------------------------------------------------------------


def cholesky(a: Memory, factor: Memory) -> None:
    """Computes the lower triangle l with l l^T = a, or NaN."""
    size = a.shape[0]
    _clear(factor)

    @each(0, size)
    def column(j: Scalar) -> None:
        square = a[j, j] - _product_of_rows(factor, j, j, j)
        pivot = select(square > 0.0, sqrt(square), math.nan)

        @each(j + 1, size)
        def below(i: Scalar) -> None:
            factor[i, j] = (a[i, j] - _product_of_rows(factor, i, j, j)) / pivot

        factor[j, j] = pivot

    # A pivot of nan makes all later pivots nan, so the last one shows the failure.
    is_bad = is_nan(factor[size - 1, size - 1])

    @when(is_bad)
    def spoil() -> None:
        @each(0, size)
        def row(i: Scalar) -> None:
            @each(0, i + 1)
            def element(j: Scalar) -> None:
                factor[i, j] = math.nan


def _clear(x: Memory) -> None:
    rows, columns = x.shape

    @each(0, rows)
    def row(i: Scalar) -> None:
        @each(0, columns)
        def element(j: Scalar) -> None:
            x[i, j] = 0.0


def _product_of_rows(x: Memory, i: Scalar, j: Scalar, count: Scalar) -> Scalar:
    """Returns the sum of the products of two rows' first elements; zeros follow them."""
    lanes = _VECTOR_BITS // x.element.width
    nothing, whole = x.constant(0.0), x.shape[1] // lanes * lanes
    end = index(0)
    if whole:
        wanted = (count + (lanes - 1)) // lanes * lanes
        end = minimum(wanted, whole)

        def add(k: Scalar, total: Scalar) -> Scalar:
            return multiply_add(x.read((i, k), lanes), x.read((j, k), lanes), total)

        nothing = sum_of_lanes(loop(0, end, broadcast(nothing, lanes), add, stride=lanes))
    return loop(end, count, nothing, lambda k, total: total + x[i, k] * x[j, k])


# Triangular systems ----------------------------------------------------------------------------


def substitution(
    *, left_side: bool, lower: bool, transpose_a: bool, unit_diagonal: bool, **_: object
) -> Kernel:
    """Returns the kernel of x with op(a) x = b, or x op(a) = b; its operands are a and b.

    The parameters are the same as in `triangular_solve`.
    """
    # x op(a) = b is op(a)^T x^T = b^T.
    is_turned = transpose_a == left_side

    def kernel(a: Memory, b: Memory, x: Memory) -> None:
        size, columns = a.shape[0], x.shape[1 if left_side else 0]

        def at(i: Scalar, c: Scalar) -> tuple[Scalar, Scalar]:
            return (i, c) if left_side else (c, i)

        @each(0, size)
        def row(i: Scalar) -> None:
            @each(0, columns)
            def entry(c: Scalar) -> None:
                x[at(i, c)] = b[at(i, c)]

        substitute(
            lambda i, k: a[k, i] if is_turned else a[i, k],
            x, at, size, columns, is_forward=lower != is_turned, is_unit=unit_diagonal,
        )  # fmt: skip

    return kernel


def substitute(
    entry: Entry, x: Memory, at: Callable[[Scalar, Scalar], Position], size: int, columns: int, *,
    is_forward: bool, is_unit: bool,
) -> None:  # fmt: skip
    """Solves for the rows of x one after the other, in place of the right-hand sides.

    `at(i, c)` is the position of row i of column c.
    """

    @each(0, size)
    def row(number: Scalar) -> None:
        i = number if is_forward else size - 1 - number

        @each(0, i) if is_forward else each(i + 1, size)
        def subtract(k: Scalar) -> None:
            factor = entry(i, k)

            @each(0, columns)
            def column(c: Scalar) -> None:
                x[at(i, c)] = x[at(i, c)] - factor * x[at(k, c)]

        if is_unit:
            return
        pivot = entry(i, i)

        @each(0, columns)
        def divide(c: Scalar) -> None:
            x[at(i, c)] = x[at(i, c)] / pivot


# LU --------------------------------------------------------------------------------------------


def lu(a: Memory, packed: Memory, pivots: Memory, order: Memory) -> None:
    """Computes the packed factors, the pivots, and their permutation."""
    height, width = a.shape
    fill(packed, lambda i, j: a[i, j])

    @each(0, height)
    def start(i: Scalar) -> None:
        order[i] = to_integer(i, order.element.width)

    @each(0, min(height, width))
    def step(k: Scalar) -> None:
        row = _largest(packed, k)
        pivots[k] = to_integer(row, pivots.element.width)
        each(0, width)(lambda j: swap(packed, (k, j), (row, j)))
        swap(order, k, row)
        _eliminate(packed, k)


def exchanges(pivots: Memory, order: Memory) -> None:
    """Computes the permutation that equals a sequence of exchanges."""

    @each(0, order.shape[0])
    def start(i: Scalar) -> None:
        order[i] = to_integer(i, order.element.width)

    @each(0, pivots.shape[0])
    def step(i: Scalar) -> None:
        place = to_index(pivots[i])
        # A pivot out of range exchanges nothing.
        swap(order, i, select(place >= 0, select(place < order.shape[0], place, i), i))


def _largest(x: Memory, k: Scalar) -> Scalar:
    """Returns the first row from k on with the largest element of column k."""

    def step(i: Scalar, best: Scalar, row: Scalar) -> tuple[Scalar, Scalar]:
        size = abs(x[i, k])
        is_larger = size > best
        return select(is_larger, size, best), select(is_larger, i, row)

    return loop(k + 1, x.shape[0], (abs(x[k, k]), k), step)[1]


def swap(x: Memory, first: Position, second: Position) -> None:
    """Exchanges two elements."""
    here, there = x[first], x[second]
    x[first] = there
    x[second] = here


def _eliminate(x: Memory, k: Scalar) -> None:
    height, width = x.shape
    pivot = x[k, k]
    is_zero = pivot == 0.0

    @each(k + 1, height)
    def row(i: Scalar) -> None:
        # Below a pivot of zero all elements are zero, and stay zero.
        factor = select(is_zero, x[i, k], x[i, k] / pivot)
        x[i, k] = factor

        @each(k + 1, width)
        def column(j: Scalar) -> None:
            x[i, j] = x[i, j] - factor * x[k, j]


# Systems by their LU factors -------------------------------------------------------------------


def lu_substitution(*, is_transposed: bool) -> Kernel:
    """Returns the kernel of x with p l u x = b, or its transpose.

    Its operands are the packed factors, the permutation, and b.
    """

    def kernel(packed: Memory, order: Memory, b: Memory, x: Memory) -> None:
        size, columns = x.shape
        # In the transposed case, the solutions have the order of the permutation.
        z = scratch(x.shape, x) if is_transposed else x

        @each(0, size)
        def row(i: Scalar) -> None:
            source = i if is_transposed else to_index(order[i])

            @each(0, columns)
            def column(c: Scalar) -> None:
                z[i, c] = b[source, c]

        for is_forward in (True, False):
            substitute(
                lambda i, k: packed[k, i] if is_transposed else packed[i, k],
                z, lambda i, c: (i, c), size, columns,
                is_forward=is_forward, is_unit=is_forward != is_transposed,
            )  # fmt: skip
        if not is_transposed:
            return

        @each(0, size)
        def ordered(i: Scalar) -> None:
            place = to_index(order[i])

            @each(0, columns)
            def column(c: Scalar) -> None:
                x[place, c] = z[i, c]

    return kernel


# QR --------------------------------------------------------------------------------------------


def qr(a: Memory, q: Memory, r: Memory) -> None:
    """Computes orthonormal columns and an upper triangle."""
    packed, taus = scratch(a.shape, a), scratch((min(a.shape),), a)
    reflections(a, packed, taus)
    product_of_reflections(packed, taus, q)
    zero = r.constant(0.0)
    fill(r, lambda i, j: select(i > j, zero, packed[i, j]))


def reflections(a: Memory, packed: Memory, taus: Memory) -> None:
    """Computes the upper triangle, below it the vectors of the reflections, and their factors."""
    height, width = a.shape
    fill(packed, lambda i, j: a[i, j])

    @each(0, min(height, width))
    def step(k: Scalar) -> None:
        tau = _reflector(packed, k)
        taus[k] = tau
        each(k + 1, width)(lambda j: _reflect(packed, packed, k, tau, j))


def _reflector(x: Memory, k: Scalar) -> Scalar:
    """Replaces column k by its reflected diagonal element and the vector below; returns tau.

    Signs and factors follow LAPACK's `geqrf`; Golub, Van Loan: 5.1.3 and 5.2.1.
    """
    alpha = x[k, k]
    zero, one = alpha.constant(0.0), alpha.constant(1.0)
    tail = _norm_below(x, k, zero)
    is_trivial = tail == 0.0
    scale = select(is_trivial, one, select(abs(alpha) > tail, abs(alpha), tail))
    first, second = alpha / scale, tail / scale
    norm = scale * sqrt(first * first + second * second)
    beta = select(is_trivial, alpha, select(alpha < 0.0, norm, zero - norm))
    divisor = select(is_trivial, one, alpha - beta)

    @each(k + 1, x.shape[0])
    def below(i: Scalar) -> None:
        x[i, k] = x[i, k] / divisor

    x[k, k] = beta
    return select(is_trivial, zero, (beta - alpha) / beta)


def _norm_below(x: Memory, k: Scalar, zero: Scalar) -> Scalar:
    """Returns the Euclidean norm of column k below the diagonal."""
    height = x.shape[0]

    def larger(i: Scalar, most: Scalar) -> Scalar:
        size = abs(x[i, k])
        return select(size > most, size, most)

    # Squares of quotients by the largest element neither overflow nor vanish.
    most = loop(k + 1, height, zero, larger)
    unit = select(most == 0.0, zero.constant(1.0), most)

    def add_square(i: Scalar, total: Scalar) -> Scalar:
        part = x[i, k] / unit
        return total + part * part

    return most * sqrt(loop(k + 1, height, zero, add_square))


def _reflect(x: Memory, vectors: Memory, k: Scalar, tau: Scalar, j: Scalar) -> None:
    """Applies a reflection to column j; its vector, one on row k, lies below it in column k."""
    height = x.shape[0]
    product = tau * loop(k + 1, height, x[k, j], lambda i, s: s + vectors[i, k] * x[i, j])
    x[k, j] = x[k, j] - product

    @each(k + 1, height)
    def below(i: Scalar) -> None:
        x[i, j] = x[i, j] - vectors[i, k] * product


def product_of_reflections(vectors: Memory, taus: Memory, q: Memory) -> None:
    """Computes the first columns of a product of reflections; Golub, Van Loan: 5.1.6."""
    count = taus.shape[0]
    one = q.constant(1.0)
    fill(q, lambda i, j: select(i == j, one, 0.0))

    @each(0, count)
    def step(number: Scalar) -> None:
        k = count - 1 - number
        tau = taus[k]
        each(k, q.shape[1])(lambda j: _reflect(q, vectors, k, tau, j))


def fill(x: Memory, element: Entry) -> None:
    """Stores the elements of a matrix."""

    @each(0, x.shape[0])
    def row(i: Scalar) -> None:
        @each(0, x.shape[1])
        def column(j: Scalar) -> None:
            x[i, j] = element(i, j)
