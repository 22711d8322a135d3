"""Decompositions of small real matrices as kernels: one dispatch for a whole stack of them.

A call of LAPACK costs more than the arithmetic of a small matrix, and the portable forms loop over
blocks, a dispatch each. The kernels are the textbook algorithms (Golub, Van Loan, Matrix
Computations, 4th edition: 3.1 triangular systems, 3.4.1 partial pivoting, 4.2 Cholesky), element by
element. What does not live here: when they are used (`rules.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.dispatch import Position, Tensor, dispatch, loop
from axir.dialect.builders.expressions import is_nan, select, sqrt
from axir.dialect.builders.scalars import Scalar, to_float, to_index
from axir.dialect.core.annotations import Options, UserFunction
from axir.dialect.core.types import ShapedArray

Kernel = Callable[..., Tensor]


def matrix_kernel(
    kernel: Kernel, operands: Sequence[ir.Value], batch: Sequence[int], shape: tuple[int, int]
) -> ir.Value:
    """Runs a kernel of single matrices on stacks of them, as one dispatch.

    Args:
        kernel: From tensors without batch axes to the result.
        operands: Arrays with equal batch axes in front; the first is real.
        batch: The batch axes.
        shape: Of the result without batch axes; it has the dtype of the first operand.
    """
    count, rank = math.prod(batch), len(batch)
    flat = [hlo.reshape(x, (count, *hlo.shape_of(x)[rank:])) for x in operands]

    def stacked(*tensors: Tensor) -> Tensor:
        *inputs, output = tensors

        def step(number: Scalar, result: Tensor) -> Tensor:
            return kernel(*(x.at(number) for x in (*inputs, result))).whole()

        result: Tensor = loop(0, count, output, step)
        return result

    result_type = hlo.tensor_type((count, *shape), hlo.element_type_of(operands[0]))
    return hlo.reshape(dispatch(stacked, flat, result_type), (*batch, *shape))


def cut(x: ir.Value, like: ShapedArray, row: int = 0) -> ir.Value:
    """Returns a matrix, or a vector, of a type out of larger ones, from a row on."""
    batch = like.shape[: x.type.rank - 2]
    shape = like.shape[len(batch) :]
    height, width = shape if len(shape) == 2 else (1, *shape)
    starts = (*(0 for _ in batch), row, 0)
    ends = (*batch, row + height, width)
    part = hlo.slice(x, starts, ends, (1,) * len(ends))
    return hlo.convert(hlo.reshape(part, like.shape), like.dtype)


# Cholesky --------------------------------------------------------------------------------------


def cholesky(size: int) -> Kernel:
    """Returns the kernel of the lower triangle whose product with its transpose is a, or NaN."""

    def kernel(a: Tensor, factor: Tensor) -> Tensor:
        factor = loop(0, size, factor, lambda j, factor: _cholesky_column(a, j, factor, size))
        # A pivot that is no number makes none of all that follow: the last one tells.
        is_bad = is_nan(factor[size - 1, size - 1])

        def checked(i: Scalar, j: Scalar, factor: Tensor) -> Tensor:
            return factor.set((i, j), select(is_bad, math.nan, factor[i, j]))

        def row(i: Scalar, factor: Tensor) -> Tensor:
            return loop(0, i + 1, factor, lambda j, factor: checked(i, j, factor))

        return loop(0, size, factor, row)

    return kernel


def _cholesky_column(a: Tensor, j: Scalar, factor: Tensor, size: int) -> Tensor:
    factor = loop(0, j, factor, lambda i, factor: factor.set((i, j), 0.0))
    square = loop(0, j, a[j, j], lambda k, rest: rest - factor[j, k] * factor[j, k])
    pivot = select(square > 0.0, sqrt(square), math.nan)
    factor = factor.set((j, j), pivot)

    def element(i: Scalar, factor: Tensor) -> Tensor:
        rest = loop(0, j, a[i, j], lambda k, rest: rest - factor[i, k] * factor[j, k])
        return factor.set((i, j), rest / pivot)

    return loop(j + 1, size, factor, element)


# Triangular systems ----------------------------------------------------------------------------


def substitution(
    size: int,
    columns: int,
    *,
    left_side: bool,
    lower: bool,
    transpose_a: bool,
    unit_diagonal: bool,
    **_: Options,
) -> Kernel:
    """Returns the kernel of x with op(a) x = b, or x op(a) = b; its operands are a and b.

    Args:
        size: Rows of a.
        columns: Right-hand sides.
        left_side: As of `triangular_solve`, as are the others.
    """
    # x op(a) = b is op(a)^T x^T = b^T.
    is_turned = transpose_a == left_side

    def kernel(a: Tensor, b: Tensor, x: Tensor) -> Tensor:
        def entry(i: Scalar, k: Scalar) -> Scalar:
            return a[k, i] if is_turned else a[i, k]

        def at(i: Scalar, c: Scalar) -> tuple[Scalar, Scalar]:
            return (i, c) if left_side else (c, i)

        return _substitute(
            entry, b, x, at, size, columns, is_forward=lower != is_turned, is_unit=unit_diagonal
        )

    return kernel


def _substitute(
    entry: Callable[..., Scalar], b: Tensor | None, x: Tensor, at: UserFunction, size: int,
    columns: int, *, is_forward: bool, is_unit: bool,
) -> Tensor:  # fmt: skip
    """Solves for the rows of x one after the other; `at(i, c)` is where row i of column c lies.

    Without b the right-hand sides are in x.
    """

    def row(number: Scalar, x: Tensor) -> Tensor:
        i = number if is_forward else number.constant(size - 1) - number
        if b is not None:
            x = loop(0, columns, x, lambda c, x: x.set(at(i, c), b[at(i, c)]))

        def subtract(k: Scalar, x: Tensor) -> Tensor:
            factor = entry(i, k)
            return loop(
                0, columns, x, lambda c, x: x.set(at(i, c), x[at(i, c)] - factor * x[at(k, c)])
            )

        x = loop(0, i, x, subtract) if is_forward else loop(i + 1, size, x, subtract)
        if is_unit:
            return x
        pivot = entry(i, i)
        return loop(0, columns, x, lambda c, x: x.set(at(i, c), x[at(i, c)] / pivot))

    return loop(0, size, x, row)


# LU --------------------------------------------------------------------------------------------


def lu(height: int, width: int) -> Kernel:
    """Returns the kernel of packed factors, in a row behind them the pivots, then the permutation.

    The result has height + 2 rows, and as many columns as the larger of height and width.
    """

    def kernel(a: Tensor, x: Tensor) -> Tensor:
        x = fill(height, width, x, lambda i, j: a[i, j])
        x = loop(0, height, x, lambda i, x: x.set((height + 1, i), to_float(i, x.element)))

        def step(k: Scalar, x: Tensor) -> Tensor:
            row = _largest(x, k, height)
            x = x.set((height, k), to_float(row, x.element))
            x = loop(0, width, x, lambda j, x: _swap(x, (k, j), (row, j)))
            return _eliminate(_swap(x, (height + 1, k), (height + 1, row)), k, height, width)

        return loop(0, min(height, width), x, step)

    return kernel


def _largest(x: Tensor, k: Scalar, height: int) -> Scalar:
    """Returns the first row from k on with the largest element of column k."""

    def step(i: Scalar, best: Scalar, row: Scalar) -> tuple[Scalar, Scalar]:
        size = abs(x[i, k])
        is_larger = size > best
        return select(is_larger, size, best), select(is_larger, i, row)

    _, row = loop(k + 1, height, (abs(x[k, k]), k), step)
    return row


def _swap(x: Tensor, first: Position, second: Position) -> Tensor:
    here, there = x[first], x[second]
    return x.set(first, there).set(second, here)


def _eliminate(x: Tensor, k: Scalar, height: int, width: int) -> Tensor:
    pivot = x[k, k]
    is_zero = pivot == 0.0

    def row(i: Scalar, x: Tensor) -> Tensor:
        # Below a pivot of zero all is zero, and stays so.
        factor = select(is_zero, x[i, k], x[i, k] / pivot)
        x = x.set((i, k), factor)
        return loop(k + 1, width, x, lambda j, x: x.set((i, j), x[i, j] - factor * x[k, j]))

    return loop(k + 1, height, x, row)


# Systems by their LU factors -------------------------------------------------------------------


def lu_substitution(size: int, columns: int, *, is_transposed: bool) -> Kernel:
    """Returns the kernel of x with p l u x = b from the packed factors, permutation and b.

    Transposed: the kernel of z, whose rows in the order of the permutation are x.
    """

    def rows(i: Scalar, c: Scalar) -> tuple[Scalar, Scalar]:
        return i, c

    def kernel(packed: Tensor, order: Tensor, b: Tensor, x: Tensor) -> Tensor:
        def entry(i: Scalar, k: Scalar) -> Scalar:
            return packed[k, i] if is_transposed else packed[i, k]

        def solve(right: Tensor | None, x: Tensor, *, is_forward: bool) -> Tensor:
            return _substitute(
                entry, right, x, rows, size, columns,
                is_forward=is_forward, is_unit=is_forward != is_transposed,
            )  # fmt: skip

        right = b if is_transposed else _Permuted(b, order)
        return solve(None, solve(right, x, is_forward=True), is_forward=False)

    return kernel


class _Permuted(Tensor):
    """A matrix whose rows are read in another order."""

    __slots__ = ("order",)

    def __init__(self, tensor: Tensor, order: Tensor):
        super().__init__(tensor.value, tensor.shape, tensor.place)
        self.order = order

    def __getitem__(self, position: Any) -> Scalar:
        row, column = position
        return super().__getitem__((to_index(self.order[row]), column))


def scatter_rows(size: int, columns: int) -> Kernel:
    """Returns the kernel of x with x[order[i]] = z[i]; its operands are z and the order."""

    def kernel(z: Tensor, order: Tensor, x: Tensor) -> Tensor:
        def row(i: Scalar, x: Tensor) -> Tensor:
            place = to_index(order[i])
            return loop(0, columns, x, lambda c, x: x.set((place, c), z[i, c]))

        return loop(0, size, x, row)

    return kernel


# QR --------------------------------------------------------------------------------------------


def reflections(height: int, width: int) -> Kernel:
    """Returns the kernel of Householder vectors below r, and their factors tau in a row behind.

    Signs and factors are those of LAPACK's `geqrf`; Golub, Van Loan: 5.1.3 and 5.2.1.
    """

    def kernel(a: Tensor, x: Tensor) -> Tensor:
        x = fill(height, width, x, lambda i, j: a[i, j])

        def step(k: Scalar, x: Tensor) -> Tensor:
            x, tau = _reflector(x, k, height)
            x = x.set((height, k), tau)
            return loop(k + 1, width, x, lambda j, x: _reflected(x, None, k, tau, j, height))

        return loop(0, min(height, width), x, step)

    return kernel


def _reflector(x: Tensor, k: Scalar, height: int) -> tuple[Tensor, Scalar]:
    """Replaces column k by what the reflection makes of it, and the vector of the reflection."""
    alpha = x[k, k]
    zero, one = alpha.constant(0.0), alpha.constant(1.0)
    tail = _norm_below(x, k, height, zero)
    is_trivial = tail == 0.0
    scale = select(is_trivial, one, select(abs(alpha) > tail, abs(alpha), tail))
    first, second = alpha / scale, tail / scale
    norm = scale * sqrt(first * first + second * second)
    beta = select(is_trivial, alpha, select(alpha < 0.0, norm, zero - norm))
    tau = select(is_trivial, zero, (beta - alpha) / beta)
    divisor = select(is_trivial, one, alpha - beta)
    x = loop(k + 1, height, x, lambda i, x: x.set((i, k), x[i, k] / divisor))
    return x.set((k, k), beta), tau


def _norm_below(x: Tensor, k: Scalar, height: int, zero: Scalar) -> Scalar:
    """Returns the Euclidean norm of column k below the diagonal."""

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


def _reflected(
    x: Tensor, vectors: Tensor | None, k: Scalar, tau: Scalar, j: Scalar, height: int
) -> Tensor:
    """Applies a reflection to column j.

    Its vector, one on row k, is stored below it in column k: of `vectors`, or else of x.
    """

    def entry(i: Scalar, x: Tensor) -> Scalar:
        return (x if vectors is None else vectors)[i, k]

    product = tau * loop(k + 1, height, x[k, j], lambda i, s: s + entry(i, x) * x[i, j])
    x = x.set((k, j), x[k, j] - product)
    return loop(k + 1, height, x, lambda i, x: x.set((i, j), x[i, j] - entry(i, x) * product))


def product_of_reflections(height: int, width: int, count: int) -> Kernel:
    """Returns the kernel of the first columns of a product of reflections; Golub, Van Loan: 5.1.6.

    Args:
        height: Rows of the vectors.
        width: Columns of the result.
        count: Reflections.
    """

    def kernel(packed: Tensor, taus: Tensor, q: Tensor) -> Tensor:
        one = q.constant(1.0)
        q = fill(height, width, q, lambda i, j: select(i == j, one, 0.0))

        def step(number: Scalar, q: Tensor) -> Tensor:
            k = number.constant(count - 1) - number
            tau = taus[k]
            return loop(k, width, q, lambda j, q: _reflected(q, packed, k, tau, j, height))

        return loop(0, count, q, step)

    return kernel


def upper_triangle(height: int, width: int) -> Kernel:
    """Returns the kernel of the upper triangle of a matrix that has at least as many rows."""

    def kernel(packed: Tensor, r: Tensor) -> Tensor:
        zero = r.constant(0.0)
        return fill(height, width, r, lambda i, j: select(i > j, zero, packed[i, j]))

    return kernel


def fill(height: int, width: int, x: Tensor, element: Callable[[Scalar, Scalar], Scalar]) -> Tensor:
    """Stores the elements of a matrix."""

    def row(i: Scalar, x: Tensor) -> Tensor:
        return loop(0, width, x, lambda j, x: x.set((i, j), element(i, j)))

    return loop(0, height, x, row)
