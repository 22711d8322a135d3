"""Products of a vector and a large matrix in a kernel, which read the matrix row by row.

Several rows are read side by side, from the first element to the last, and the sums of columns are
kept in memory. With sums in registers, a few columns of one row after the other would be read. For
a matrix of 2000x2000 that took 0.4 to 1.3 ms, and rows side by side took 0.3 to 0.4.

Elsewhere: products without such a matrix (`products.py`).
"""

from __future__ import annotations

from collections.abc import Callable

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.kernels import Memory, is_short, loop
from axir.dialect.builders.scalars import Scalar, broadcast, constant

from .emitter import Emitter, lanes_for
from .values import Index, Indices, plus

# The number of rows side by side, and of rows after which a new sum begins, so that errors stay
# small.
_ROWS = 8
_BLOCK = 64
_LARGE = 1 << 20

Add = Callable[[Index, int], Callable[[Indices, int | None, Scalar], Scalar]]
"""Takes a row and how many follow, and returns what adds their products to a sum of columns."""


def is_read_in_strips(rows: int, columns: int, element: ir.Type) -> bool:
    """Tells whether a matrix is larger than the cache of a core, and its sums need few blocks."""
    size = rows * columns * hlo.element_bytes(element)
    return size >= _LARGE and rows <= _BLOCK * _BLOCK


def sum_in_strips(emitter: Emitter, rows: int, totals: Memory, add: Add) -> None:
    """Writes the sums of columns of products to memory.

    Args:
        emitter: Builds the kernel.
        rows: The number of rows.
        totals: The memory of the sums, a row.
        add: Adds the products of some rows.
    """
    strips = _Strips(emitter, add)
    strips.clear(totals)
    if is_short([(0, rows, 1)]):
        strips.block(0, rows, totals)
        return
    partial = emitter.allocate(totals.shape, totals.element).memory
    whole = rows // _BLOCK * _BLOCK
    loop(0, whole, (), lambda k: strips.part(k, _BLOCK, partial, totals), stride=_BLOCK)
    if rows > whole:
        strips.part(whole, rows - whole, partial, totals)


class _Strips:
    """Builds loops over rows, a strip of them at a time, and over all columns in them."""

    def __init__(self, emitter: Emitter, add: Add):
        self._emitter, self._add = emitter, add

    def clear(self, target: Memory) -> None:
        """Writes zeros."""
        self._each(target, lambda _, lanes: broadcast(constant(0, target.element), lanes))

    def part(self, first: Index, count: int, partial: Memory, totals: Memory) -> None:
        """Sums a block of rows separately, and adds the sum to the totals."""
        self.clear(partial)
        self.block(first, count, partial)
        self._each(totals, lambda p, lanes: _read(totals, p, lanes) + _read(partial, p, lanes))

    def block(self, first: Index, count: int, target: Memory) -> None:
        """Sums a block of rows."""
        whole = count // _ROWS * _ROWS
        if whole:
            end = plus(first, whole)
            loop(first, end, (), lambda k: self._strip(k, _ROWS, target), stride=_ROWS)
        if count > whole:
            self._strip(plus(first, whole), count - whole, target)

    def _strip(self, first: Index, count: int, target: Memory) -> None:
        add = self._add(first, count)
        self._each(target, lambda p, lanes: add(p, lanes, _read(target, p, lanes)))

    def _each(self, target: Memory, element: Callable[[Indices, int | None], Scalar]) -> None:
        def write(position: Indices, lanes: int | None) -> None:
            if lanes is None:
                target[position] = element(position, lanes)
            else:
                target.write(position, element(position, lanes))

        self._emitter.each(target.shape, write, lanes_for(target.element), may_repeat=False)


def _read(memory: Memory, position: Indices, lanes: int | None) -> Scalar:
    return memory[position] if lanes is None else memory.read(position, lanes)
