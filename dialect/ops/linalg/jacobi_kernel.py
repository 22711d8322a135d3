"""Eigenvalues of small real symmetric matrices as a kernel, by Jacobi's rotations.

Golub, Van Loan, Matrix Computations, 4th edition, 8.5: row by row, each rotation makes one element
off the diagonal zero, until all of them together are small. The matrix is divided by its largest
element first, so that nothing overflows or vanishes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from axir.dialect.builders.dispatch import Position, Tensor, loop, scratch
from axir.dialect.builders.expressions import select, sqrt
from axir.dialect.builders.scalars import Scalar
from axir.dialect.core.annotations import DTypeLike

from .kernels import Kernel, fill

# More than are needed: convergence is quadratic in the end, and what has converged stops.
_MOST_SWEEPS = 20


def symmetric_eigenvectors(size: int, dtype: DTypeLike, *, lower: bool) -> Kernel:
    """Returns the kernel of eigenvectors as columns, and ascending eigenvalues in a row behind.

    Args:
        size: Rows.
        dtype: A real dtype.
        lower: Whether the lower triangle is read, else the upper one.
    """
    enough = float(np.finfo(dtype).eps) / size

    def kernel(x: Tensor, vectors: Tensor) -> Tensor:
        zero, one = x.constant(0.0), x.constant(1.0)

        def read(i: Scalar, j: Scalar) -> Scalar:
            is_stored = i > j if lower else i < j
            return select(is_stored, x[i, j], x[j, i])

        most, flaw = _extent(read, size, zero)
        unit = select(most > 0.0, most, one)
        a = fill(size, size, scratch((size, size), x), lambda i, j: read(i, j) / unit)
        vectors = fill(size, size, vectors, lambda i, j: select(i == j, one, 0.0))

        def sweep(number: Scalar, a: Tensor, vectors: Tensor) -> tuple[Tensor, Tensor]:
            goes_on = _off_diagonal(a, size, zero) > enough
            rows = select(goes_on, number.constant(size - 1), 0)
            return loop(0, rows, (a, vectors), lambda p, a, v: _rotate_row(a, v, p, size))

        a, vectors = loop(0, _MOST_SWEEPS, (a, vectors), sweep)
        vectors = loop(0, size, vectors, lambda i, v: v.set((size, i), a[i, i] * unit))
        vectors = loop(0, size, vectors, lambda i, v: _sort_in(v, i, size))
        return _plus(vectors, flaw, size)

    return kernel


def _extent(read: Any, size: int, zero: Scalar) -> tuple[Scalar, Scalar]:
    """Returns the largest absolute value, and zero, or NaN for a matrix that is not finite."""

    def element(i: Scalar, j: Scalar, most: Scalar, flaw: Scalar) -> tuple[Scalar, Scalar]:
        number = read(i, j)
        is_larger = abs(number) > most
        return select(is_larger, abs(number), most), flaw + (number - number)

    def row(i: Scalar, *state: Scalar) -> tuple[Scalar, Scalar]:
        return loop(0, size, state, lambda j, *inner: element(i, j, *inner))

    return loop(0, size, (zero, zero), row)


def _off_diagonal(a: Tensor, size: int, zero: Scalar) -> Scalar:
    """Returns the sum of the absolute values above the diagonal."""

    def row(i: Scalar, total: Scalar) -> Scalar:
        return loop(i + 1, size, total, lambda j, total: total + abs(a[i, j]))

    return loop(0, size, zero, row)


def _rotate_row(a: Tensor, vectors: Tensor, p: Scalar, size: int) -> tuple[Tensor, Tensor]:
    """Makes each element of row p behind the diagonal zero in turn."""

    def rotate(q: Scalar, a: Tensor, vectors: Tensor) -> tuple[Tensor, Tensor]:
        cosine, sine = _rotation(a[p, p], a[q, q], a[p, q])

        def turned(x: Tensor, first: Position, second: Position) -> Tensor:
            left, right = x[first], x[second]
            x = x.set(first, cosine * left - sine * right)
            return x.set(second, sine * left + cosine * right)

        a = loop(0, size, a, lambda k, a: turned(a, (k, p), (k, q)))
        a = loop(0, size, a, lambda k, a: turned(a, (p, k), (q, k)))
        return a, loop(0, size, vectors, lambda k, v: turned(v, (k, p), (k, q)))

    return loop(p + 1, size, (a, vectors), rotate)


def _rotation(first: Scalar, second: Scalar, between: Scalar) -> tuple[Scalar, Scalar]:
    """Returns the cosine and sine of the smaller angle that makes the element between zero."""
    zero, one = first.constant(0.0), first.constant(1.0)
    is_zero = between == 0.0
    ratio = (second - first) / (select(is_zero, one, between) * 2.0)
    size = one / (abs(ratio) + sqrt(ratio * ratio + 1.0))
    tangent = select(is_zero, zero, select(ratio < 0.0, zero - size, size))
    cosine = one / sqrt(tangent * tangent + 1.0)
    return cosine, tangent * cosine


def _sort_in(x: Tensor, i: Scalar, size: int) -> Tensor:
    """Brings the column with the least value behind the vectors, from number i on, to place i."""

    def smaller(j: Scalar, least: Scalar, place: Scalar) -> tuple[Scalar, Scalar]:
        value = x[size, j]
        is_less = value < least
        return select(is_less, value, least), select(is_less, j, place)

    _, place = loop(i + 1, size, (x[size, i], i), smaller)

    def row(k: Scalar, x: Tensor) -> Tensor:
        here, there = x[k, i], x[k, place]
        return x.set((k, i), there).set((k, place), here)

    return loop(0, size + 1, x, row)


def _plus(x: Tensor, number: Scalar, size: int) -> Tensor:
    def row(i: Scalar, x: Tensor) -> Tensor:
        return loop(0, size, x, lambda j, x: x.set((i, j), x[i, j] + number))

    return loop(0, size + 1, x, row)
