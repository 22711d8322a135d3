"""Reductions by one operation, in vectors, divided among workgroups.

Here: rows that fill vectors, and rows that are shorter than a vector: `[n, 3]` along or across its
rows. Elsewhere: vectors (`passes/fuse/sums.py`), and which reductions become such a kernel
(`fuse_sums.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from axir.dialect.builders.kernels import Memory, first_lanes, loop, rows_of, shuffle, when
from axir.dialect.builders.scalars import Scalar, broadcast
from axir.passes.fuse.emitter import lanes_for, pieces
from axir.passes.fuse.sums import SIDE_BY_SIDE, Sums, wide_pieces
from axir.passes.fuse.values import Computed, Index, Indices, flat, plus, times


def is_narrow(sums: Sums) -> bool:
    """Tells whether rows are contiguous, and a vector holds more than one."""
    lanes = lanes_for(sums.x.element)
    extent = sums.x.shape[-1] if sums.x.shape else 1
    is_row = sums.is_merged and len(sums.kept) > 0
    if sums.is_over_rows:
        return is_row and sums.dims == (1,) and extent <= lanes // 2 and sums.kept[0] >= lanes
    return is_row and len(sums.kept) == 2 and extent < lanes and extent & (extent - 1) != 0


def share_of_narrow(sums: Sums, result: Memory, workgroup: Scalar, workgroups: int) -> None:
    """Writes the share of one workgroup, as `share_of` does."""
    if sums.is_over_rows:
        _write_rows(sums, result, workgroup, workgroups)
    else:
        _write_columns(sums, result, workgroup, workgroups)


def _write_rows(sums: Sums, result: Memory, workgroup: Scalar, workgroups: int) -> None:
    """Reduces as many rows at once as a vector has lanes."""
    lanes = lanes_for(sums.x.element)
    rows, extent = sums.x.shape
    first, end = rows_of(workgroup, rows // lanes, workgroups)

    def step(i: Scalar) -> None:
        start = i * lanes
        vectors = [sums.x.at((start, n * lanes), lanes) for n in range(extent)]
        total = broadcast(sums.start, lanes)
        for column in range(extent):
            total = sums.formula(total, _every(vectors, extent, column))
        result.write((start,), total)

    loop(first, end, (), step)

    @when(workgroup == 0)
    def rest() -> None:
        def single(row: Scalar) -> None:
            result[(row,)] = sums.row((row,))

        loop(rows // lanes * lanes, rows, (), single)


def _every(vectors: Sequence[Scalar], stride: int, start: int) -> Scalar:
    """Returns every `stride`-th number of consecutive vectors."""
    lanes = vectors[0].lanes
    assert lanes is not None
    places = [divmod(start + lane * stride, lanes) for lane in range(lanes)]
    found = vectors[0]
    for number, vector in enumerate(vectors):
        if number == 0:
            order = [offset if owner == 0 else 0 for owner, offset in places]
        else:
            order = [
                lanes + offset if owner == number else lane
                for lane, (owner, offset) in enumerate(places)
            ]
        found = shuffle(found, vector, order)
    return found


def _write_columns(sums: Sums, result: Memory, workgroup: Scalar, workgroups: int) -> None:
    """Reads each row as a vector that reaches into the next row; the last row number by number."""
    outer, extent = sums.kept
    width = 1 << (extent - 1).bit_length()
    first, end = rows_of(workgroup, outer - 1, workgroups)
    mask = first_lanes(width, extent)

    def rows(count: int, i: Scalar) -> None:
        places = [(plus(i, number), 0) for number in range(count)]
        for place, total in zip(places, sums.columns(places, width), strict=True):
            result.write(place, total, mask)

    whole = end - (end - first) % SIDE_BY_SIDE
    loop(first, whole, (), lambda i: rows(SIDE_BY_SIDE, i), SIDE_BY_SIDE)
    loop(whole, end, (), lambda i: rows(1, i))
    when(workgroup == workgroups - 1)(lambda: _write_row(sums, result, outer - 1))


def _write_row(sums: Sums, result: Memory, row: Index) -> None:
    for column in range(sums.kept[-1]):
        [result[(row, column)]] = sums.columns([(row, column)], None)


def with_merged_axes(sums: Sums) -> Sums:
    """Returns the same reduction of an array of as few dimensions as possible.

    Adjacent dimensions that are all kept, or all reduced, are merged if elements are contiguous.
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
        result: The memory of its result.
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
    """Returns which dimension of the result is divided among workgroups, and the number of its
    parts; in the last dimension, a part is several adjacent vectors.
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
    """Runs `body(position)` for each position; one dimension is limited to a range."""

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
    """A reduction that keeps the last dimension, so that neighbours stay neighbours.

    Attributes:
        sums: The reduction.
        result: The memory of its result.
    """

    sums: Sums
    result: Memory

    def write_all(self, place: Indices) -> None:
        """Writes a whole row of the result."""
        for start, end, lanes, count in wide_pieces(self.sums.kept[-1], self.sums.x.element):
            self._write(place, start, end, lanes, count)

    def write_share(self, place: Indices, workgroup: Scalar, share: tuple[Scalar, Scalar]) -> None:
        """Writes part of a row; the first workgroup writes the rest behind all parts."""
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
