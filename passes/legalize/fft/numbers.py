"""Complex numbers in the memory of kernels.

Elsewhere: the kernels that use them (`columns.py`, `kernels.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from axir.dialect.builders.kernels import Memory, shuffle
from axir.dialect.builders.scalars import Scalar

from .butterflies import Complex

Row: TypeAlias = Scalar | int


def total(x: Row, y: Row) -> Row:
    """Returns the sum of indices, without an operation where one of them is zero."""
    if isinstance(x, int):
        x, y = y, x
    return x if isinstance(y, int) and y == 0 else x + y


def product(x: Row, factor: int) -> Row:
    """Returns a multiple of an index, without an operation where the factor is one."""
    return x if factor == 1 else x * factor


class Numbers:
    """Complex numbers in memory: their parts in two arrays, or side by side in one.

    Args:
        memories: Two arrays of one shape, or one array with a last axis twice as long.
        lanes: The length of the vectors that are read and written.
        swaps: Whether the two parts of each number are exchanged.
    """

    def __init__(self, memories: Sequence[Memory], lanes: int, *, swaps: bool = False):
        self._memories = memories
        self._lanes = lanes
        self._swaps = swaps

    def at(self, *place: Row) -> Numbers:
        """Returns the part at leading indices."""
        memories = [memory.at(*place) for memory in self._memories]
        return Numbers(memories, self._lanes, swaps=self._swaps)

    def read(self, *place: Row) -> Complex:
        """Returns a vector of neighbours along the last axis."""
        lanes = self._lanes
        if len(self._memories) == 2:
            real, imag = (memory.read(place, lanes) for memory in self._memories)
            return real, imag
        [pairs] = self._memories
        first, second = (pairs.read(at, lanes) for at in self._halves(place))
        orders = (range(part, 2 * lanes, 2) for part in (0, 1))
        real, imag = (shuffle(first, second, order) for order in orders)
        return (imag, real) if self._swaps else (real, imag)

    def write(self, place: Sequence[Row], numbers: Complex) -> None:
        """Puts a vector of neighbours along the last axis into memory."""
        lanes = self._lanes
        if len(self._memories) == 2:
            for memory, part in zip(self._memories, numbers, strict=True):
                memory.write(tuple(place), part)
            return
        [pairs] = self._memories
        if self._swaps:
            numbers = numbers[::-1]
        order = [lane + part * lanes for lane in range(lanes) for part in (0, 1)]
        for at, half in zip(self._halves(place), (order[:lanes], order[lanes:]), strict=True):
            pairs.write(at, shuffle(*numbers, half))

    def _halves(self, place: Sequence[Row]) -> list[tuple[Row, ...]]:
        """Returns where the two vectors of pairs begin."""
        first = product(place[-1], 2)
        return [(*place[:-1], total(first, half * self._lanes)) for half in (0, 1)]

    def element(self, number: Row) -> Complex:
        """Returns a single number of one axis."""
        if len(self._memories) == 2:
            real, imag = (memory[number] for memory in self._memories)
            return real, imag
        [pairs], first = self._memories, product(number, 2)
        return pairs[first], pairs[total(first, 1)]

    def set_element(self, number: Row, numbers: Complex) -> None:
        """Puts a single number of one axis into memory."""
        if len(self._memories) == 2:
            for memory, part in zip(self._memories, numbers, strict=True):
                memory[number] = part
            return
        [pairs], first = self._memories, product(number, 2)
        pairs[first] = numbers[0]
        pairs[total(first, 1)] = numbers[1]

    def row(self, number: Row) -> Complex:
        """Returns a row of as many numbers as a vector has lanes."""
        return self.read(number, 0)

    def set_row(self, number: Row, numbers: Complex) -> None:
        """Puts a vector into such a row."""
        self.write((number, 0), numbers)
