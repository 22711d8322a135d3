"""Transforms of columns: kernel code for as many adjacent columns as a vector has lanes.

For length n = r m c, with c the product of the preceding radices (Stockham's algorithm)::

    y[j2, k1, q] = w_(r m)^(j2 k1) sum_j1 w_r^(j1 k1) x[j1, j2, q]

where x is seen as [r, m, c], y as [m, r, c]. Each sum is a butterfly, or, for larger primes, a loop
over sums and differences of rows j and r - j. The caller chooses where the first stage reads and
where the last stage writes. Between them numbers alternate between two buffers that fit into the
caches.

Elsewhere: the arrays, and the kernels that run this code (`kernels.py`).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from axir.dialect.builders.kernels import Memory, each, loop
from axir.dialect.builders.scalars import Scalar, broadcast, multiply_add
from axir.dialect.core.annotations import HostArray

from . import tables
from .butterflies import LARGEST_PRIME, Complex, butterfly, plus, times
from .numbers import Numbers, Row, product, total

Read: TypeAlias = Callable[[Row], Complex]
Write: TypeAlias = Callable[[Row, Complex], None]

LONGEST_PRIME = 127
"""The largest prime factor that columns may have; larger ones are faster as convolutions."""

# The approximate cost of a butterfly for each of its numbers: operations on vectors (four of them
# read and write), and numbers that do not fit into registers.
_COSTS = {2: 9, 3: 13, 4: 13, 5: 16, 6: 17, 7: 22, 8: 18, 9: 22, 10: 23, 11: 32, 12: 23, 13: 36}
_COST_OF_LOOP = 12


@dataclasses.dataclass(frozen=True)
class Columns:
    """Transforms of columns of a length, by exp(-2 pi i j k / n).

    With the parts of all numbers exchanged, before and after, it is the transform with the other
    sign.

    Attributes:
        length: How many rows the columns have.
    """

    length: int

    @property
    def radices(self) -> tuple[int, ...]:
        """The lengths of the butterflies, in the order of the stages."""
        return _cheapest(self.length)[1]

    @property
    def turns(self) -> int:
        """The number of the buffer that the last stage writes to, if it writes to a buffer."""
        return (len(self.radices) - 1) % 2

    def buffers(self, *, is_kept: bool) -> int:
        """Returns how many buffers the stages need; `is_kept` if the result stays in one."""
        between = min(2, len(self.radices) - 1 + is_kept)
        return 3 if any(radix > LARGEST_PRIME for radix in self.radices) else between

    def factors(self) -> HostArray:
        """Returns the factors by which the stages multiply, as pairs of parts."""
        found = [np.zeros(0, complex)]
        rest = self.length
        for radix in self.radices:
            rest //= radix
            numerators = -np.outer(np.arange(rest), np.arange(1, radix))
            found.append(tables.unit_roots(numerators, rest * radix).ravel())
            if radix > LARGEST_PRIME:
                half = radix // 2 + 1
                found.append(tables.dft_matrix(radix, -1)[1:half, 1:half].ravel())
        return as_pairs(np.concatenate(found))

    def run(
        self, read: Read, write: Write, buffers: Sequence[Numbers], table: Memory, start: int
    ) -> None:
        """Transforms a vector of columns.

        Args:
            read: Returns a vector of the numbers of a row.
            write: Takes a row and a vector of its transformed numbers.
            buffers: As many as `buffers()` says, each with as many rows as the columns.
            table: Holds `factors`.
            start: Where the factors begin in the table.
        """
        last = len(self.radices) - 1
        before = 1
        for number, radix in enumerate(self.radices):
            source = read if number == 0 else buffers[(number - 1) % 2].row
            target = write if number == last else buffers[number % 2].set_row
            rest = self.length // (before * radix)
            stage = _Stage(radix, rest, before, table, start)
            stage.run(source, target, buffers)
            start = stage.end
            before *= radix


def as_pairs(numbers: HostArray) -> HostArray:
    """Returns the parts of complex numbers, side by side along a last axis."""
    return np.stack([numbers.real, numbers.imag], -1)


@dataclasses.dataclass(frozen=True)
class _Stage:
    radix: int
    rest: int
    before: int
    table: Memory
    start: int

    @property
    def _matrix(self) -> int:
        """Where the cosines and sines of a long butterfly begin."""
        return self.start + 2 * (self.radix - 1) * self.rest

    @property
    def end(self) -> int:
        """Where the factors of the next stage begin."""
        is_long = self.radix > LARGEST_PRIME
        return self._matrix + (2 * (self.radix // 2) ** 2 if is_long else 0)

    def run(self, read: Read, write: Write, buffers: Sequence[Numbers]) -> None:
        """Writes all butterflies of the stage."""

        def step(place: Row, inner: Row) -> None:
            first = total(product(place, self.before), inner)
            target = total(product(place, self.before * self.radix), inner)
            rows = self.rest * self.before

            def take(number: Row) -> Complex:
                return read(total(first, product(number, rows)))

            def put(number: Row, found: Complex) -> None:
                is_first = isinstance(number, int) and number == 0
                if self.rest > 1 and not is_first:
                    found = times(found, self._factor(place, number, found[0].lanes))
                write(total(target, product(number, self.before)), found)

            if self.radix > LARGEST_PRIME:
                self._long_butterfly(take, put, buffers[2])
                return
            found = butterfly([take(number) for number in range(self.radix)], -1)
            for number, result in enumerate(found):
                put(number, result)

        _each(self.rest)(lambda place: _each(self.before)(lambda inner: step(place, inner)))

    def _factor(self, place: Row, number: Row, lanes: int | None) -> Complex:
        row = product(place, 2 * (self.radix - 1))
        return self._pair(total(row, total(product(number, 2), self.start - 2)), lanes)

    def _pair(self, at: Row, lanes: int | None) -> Complex:
        return broadcast(self.table[at], lanes), broadcast(self.table[total(at, 1)], lanes)

    def _long_butterfly(self, take: Read, put: Write, buffer: Numbers) -> None:
        """Transforms by a loop over the pairs of rows k and r - k.

        Their sums and differences are stored in a buffer. Each pair of results is a sum of them,
        times cosines and sines.
        """
        radix, half = self.radix, self.radix // 2
        first = take(0)

        def fold(j: Scalar, real: Scalar, imag: Scalar) -> Complex:
            x, y = take(j), take(radix - j)
            sums = plus(x, y)
            buffer.set_row(j, sums)
            buffer.set_row(j + half, (x[0] - y[0], x[1] - y[1]))
            return plus((real, imag), sums)

        put(0, loop(1, half + 1, first, fold))
        zero = first[0].constant(0.0)

        @each(0, half)
        def result(k: Scalar) -> None:
            row = product(k, 2 * half) + self._matrix

            def add(j: Scalar, *sums: Scalar) -> tuple[Scalar, ...]:
                cosine, sine = self._pair(row + (product(j, 2) - 2), first[0].lanes)
                even, odd = buffer.row(j), buffer.row(j + half)
                terms = zip((*even, *odd), (cosine, cosine, sine, sine), sums, strict=True)
                return tuple(multiply_add(*term) for term in terms)

            a, b, c, d = loop(1, half + 1, (*first, zero, zero), add)
            # The odd part is multiplied by i.
            put(k + 1, (a - d, b + c))
            put(radix - 1 - k, (a + d, b - c))


def _each(count: int) -> Callable[[Callable[[Row], None]], None]:
    """Runs a function for each index, without a loop for a single index."""
    return each(0, count) if count > 1 else lambda step: step(0)


# Lengths ----------------------------------------------------------------------------------------


def largest_prime(length: int) -> int:
    """Returns the largest prime factor of a length; 1 for the length 1."""
    found, prime = 1, 2
    while prime * prime <= length:
        if length % prime == 0:
            found, length = prime, length // prime
        else:
            prime += 1
    return max(found, length)


def has_columns(length: int) -> bool:
    """Tells whether columns of a length have stages."""
    return largest_prime(length) <= LONGEST_PRIME


def column_cost(length: int) -> int:
    """Returns the approximate number of vector operations for each number of a column."""
    return _cheapest(length)[0]


@functools.lru_cache(maxsize=4096)
def _cheapest(length: int) -> tuple[int, tuple[int, ...]]:
    """Returns the cost of the best radices, and the radices, the largest first."""
    if length == 1:
        return 0, ()
    prime = largest_prime(length)
    radices = [r for r in _COSTS if length % r == 0] if prime <= LARGEST_PRIME else [prime]
    found = []
    for radix in radices:
        cost, rest = _cheapest(length // radix)
        own = _COSTS.get(radix, radix + _COST_OF_LOOP)
        found.append((cost + own, tuple(sorted((radix, *rest), reverse=True))))
    return min(found)
