"""Shares of reductions of rows that are shorter than a vector: `[n, 3]` along or across its rows.

Elsewhere: rows that fill vectors (`shared_sums.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from axir.dialect.builders.kernels import Memory, first_lanes, loop, rows_of, shuffle, when
from axir.dialect.builders.scalars import Scalar, broadcast
from axir.passes.fuse.emitter import lanes_for
from axir.passes.fuse.sums import SIDE_BY_SIDE, Sums
from axir.passes.fuse.values import Index, plus


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
