"""The matrix product as a kernel: tiles in registers, panels of the right operand on the stack.

A tile of the result is kept in vector registers while the products of its sums are added; each
product is a number of the left operand times a vector of the right one. For all tiles of a panel
the right operand is packed contiguously beforehand, as deep as the stack allows. The left operand
is not packed, and stays in the second cache (Goto, van de Geijn, Anatomy of High-Performance Matrix
Multiplication, ACM TOMS 34, 2008, with the operands exchanged).

Elsewhere: the sizes (`tiling.py`), and which products become such kernels (`tile_products.py`).
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Sequence

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.expressions import minimum, select
from axir.dialect.builders.kernels import Memory, dispatch, first_lanes, loop, scratch, shuffle
from axir.dialect.builders.scalars import (
    Scalar,
    broadcast,
    constant,
    index,
    multiply_add,
)

from .contraction import CONTRACTED, Array, View
from .epilogue import Epilogue, Place
from .tiling import Tiling


def matrix_product(
    lhs: Array,
    rhs: Array,
    tiling: Tiling,
    epilogue: Epilogue,
    code: type[MatrixProduct] | None = None,
    element: ir.Type | None = None,
) -> list[ir.Value]:
    """Returns the results of an epilogue for the product of two arrays of the same dtype.

    The results have the shape `[batch, rows, columns]`. Sums in several parts have no epilogue.

    Args:
        lhs: An array.
        rhs: An array.
        tiling: How the product is cut.
        epilogue: The elementwise operations behind the product.
        code: The class that writes the kernel; None for tiles in registers.
        element: The type of the sums; None for the operands' type.
    """
    element = hlo.element_type_of(lhs.value) if element is None else element
    extents = tiling.extents[:3]
    outputs = [element]
    if epilogue.operations:
        outputs = [hlo.element_type_of(x) for x in epilogue.outputs]
    # If the sums are no output, they go to an additional result without readers.
    elements = outputs if element in outputs else [*outputs, element]
    beside = [operand.array(extents) for operand in epilogue.operands.values()]

    def kernel(number: Scalar, left: Memory, right: Memory, *others: Memory) -> None:
        read, results = others[: len(beside)], others[len(beside) :]
        finish = Finish(epilogue, read, results[: len(outputs)]) if epilogue.operations else None
        sums = results[elements.index(element)]
        product = code or TiledProduct
        product(tiling, lhs.view(left), rhs.view(right), sums, finish).run(number)

    made = dispatch(
        kernel,
        [lhs.value, rhs.value, *beside],
        [hlo.tensor_type((tiling.parts * extents[0], *extents[1:]), x) for x in elements],
        workgroups=tiling.workgroups,
        name="matrix_product",
        identity=f"{tiling} {lhs.order} {rhs.order} {epilogue.identity}",
    )
    if tiling.parts == 1:
        return made[: len(outputs)]
    sums = hlo.reshape(made[0], (tiling.parts, *extents))
    return hlo.reduce([sums], [hlo.full(0, (), element)], (0,), hlo.add)


@dataclasses.dataclass(frozen=True)
class Finish:
    """An epilogue, and the memory that it reads and writes."""

    epilogue: Epilogue
    operands: Sequence[Memory]
    results: Sequence[Memory]

    def at(self, sums: Scalar, place: Place) -> None:
        """Writes the outputs for some columns of a row."""
        outputs = self.epilogue.apply(sums, self.operands, place)
        for result, output in zip(self.results, outputs, strict=True):
            result.write(place.position, output, place.mask)


class MatrixProduct(ABC):
    """A kernel while it is built.

    Args:
        tiling: How the product is cut.
        lhs: The left operand.
        rhs: The right one.
        result: Memory for the sums.
        finish: The epilogue for the sums, if there are elementwise operations.
    """

    def __init__(self, tiling: Tiling, lhs: View, rhs: View, result: Memory, finish: Finish | None):
        self.tiling = tiling
        self.lhs = lhs
        self.rhs = rhs
        self.result = result
        self.finish = finish

    @abstractmethod
    def run(self, number: Scalar) -> None:
        """Computes a workgroup's share."""


class TiledProduct(MatrixProduct):
    """The kernel with tiles in registers."""

    panel: Memory | None = None

    def run(self, number: Scalar) -> None:
        """Computes the blocks of a workgroup."""
        tiling = self.tiling
        self.panel = self.new_panel()
        batch, row_blocks, column_blocks = tiling.blocks
        count = tiling.parts * batch * row_blocks * column_blocks
        share = -(-count // tiling.workgroups)
        first = number * share

        def block(at: Scalar) -> None:
            at, column = at // column_blocks, at % column_blocks
            self._block(at // row_blocks, at % row_blocks, column)

        loop(first, minimum(first + share, count), (), block)

    def new_panel(self) -> Memory | None:
        """Returns memory for a panel of the right operand; None if it is read where it lies."""
        tiling = self.tiling
        return scratch((tiling.depth, tiling.width), self.result) if tiling.is_packed else None

    def first_sums(self, part: Part, rows: Sequence[Scalar]) -> list[Scalar]:
        """Returns the first value of the sums of a range of products, for each row of a tile."""
        return [constant(0, ir.VectorType.get([self.tiling.lanes], self.result.element))] * len(
            rows
        )

    def left(self, batch: Scalar, row: Scalar, place: Scalar) -> Scalar:
        """Returns an element of the left operand in each lane."""
        return broadcast(self.lhs[batch, row, place], self.tiling.lanes)

    def right(self, part: Part, place: Scalar, x: Vector) -> Scalar:
        """Returns a vector of the right operand."""
        lanes = self.tiling.lanes
        if self.panel is None:
            return self.rhs.read((part.batch, x.column, place), lanes, x.mask)
        return self.panel.read((place - part.start, x.number * lanes), lanes)

    def sum_with(self, left: Scalar, right: Scalar, sums: Scalar) -> Scalar:
        """Adds products to sums."""
        return multiply_add(left, right, sums)

    def pack(self, part: Part, panel: Memory, vectors: Sequence[Vector]) -> None:
        """Copies a part of the right operand to the stack, with adjacent vectors of its rows."""
        copy = _pack_columns if self.rhs.order[-1] == CONTRACTED else _pack_rows
        copy(part, panel, vectors)

    def _block(self, slot: Scalar, row: Scalar, column: Scalar) -> None:
        """Computes a block of a result: of a part of the sums of a product of the batch."""
        tiling = self.tiling
        count, rows, columns, contracted = tiling.extents
        batch, first, last = slot, index(0), index(contracted)
        if tiling.parts > 1:
            batch, first = slot % count, slot // count * tiling.share
            last = minimum(first + tiling.share, contracted)
        top = row * tiling.block_rows
        left = column * tiling.block_columns
        bottom = minimum(top + tiling.block_rows, rows)
        right = minimum(left + tiling.block_columns, columns)

        def deep(start: Scalar) -> None:
            end = minimum(start + tiling.depth, contracted)
            part = Part(self, slot, batch, top, bottom, first, start, end)
            loop(left, right, (), part.panel_at, tiling.width)

        loop(first, last, (), deep, tiling.depth)


@dataclasses.dataclass(frozen=True)
class Part:
    """A range of the products of the sums in a block of rows.

    Attributes:
        product: The kernel.
        slot: The number of the result.
        batch: The number of the product in the batch.
        top: The first row.
        bottom: Behind the last row.
        first: The first product in the sums of the result.
        start: The first product of the range.
        end: The end of the range.
    """

    product: TiledProduct
    slot: Scalar
    batch: Scalar
    top: Scalar
    bottom: Scalar
    first: Scalar
    start: Scalar
    end: Scalar

    def panel_at(self, column: Scalar) -> None:
        """Adds the products to the columns of a panel."""
        tiling = self.product.tiling
        vectors = self._vectors(column)
        if self.product.panel is not None:
            self.product.pack(self, self.product.panel, vectors)
        count = tiling.rows
        full = self.top + (self.bottom - self.top) // count * count
        loop(self.top, full, (), lambda row: self._tile(row, count, vectors), count)
        if rest := tiling.extents[1] % count:
            loop(full, self.bottom, (), lambda row: self._tile(row, rest, vectors), count)

    def _vectors(self, column: Scalar) -> list[Vector]:
        tiling = self.product.tiling
        columns, lanes = tiling.extents[2], tiling.lanes
        places = [column + lanes * number for number in range(tiling.vectors)]
        if columns % tiling.width == 0:
            return [Vector(place, number, None) for number, place in enumerate(places)]
        return [
            Vector(place, number, first_lanes(lanes, columns - place))
            for number, place in enumerate(places)
        ]

    def _tile(self, top: Scalar, count: int, vectors: list[Vector]) -> None:
        """Adds the products to a tile."""
        product = self.product
        rows = [top + number if number else top for number in range(count)]
        is_partial = product.tiling.depth < product.tiling.extents[3]
        if is_partial:
            # Rows of the result are far apart: their contents are loaded while the products are
            # added.
            for row in rows:
                for x in vectors:
                    product.result.prefetch((self.slot, row, x.column))
        sums = [first for first in product.first_sums(self, rows) for _ in vectors]

        def step(place: Scalar, *sums: Scalar) -> tuple[Scalar, ...]:
            right = [product.right(self, place, x) for x in vectors]
            left = [product.left(self.batch, row, place) for row in rows]
            pairs = [(x, y) for x in left for y in right]
            return tuple(product.sum_with(*pair, z) for pair, z in zip(pairs, sums, strict=True))

        after = loop(self.start, self.end, tuple(sums), step)
        for number, row in enumerate(rows):
            for x in vectors:
                total = after[number * len(vectors) + x.number]
                if is_partial:
                    total = self._before(row, x) + total
                product.result.write((self.slot, row, x.column), total, x.mask)
        if product.finish is not None:
            self._finish(product.finish, top, count, vectors)

    def _finish(self, finish: Finish, top: Scalar, count: int, vectors: list[Vector]) -> None:
        """Writes the results of the epilogue for a tile, after the last products."""
        product, tiling = self.product, self.product.tiling

        def step(row: Scalar) -> None:
            for x in vectors:
                place = Place((self.slot, row, x.column), tiling.lanes, x.mask)
                finish.at(product.result.read(place.position, tiling.lanes, x.mask), place)

        if tiling.depth >= tiling.extents[3]:
            loop(top, top + count, (), step)
        else:
            is_last = self.end == tiling.extents[3]
            loop(top, select(is_last, top + count, top), (), step)

    def _before(self, row: Scalar, x: Vector) -> Scalar:
        """Returns the sums so far; zeros before the first products."""
        product, tiling = self.product, self.product.tiling
        left = tiling.extents[2] - x.column
        known = first_lanes(tiling.lanes, select(self.start > self.first, left, 0))
        return product.result.read((self.slot, row, x.column), tiling.lanes, known)


@dataclasses.dataclass(frozen=True)
class Vector:
    """A vector of a panel: its column in the product, its number, and a mask of its lanes."""

    column: Scalar
    number: int
    mask: Scalar | None


def _pack_rows(part: Part, panel: Memory, vectors: Sequence[Vector]) -> None:
    rhs, lanes = part.product.rhs, part.product.tiling.lanes

    def copy(place: Scalar) -> None:
        for x in vectors:
            taken = rhs.read((part.batch, x.column, place), lanes, x.mask)
            panel.write((place - part.start, x.number * lanes), taken)

    loop(part.start, part.end, (), copy)


def _pack_columns(part: Part, panel: Memory, vectors: Sequence[Vector]) -> None:
    """Does so for a right operand that is stored by columns."""
    tiling = part.product.tiling
    _, _, columns, contracted = tiling.extents
    lanes, rhs = tiling.lanes, part.product.rhs

    def copy(place: Scalar) -> None:
        mask = first_lanes(lanes, contracted - place) if contracted % lanes else None
        for x in vectors:
            taken = [
                # Elements that are read beyond the last column are not written.
                rhs.read((part.batch, minimum(x.column + at, columns - 1), place), lanes, mask)
                for at in range(lanes)
            ]
            for at, vector in enumerate(_transposed(taken)):
                panel.write((place - part.start + at, x.number * lanes), vector)

    loop(part.start, part.end, (), copy, lanes)


def _transposed(rows: list[Scalar]) -> list[Scalar]:
    """Returns the columns of a square of vectors; their number is their lanes, a power of two.

    Each round moves one bit from the row's number to the column's number.
    """
    lanes = len(rows)
    half = lanes // 2
    low = [at for pair in zip(range(half), range(lanes, lanes + half), strict=True) for at in pair]
    high = [at + half for at in low]
    for _ in range(lanes.bit_length() - 1):
        rows = [
            shuffle(rows[at], rows[at + half], order) for at in range(half) for order in (low, high)
        ]
    return rows
