"""The code of kernels that go through arrays row by row.

Elsewhere: the operations (`programs.py`), and the number of workgroups (`programs.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.kernels import STACK_BYTES, Memory, loop, loop_in_blocks, scratch
from axir.dialect.builders.scalars import Scalar, constant, convert_float, index, signless
from axir.passes.legalize.copies import rest_of_row, uniform_number
from axir.passes.legalize.lanes import lanes_of

from .programs import Plan, is_expensive, levels_of, reached, row_values
from .reductions import (
    REDUCE,
    Numbers,
    combining,
    identity_of,
    is_end,
    start_vectors,
    starts_of,
    terms_of,
    terms_of_all,
    widened,
)
from .spaces import Leaf, counted_axis, is_full, is_view
from .vectors import (
    LANES,
    counted,
    folded,
    load,
    quotient,
    store,
    tree,
    vector_type,
    wide,
)

# So many vectors are summed side by side, and so many rows at once.
_ACCUMULATORS = 4
_ROWS_AT_ONCE = 8


def build(plan: Plan, workgroup: Scalar, arrays: Sequence[Memory]) -> None:
    """Writes the code of a workgroup; `arrays` are the inputs, then the outputs."""
    inputs = dict(zip(plan.leaves, arrays, strict=False))
    outputs = dict(zip(plan.program.outputs, arrays[len(plan.leaves) :], strict=True))
    _Code(plan, inputs, outputs, workgroup).write()


class _Code:
    """The code of a kernel while it is written."""

    def __init__(
        self,
        plan: Plan,
        inputs: dict[ir.Value, Memory],
        outputs: dict[ir.Value, Memory],
        workgroup: Scalar,
    ):
        self.plan = plan
        self.space = plan.space
        self.inputs = inputs
        self.outputs = outputs
        self.workgroup = workgroup
        self.levels = levels_of(plan.program)
        self.down = [made for made in plan.program.members if is_end(made)]
        self.full = [x for x in outputs if x.owner.name != REDUCE and is_full(x.owner, self.space)]
        self.per_row = [x for x in outputs if not is_end(x.owner) and x not in self.full]
        self.kept = self._kept()

    def _kept(self) -> dict[ir.Value, Memory]:
        """Returns memory for values that several loops over a row would compute again."""
        uses: dict[ir.Value, int] = {}
        for roots in [*map(terms_of_all, self.levels), self.last()]:
            for value in reached(roots, self.plan.program):
                uses[value] = uses.get(value, 0) + 1
        kept: dict[ir.Value, Memory] = {}
        room = STACK_BYTES // 2
        for value, count in uses.items():
            element = hlo.element_type_of(value)
            size = self.space.columns * hlo.element_bytes(element)
            is_worth = count > 1 and is_expensive(value.owner) and size <= room
            if is_worth and isinstance(element, ir.FloatType):
                kept[value] = scratch((self.space.columns,), element)
                room -= size
        return kept

    def last(self) -> list[ir.Value]:
        """Returns the values that are computed along a row once all of its reductions are known."""
        return [*self.full, *terms_of_all(self.down)]

    def write(self) -> None:
        """Writes the loops over the parts of a workgroup and their rows."""
        parts = self.space.batches * self.plan.parts
        share = -(-parts // self.plan.workgroups)
        first = self.workgroup * share
        end = (first + share < parts).choose(first + share, index(parts))
        loop(first, end, (), self._write_part)

    def _write_part(self, part: Scalar) -> None:
        self.part = part
        parts, rows = self.plan.parts, self.space.rows // self.space.batches
        batch = quotient(part, parts)
        share = -(-rows // parts)
        start = (part - batch * parts) * share
        following = (start + share < rows).choose(start + share, index(rows))
        first, end = batch * rows + start, batch * rows + following
        for made in self.down:
            starts = [
                (self.outputs[x].at(part), self.outputs[x].constant(number))
                for x, number in zip(made.results, starts_of(made) or (), strict=True)
            ]

            def begin(i: Scalar, width: int, starts: list[tuple[Memory, Scalar]] = starts) -> None:
                for own, number in starts:
                    store(own, i, width, number)

            self._along(begin)
        if self.levels or self.full or self.per_row:
            loop(first, end, (), lambda row: _Row(self, row).write())
            return
        # The last part may be empty.
        count = (first < end).choose(end - first, index(0))
        whole = first + quotient(count, _ROWS_AT_ONCE) * _ROWS_AT_ONCE
        loop(first, whole, (), lambda row: self._add_rows(row, _ROWS_AT_ONCE), stride=_ROWS_AT_ONCE)
        loop(whole, end, (), lambda row: self._add_rows(row, 1))

    def _add_rows(self, first: Scalar, count: int) -> None:
        """Adds several rows to the sums down the columns, which are written once."""
        rows = [_Row(self, first + number) for number in range(count)]
        for row in rows:
            row.open(self.last())

        def step(i: Scalar, width: int) -> None:
            for row in rows:
                row.begin(i, width)
            for made in self.down:
                terms = [row.terms(made) for row in rows]
                self.accumulate(made, i, width, tree(combining(made), terms))

        self._along(step)

    def accumulate(self, made: ir.Operation, i: Scalar, width: int, terms: Numbers) -> None:
        """Combines the accumulators in memory with terms, for some columns."""
        own = [self.outputs[x].at(self.part) for x in made.results]
        before = tuple(load(x, i, width) for x in own)
        for memory, number in zip(own, combining(made)(before, terms), strict=True):
            store(memory, i, width, number)

    def _along(self, step: Callable[[Scalar, int], None]) -> None:
        """Runs `step(column, width)` along a row."""
        columns = self.space.columns
        whole = columns - columns % LANES
        if whole:
            loop(0, whole, (), lambda i: step(i, LANES), stride=LANES)
        for offset, width in rest_of_row(columns, LANES):
            step(index(offset), width)


class _Row:
    """One row while the code for it is written."""

    def __init__(self, code: _Code, row: Scalar):
        self.code = code
        self.row = row
        self.numbers: dict[ir.Value, Scalar] = {}
        self.written: set[ir.Value] = set()
        self.elements: dict[ir.Value, Scalar] = {}
        self.places: dict[ir.Value, Scalar] = {}

    def write(self) -> None:
        """Writes reductions along the row, then the values that depend on them."""
        code = self.code
        for level in code.levels:
            self._reduce(level)
        for value in code.per_row:
            code.outputs[value][self.row] = self.number(value)
        if not code.full and not code.down:
            return

        def step(i: Scalar, width: int) -> None:
            self.begin(i, width)
            for value in code.full:
                store(code.outputs[value].at(self.row), i, width, self.element(value))
            for made in code.down:
                code.accumulate(made, i, width, self.terms(made))

        self.open(code.last())
        code._along(step)

    def open(self, roots: Sequence[ir.Value]) -> None:
        """Computes the values that are the same for a whole row, before a loop along it."""
        for value in row_values(roots, self.code.plan.program):
            self.number(value)
        for value, leaf in self.code.plan.leaves.items():
            self._place(value, leaf)
            if not leaf.has_columns:
                self.number(value)

    def begin(self, i: Scalar, width: int) -> None:
        """Moves to other columns, and discards the elements of the previous ones."""
        self.i, self.width = i, width
        self.elements = {}

    def terms(self, made: ir.Operation) -> Numbers:
        """Returns the terms that a reduction combines for the present columns."""
        found = [self.element(x) for x in terms_of(made)]
        return (widened(found[0]),) if len(found) == 1 else tuple(found)

    def _reduce(self, level: list[ir.Operation]) -> None:
        """Computes reductions side by side, in several vectors each."""
        self.open(terms_of_all(level))
        computed = reached(terms_of_all(level), self.code.plan.program)
        self._keep([x for x in computed if x in self.code.kept and x not in self.written])
        columns = self.code.space.columns
        found: list[list[Numbers]] = [[] for _ in level]
        stride = LANES * _ACCUMULATORS
        many, whole = columns // stride * stride, columns // LANES * LANES
        for first, end, count in ((0, many, _ACCUMULATORS), (many, whole, 1)):
            if first < end:
                for number, vectors in enumerate(self._vectors(level, first, end, count)):
                    combine = combining(level[number])
                    found[number].append(folded(tree(combine, vectors), combine))
        for offset, width in rest_of_row(columns, LANES):
            self.begin(index(offset), width)
            for number, made in enumerate(level):
                found[number].append(folded(self.terms(made), combining(made)))
        for made, parts in zip(level, found, strict=True):
            self._finish(made, tree(combining(made), parts))

    def _keep(self, values: Sequence[ir.Value]) -> None:
        """Stores values for later loops, in one loop, because their code is long."""
        if not values:
            return

        def step(i: Scalar, width: int) -> None:
            self.begin(i, width)
            for value in values:
                self.element(value)

        self.code._along(step)
        self.written.update(values)

    def _vectors(
        self, level: list[ir.Operation], first: int, end: int, count: int
    ) -> list[list[Numbers]]:
        """Returns each reduction's `count` accumulator vectors at the end of a loop."""
        sizes = [len(made.results) for made in level]

        def split(numbers: Sequence[Scalar]) -> list[Numbers]:
            rest = list(numbers)
            return [tuple(rest.pop(0) for _ in range(size)) for size in sizes * count]

        def step(i: Scalar, *numbers: Scalar) -> Numbers:
            following: list[Scalar] = []
            before = split(numbers)
            for part in range(count):
                self.begin(i + part * LANES, LANES)
                for number, made in enumerate(level):
                    old = before[part * len(level) + number]
                    following.extend(combining(made)(old, self.terms(made)))
            return tuple(following)

        def combine(left: Sequence[Scalar], right: Sequence[Scalar]) -> Numbers:
            combined: list[Scalar] = []
            for number, parts in enumerate(zip(split(left), split(right), strict=True)):
                combined.extend(combining(level[number % len(level)])(*parts))
            return tuple(combined)

        starts = tuple(x for made in level for x in start_vectors(made)) * count
        vectors = split(loop_in_blocks(first, end, starts, step, combine, stride=LANES * count))
        return [vectors[number :: len(level)] for number in range(len(level))]

    def _finish(self, made: ir.Operation, numbers: Numbers) -> None:
        """Records the numbers that a reduction returns."""
        if len(made.results) == 1:
            start = uniform_number(made.operands[1])
            if start is not None and start != identity_of(made):
                numbers = combining(made)((numbers[0].constant(start),), numbers)
        for value, number in zip(made.results, numbers, strict=True):
            element = hlo.element_type_of(value)
            self.numbers[value] = convert_float(number, element) if number.is_float else number

    def number(self, value: ir.Value) -> Scalar:
        """Returns the present row's number in an array with one number for each row."""
        if value not in self.numbers:
            self.numbers[value] = self._number(value)
        return self.numbers[value]

    def _number(self, value: ir.Value) -> Scalar:
        uniform = uniform_number(value)
        if uniform is not None:
            return constant(uniform, signless(hlo.element_type_of(value)))
        if value in self.code.inputs:
            leaf = self.code.plan.leaves[value]
            return self.code.inputs[value][self._place(value, leaf)]
        made = value.owner
        operands = [self.number(x) for x in made.operands]
        return operands[0] if is_view(made) else _applied(made, operands)

    def _place(self, value: ir.Value, leaf: Leaf) -> Scalar:
        """Returns the row of an array that corresponds to the present row."""
        if value not in self.places:
            shape = self.code.space.shape[: self.code.space.split]
            place = index(0)
            if leaf.strides == tuple(math.prod(shape[n + 1 :]) for n in range(len(shape))):
                place = self.row
            else:
                rest = self.row
                for extent, stride in zip(shape[::-1], leaf.strides[::-1], strict=True):
                    if stride:
                        place = place + (rest - quotient(rest, extent) * extent) * stride
                    rest = quotient(rest, extent)
            self.places[value] = place
        return self.places[value]

    def _along(self, axis: int) -> Scalar:
        """Returns the index of the row along one of the leading dimensions."""
        shape = self.code.space.shape
        blocks = quotient(self.row, math.prod(shape[axis + 1 : self.code.space.split]))
        return blocks - quotient(blocks, shape[axis]) * shape[axis]

    def element(self, value: ir.Value) -> Scalar:
        """Returns the elements of an array in the present columns."""
        if value not in self.elements:
            self.elements[value] = self._element(value)
        return self.elements[value]

    def _element(self, value: ir.Value) -> Scalar:
        code, width = self.code, self.width
        uniform = uniform_number(value)
        if uniform is not None:
            return constant(uniform, vector_type(signless(hlo.element_type_of(value)), width))
        if value in code.inputs:
            leaf, memory = code.plan.leaves[value], code.inputs[value]
            place = self._place(value, leaf)
            if leaf.has_columns:
                return load(memory.at(place), self.i, width)
            return wide(self.number(value), width)
        axis = counted_axis(value, code.space)
        if axis is not None:
            element = signless(hlo.element_type_of(value))
            if axis >= code.space.split:
                return counted(self.i, width, element)
            return wide(counted(self._along(axis), 1, element), width)
        made = value.owner
        if made not in code.plan.program.inside or not is_full(made, code.space):
            return wide(self.number(made.operands[0]), width)
        if value in self.written:
            return load(code.kept[value], self.i, width)
        result = _applied(made, [self.element(x) for x in made.operands])
        if value in code.kept:
            store(code.kept[value], self.i, width, result)
        return result


def _applied(made: ir.Operation, operands: list[Scalar]) -> Scalar:
    function = lanes_of(made)
    assert function is not None
    return function(*operands)
