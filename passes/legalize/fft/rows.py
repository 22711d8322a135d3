"""Kernels that transform along the last axis, on vectors.

A row of length n = a b is viewed as a matrix [a, b] (the four steps of Bailey, "FFTs in external or
hierarchical memory", J. Supercomputing 4, 1990). Its columns are transformed. The results are
multiplied by w_n^(k1 j2) and transposed in square blocks of vectors. Then the columns of the matrix
[b, a] are transformed. Rows that are too short for that are transposed, as many at a time as a
vector has lanes.

Elsewhere: other axes (`transform.py`), real numbers (`halves.py`).
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import math
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
from iree.compiler import ir

from axir.dialect.builders.kernels import Memory, each, rows_of, transposed, workspace
from axir.dialect.builders.scalars import Scalar, broadcast, index
from axir.dialect.core.annotations import HostArray

from . import tables
from .butterflies import Complex, times
from .columns import Columns, as_pairs, column_cost, has_columns
from .kernels import (
    LONGEST_COLUMN,
    MOST_ROOTS,
    MOST_WORKGROUPS,
    Arrays,
    Body,
    Table,
    Vectors,
    buffers,
    lanes_of,
    workgroups_of,
)
from .numbers import Numbers, Row, product, total
from .transform import Transform, TransformColumns, run_signed, scaled

# Rows up to this length have both steps in one kernel; so have many longer rows.
_LONGEST_SINGLE = 1 << 15
_LONGEST_CACHED = 1024
_TURNING_COST = 8


def fits_rows(rows: int, length: int, element: ir.Type) -> bool:
    """Tells whether a kernel exists along the last axis."""
    lanes = lanes_of(element)
    if split_row(length, lanes):
        return True
    return rows >= lanes and lanes <= length <= LONGEST_COLUMN and has_columns(length)


def transform_rows(x: Arrays, sign: int, scale: float = 1.0, *, is_paired: bool = False) -> Arrays:
    """Transforms [rows, length] along `length`; for the arguments see `transform_columns`.

    It takes one kernel, or two kernels if the rows are few and long.
    """
    rows, length = x.shape
    longest = lanes_of(x.element)
    found = split_row(length, longest)

    def run(x: Arrays, pairs: int, to_pairs: int) -> Arrays:
        if found is None:
            return _ShortRows(longest, scale, pairs, to_pairs, rows, length).run(x)
        first, second, lanes = found
        matrices = x.viewed((rows, first, second))
        if length <= _LONGEST_SINGLE or rows >= MOST_WORKGROUPS:
            made = _Rows(lanes, scale, pairs, to_pairs, rows, first, second).run(matrices)
        else:
            turned = _TurnedRows(lanes, scale, pairs, 0, rows, first, second).run(matrices)
            made = TransformColumns(lanes, 1.0, 0, to_pairs, rows, second, first).run(turned)
        return made.viewed((rows, length))

    return run_signed(run, x, sign, is_paired=is_paired)


@functools.lru_cache(maxsize=1024)
def split_row(length: int, lanes: int) -> tuple[int, int, int] | None:
    """Returns the two extents of the matrix that a row is viewed as, and the vectors' lanes.

    Returns None if no extents fit vectors of that many lanes or half as many.
    """
    if not has_columns(length):
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


def row_cost(length: int, lanes: int) -> float:
    """Returns the approximate cost of each number of a row that is viewed as a matrix."""
    found = split_row(length, lanes)
    return math.inf if found is None else _cost(*found)


def _cost(first: int, second: int, lanes: int) -> float:
    """Returns the approximate cost of each number of a row."""
    down, across = (math.ceil(side / lanes) * lanes / side for side in (second, first))
    own, other = (
        column_cost(side) * (1 if side <= _LONGEST_CACHED else 2) for side in (first, second)
    )
    return down * (own + _TURNING_COST) + across * other


# Rows as matrices -------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class _TurnedRows(Transform):
    """The first step of rows that are viewed as matrices [first, second]."""

    kind: ClassVar[str] = "turned-rows"

    rows: int
    first: int
    second: int

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the transposed matrices."""
        return self.rows, self.second, self.first

    @property
    def size(self) -> int:
        """How many numbers a row has."""
        return self.first * self.second

    @property
    def columns(self) -> Mapping[str, Columns]:
        """The columns of the matrices."""
        return {"down": Columns(self.first)}

    @property
    def workgroups(self) -> int:
        """How many workgroups the kernel for this length has."""
        vectors = Vectors(self.second, self.lanes)
        return workgroups_of(self.rows * vectors.count, self.rows * self.size)

    def sides(self) -> dict[str, int]:
        """Returns words of the plan."""
        return {"matrices": self.rows, "first": self.first, "second": self.second}

    def put(self, table: Table) -> dict[str, int]:
        """Puts factors and roots into a table."""
        down = _Down.of(self, table)
        words = {f"roots_{number}": start for number, start in enumerate(down.roots)}
        is_few = self.size <= MOST_ROOTS
        return {**words, "down_factors": down.start, "root_step": 0 if is_few else self.root_step}

    @property
    def root_step(self) -> int:
        """How many roots the table of medium roots has."""
        return 1 << self.size.bit_length() // 2

    def body(self, element: ir.Type) -> Body:
        """Returns the kernel for this length."""
        vectors, workgroups = Vectors(self.second, self.lanes), self.workgroups
        down = _Down.of(self, Table())
        count = down.columns.buffers(is_kept=True)

        def body(workgroup: Scalar, source: Numbers, factors: Memory, target: Numbers) -> None:
            own = buffers(workgroup, workgroups, count, self.first, self.lanes, element)

            def task(row: Row, column: Row) -> None:
                down.run(source.at(row), target.at(row), column, own, factors)

            vectors.share(self.rows, workgroup, workgroups, task)

        return body


@dataclasses.dataclass(frozen=True)
class _Rows(_TurnedRows):
    """Both steps."""

    kind: ClassVar[str] = "rows"

    @property
    def columns(self) -> Mapping[str, Columns]:
        """The columns of the matrices, and of the transposed matrices."""
        return {"down": Columns(self.first), "across": Columns(self.second)}

    @property
    def workgroups(self) -> int:
        """How many workgroups the kernel for this length has."""
        return workgroups_of(self.rows, self.rows * self.size)

    def sides(self) -> dict[str, int]:
        """Returns words of the plan."""
        return {**super().sides(), "length": self.second, "width": self.first}

    def put(self, table: Table) -> dict[str, int]:
        """Puts factors and roots into a table."""
        words = super().put(table)
        factors = table.put(Columns(self.second).factors())
        return {**words, "across_factors": factors, "scale": table.put(np.ones(1))}

    def body(self, element: ir.Type) -> Body:
        """Returns the kernel for this length."""
        columns, workgroups = Columns(self.second), self.workgroups
        places = Table()
        start = self.put(places)["across_factors"]
        down = _Down.of(self, Table())
        count = max(down.columns.buffers(is_kept=True), columns.buffers(is_kept=False))

        def body(workgroup: Scalar, source: Numbers, factors: Memory, target: Numbers) -> None:
            longest = max(self.first, self.second)
            own = buffers(workgroup, workgroups, count, longest, self.lanes, element)
            space = workspace((workgroups, 2, self.second, self.first), element)
            middle = Numbers([space.at(workgroup, part) for part in (0, 1)], self.lanes)

            @each(*rows_of(workgroup, self.rows, workgroups))
            def row(number: Scalar) -> None:
                matrix, found = source.at(number), target.at(number)

                @Vectors(self.second, self.lanes).each
                def first(_: Row, column: Row) -> None:
                    down.run(matrix, middle, column, own, factors)

                @Vectors(self.first, self.lanes).each
                def second(_: Row, column: Row) -> None:
                    columns.run(
                        lambda place: middle.read(place, column),
                        lambda place, y: found.write((place, column), y),
                        own, factors, start,
                    )  # fmt: skip

        return body


@dataclasses.dataclass(frozen=True)
class _Down:
    """The first step and the transposition: w_n^(k1 j2) are in a table if they are few.

    Else each is the product of a factor for the vector, which is a product of two factors, and a
    factor for the lane.

    Attributes:
        steps: All steps.
        columns: The transform of the first one.
        start: Where the transform's factors begin in the table.
        roots: Where the roots begin in the table: real and imaginary parts if they are few, else
            the two tables of factors for vectors, and the table of factors for lanes.
    """

    steps: _TurnedRows
    columns: Columns
    start: int
    roots: tuple[int, ...]

    @classmethod
    def of(cls, steps: _TurnedRows, table: Table) -> _Down:
        """Puts the factors and roots of the step into a table."""
        columns = Columns(steps.first)
        start = table.put(columns.factors())

        def roots(places: HostArray) -> HostArray:
            return tables.unit_roots(-places, steps.size)

        rows = np.arange(steps.second)
        if steps.size <= MOST_ROOTS:
            few = roots(np.outer(rows, np.arange(steps.first))) * steps.scale
            return cls(steps, columns, start, (table.put(few.real), table.put(few.imag)))
        step = steps.root_step
        coarse = roots(np.arange(0, steps.size, step)) * steps.scale
        medium = roots(np.arange(step))
        fine = roots(np.outer(rows, np.arange(steps.lanes)))
        parts = np.stack([fine.real, fine.imag], 1)
        found = table.put(as_pairs(coarse)), table.put(as_pairs(medium)), table.put(parts)
        return cls(steps, columns, start, found)

    def run(
        self, source: Numbers, target: Numbers, column: Row, own: Sequence[Numbers], table: Memory
    ) -> None:
        """Transforms a vector of columns, and writes it to rows of another matrix."""
        lanes, last = self.steps.lanes, own[self.columns.turns]

        def read(number: Row) -> Complex:
            return source.read(number, column)

        self.columns.run(read, last.set_row, own, table, self.start)

        @Vectors(self.steps.first, lanes).each
        def square(_: Row, place: Row) -> None:
            rows = [last.row(total(place, k)) for k in range(lanes)]
            turned = _turned(rows)

            def write(k: Row, y: Complex) -> None:
                row = total(column, k)
                target.write((row, place), times(y, self._root(table, row, place)))

            if self.steps.size <= MOST_ROOTS or len(own) == 1:
                for k, y in enumerate(turned):
                    write(k, y)
                return
            # A root of these is long code, which a loop has once: LLVM takes half as long for the
            # kernel, and the kernel no longer. The other buffer is free now.
            other = own[1 - self.columns.turns]
            for k, y in enumerate(turned):
                other.set_row(k, y)
            each(0, lanes)(lambda k: write(k, other.row(k)))

    def _root(self, table: Memory, row: Row, place: Row) -> Complex:
        """Returns the roots of a vector."""
        steps, lanes = self.steps, self.steps.lanes
        if steps.size <= MOST_ROOTS:
            at = total(product(row, steps.first), place)
            real, imag = (table.read(total(at, start), lanes) for start in self.roots)
            return real, imag
        coarse, medium, fine = self.roots
        step = steps.root_step
        number = index(row) * index(place)
        scalar = times(_pair(table, number // step, coarse), _pair(table, number % step, medium))
        whole = broadcast(scalar[0], lanes), broadcast(scalar[1], lanes)
        at = total(product(row, 2 * lanes), fine)
        return times((table.read(at, lanes), table.read(total(at, lanes), lanes)), whole)


def _pair(table: Memory, number: Row, start: int) -> Complex:
    """Returns a complex number of a table."""
    at = total(product(number, 2), start)
    return table[at], table[total(at, 1)]


def _turned(square: Sequence[Complex]) -> list[Complex]:
    """Returns the columns of a square of vectors."""
    reals, imags = (transposed([row[part] for row in square]) for part in (0, 1))
    return list(zip(reals, imags, strict=True))


# Short rows -------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class _ShortRows(Transform):
    """Transforms rows that are no matrices, as many at a time as a vector has lanes."""

    kind: ClassVar[str] = "short-rows"

    rows: int
    length: int

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of operand and result."""
        return self.rows, self.length

    @property
    def columns(self) -> Mapping[str, Columns]:
        """None that the library's kernel transforms."""
        return {}

    @property
    def workgroups(self) -> int:
        """How many workgroups the kernel for this length has."""
        return workgroups_of(Vectors(self.rows, self.lanes).count, self.rows * self.length)

    def sides(self) -> dict[str, int]:
        """Returns words of the plan."""
        return {"matrices": self.rows, "length": self.length}

    def put(self, table: Table) -> dict[str, int]:
        """Puts the factors into a table."""
        factors = table.put(Columns(self.length).factors())
        return {"across_factors": factors, "scale": table.put(np.array([self.scale]))}

    def body(self, element: ir.Type) -> Body:
        """Returns the kernel for this length."""
        lanes, length, workgroups = self.lanes, self.length, self.workgroups
        columns, words = Columns(length), self.put(Table())
        vectors, squares = Vectors(self.rows, lanes), Vectors(length, lanes)

        def body(workgroup: Scalar, source: Numbers, factors: Memory, target: Numbers) -> None:
            count = max(2, columns.buffers(is_kept=True))
            own = buffers(workgroup, workgroups, count, length, lanes, element)
            first, last = own[1], own[columns.turns]
            factor = broadcast(factors[words["scale"]], lanes)

            def task(_: Row, row: Row) -> None:
                @squares.each
                def begin(_: Row, place: Row) -> None:
                    square = [source.read(total(row, k), place) for k in range(lanes)]
                    for k, y in enumerate(_turned(square)):
                        first.set_row(total(place, k), y)

                columns.run(first.row, last.set_row, own, factors, words["across_factors"])

                @squares.each
                def end(_: Row, place: Row) -> None:
                    square = [last.row(total(place, k)) for k in range(lanes)]
                    for k, y in enumerate(_turned(square)):
                        target.write((total(row, k), place), scaled(y, factor))

            vectors.share(1, workgroup, workgroups, task)

        return body


_KINDS = {made.kind: made for made in (_TurnedRows, _Rows, _ShortRows, TransformColumns)}


def transform_of(text: str) -> Transform:
    """Returns the transform that was written as text."""
    kind, *fields = text.split()
    return _KINDS[kind](*map(ast.literal_eval, fields))
