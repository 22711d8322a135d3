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

from ... import stablehlo as hlo
from ...dispatch import Number, Scalar, Tensor, dispatch, loop, scalar
from ...types import ShapedArray

Kernel = Callable[..., Sequence[Tensor]]


def matrix_kernel(
    kernel: Kernel, operands: Sequence[ir.Value], types: Sequence[ShapedArray]
) -> list[ir.Value]:
    """Runs a kernel of single matrices on stacks of them, as one dispatch.

    Args:
        kernel: From tensors without batch axes to results.
        operands: Arrays with equal batch axes in front.
        types: Of the results, which have these batch axes; the first is one of matrices.
    """
    rank = types[0].ndim - 2
    batch = math.prod(types[0].shape[:rank])
    flat = [hlo.reshape(x, (batch, *hlo.shape_of(x)[rank:])) for x in operands]
    flat_types = [hlo.tensor_type((batch, *t.shape[rank:]), t.dtype) for t in types]

    def stacked(*tensors: Tensor) -> Sequence[Tensor]:
        inputs, outputs = tensors[: len(flat)], tensors[len(flat) :]

        def step(number: Scalar, *state: Tensor) -> list[Tensor]:
            results = kernel(*(x.at(number) for x in (*inputs, *state)))
            return [x.whole() for x in results]

        return loop(0, batch, outputs, step)

    results = dispatch(stacked, flat, flat_types)
    return [hlo.reshape(x, t.shape) for x, t in zip(results, types, strict=True)]


# Cholesky --------------------------------------------------------------------------------------


def cholesky(size: int) -> Kernel:
    """Returns the kernel of the lower triangle l with l l^T = a; NaN if there is none."""

    def column(a: Tensor, j: Scalar, l: Tensor) -> Tensor:
        (l,) = loop(0, j, (l,), lambda i, l: l.set((i, j), 0.0))
        square = _reduced(a[j, j], 0, j, lambda k: l[j, k] * l[j, k])
        pivot = (square > 0.0).choose(square.sqrt(), math.nan)
        l = l.set((j, j), pivot)

        def element(i: Scalar, l: Tensor) -> Tensor:
            return l.set((i, j), _reduced(a[i, j], 0, j, lambda k: l[i, k] * l[j, k]) / pivot)

        return loop(j + 1, size, (l,), element)[0]

    def kernel(a: Tensor, l: Tensor) -> list[Tensor]:
        (l,) = loop(0, size, (l,), lambda j, l: column(a, j, l))
        # A pivot that is no number makes none of all that follow: the last one tells.
        last = l[size - 1, size - 1]
        is_good = last.equals(last)

        def spoil(i: Scalar, j: Scalar, l: Tensor) -> Tensor:
            return l.set((i, j), is_good.choose(l[i, j], math.nan))

        return loop(0, size, (l,), lambda i, l: loop(0, i + 1, (l,), lambda j, l: spoil(i, j, l))[0])

    return kernel


def _reduced(start: Scalar, lower: Number, upper: Number, term: Callable[..., Scalar]) -> Scalar:
    """Returns `start` minus the sum of the terms."""
    result: Scalar = loop(lower, upper, (start,), lambda k, rest: rest - term(k))[0]
    return result


# Triangular systems ----------------------------------------------------------------------------


def substitution(
    size: int,
    columns: int,
    *,
    left_side: bool,
    lower: bool,
    transpose_a: bool,
    unit_diagonal: bool,
    **_: Any,
) -> Kernel:
    """Returns the kernel of x with op(a) x = b, or x op(a) = b; its operands are a and b.

    Args:
        size: Rows of a.
        columns: Right-hand sides.
        left_side: As of `triangular_solve`, as are the others.
    """
    # x op(a) = b is op(a)^T x^T = b^T.
    is_turned = transpose_a == left_side

    def kernel(a: Tensor, b: Tensor, x: Tensor) -> list[Tensor]:
        def entry(i: Scalar, k: Scalar) -> Scalar:
            return a[k, i] if is_turned else a[i, k]

        def at(i: Scalar, c: Scalar) -> tuple[Scalar, Scalar]:
            return (i, c) if left_side else (c, i)

        return [
            _substitute(
                entry, b, x, at, size, columns,
                is_forward=lower != is_turned, is_unit=unit_diagonal,
            )
        ]  # fmt: skip

    return kernel


def _substitute(
    entry: Callable[..., Scalar], b: Tensor | None, x: Tensor, at: Callable[..., Any], size: int,
    columns: int, *, is_forward: bool, is_unit: bool,
) -> Tensor:  # fmt: skip
    """Solves for the rows of x one after the other; `at(i, c)` is where row i of column c lies.

    Without b the right-hand sides are in x.
    """

    def row(number: Scalar, x: Tensor) -> Tensor:
        i = number if is_forward else scalar(size - 1, number) - number
        if b is not None:
            (x,) = loop(0, columns, (x,), lambda c, x: x.set(at(i, c), b[at(i, c)]))

        def subtract(k: Scalar, x: Tensor) -> Tensor:
            factor = entry(i, k)
            return loop(
                0, columns, (x,), lambda c, x: x.set(at(i, c), x[at(i, c)] - factor * x[at(k, c)])
            )[0]

        known = (0, i) if is_forward else (i + 1, size)
        (x,) = loop(*known, (x,), subtract)
        if is_unit:
            return x
        pivot = entry(i, i)
        return loop(0, columns, (x,), lambda c, x: x.set(at(i, c), x[at(i, c)] / pivot))[0]

    return loop(0, size, (x,), row)[0]


# LU --------------------------------------------------------------------------------------------


def lu(height: int, width: int) -> Kernel:
    """Returns the kernel of packed factors, pivots (int32) and the permutation (int32)."""
    size = min(height, width)

    def kernel(a: Tensor, x: Tensor, pivots: Tensor, order: Tensor) -> list[Tensor]:
        (x,) = loop(
            0, height, (x,),
            lambda i, x: loop(0, width, (x,), lambda j, x: x.set((i, j), a[i, j]))[0],
        )  # fmt: skip
        (order,) = loop(0, height, (order,), lambda i, order: order.set(i, i.to_integer()))

        def step(k: Scalar, x: Tensor, pivots: Tensor, order: Tensor) -> list[Tensor]:
            row = _largest(x, k, height)
            pivots = pivots.set(k, row.to_integer())
            (x,) = loop(0, width, (x,), lambda j, x: _swap(x, (k, j), (row, j)))
            order = _swap(order, k, row)
            return [_eliminate(x, k, height, width), pivots, order]

        return loop(0, size, (x, pivots, order), step)

    return kernel


def _largest(x: Tensor, k: Scalar, height: int) -> Scalar:
    """Returns the first row from k on with the largest element of column k."""

    def step(i: Scalar, best: Scalar, row: Scalar) -> tuple[Scalar, Scalar]:
        size = x[i, k].abs()
        is_larger = size > best
        return is_larger.choose(size, best), is_larger.choose(i, row)

    row: Scalar = loop(k + 1, height, (x[k, k].abs(), k), step)[1]
    return row


def _swap(x: Tensor, first: Any, second: Any) -> Tensor:
    here, there = x[first], x[second]
    return x.set(first, there).set(second, here)


def _eliminate(x: Tensor, k: Scalar, height: int, width: int) -> Tensor:
    pivot = x[k, k]
    is_zero = pivot.equals(0.0)

    def row(i: Scalar, x: Tensor) -> Tensor:
        # Below a pivot of zero all is zero, and stays so.
        factor = is_zero.choose(x[i, k], x[i, k] / pivot)
        x = x.set((i, k), factor)
        return loop(
            k + 1, width, (x,), lambda j, x: x.set((i, j), x[i, j] - factor * x[k, j])
        )[0]  # fmt: skip

    return loop(k + 1, height, (x,), row)[0]


# Systems by their LU factors -------------------------------------------------------------------


def lu_substitution(size: int, columns: int, *, is_transposed: bool) -> Kernel:
    """Returns the kernel of x with p l u x = b from the packed factors, permutation and b.

    Transposed: the kernel of z, whose rows in the order of the permutation are x.
    """

    def rows(i: Scalar, c: Scalar) -> tuple[Scalar, Scalar]:
        return i, c

    def kernel(packed: Tensor, order: Tensor, b: Tensor, x: Tensor) -> list[Tensor]:
        def entry(i: Scalar, k: Scalar) -> Scalar:
            return packed[k, i] if is_transposed else packed[i, k]

        def solve(right: Tensor | None, x: Tensor, *, is_forward: bool) -> Tensor:
            return _substitute(
                entry, right, x, rows, size, columns,
                is_forward=is_forward, is_unit=is_forward != is_transposed,
            )  # fmt: skip

        right = b if is_transposed else _Permuted(b, order)
        return [solve(None, solve(right, x, is_forward=True), is_forward=False)]

    return kernel


class _Permuted(Tensor):
    """A matrix whose rows are read in another order."""

    __slots__ = ("order",)

    def __init__(self, tensor: Tensor, order: Tensor):
        super().__init__(tensor.value, tensor.shape, tensor.place)
        self.order = order

    def __getitem__(self, position: Any) -> Scalar:
        row, column = position
        return super().__getitem__((self.order[row].to_index(), column))


def scatter_rows(size: int, columns: int) -> Kernel:
    """Returns the kernel of x with x[order[i]] = z[i]; its operands are the order and z."""

    def kernel(order: Tensor, z: Tensor, x: Tensor) -> list[Tensor]:
        def row(i: Scalar, x: Tensor) -> Tensor:
            place = order[i].to_index()
            return loop(0, columns, (x,), lambda c, x: x.set((place, c), z[i, c]))[0]

        return loop(0, size, (x,), row)

    return kernel
