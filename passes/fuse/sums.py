"""Reductions by one operation, in vectors: along rows, and down columns.

Elsewhere: reductions by other computations (`reductions.py`), and reductions that are divided among
workgroups (`shares/`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from iree.compiler import ir

from axir.dialect.builders.kernels import (
    combined_lanes,
    is_short,
    lane,
    loops_in_blocks,
    shuffle,
)
from axir.dialect.builders.scalars import Scalar, broadcast, constant

from .elementwise import DEAR
from .emitter import lanes_for, pieces
from .values import Computed, Index, Indices, Value, plus

Combine = Callable[[Scalar, Scalar], Scalar]

# So many vectors are summed side by side: an addition takes four cycles, and two start per cycle.
SIDE_BY_SIDE = 4


@dataclass(frozen=True)
class Sums:
    """A reduction by one operation, in vectors.

    Attributes:
        x: The operand.
        dims: The dimensions that are reduced.
        start: The initial value.
        formula: The operation.
        kind: MLIR's name for the operation.
        is_merged: Whether all elements are contiguous, and adjacent dimensions that are all kept,
            or all reduced, are merged into one.
    """

    x: Value
    dims: tuple[int, ...]
    start: Scalar
    formula: Combine
    kind: str
    is_merged: bool = False

    @property
    def kept(self) -> list[int]:
        """The extents of the result."""
        return [extent for d, extent in enumerate(self.x.shape) if d not in self.dims]

    @property
    def is_over_rows(self) -> bool:
        """Whether the last dimension is reduced."""
        return len(self.x.shape) - 1 in self.dims

    def columns(self, places: Sequence[Indices], lanes: int | None) -> list[Scalar]:
        """Reduces neighbours along the last dimension, which is kept, side by side."""
        ranges = [(0, self.x.shape[d], 1) for d in sorted(self.dims)]

        def step(place: Indices, totals: Sequence[Scalar]) -> list[Scalar]:
            return [
                self.formula(total, self._at(place, position, lanes))
                for total, position in zip(totals, places, strict=True)
            ]

        start = broadcast(self.start, lanes)
        if is_short(ranges):
            return list(loops_in_blocks(ranges, [start] * len(places), step, self._combine))
        neutral = broadcast(neutral_number(self.kind, self.x.element), lanes)
        found = loops_in_blocks(ranges, [neutral] * len(places), step, self._combine)
        return [self.formula(start, x) for x in found]

    def row(self, position: Indices) -> Scalar:
        """Reduces the last dimension, and others, to one number."""
        total = self.start
        outer = [(0, self.x.shape[d], 1) for d in sorted(self.dims)[:-1]]
        extent = self.x.shape[-1]
        rest: Scalar | None = None
        for lower, upper, lanes, count in wide_pieces(extent, self.x.element):
            width = None if lanes == 1 else lanes
            if self._has_long_rest and lanes < lanes_for(self.x.element):
                earlier = extent - lanes_for(self.x.element)
                if rest is None:
                    rest = self._at((earlier,), position, lanes_for(self.x.element))
                total = self._with_lanes(total, rest, lower - earlier, width)
                continue
            places = [*outer, (lower, upper, lanes * count)]
            is_begun = width is None and is_short(places)
            start = total if is_begun else broadcast(self._neutral, width)
            parts = loops_in_blocks(
                places, [start] * count, self._row_step(position, width, count), self._combine
            )
            part = self._tree(parts)
            if width is not None:
                part = combined_lanes(self.kind, part)
            total = part if is_begun else self.formula(total, part)
        return total

    @property
    def _has_long_rest(self) -> bool:
        """Whether the rest behind whole vectors would have long code.

        The rest is then taken from a whole vector that begins earlier.
        """
        is_long = isinstance(self.x, Computed) and self.x.cost >= DEAR
        return is_long and len(self.dims) == 1 and self.x.shape[-1] > lanes_for(self.x.element)

    def _with_lanes(self, total: Scalar, vector: Scalar, first: int, width: int | None) -> Scalar:
        """Adds some lanes of a vector to a total, as `row` does with a vector of them."""
        if width is None:
            return self.formula(total, lane(vector, first))
        part = shuffle(vector, vector, range(first, first + width))
        part = self.formula(broadcast(self._neutral, width), part)
        return self.formula(total, combined_lanes(self.kind, part))

    def _row_step(
        self, position: Indices, width: int | None, count: int
    ) -> Callable[[Indices, Sequence[Scalar]], Sequence[Scalar]]:
        def step(place: Indices, totals: Sequence[Scalar]) -> list[Scalar]:
            *leading, last = place
            return [
                self.formula(
                    total,
                    self._at((*leading, plus(last, number * (width or 1))), position, width),
                )
                for number, total in enumerate(totals)
            ]

        return step

    def _tree(self, parts: Sequence[Scalar]) -> Scalar:
        while len(parts) > 1:
            parts = [self.formula(*parts[n : n + 2]) for n in range(0, len(parts), 2)]
        return parts[0]

    @property
    def _neutral(self) -> Scalar:
        return neutral_number(self.kind, self.x.element)

    def _combine(self, x: Sequence[Scalar], y: Sequence[Scalar]) -> Sequence[Scalar]:
        return [self.formula(*pair) for pair in zip(x, y, strict=True)]

    def _at(self, reduced: Indices, kept: Indices, lanes: int | None) -> Scalar:
        return self.x.at(merged(len(self.x.shape), self.dims, reduced, kept), lanes)


def merged(rank: int, dims: Sequence[int], reduced: Indices, kept: Indices) -> Indices:
    """Returns a position from its indices along reduced dimensions and along kept ones."""
    of_reduced, of_kept = iter(reduced), iter(kept)
    places: list[Index] = [next(of_reduced if d in dims else of_kept) for d in range(rank)]
    return tuple(places)


def neutral_number(kind: str, element: ir.Type) -> Scalar:
    """Returns the neutral element of an operation."""
    if isinstance(element, ir.FloatType):
        number = {"add": 0.0, "mul": 1.0, "maximumf": -float("inf"), "minimumf": float("inf")}
        return constant(number[kind], element)
    half = 1 << (element.width - 1)
    integers = {
        "mul": 1,
        "maxsi": -half,
        "minsi": half - 1,
        "minui": -1,
        "and": -1 if element.width > 1 else 1,
    }
    return constant(integers.get(kind, 0), element)


def wide_pieces(extent: int, element: ir.Type) -> Iterator[tuple[int, int, int, int]]:
    """Cuts a row into pieces: (start, end, width of vectors, number of vectors side by side).

    Only rows of many vectors have several side by side.
    """
    widest = lanes_for(element)
    for start, end, lanes in pieces(extent, widest):
        step = lanes * SIDE_BY_SIDE
        whole = start + (end - start) // step * step
        if lanes < widest or whole - start < 4 * step:
            yield start, end, lanes, 1
            continue
        yield start, whole, lanes, SIDE_BY_SIDE
        if whole < end:
            yield whole, end, lanes, 1
