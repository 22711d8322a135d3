"""The product of matrices of integers of 8 or 16 bits as a kernel with sums of 32 bits.

Products of floats have the same tiles. An element is a word of 32 bits: two or four neighbours
along the sums. Panels hold the words of the right operand, so one operation multiplies and adds all
neighbours of a lane. The sums wrap around as in 32 bits.

VPDPBUSD multiplies unsigned bytes with signed ones. A panel holds `b + 128` for a signed byte `b`,
and sums begin with `-128 sum a`:

    sum a b = sum a (b + 128) - 128 sum a

Elsewhere: the tiles (`matrix_kernel.py`), the operations (`dialect/builders/kernels/`), and which
products become such kernels (`tile_products.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from axir.dialect.builders.expressions import minimum
from axir.dialect.builders.kernels import (
    WORD,
    Memory,
    add_byte_products,
    add_pair_products,
    first_lanes,
    loop,
    regrouped,
    scratch,
    shuffle,
    sum_of_lanes,
    transposed,
)
from axir.dialect.builders.scalars import Scalar, broadcast, constant

from .contraction import CONTRACTED
from .matrix_kernel import Part, TiledProduct, Vector

_BYTE, _SIGN_BIT = 8, 0x80


class IntegerProduct(TiledProduct):
    """The kernel while it is built. The extents of its tiling count words along the sums."""

    @property
    def width(self) -> int:
        """The bits of an element of the operands."""
        return int(self.rhs.memory.element.width)

    @property
    def count(self) -> int:
        """The number of elements in a word."""
        return WORD // self.width

    def new_panel(self) -> Memory:
        """Returns memory for the words of a panel."""
        tiling = self.tiling
        return scratch((tiling.depth, tiling.width * self.count), self.rhs.memory)

    def first_sums(self, part: Part, rows: Sequence[Scalar]) -> list[Scalar]:
        """Returns zeros; for bytes, -128 times the sum of the left operand's row."""
        zeros = super().first_sums(part, rows)
        if self.width > _BYTE:
            return zeros
        lanes, count = self.tiling.lanes, self.count
        most = lanes * count
        units = constant(_SIGN_BIT, regrouped(zeros[0], _BYTE).type)

        def step(place: Scalar, *sums: Scalar) -> tuple[Scalar, ...]:
            mask = first_lanes(most, (part.end - place) * count)
            taken = [self.lhs.read((part.batch, row, place * count), most, mask) for row in rows]
            return tuple(add_byte_products(units, x, z) for x, z in zip(taken, sums, strict=True))

        sums = loop(part.start, part.end, tuple(zeros), step, lanes)
        return [broadcast(0 - sum_of_lanes(x), lanes) for x in sums]

    def left(self, batch: Scalar, row: Scalar, place: Scalar) -> Scalar:
        """Returns a word of the left operand in each lane."""
        word = self.lhs.read((batch, row, place * self.count), self.count)
        return shuffle(word, word, [*range(self.count)] * self.tiling.lanes)

    def right(self, part: Part, place: Scalar, x: Vector) -> Scalar:
        """Returns a vector of words of the right operand."""
        assert self.panel is not None
        most = self.tiling.lanes * self.count
        return self.panel.read((place - part.start, x.number * most), most)

    def sum_with(self, left: Scalar, right: Scalar, sums: Scalar) -> Scalar:
        """Adds the products of a word's elements to sums."""
        if self.width == _BYTE:
            return add_byte_products(right, left, sums)
        return add_pair_products(left, right, sums)

    def pack(self, part: Part, panel: Memory, vectors: Sequence[Vector]) -> None:
        """Copies a part of the right operand to the stack, in words."""
        most = self.tiling.lanes * self.count
        is_transposed = self.rhs.order[-1] == CONTRACTED

        def copy(place: Scalar) -> None:
            for x in vectors:
                words = (
                    self._columns(part, place, x) if is_transposed else [self._row(part, place, x)]
                )
                for at, vector in enumerate(words):
                    stored = vector ^ _SIGN_BIT if self.width == _BYTE else vector
                    panel.write((place - part.start + at, x.number * most), stored)

        loop(part.start, part.end, (), copy, self.tiling.lanes if is_transposed else 1)

    def _row(self, part: Part, place: Scalar, x: Vector) -> Scalar:
        """Returns the words at a place of the sums: neighbours from adjacent rows of memory."""
        lanes = self.tiling.lanes
        found = [
            self.rhs.read((part.batch, x.column, place * self.count + at), lanes, x.mask)
            for at in range(self.count)
        ]
        width = self.width
        while len(found) > 1:
            pairs = zip(found[::2], found[1::2], strict=True)
            found = [regrouped(_interleaved(*pair), 2 * width) for pair in pairs]
            width *= 2
        return regrouped(found[0], self.width)

    def _columns(self, part: Part, place: Scalar, x: Vector) -> list[Scalar]:
        """Returns the words at adjacent places of a right operand that is stored by columns."""
        lanes, count = self.tiling.lanes, self.count
        _, _, columns, contracted = self.tiling.extents
        rest = (contracted - place) * count
        mask = first_lanes(lanes * count, rest) if contracted % lanes else None
        taken = [
            # Words that are read beyond the last column are not written.
            regrouped(
                self.rhs.read(
                    (part.batch, minimum(x.column + at, columns - 1), place * count),
                    lanes * count,
                    mask,
                ),
                WORD,
            )
            for at in range(lanes)
        ]
        return [regrouped(word, self.width) for word in transposed(taken)]


def _interleaved(x: Scalar, y: Scalar) -> Scalar:
    count = x.type.shape[0]
    return shuffle(x, y, [number + side for number in range(count) for side in (0, count)])
