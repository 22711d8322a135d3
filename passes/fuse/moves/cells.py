"""The loops of a kernel that write a part of its result, in shares of workgroups.

Squares of elements are read in vectors along one axis and written along another.

Elsewhere: the formulas of the elements (`kernel.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from axir.dialect.builders.kernels import Memory, branch, loop, rows_of, transposed
from axir.dialect.builders.scalars import Scalar, index
from axir.passes.fuse.emitter import lanes_for, pieces
from axir.passes.fuse.rearranged import Transposed
from axir.passes.fuse.values import Index, Indices, Mapped, Number, Value, plus, times

# Columns of squares that are written before the next row of squares, to limit the pages in use.
_COLUMNS_AT_ONCE = 64

Cell: TypeAlias = Sequence[tuple[int, int]]
Place: TypeAlias = dict[int, Index]  # by axes


class Writing:
    """The loops that write a cell."""

    def __init__(
        self,
        target: Memory,
        value: Value,
        cell: Cell,
        begin: Callable[[], None],
        workgroup: Scalar,
        workgroups: int,
    ):
        self.begin = begin
        self.target, self.value, self.cell = target, value, cell
        self.workgroup, self.workgroups = workgroup, workgroups
        self.lanes = lanes_for(value.element)
        self.rank = len(cell)
        extents = [end - start for start, end in cell]
        # One axis is divided among workgroups: the first that is long enough, or else the longest.
        longest = max(range(self.rank), key=lambda axis: extents[axis])
        axes = [d for d in range(self.rank - 1) if extents[d] >= 4 * workgroups]
        self.shared = axes[0] if axes else longest

    def write(self) -> None:
        """Writes the elements of the cell."""
        across = _crossed_axis(self.value)
        lower, upper = self.cell[-1]
        if across is not None and upper - lower >= self.lanes:
            start, end = self.cell[across]
            if end - start >= self.lanes:
                _Squares(self, across).write()
                return
        self.nest(list(range(self.rank - 1)), {}, self._row)

    # Rows --------------------------------------------------------------------------------------

    def share(self, axis: int, step: int = 1) -> tuple[Index, Index]:
        """Returns a workgroup's range along an axis: whole steps from the cell's start on."""
        start, end = self.cell[axis]
        if axis != self.shared or self.workgroups == 1:
            return start, start + (end - start) // step * step
        first, last = rows_of(self.workgroup, (end - start) // step, self.workgroups)
        return plus(times(first, step), start), plus(times(last, step), start)

    def nest(self, axes: list[int], place: Place, body: Callable[[Place], None]) -> None:
        """Runs a body for each index along axes, in the share of a workgroup of one of them."""
        if not axes:
            body(place)
            return
        axis, *rest = axes
        start, end = self.cell[axis]
        if end - start == 1 and axis != self.shared:
            self.nest(rest, {**place, axis: start}, body)
            return
        first, last = self.share(axis)
        loop(first, last, (), lambda i: self.nest(rest, {**place, axis: i}, body))

    def _row(self, place: Place) -> None:
        """Writes along the last axis: whole vectors, then the rest."""
        axis = self.rank - 1
        start, end = self.cell[axis]
        if axis != self.shared or self.workgroups == 1:
            self.along(place, start, end)
            return
        whole = start + (end - start) // self.lanes * self.lanes
        if start < whole:
            first, last = self.share(axis, self.lanes)

            def vector(i: Scalar) -> None:
                self._put({**place, axis: i}, self.lanes)

            loop(first, last, (), vector, stride=self.lanes)
        self.by_last(lambda: self.along(place, whole, end))

    def by_last(self, body: Callable[[], None]) -> None:
        """Runs a body only in the last workgroup."""
        branch(self.workgroup == self.workgroups - 1, body, lambda: None)

    def along(self, place: Place, start: int, end: int) -> None:
        """Writes elements along the last axis: in whole vectors, then in smaller ones."""
        axis = self.rank - 1
        for lower, upper, lanes in pieces(end - start, self.lanes):
            if upper - lower == lanes:
                self._put({**place, axis: start + lower}, lanes)
            else:
                loop(
                    start + lower,
                    start + upper,
                    (),
                    lambda i, n=lanes: self._put({**place, axis: i}, n),
                    stride=lanes,
                )

    def _put(self, place: Place, lanes: int) -> None:
        self.begin()
        position = tuple(place[axis] for axis in range(self.rank))
        if lanes == 1:
            self.target[position] = self.value.at(position, None)
        else:
            self.target.write(position, self.value.at(position, lanes))


class _Squares:
    """Squares of vectors, read along one axis and written along the last, and the remainders."""

    def __init__(self, writing: Writing, across: int):
        self.writing, self.across = writing, across
        self.last, self.lanes = writing.rank - 1, writing.lanes
        if writing.shared == self.last:
            writing.shared = across
        (self.left, self.right), (top, self.end) = writing.cell[-1], writing.cell[across]
        self.columns = self.left + (self.right - self.left) // self.lanes * self.lanes
        self.bottom = top + (self.end - top) // self.lanes * self.lanes

    def write(self) -> None:
        """Writes all elements of the cell."""
        outer = [axis for axis in range(self.last) if axis != self.across]
        self.writing.nest(outer, {}, self._plane)

    def _plane(self, place: Place) -> None:
        writing = self.writing
        first, end = writing.share(self.across, self.lanes)

        def columns_from(start: Scalar) -> None:
            following = start + _COLUMNS_AT_ONCE
            stop = (following < self.columns).choose(following, index(self.columns))

            def band(i: Scalar) -> None:
                def square(j: Scalar) -> None:
                    self._square({**place, self.across: i, self.last: j})

                loop(start, stop, (), square, stride=self.lanes)

            loop(first, end, (), band, stride=self.lanes)

        def beside(i: Scalar) -> None:
            writing.along({**place, self.across: i}, self.columns, self.right)

        def below(i: Scalar) -> None:
            writing.along({**place, self.across: i}, self.left, self.right)

        loop(self.left, self.columns, (), columns_from, stride=_COLUMNS_AT_ONCE)
        if self.columns < self.right:
            loop(first, end, (), beside)
        if self.bottom == self.end:
            return
        if writing.shared == self.across and writing.workgroups > 1:
            writing.by_last(lambda: loop(self.bottom, self.end, (), below))
        else:
            loop(self.bottom, self.end, (), below)

    def _square(self, place: Place) -> None:
        self.writing.begin()
        position = tuple(place[axis] for axis in range(self.last + 1))
        rows = rows_at(self.writing.value, position, self.across, self.lanes)
        for number, x in enumerate(rows):
            row = {**place, self.across: plus(place[self.across], number)}
            self.writing.target.write(tuple(row[axis] for axis in range(self.last + 1)), x)


def _crossed_axis(x: Value) -> int | None:
    """Returns the axis along which neighbours of the result are a row apart in the source."""
    pending, seen = [x], {x}
    while pending:
        value = pending.pop()
        if isinstance(value, Transposed) and not value.keeps_last:
            return value.order.index(len(value.order) - 1)
        if isinstance(value, Mapped):
            fresh = [source for source in dict.fromkeys(value.sources) if source not in seen]
            seen.update(fresh)
            pending += reversed(fresh)
    return None


def rows_at(
    x: Value,
    position: Indices,
    axis: int,
    lanes: int,
    known: dict[Value, list[Scalar]] | None = None,
) -> list[Scalar]:
    """Returns `lanes` vectors of neighbours along the last axis, consecutive along another axis.

    Args:
        x: An array.
        position: The position of the first element.
        axis: The axis along which the vectors are consecutive; not the last.
        lanes: The length of the vectors, and their number.
        known: Vectors that have been read at this position, because several operations may read an
            array.
    """
    known = {} if known is None else known
    if x not in known:
        known[x] = _rows_at(x, position, axis, lanes, known)
    return known[x]


def _rows_at(
    x: Value, position: Indices, axis: int, lanes: int, known: dict[Value, list[Scalar]]
) -> list[Scalar]:
    if isinstance(x, Number):
        return [x.at(position, lanes)] * lanes
    if isinstance(x, Mapped):
        columns = [rows_at(source, position, axis, lanes, known) for source in x.sources]
        return [x.formula(*row) for row in zip(*columns, strict=True)]
    if isinstance(x, Transposed) and x.order[axis] == len(x.order) - 1:
        [source] = x.sources
        last = len(position) - 1
        rows = [
            source.at(x.place(_moved(position, last, number)), lanes) for number in range(lanes)
        ]
        return transposed(rows)
    return [x.at(_moved(position, axis, number), lanes) for number in range(lanes)]


def _moved(position: Indices, axis: int, number: int) -> Indices:
    return (*position[:axis], plus(position[axis], number), *position[axis + 1 :])
