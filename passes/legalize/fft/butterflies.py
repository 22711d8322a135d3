"""Butterflies: transforms of a few complex numbers in registers.

A number is a pair of its parts, each a vector, so that as many transforms run side by side as a
vector has lanes. The length is split into its prime factors while the code is built (Cooley, Tukey,
"An algorithm for the machine calculation of complex Fourier series", 1965). For a prime p, sums and
differences of the numbers k and p - k halve the work.

Elsewhere: longer transforms (`columns.py`).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TypeAlias, TypeVar

import numpy as np

from axir.dialect.builders.scalars import Scalar

from . import tables
from .written_code import Number

# The numbers of kernels, or those of the library (`library.py`).
_Real = TypeVar("_Real", Scalar, Number)
Complex: TypeAlias = tuple[Scalar, Scalar]
_Complex: TypeAlias = tuple[_Real, _Real]

LARGEST_PRIME = 13
"""The largest prime whose transforms are written out."""


def butterfly(numbers: Sequence[_Complex[_Real]], sign: int) -> list[_Complex[_Real]]:
    """Returns the transform of numbers, with exp(sign 2 pi i j k / n)."""
    length = len(numbers)
    if length == 1:
        return list(numbers)
    first = _first_factor(length)
    if first == length:
        return _of_prime(numbers, sign)
    rest = length // first
    inner = [butterfly(numbers[start::rest], sign) for start in range(rest)]
    found: list[_Complex[_Real]] = [numbers[0]] * length
    for place in range(first):
        turned = [
            _turned(inner[number][place], sign * number * place, length) for number in range(rest)
        ]
        found[place::first] = butterfly(turned, sign)
    return found


def times(x: _Complex[_Real], y: _Complex[_Real]) -> _Complex[_Real]:
    """Returns the product of complex numbers."""
    (a, b), (c, d) = x, y
    return (-b).times_plus(d, a * c), b.times_plus(c, a * d)


def plus(x: _Complex[_Real], y: _Complex[_Real]) -> _Complex[_Real]:
    """Returns the sum of complex numbers."""
    return x[0] + y[0], x[1] + y[1]


def minus(x: _Complex[_Real], y: _Complex[_Real]) -> _Complex[_Real]:
    """Returns the difference of complex numbers."""
    return x[0] - y[0], x[1] - y[1]


def _first_factor(length: int) -> int:
    if length in (2, 4):
        return 2
    return next(d for d in (4, 2, 3, 5, 7, 11, 13) if length % d == 0)


def _turned(x: _Complex[_Real], numerator: int, denominator: int) -> _Complex[_Real]:
    """Returns x exp(2 pi i numerator / denominator), by as few operations as possible."""
    real, imag = x
    eighths, rest = divmod(8 * (numerator % denominator), denominator)
    if rest:
        root = complex(tables.unit_roots(np.array([numerator]), denominator)[0])
        return times(x, (real.constant(root.real), real.constant(root.imag)))
    quarter = [(real, imag), (-imag, real), (-real, -imag), (imag, -real)]
    if eighths % 2 == 0:
        return quarter[eighths // 2]
    # (1 + i) / sqrt(2), and then quarters of a turn.
    root = 0.5**0.5
    a, b = (real - imag) * root, (real + imag) * root
    return [(a, b), (-b, a), (-a, -b), (b, -a)][eighths // 2]


def _of_prime(numbers: Sequence[_Complex[_Real]], sign: int) -> list[_Complex[_Real]]:
    first = numbers[0]
    if len(numbers) == 2:
        return [plus(first, numbers[1]), minus(first, numbers[1])]
    length = len(numbers)
    half = length // 2
    pairs = [(numbers[j], numbers[length - j]) for j in range(1, half + 1)]
    sums = [plus(x, y) for x, y in pairs]
    differences = [minus(x, y) for x, y in pairs]
    found: list[_Complex[_Real]] = [first] * length
    found[0] = functools.reduce(plus, sums, first)
    roots = tables.dft_matrix(length, sign)
    for k in range(1, half + 1):
        even, odd = first, _scaled(differences[0], roots[1, k].imag)
        for j in range(1, half + 1):
            even = _added(sums[j - 1], roots[j, k].real, even)
            if j > 1:
                odd = _added(differences[j - 1], roots[j, k].imag, odd)
        # The odd part is multiplied by i.
        found[k] = even[0] - odd[1], even[1] + odd[0]
        found[length - k] = even[0] + odd[1], even[1] - odd[0]
    return found


def _scaled(x: _Complex[_Real], factor: float) -> _Complex[_Real]:
    return x[0] * float(factor), x[1] * float(factor)


def _added(x: _Complex[_Real], factor: float, total: _Complex[_Real]) -> _Complex[_Real]:
    """Returns total + factor x."""
    number = x[0].constant(float(factor))
    return x[0].times_plus(number, total[0]), x[1].times_plus(number, total[1])
