"""Transforms of columns: a kernel's code for as many side by side as a vector has lanes.

For length n = r m c, with c the product of the radices that have been before (Stockham's
algorithm)::

    y[j2, k1, q] = w_(r m)^(j2 k1) sum_j1 w_r^(j1 k1) x[j1, j2, q]

where x is seen as [r, m, c], y as [m, r, c]. Each sum is a butterfly. The first stage reads where
the caller says, the last one writes where he says, and between them numbers lie in two buffers that
take turns, which the caches hold.

What does not live here: which lengths there are, and what runs when (`kernels.py`).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from axir.dialect.builders.kernels import Memory, each, shuffle
from axir.dialect.builders.scalars import Scalar, broadcast
from axir.dialect.core.annotations import HostArray

from . import tables
from .butterflies import LARGEST_PRIME, RADICES, Complex, butterfly, times

Row: TypeAlias = Scalar | int
Read: TypeAlias = Callable[[Row], Complex]
Write: TypeAlias = Callable[[Row, Complex], None]

# What a butterfly costs for each of its numbers, about: operations on vectors, of which reading and
# writing are four, and what does not stay in registers.
_COSTS = {2: 9, 3: 13, 4: 13, 5: 16, 6: 17, 7: 22, 8: 18, 9: 22, 10: 23, 11: 32, 12: 23, 13: 36}
_COSTS |= {15: 29, 16: 26}


@dataclasses.dataclass(frozen=True)
class Columns:
    """Transforms of columns of a length, by exp(sign 2 pi i j k / n).

    Attributes:
        length: How many rows the columns have.
        sign: Of the exponent.
    """

    length: int
    sign: int

    @functools.cached_property
    def radices(self) -> tuple[int, ...]:
        """The lengths of the butterflies, in the order of the stages."""
        return _cheapest(self.length)[1]

    @property
    def needs_buffers(self) -> int:
        """How many buffers the stages need."""
        return min(2, len(self.radices) - 1)

    def factors(self) -> HostArray:
        """Returns what the numbers are multiplied by between stages, as pairs of numbers."""
        found = [np.zeros((0, 2))]
        rest = self.length
        for radix in self.radices:
            rest //= radix
            if rest > 1:
                numerators = self.sign * np.outer(np.arange(rest), np.arange(1, radix))
                roots = tables.unit_roots(numerators, rest * radix).ravel()
                found.append(np.stack([roots.real, roots.imag], 1))
        return np.concatenate(found).ravel()

    def run(
        self, read: Read, write: Write, buffers: Sequence[Numbers], table: Memory, start: int
    ) -> None:
        """Transforms a vector of columns.

        Args:
            read: Returns a vector of the numbers of a row.
            write: Takes a row, and a vector of what is there in the end.
            buffers: As many as are needed, each of so many rows as the columns have.
            table: Holds `factors`.
            start: Where these begin.
        """
        last = len(self.radices) - 1
        before = 1
        for number, radix in enumerate(self.radices):
            source = read if number == 0 else buffers[(number - 1) % 2].row
            target = write if number == last else buffers[number % 2].set_row
            rest = self.length // (before * radix)
            stage = _Stage(radix, rest, before, self.sign, table, start)
            stage.run(source, target)
            start += 2 * (radix - 1) * rest
            before *= radix


@dataclasses.dataclass(frozen=True)
class _Stage:
    radix: int
    rest: int
    before: int
    sign: int
    table: Memory
    start: int

    def run(self, read: Read, write: Write) -> None:
        @_each(self.rest)
        def group(place: Row) -> None:
            _each(self.before)(lambda inner: self._butterfly(place, inner, read, write))

    def _butterfly(self, place: Row, inner: Row, read: Read, write: Write) -> None:
        first = _sum(_product(place, self.before), inner)
        step = self.rest * self.before
        found = butterfly([read(_sum(first, j * step)) for j in range(self.radix)], self.sign)
        first = _sum(_product(place, self.before * self.radix), inner)
        for k, number in enumerate(found):
            if k and self.rest > 1:
                number = times(number, self._factor(place, k, number[0].lanes))
            write(_sum(first, k * self.before), number)

    def _factor(self, place: Row, k: int, lanes: int | None) -> Complex:
        at = _sum(_product(place, 2 * (self.radix - 1)), self.start + 2 * (k - 1))
        return broadcast(self.table[at], lanes), broadcast(self.table[_sum(at, 1)], lanes)


def _each(count: int) -> Callable[[Callable[[Row], None]], None]:
    """Runs a function for each index, without a loop where there is one."""
    return each(0, count) if count > 1 else lambda step: step(0)


def _sum(x: Row, y: Row) -> Row:
    return y if isinstance(x, int) and x == 0 else x if isinstance(y, int) and y == 0 else x + y


def _product(x: Row, factor: int) -> Row:
    return x if factor == 1 else x * factor


class Numbers:
    """Complex numbers in memory: their parts as two arrays, or one behind the other in one.

    Args:
        memories: Two arrays of one shape, or one, whose last axis is twice as long.
        lanes: How long the vectors are that are read and written.
    """

    def __init__(self, memories: Sequence[Memory], lanes: int):
        self._memories = memories
        self._lanes = lanes

    def at(self, *place: Row) -> Numbers:
        """Returns the part at leading indices."""
        return Numbers([memory.at(*place) for memory in self._memories], self._lanes)

    def read(self, *place: Row) -> Complex:
        """Returns a vector of neighbours along the last axis."""
        if len(self._memories) == 2:
            real, imag = (memory.read(place, self._lanes) for memory in self._memories)
            return real, imag
        [pairs], lanes = self._memories, self._lanes
        first = (*place[:-1], _product(place[-1], 2))
        second = (*place[:-1], _sum(first[-1], lanes))
        halves = pairs.read(first, lanes), pairs.read(second, lanes)
        return shuffle(*halves, range(0, 2 * lanes, 2)), shuffle(*halves, range(1, 2 * lanes, 2))

    def write(self, place: Sequence[Row], numbers: Complex) -> None:
        """Puts a vector of neighbours along the last axis into memory."""
        if len(self._memories) == 2:
            for memory, part in zip(self._memories, numbers, strict=True):
                memory.write(tuple(place), part)
            return
        [pairs], lanes = self._memories, self._lanes
        for half in (0, lanes // 2):
            order = [lane + part * lanes for lane in range(half, half + lanes // 2) for part in (0, 1)]
            at = (*place[:-1], _sum(_product(place[-1], 2), 2 * half))
            pairs.write(at, shuffle(*numbers, order))

    def row(self, number: Row) -> Complex:
        """Returns a row of as many numbers as a vector has lanes."""
        return self.read(number, 0)

    def set_row(self, number: Row, numbers: Complex) -> None:
        """Puts a vector into such a row."""
        self.write((number, 0), numbers)


# Lengths ----------------------------------------------------------------------------------------


def is_smooth(length: int) -> bool:
    """Tells whether butterflies make up a length."""
    for prime in (2, 3, 5, 7, 11, LARGEST_PRIME):
        while length % prime == 0:
            length //= prime
    return length == 1


def column_cost(length: int) -> int:
    """Returns about how many operations on vectors each number of a column takes."""
    return _cheapest(length)[0]


@functools.lru_cache(maxsize=4096)
def _cheapest(length: int) -> tuple[int, tuple[int, ...]]:
    """Returns the cost of the best radices, and these, the largest first."""
    if length == 1:
        return 0, ()
    found = []
    for radix in RADICES:
        if length % radix == 0:
            cost, rest = _cheapest(length // radix)
            radices = tuple(sorted((radix, *rest), reverse=True))
            found.append((cost + _COSTS[radix], radices))
    return min(found)
