"""Eigenvalues of small real symmetric matrices as a kernel, by Jacobi's rotations.

Golub, Van Loan, Matrix Computations, 4th edition, 8.5: row by row, each rotation makes one element
off the diagonal zero, until the sum of all of them is small. The matrix is divided by its largest
element first, so that nothing overflows or vanishes.
"""

from __future__ import annotations

import numpy as np

from axir.dialect.builders.expressions import select, sqrt
from axir.dialect.builders.kernels import Memory, Position, each, loop, scratch
from axir.dialect.builders.scalars import Scalar
from axir.dialect.core.annotations import DTypeLike

from .kernels import Entry, Kernel, fill, swap

# More than needed: convergence is quadratic in the end, and converged matrices stop.
_MOST_SWEEPS = 20


def symmetric_eigenvectors(dtype: DTypeLike, *, lower: bool) -> Kernel:
    """Returns the kernel of eigenvectors as columns, and ascending eigenvalues.

    Args:
        dtype: A real dtype.
        lower: Whether the lower triangle is read, else the upper one.
    """

    def kernel(x: Memory, vectors: Memory, values: Memory) -> None:
        size = x.shape[0]
        zero, one = x.constant(0.0), x.constant(1.0)

        def read(i: Scalar, j: Scalar) -> Scalar:
            is_stored = i > j if lower else i < j
            return select(is_stored, x[i, j], x[j, i])

        most, flaw = _extent(read, size, zero)
        unit = select(most > 0.0, most, one)
        a = scratch((size, size), x)
        fill(a, lambda i, j: read(i, j) / unit)
        fill(vectors, lambda i, j: select(i == j, one, 0.0))
        _diagonalize(a, vectors, float(np.finfo(dtype).eps) / size)

        @each(0, size)
        def value(i: Scalar) -> None:
            # One element that is not finite makes all results NaN.
            values[i] = a[i, i] * unit + flaw

        each(0, size)(lambda i: _sort_in(vectors, values, i))
        fill(vectors, lambda i, j: vectors[i, j] + flaw)

    return kernel


def _extent(read: Entry, size: int, zero: Scalar) -> tuple[Scalar, Scalar]:
    """Returns the largest absolute value, and zero, or NaN for a matrix that is not finite."""

    def element(i: Scalar, j: Scalar, most: Scalar, flaw: Scalar) -> tuple[Scalar, Scalar]:
        number = read(i, j)
        is_larger = abs(number) > most
        return select(is_larger, abs(number), most), flaw + (number - number)

    def row(i: Scalar, *state: Scalar) -> tuple[Scalar, Scalar]:
        return loop(0, size, state, lambda j, *inner: element(i, j, *inner))

    return loop(0, size, (zero, zero), row)


def _diagonalize(a: Memory, vectors: Memory, enough: float) -> None:
    """Rotates until the elements off the diagonal are small."""
    size = a.shape[0]

    @each(0, _MOST_SWEEPS)
    def sweep(number: Scalar) -> None:
        goes_on = _off_diagonal(a) > enough
        rows = select(goes_on, number.constant(size - 1), 0)

        @each(0, rows)
        def row(p: Scalar) -> None:
            each(p + 1, size)(lambda q: _rotate(a, vectors, p, q))


def _off_diagonal(a: Memory) -> Scalar:
    """Returns the sum of the absolute values above the diagonal."""
    size = a.shape[0]

    def row(i: Scalar, total: Scalar) -> Scalar:
        return loop(i + 1, size, total, lambda j, total: total + abs(a[i, j]))

    return loop(0, size, a.constant(0.0), row)


def _rotate(a: Memory, vectors: Memory, p: Scalar, q: Scalar) -> None:
    """Makes the element in row p and column q zero."""
    size = a.shape[0]
    cosine, sine = _rotation(a[p, p], a[q, q], a[p, q])

    def turn(x: Memory, first: Position, second: Position) -> None:
        left, right = x[first], x[second]
        x[first] = cosine * left - sine * right
        x[second] = sine * left + cosine * right

    each(0, size)(lambda k: turn(a, (k, p), (k, q)))
    each(0, size)(lambda k: turn(a, (p, k), (q, k)))
    each(0, size)(lambda k: turn(vectors, (k, p), (k, q)))


def _rotation(first: Scalar, second: Scalar, between: Scalar) -> tuple[Scalar, Scalar]:
    """Returns the cosine and sine of the smaller angle that makes the element between zero."""
    zero, one = first.constant(0.0), first.constant(1.0)
    is_zero = between == 0.0
    ratio = (second - first) / (select(is_zero, one, between) * 2.0)
    size = one / (abs(ratio) + sqrt(ratio * ratio + 1.0))
    tangent = select(is_zero, zero, select(ratio < 0.0, zero - size, size))
    cosine = one / sqrt(tangent * tangent + 1.0)
    return cosine, tangent * cosine


def _sort_in(vectors: Memory, values: Memory, i: Scalar) -> None:
    """Brings the least value from number i on to place i, together with its vector."""
    size = values.shape[0]

    def smaller(j: Scalar, least: Scalar, place: Scalar) -> tuple[Scalar, Scalar]:
        value = values[j]
        is_less = value < least
        return select(is_less, value, least), select(is_less, j, place)

    _, place = loop(i + 1, size, (values[i], i), smaller)
    swap(values, i, place)
    each(0, size)(lambda k: swap(vectors, (k, i), (k, place)))
