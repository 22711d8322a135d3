"""Long reductions in two steps: workgroups reduce parts to a few vectors, then these are reduced.

An array `[n]`, or `[n, k]` with few columns, is viewed as contiguous rows of `c` elements, where
`c` is a multiple of `k` and of a vector. Sums down these `c` columns read memory in order.
Elsewhere: which reductions these are (`fuse_long_sums.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from iree.compiler import ir

from axir.dialect.builders.kernels import Memory, loop, loop_in_blocks, rows_of, when
from axir.dialect.builders.scalars import Scalar, broadcast, index, operation
from axir.passes.fuse.emitter import lanes_for
from axir.passes.fuse.rearranged import Reshaped, Spread
from axir.passes.fuse.sums import Sums, neutral_number
from axir.passes.fuse.values import Index, Mapped, Number, Stored, Value, plus

# Takes where a row begins, an offset from there, and a number of lanes.
Reader = Callable[[Index, Index, int | None], Scalar]

_FEWEST_VECTORS = 4
_MOST_VECTORS = 16
_PARTS = 32


@dataclass(frozen=True)
class Plan:
    """How a reduction `[outer, rows, columns]` of its middle axis is cut.

    Attributes:
        outer: The number of results in each column.
        length: The number of elements of a result, in all columns.
        period: The number of columns.
        width: The number of elements of the rows that are summed.
        parts: The number of parts of each result.
        lanes: The number of elements of a vector.
    """

    outer: int
    length: int
    period: int
    width: int
    parts: int
    lanes: int

    @property
    def rows(self) -> int:
        """The number of whole rows."""
        return self.length // self.width

    @property
    def shape(self) -> tuple[int, int, int]:
        """The shape of the parts' results; the last part is the rest behind the whole rows."""
        return self.outer, self.parts + 1, self.width


def plan_of(shape: Sequence[int], dims: Sequence[int], element: ir.Type) -> Plan | None:
    """Returns how to cut a reduction; None if it is not long, or its columns are not short."""
    axes = sorted(dims)
    if not axes or axes != list(range(axes[0], axes[-1] + 1)):
        return None
    outer, period = math.prod(shape[: axes[0]]), math.prod(shape[axes[-1] + 1 :])
    lanes = lanes_for(element)
    vectors = math.lcm(lanes, period) // lanes
    if vectors > _MOST_VECTORS:
        return None
    width = lanes * vectors * -(-_FEWEST_VECTORS // vectors)
    length = math.prod(shape[axes[0] :])
    parts = -(-_PARTS // outer)
    if length // width < 4 * parts:
        return None
    return Plan(outer, length, period, width, parts, lanes)


def reader_of(x: Value, plan: Plan) -> Reader | None:
    """Returns a function that reads an array as one row; None if it is not contiguous."""
    if isinstance(x, Number):
        return lambda row, offset, lanes: broadcast(x.scalar, lanes)
    if isinstance(x, Stored):
        flat = Stored(x.memory.reshaped((x.size,)), is_own=False)
        return lambda row, offset, lanes: flat.at((plus(row, offset),), lanes)
    if isinstance(x, Reshaped):
        return reader_of(x.sources[0], plan)
    if isinstance(x, Spread):
        return _reader_of_columns(x, plan)
    if not isinstance(x, Mapped):
        return None
    readers = [reader_of(source, plan) for source in x.sources]
    found = [y for y in readers if y is not None]
    if len(found) < len(readers):
        return None
    return lambda row, offset, lanes: x.formula(*(y(row, offset, lanes) for y in found))


def _reader_of_columns(x: Spread, plan: Plan) -> Reader | None:
    """Returns a function that reads one number for each column, the same in each row."""
    [source] = x.sources
    trailing = x.shape[len(x.shape) - len(source.shape) :]
    is_last = x.dims == list(range(len(x.shape) - len(source.shape), len(x.shape)))
    if not is_last or source.shape != trailing or plan.period % source.size:
        return None
    flat = reader_of(source, plan)
    if flat is None:
        return None

    def read(row: Index, offset: Index, lanes: int | None) -> Scalar:
        if lanes is None or not isinstance(offset, int):
            place = operation("arith.remui", (index(offset), index(source.size)))
            return flat(0, place, None)
        singles = [flat(0, (offset + n) % source.size, None) for n in range(lanes)]
        return operation("vector.from_elements", singles, ir.VectorType.get([lanes], x.element))

    return read


def write_parts(
    sums: Sums, plan: Plan, read: Reader, result: Memory, workgroup: Scalar, workgroups: int
) -> None:
    """Writes one workgroup's share of the results of a reduction's parts."""
    code = _Code(sums, plan, read, result)
    first, end = rows_of(workgroup, plan.outer * plan.parts, workgroups)
    loop(first, end, (), code.part)
    when(workgroup == 0)(lambda: loop(0, plan.outer, (), code.rest))


@dataclass(frozen=True)
class _Code:
    sums: Sums
    plan: Plan
    read: Reader
    result: Memory

    def part(self, number: Scalar) -> None:
        """Sums the rows of a part."""
        plan, lanes = self.plan, self.plan.lanes
        outer, part = _divided(number, plan.parts)
        neutral = broadcast(self._neutral, lanes)
        offsets = range(0, plan.width, lanes)
        start = outer * plan.length

        def step(row: Scalar, *totals: Scalar) -> list[Scalar]:
            place = start + row * plan.width
            return [
                self.sums.formula(total, self.read(place, offset, lanes))
                for total, offset in zip(totals, offsets, strict=True)
            ]

        first, end = rows_of(part, plan.rows, plan.parts)
        most = -(-plan.rows // plan.parts)
        starts = (neutral,) * len(offsets)
        totals = loop_in_blocks(first, end, starts, step, self._combine, most=most)
        for offset, total in zip(offsets, totals, strict=True):
            self.result.write((outer, part, offset), total)

    def rest(self, outer: Scalar) -> None:
        """Writes the rest behind the whole rows, and fills up the row."""
        plan = self.plan
        row = outer * plan.length + plan.rows * plan.width
        left = plan.length - plan.rows * plan.width

        def copy(i: Scalar) -> None:
            self.result[(outer, plan.parts, i)] = self.read(row, i, None)

        def fill(i: Scalar) -> None:
            self.result[(outer, plan.parts, i)] = self._neutral

        loop(0, left, (), copy)
        loop(left, plan.width, (), fill)

    @property
    def _neutral(self) -> Scalar:
        return neutral_number(self.sums.kind, self.sums.x.element)

    def _combine(self, x: Sequence[Scalar], y: Sequence[Scalar]) -> list[Scalar]:
        return [self.sums.formula(*pair) for pair in zip(x, y, strict=True)]


def _divided(number: Scalar, by: int) -> tuple[Scalar, Scalar]:
    if by == 1:
        return number, index(0)
    count = index(by)
    return operation("arith.divui", (number, count)), operation("arith.remui", (number, count))
