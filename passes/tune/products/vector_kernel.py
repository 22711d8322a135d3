"""Products of a matrix and a vector as kernels that read the matrix once, in its order.

Where the sums run along rows, several rows are summed side by side. Where they run down columns,
each workgroup sums some of the rows, several at a time, and the workgroups' sums are added.

Elsewhere: which products become such kernels (`tile_products.py`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.expressions import minimum, select
from axir.dialect.builders.kernels import (
    Memory,
    dispatch,
    first_lanes,
    loop,
    loop_in_blocks,
    rows_of,
    sum_of_lanes,
)
from axir.dialect.builders.scalars import Scalar, broadcast, constant, index, multiply_add

from .contraction import CONTRACTED, Array, View

# A workgroup reads at least so many bytes, which takes 20 us.
_WORKGROUP_BYTES = 1 << 18
_WORKGROUPS = 64
# Rows that are read side by side, and vectors of each.
_ROWS, _VECTORS = 4, 2
_ROWS_DOWN = 8
# So many rows are summed one after the other, eight at a time.
_ROWS_PER_PART = 1 << 10
# A part of a row has at least so many vectors.
_LEAST_VECTORS = 256
# Sums down columns that stay in the first cache while the rows pass.
_COLUMNS_BYTES = 1 << 14


def vector_product(matrix: Array, vector: Array, vector_bits: int) -> ir.Value:
    """Returns the sums `[batch, free]` of a matrix's elements times a vector's elements.

    Args:
        matrix: Its last axis is contracted or free.
        vector: Its free axis has extent 1.
        vector_bits: Width of the vector registers of the CPU.
    """
    element = hlo.element_type_of(matrix.value)
    extents = dict(zip(matrix.order, hlo.shape_of(matrix.value), strict=True))
    batch, free, contracted = (extents[kind] for kind in "bfk")
    size = batch * free * contracted * element.width // 8
    wanted = max(1, min(_WORKGROUPS, size // _WORKGROUP_BYTES))
    is_along = matrix.order[-1] == CONTRACTED
    lanes = vector_bits // element.width
    if is_along:
        # Few rows are cut into parts, so that each workgroup has work.
        rows = batch * free
        most = contracted // (_LEAST_VECTORS * lanes) if rows < _ROWS else 1
        parts = max(1, min(most, wanted // rows))
        workgroups = min(wanted, max(1, rows // _ROWS) if parts == 1 else parts * rows)
    else:
        workgroups = min(wanted, max(1, contracted // _ROWS_DOWN))
        parts = max(workgroups, contracted // _ROWS_PER_PART)
    product = _Product((batch, free, contracted), lanes, workgroups, parts)

    def kernel(number: Scalar, left: Memory, right: Memory, result: Memory) -> None:
        run = product.along if is_along else product.down
        run(number, matrix.view(left), vector.view(right), result)

    [sums] = dispatch(
        kernel,
        [matrix.value, vector.value],
        [hlo.tensor_type((parts, batch, free), element)],
        workgroups=workgroups,
        name="vector_product",
        identity=f"{product} {matrix.order} {vector.order}",
    )
    if parts == 1:
        return hlo.reshape(sums, (batch, free))
    return hlo.reduce([sums], [hlo.full(0, (), element)], (0,), hlo.add)[0]


@dataclasses.dataclass(frozen=True)
class _Product:
    """The kernels.

    Attributes:
        extents: Batch, sums, and products in a sum.
        lanes: Numbers in a vector.
        workgroups: The number of workgroups, among which the rows, or parts of rows, are divided.
        parts: The number of parts into which the sums are cut; each part has a result.
    """

    extents: tuple[int, int, int]
    lanes: int
    workgroups: int
    parts: int

    def along(self, number: Scalar, matrix: View, vector: View, result: Memory) -> None:
        """Sums a workgroup's rows, or parts of rows, over all batches."""
        batch, free, contracted = self.extents
        rows = batch * free
        first, end = rows_of(number, self.parts * rows, self.workgroups)
        stride = self.lanes * _VECTORS * _ROWS
        share = -(-contracted // (self.parts * stride)) * stride

        def sum_rows(row: Scalar, count: int) -> None:
            numbers = [row + n if n else row for n in range(count)]
            part, limits = index(0), (index(0), index(contracted))
            if self.parts > 1:
                part = row // rows
                limits = part * share, minimum(part * share + share, contracted)
                numbers = [row % rows]
            places = [(x // free, x % free) for x in numbers]
            sums = self._sums(places, matrix, vector, limits)
            for place, total in zip(places, sums, strict=True):
                position = (part, *place)
                result[position] = total

        at_once = _ROWS if self.parts == 1 else 1
        full = first + (end - first) // at_once * at_once
        loop(first, full, (), lambda row: sum_rows(row, at_once), at_once)
        if at_once > 1:
            loop(full, end, (), lambda row: sum_rows(row, 1))

    def _sums(
        self,
        places: list[tuple[Scalar, Scalar]],
        matrix: View,
        vector: View,
        limits: tuple[Scalar, Scalar],
    ) -> list[Scalar]:
        contracted = self.extents[2]
        # A single row has as many accumulators as several rows together.
        count = _VECTORS * _ROWS // len(places)
        lanes, stride = self.lanes, self.lanes * count
        zero = constant(0, ir.VectorType.get([lanes], matrix.memory.element))

        def add(
            at: Scalar, sums: Sequence[Scalar], vectors: int, mask: Scalar | None
        ) -> list[Scalar]:
            added = list(sums)
            for v in range(vectors):
                place = at + lanes * v if v else at
                for n, (batch, row) in enumerate(places):
                    x = matrix.read((batch, row, place), lanes, mask)
                    y = vector.read((batch, 0, place), lanes, mask)
                    added[n * count + v] = multiply_add(x, y, added[n * count + v])
            return added

        first, end = limits
        most = -(-contracted // stride)
        even = first + (end - first) // stride * stride
        sums = tuple([zero] * (len(places) * count))

        def whole(at: Scalar, *sums: Scalar) -> tuple[Scalar, ...]:
            return tuple(add(at, sums, count, None))

        sums = loop_in_blocks(first, even, sums, whole, _added, stride=stride, most=most)

        def rest(at: Scalar, *sums: Scalar) -> tuple[Scalar, ...]:
            return tuple(add(at, sums, 1, first_lanes(lanes, contracted - at)))

        if contracted % stride:
            sums = loop(even, end, sums, rest, lanes)
        return [
            sum_of_lanes(_added_up(sums[n * count : (n + 1) * count])) for n in range(len(places))
        ]

    def down(self, number: Scalar, matrix: View, vector: View, result: Memory) -> None:
        """Sums down columns, over some of the rows of each batch."""
        first, end = rows_of(number, self.parts, self.workgroups)
        loop(first, end, (), lambda part: self._down(part, matrix, vector, result))

    def _down(self, part: Scalar, matrix: View, vector: View, result: Memory) -> None:
        """Sums a part of the rows."""
        batch, free, contracted = self.extents
        first, end = rows_of(part, contracted, self.parts)
        full = first + (end - first) // _ROWS_DOWN * _ROWS_DOWN
        width = min(free, _COLUMNS_BYTES * 8 // matrix.memory.element.width)

        def rows(place: _Columns, row: Scalar, count: int) -> None:
            factors = [
                broadcast(vector[place.batch, 0, row + n if n else row], self.lanes)
                for n in range(count)
            ]

            def add(column: Scalar) -> None:
                left = free - column
                mask = first_lanes(self.lanes, left) if free % self.lanes else None
                known = first_lanes(self.lanes, select(row > first, left, 0))
                position = (part, place.batch, column)
                total = result.read(position, self.lanes, known)
                for n, factor in enumerate(factors):
                    at = (place.batch, column, row + n if n else row)
                    total = multiply_add(factor, matrix.read(at, self.lanes, mask), total)
                result.write(position, total, mask)

            loop(place.start, place.end, (), add, self.lanes)

        def columns(index: Scalar) -> None:
            blocks = -(-free // width)
            start = index % blocks * width
            place = _Columns(index // blocks, start, minimum(start + width, free))
            loop(first, full, (), lambda row: rows(place, row, _ROWS_DOWN), _ROWS_DOWN)
            loop(full, end, (), lambda row: rows(place, row, 1))

        loop(0, batch * -(-free // width), (), columns)


def _added(x: Sequence[Scalar], y: Sequence[Scalar]) -> list[Scalar]:
    return [a + b for a, b in zip(x, y, strict=True)]


def _added_up(sums: Sequence[Scalar]) -> Scalar:
    """Adds an even number of vectors, neighbours first."""
    pairs = [x + y for x, y in zip(sums[::2], sums[1::2], strict=True)]
    return pairs[0] if len(pairs) == 1 else _added_up(pairs)


@dataclasses.dataclass(frozen=True)
class _Columns:
    """Neighbouring columns of a matrix of a batch, in whole vectors except for the last ones."""

    batch: Scalar
    start: Scalar
    end: Scalar
