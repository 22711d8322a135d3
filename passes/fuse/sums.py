"""Reductions by one operation, in vectors: along rows, down columns, by one thread or several.

What does not live here: reductions by other computations (`reductions.py`), shares of rows that
are shorter than a vector (`narrow_sums.py`), and which reductions become a kernel of their own
(`fuse_sums.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from iree.compiler import ir

from axir.dialect.builders.kernels import (
    Memory,
    combined_lanes,
    is_short,
    loop,
    loops_in_blocks,
    rows_of,
    when,
)
from axir.dialect.builders.scalars import Scalar, broadcast, constant

from .emitter import lanes_for, pieces
from .values import Computed, Index, Indices, Value, flat, plus, times

Combine = Callable[[Scalar, Scalar], Scalar]

# So many vectors are added up side by side: an addition takes four cycles, and two begin in each.
SIDE_BY_SIDE = 4


@dataclass(frozen=True)
class Sums:
    """A reduction by one operation, in vectors.

    Attributes:
        x: What is reduced.
        dims: Its dimensions that vanish.
        start: What the result begins with.
        formula: The operation.
        kind: What MLIR calls it.
        is_merged: Whether all elements lie one behind the other, and neighbouring dimensions that
            all stay, or all vanish, are one.
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
        """Whether the last dimension vanishes."""
        return len(self.x.shape) - 1 in self.dims

    def columns(self, places: Sequence[Indices], lanes: int | None) -> list[Scalar]:
        """Reduces neighbours along the last dimension, which stays, side by side."""
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
        for lower, upper, lanes, count in _wide_pieces(self.x.shape[-1], self.x.element):
            width = None if lanes == 1 else lanes
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
    """Returns a position from those along dimensions that vanish, and along the others."""
    of_reduced, of_kept = iter(reduced), iter(kept)
    places: list[Index] = [next(of_reduced if d in dims else of_kept) for d in range(rank)]
    return tuple(places)


def neutral_number(kind: str, element: ir.Type) -> Scalar:
    """Returns the number that changes nothing when it is combined with another."""
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


def _wide_pieces(extent: int, element: ir.Type) -> Iterator[tuple[int, int, int, int]]:
    """Cuts a row: where a piece starts and ends, its vectors' width, and how many go side by side.

    Only rows that are long for their vectors have several side by side.
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


# Several threads --------------------------------------------------------------------------------


def with_merged_axes(sums: Sums) -> Sums:
    """Returns the same reduction of an array of as few dimensions as can be.

    Neighbouring dimensions that all stay, or all vanish, are one if elements lie in a row.
    """
    row = flat(sums.x)
    if row is None:
        return sums
    groups: list[tuple[bool, int]] = []
    for d, extent in enumerate(sums.x.shape):
        vanishes = d in sums.dims
        if extent == 1:
            continue
        if groups and groups[-1][0] == vanishes:
            groups[-1] = (vanishes, groups[-1][1] * extent)
        else:
            groups.append((vanishes, extent))
    shape = [extent for _, extent in groups]
    strides = [math.prod(shape[d + 1 :]) for d in range(len(shape))]

    def read(position: Indices, lanes: int | None) -> Scalar:
        place: Index = 0
        for p, stride in zip(position, strides, strict=True):
            place = plus(place, times(p, stride))
        return row.at((place,), lanes)

    dims = tuple(d for d, (vanishes, _) in enumerate(groups) if vanishes)
    x = Computed(shape, sums.x.element, read, (row,))
    return Sums(x, dims, sums.start, sums.formula, sums.kind, is_merged=True)


def share_of(sums: Sums, result: Memory, workgroup: Scalar, workgroups: int) -> None:
    """Writes the share of one workgroup of a reduction.

    Args:
        sums: The reduction, with as few dimensions as can be.
        result: Where its result lies.
        workgroup: The number of the workgroup.
        workgroups: How many there are.
    """
    kept = sums.kept
    axis, parts = _shared_axis(sums, workgroups)
    if axis is None:
        result[()] = sums.row(()) if sums.is_over_rows else sums.columns([()], None)[0]
        return
    share = rows_of(workgroup, parts, workgroups)
    if not sums.is_over_rows and axis == len(kept) - 1:
        columns = _Columns(sums, result)
        nest(kept[:-1], None, share, lambda place: columns.write_share(place, workgroup, share))
        return

    def write(place: Indices) -> None:
        if sums.is_over_rows:
            result[place] = sums.row(place)
        else:
            _Columns(sums, result).write_all(place)

    nest(kept if sums.is_over_rows else kept[:-1], axis, share, write)


def _shared_axis(sums: Sums, wanted: int) -> tuple[int | None, int]:
    """Returns which dimension of the result workgroups share, and in how many parts it can be cut:
    those of the last one are vectors that go side by side.
    """
    kept = sums.kept
    if not kept:
        return None, 1
    parts = list(kept)
    if not sums.is_over_rows:
        parts[-1] = max(1, kept[-1] // (lanes_for(sums.x.element) * SIDE_BY_SIDE))
    axis = next((d for d, n in enumerate(parts) if n >= wanted), None)
    axis = max(range(len(parts)), key=parts.__getitem__) if axis is None else axis
    return axis, parts[axis]


def nest(
    extents: Sequence[int],
    shared: int | None,
    share: tuple[Scalar, Scalar],
    body: Callable[[Indices], None],
) -> None:
    """Runs `body(position)` for each position, of one dimension only in a range."""

    def level(place: Indices) -> None:
        d = len(place)
        if d == len(extents):
            body(place)
        elif d == shared:
            loop(*share, (), lambda i: level((*place, i)))
        elif extents[d] == 1:
            level((*place, 0))
        else:
            loop(0, extents[d], (), lambda i: level((*place, i)))

    level(())


@dataclass(frozen=True)
class _Columns:
    """A reduction whose result has neighbours where its operand has them.

    Attributes:
        sums: The reduction.
        result: Where its result lies.
    """

    sums: Sums
    result: Memory

    def write_all(self, place: Indices) -> None:
        """Writes a whole row of the result."""
        for start, end, lanes, count in _wide_pieces(self.sums.kept[-1], self.sums.x.element):
            self._write(place, start, end, lanes, count)

    def write_share(self, place: Indices, workgroup: Scalar, share: tuple[Scalar, Scalar]) -> None:
        """Writes part of a row; what all parts leave over is written by the first workgroup."""
        lanes = lanes_for(self.sums.x.element)
        step = lanes * SIDE_BY_SIDE
        extent = self.sums.kept[-1]
        whole = extent // step * step
        if whole:
            first, end = share
            self._write(place, first * step, end * step, lanes, SIDE_BY_SIDE)
        if whole == extent:
            return

        @when(workgroup == 0)
        def rest() -> None:
            for start, stop, width in pieces(extent - whole, lanes):
                self._write(place, whole + start, whole + stop, width, 1)

    def _write(self, place: Indices, start: Index, end: Index, lanes: int, count: int) -> None:
        width = None if lanes == 1 else lanes

        def body(i: Scalar) -> None:
            places = [(*place, plus(i, number * lanes)) for number in range(count)]
            for position, total in zip(places, self.sums.columns(places, width), strict=True):
                if width is None:
                    self.result[position] = total
                else:
                    self.result.write(position, total)

        loop(start, end, (), body, lanes * count)
