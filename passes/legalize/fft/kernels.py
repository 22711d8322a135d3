"""Kernels of Fourier transforms, along any axis, on vectors.

Columns are transformed as many side by side as a vector has lanes (`columns.py`). Along the last
axis, of length n = a b, a row is seen as a matrix [a, b] (the four steps of Bailey, "FFTs in
external or hierarchical memory", 1990): its columns are transformed, what is found is multiplied by
w_n^(k1 j2) while squares of vectors are turned, and the columns of the matrix [b, a] are
transformed. Short rows are turned by themselves, as many at a time as a vector has lanes. A last
vector of columns begins so early that it ends with them: it computes some of them again.

What does not live here: lengths with large prime factors, real numbers (`expand_fft.py`).
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.expressions import minimum
from axir.dialect.builders.kernels import Memory, dispatch, each, rows_of, transposed, workspace
from axir.dialect.builders.scalars import Scalar, broadcast
from axir.dialect.core.annotations import HostArray

from .butterflies import Complex, times
from .columns import Columns, Numbers, Row, column_cost, is_smooth
from . import tables

_VECTOR_BYTES = 64
# What a workgroup should have to do, in numbers, and how many there are at most.
_SHARE = 1 << 14
_MOST_WORKGROUPS = 16
# Rows up to this length, if there is but one workgroup, have both steps in one kernel.
_MOST_SINGLE = 1 << 15
_MOST_FACTORS = 1 << 14
_LONGEST_COLUMN = 2048
_LONGEST_CACHED = 1024
_TURNING_COST = 8


def lanes_of(element: ir.Type) -> int:
    """Returns how many numbers of a type a vector has."""
    return _VECTOR_BYTES // (element.width // 8)


class Table:
    """Numbers that a kernel reads, of several kinds behind each other."""

    def __init__(self) -> None:
        self._parts: list[HostArray] = []
        self._length = 0

    def put(self, numbers: HostArray) -> int:
        """Returns where numbers begin that are put behind the others."""
        start = self._length
        self._parts.append(numbers.ravel())
        self._length += numbers.size
        return start

    def constant(self, element: ir.Type) -> ir.Value:
        """Returns them as an array."""
        numbers = np.concatenate([*self._parts, np.zeros(1)])
        return hlo.constant(numbers, element)


# Columns ----------------------------------------------------------------------------------------


def fits_columns(length: int, columns: int, element: ir.Type) -> bool:
    """Tells whether there is a kernel along an axis with others behind it."""
    return columns >= lanes_of(element) and is_smooth(length) and 1 < length <= _LONGEST_COLUMN


def transform_columns(
    x: Sequence[ir.Value], results: Sequence[ir.Type], shape: tuple[int, int, int], sign: int,
    scale: float = 1.0, lanes: int | None = None,
) -> list[ir.Value]:
    """Transforms [batch, length, columns] along `length`.

    Args:
        x: The arrays of parts, or of pairs.
        results: The types of those to return.
        shape: The three extents.
        sign: Of the exponent.
        scale: What the numbers are multiplied by.
    """
    batch, length, width = shape
    element = x[0].type.element_type
    lanes = lanes or lanes_of(element)
    columns, table = Columns(length, sign), Table()
    start = table.put(columns.factors())
    tasks = _Tasks(batch, width, lanes)
    workgroups = _workgroups(tasks.count, batch * length * width)

    def kernel(workgroup: Scalar, *memories: Memory) -> None:
        source, factors, target = _arguments(memories, len(x), lanes)
        buffers = _buffers(workgroup, workgroups, columns.needs_buffers, length, lanes, element)

        @tasks.share(workgroup, workgroups)
        def task(row: Scalar, column: Row) -> None:
            matrix, found = source.at(row), target.at(row)

            columns.run(
                lambda number: matrix.read(number, column),
                lambda number, y: found.write((number, column), _scaled(y, scale)),
                buffers, factors, start,
            )  # fmt: skip

    identity = f"columns {shape} {sign} {scale} {lanes} {len(x)}"
    return dispatch(
        kernel, [*x, table.constant(element)], results,
        workgroups=workgroups, name="fft", identity=identity,
    )  # fmt: skip


def _scaled(x, scale):
    return x if scale == 1 else (x[0] * scale, x[1] * scale)


def _arguments(memories: Sequence[Memory], taken: int, lanes: int) -> tuple[Numbers, Memory, Numbers]:
    source, factors, target = memories[:taken], memories[taken], memories[taken + 1 :]
    return Numbers(source, lanes), factors, Numbers(target, lanes)


def _buffers(
    workgroup: Scalar, workgroups: int, count: int, rows: int, lanes: int, element: ir.Type
) -> list[Numbers]:
    if not count:
        return []
    space = workspace((workgroups, count, 2, rows, lanes), element)
    return [
        Numbers([space.at(workgroup, number, part) for part in (0, 1)], lanes)
        for number in range(count)
    ]


def _workgroups(tasks: int, size: int) -> int:
    return max(1, min(_MOST_WORKGROUPS, tasks, size // _SHARE))


@dataclasses.dataclass(frozen=True)
class _Tasks:
    """Vectors of columns of several matrices."""

    batch: int
    width: int
    lanes: int

    @property
    def vectors(self) -> int:
        return -(-self.width // self.lanes)

    @property
    def count(self) -> int:
        return self.batch * self.vectors

    def starts(self) -> HostArray:
        """Returns where the vectors begin."""
        return np.minimum(np.arange(self.vectors) * self.lanes, self.width - self.lanes)

    def start(self, number: Row) -> Row:
        """Returns where a vector begins."""
        if self.vectors == 1:
            return 0
        place = number * self.lanes
        return place if self.width % self.lanes == 0 else minimum(place, self.width - self.lanes)

    def each(self, step: Callable[[Row, Row], None]) -> None:
        """Runs a function with the number and the first column of each vector of a matrix."""
        if self.vectors == 1:
            step(0, 0)
        else:
            each(0, self.vectors)(lambda number: step(number, self.start(number)))

    def share(self, workgroup: Scalar, workgroups: int) -> Callable[[Callable[[Row, Row], None]], None]:
        """Runs a function with matrix and column for each vector of a workgroup."""

        def run(task: Callable[[Row, Row], None]) -> None:
            @each(*rows_of(workgroup, self.count, workgroups))
            def one(number: Scalar) -> None:
                if self.vectors == 1:
                    task(number, 0)
                else:
                    task(number // self.vectors, self.start(number % self.vectors))

        return run


# Rows -------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=1024)
def split_row(length: int, lanes: int) -> tuple[int, int, int] | None:
    """Returns the sides of the matrix that a row is seen as, and for vectors of how many lanes.

    None if there are none of at most so many.
    """
    if not is_smooth(length):
        return None
    for fewer in (lanes, lanes // 2):
        found = [
            (_cost(first, length // first, fewer), first)
            for first in range(fewer, length // fewer + 1)
            if length % first == 0
        ]
        if found:
            first = min(found)[1]
            return first, length // first, fewer
    return None


def _cost(first: int, second: int, lanes: int) -> float:
    """Returns what the numbers of a row cost, each about."""
    down, across = (-(-side // lanes) * lanes / side for side in (second, first))
    own = (column_cost(side) * (1 if side <= _LONGEST_CACHED else 2) for side in (first, second))
    return down * (next(own) + _TURNING_COST) + across * next(own)


def fits_rows(rows: int, length: int, element: ir.Type) -> bool:
    """Tells whether there is a kernel along the last axis."""
    lanes = lanes_of(element)
    if split_row(length, lanes):
        return True
    return is_smooth(length) and lanes <= length <= _LONGEST_COLUMN and rows >= lanes


def transform_rows(
    x: Sequence[ir.Value], results: Sequence[ir.Type], shape: tuple[int, int], sign: int,
    scale: float = 1.0,
) -> list[ir.Value]:
    """Transforms [rows, length] along `length`; arguments are those of `transform_columns`."""
    rows, length = shape
    lanes = lanes_of(x[0].type.element_type)
    found = split_row(length, lanes)
    if found is None:
        return _turned_rows(x, results, shape, sign, scale)
    first, second, lanes = found
    steps = _Steps(rows, first, second, sign, scale, lanes)
    return steps.dispatch(x, results)


@dataclasses.dataclass(frozen=True)
class _Steps:
    """The steps of rows that are seen as matrices [first, second]."""

    rows: int
    first: int
    second: int
    sign: int
    scale: float
    lanes: int

    def dispatch(self, x: Sequence[ir.Value], results: Sequence[ir.Type]) -> list[ir.Value]:
        """Builds one kernel, or, for long rows, two."""
        element = x[0].type.element_type
        shape = (self.rows, self.first, self.second)
        turned = (self.rows, self.second, self.first)
        x = [_viewed(part, shape, len(x)) for part in x]
        views = [_view_type(shape_, (self.rows, self.second, self.first), len(results)) for shape_ in results]
        size = self.first * self.second
        if size <= _MOST_SINGLE or self.rows >= _MOST_WORKGROUPS:
            made = self._both(x, views, element)
        else:
            between = hlo.tensor_type(turned, element)
            middle = self._one(x, [between, between], element)
            made = transform_columns(middle, views, turned, self.sign, lanes=self.lanes)
        return [hlo.reshape(part, kind.shape) for part, kind in zip(made, results, strict=True)]

    @property
    def _tasks(self) -> _Tasks:
        return _Tasks(self.rows, self.second, self.lanes)

    def _both(self, x, results, element):
        columns = Columns(self.first, self.sign), Columns(self.second, self.sign)
        table = Table()
        starts = [table.put(c.factors()) for c in columns]
        turning = _Turning.of(self, table)
        workgroups = _workgroups(self.rows, self.rows * self.first * self.second)
        longest = max(self.first, self.second)
        count = max(2 if len(columns[0].radices) > 1 else 1, columns[1].needs_buffers)

        def kernel(workgroup: Scalar, *memories: Memory) -> None:
            source, factors, target = _arguments(memories, len(x), self.lanes)
            buffers = _buffers(workgroup, workgroups, count, longest, self.lanes, element)
            space = workspace((workgroups, 2, self.second, self.first), element)
            between = Numbers([space.at(workgroup, part) for part in (0, 1)], self.lanes)

            @each(*rows_of(workgroup, self.rows, workgroups))
            def row(number: Scalar) -> None:
                matrix, found = source.at(number), target.at(number)

                @self._tasks.each
                def down(_: Row, column: Row) -> None:
                    self._down(columns[0], matrix, between, column, buffers, factors, starts[0], turning)

                @_Tasks(1, self.first, self.lanes).each
                def across(_: Row, column: Row) -> None:
                    columns[1].run(
                        lambda place: between.read(place, column),
                        lambda place, y: found.write((place, column), y),
                        buffers, factors, starts[1],
                    )  # fmt: skip

        return dispatch(
            kernel, [*x, table.constant(element)], results,
            workgroups=workgroups, name="fft", identity=f"rows {self} {len(x)}",
        )  # fmt: skip

    def _one(self, x, results, element):
        columns, table = Columns(self.first, self.sign), Table()
        start = table.put(columns.factors())
        turning = _Turning.of(self, table)
        tasks = self._tasks
        workgroups = _workgroups(tasks.count, self.rows * self.first * self.second)

        def kernel(workgroup: Scalar, *memories: Memory) -> None:
            source, factors, target = _arguments(memories, len(x), self.lanes)
            count = 2 if len(columns.radices) > 1 else 1
            buffers = _buffers(workgroup, workgroups, count, self.first, self.lanes, element)

            @tasks.share(workgroup, workgroups)
            def task(row: Scalar, column: Row) -> None:
                self._down(columns, source.at(row), target.at(row), column, buffers, factors, start, turning)

        return dispatch(
            kernel, [*x, table.constant(element)], results,
            workgroups=workgroups, name="fft", identity=f"steps {self} {len(x)}",
        )  # fmt: skip

    def _down(self, columns, source, target, column, buffers, factors, start, turning):
        """Transforms a vector of columns, and puts it, turned, into the rows of another matrix."""
        last = buffers[(len(columns.radices) - 1) % 2]
        columns.run(
            lambda number: source.read(number, column), last.set_row, buffers, factors, start
        )

        @_Tasks(1, self.first, self.lanes).each
        def square(number: Row, place: Row) -> None:
            rows = [last.row(place + k) for k in range(self.lanes)]
            for k, y in enumerate(_turned(rows)):
                factor = turning.factor(factors, column + k, number, place)
                target.write((column + k, place), times(y, factor))


def _turned(square: Sequence[Complex]) -> list[Complex]:
    """Returns the columns of a square of vectors."""
    reals, imags = (transposed([row[part] for row in square]) for part in (0, 1))
    return list(zip(reals, imags, strict=True))


@dataclasses.dataclass(frozen=True)
class _Turning:
    """The numbers w_n^(k1 j2) that matrices are multiplied by while they are turned.

    For short rows all are in a table, else each is a product of two: one for the vector, and one
    for the lane.
    """

    steps: _Steps
    start: int
    fine: int

    @classmethod
    def of(cls, steps: _Steps, table: Table) -> _Turning:
        """Puts the numbers into a table."""
        rows, lanes, n = np.arange(steps.second), steps.lanes, steps.first * steps.second
        def roots(places):
            found = tables.unit_roots(steps.sign * np.outer(rows, places), n)
            return found

        if n <= _MOST_FACTORS:
            found = roots(np.arange(steps.first)) * steps.scale
            return cls(steps, table.put(found.real), table.put(found.imag))
        starts = _Tasks(1, steps.first, lanes).starts()
        coarse = roots(starts) * steps.scale
        fine = roots(np.arange(lanes))
        start = table.put(np.stack([coarse.real, coarse.imag], -1))
        return cls(steps, start, table.put(np.stack([fine.real, fine.imag], 1)))

    def factor(self, table: Memory, row: Row, number: Row, place: Row):
        """Returns the numbers of a vector, the number'th one of a row."""
        lanes, width = self.steps.lanes, self.steps.first
        if width * self.steps.second <= _MOST_FACTORS:
            at = row * width + place
            return table.read(at + self.start, lanes), table.read(at + self.fine, lanes)
        vectors = -(-width // lanes)
        at = (row * vectors + number) * 2 + self.start
        coarse = broadcast(table[at], lanes), broadcast(table[at + 1], lanes)
        at = row * (2 * lanes) + self.fine
        return times((table.read(at, lanes), table.read(at + lanes, lanes)), coarse)


def _turned_rows(x, results, shape, sign, scale):
    """Transforms short rows, as many at a time as a vector has lanes."""
    rows, length = shape
    element = x[0].type.element_type
    lanes = lanes_of(element)
    columns, table = Columns(length, sign), Table()
    start = table.put(columns.factors())
    tasks, across = _Tasks(1, rows, lanes), _Tasks(1, length, lanes)
    workgroups = _workgroups(tasks.count, rows * length)
    x = [_viewed(part, shape, len(x)) for part in x]
    views = [_view_type(kind, shape, len(results)) for kind in results]

    def kernel(workgroup: Scalar, *memories: Memory) -> None:
        source, factors, target = _arguments(memories, len(x), lanes)
        buffers = _buffers(workgroup, workgroups, 2, length, lanes, element)
        first = buffers[1]
        last = buffers[(len(columns.radices) - 1) % 2]

        @tasks.share(workgroup, workgroups)
        def task(_: Row, row: Row) -> None:
            @across.each
            def begin(_: Row, place: Row) -> None:
                square = [source.read(row + k, place) for k in range(lanes)]
                for k, y in enumerate(_turned(square)):
                    first.set_row(place + k, y)

            columns.run(first.row, last.set_row, buffers, factors, start)

            @across.each
            def end(_: Row, place: Row) -> None:
                square = [last.row(place + k) for k in range(lanes)]
                for k, y in enumerate(_turned(square)):
                    target.write((row + k, place), _scaled(y, scale))

    made = dispatch(
        kernel, [*x, table.constant(element)], views,
        workgroups=workgroups, name="fft", identity=f"turned {shape} {sign} {scale} {len(x)}",
    )  # fmt: skip
    return [hlo.reshape(part, kind.shape) for part, kind in zip(made, results, strict=True)]


def _viewed(x: ir.Value, shape: Sequence[int], arrays: int) -> ir.Value:
    return hlo.reshape(x, _stored_shape(shape, arrays))


def _view_type(kind: ir.Type, shape: Sequence[int], arrays: int) -> ir.Type:
    return hlo.tensor_type(_stored_shape(shape, arrays), kind.element_type)


def _stored_shape(shape: Sequence[int], arrays: int) -> tuple[int, ...]:
    """Returns the extents of two arrays of parts, or of one of pairs."""
    return (*shape[:-1], shape[-1] * (3 - arrays))
