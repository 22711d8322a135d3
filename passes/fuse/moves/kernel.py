"""The code of kernels that move elements: the result cell by cell, in shares of workgroups.

Where an array is concatenated from pieces, the result is cut into cells at their borders. Each cell
is written by separate loops, which read one piece.

Elsewhere: which operations belong to such a kernel (`fuse_moves.py`).
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Mapping, Sequence

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.kernels import Memory, dispatch
from axir.dialect.builders.scalars import Scalar, signless
from axir.dialect.core.annotations import Returning
from axir.passes.fuse.elementwise import formula_of, is_uniform
from axir.passes.fuse.emitter import uniform
from axir.passes.fuse.gathers import Gathered
from axir.passes.fuse.rearranged import Joined, Reshaped, picked
from axir.passes.fuse.values import (
    Computed,
    Indices,
    Mapped,
    Number,
    Reader,
    Stored,
    Value,
    elements_apart,
    lanes_of,
    plus,
)
from axir.passes.fuse.views import VIEWS, reshaped
from axir.passes.legalize.regions import operations_of

from .cells import Cell, Writing

_MOST_WORKGROUPS = 8
_BYTES_PER_WORKGROUP = 1 << 18


@dataclasses.dataclass(frozen=True)
class Move:
    """Operations that become one kernel.

    Attributes:
        result: The value that the kernel computes.
        members: The operations, in their order.
        aligned: The members that are read at the position of the result.
    """

    result: ir.Value
    members: Sequence[ir.Operation]
    aligned: frozenset[ir.Operation]

    def outside(self) -> list[ir.Value]:
        """Returns the arrays that the members read."""
        made = {x for member in self.members for x in member.results}
        read = dict.fromkeys(x for member in self.members for x in member.operands)
        return [x for x in read if x not in made and not is_uniform(x)]

    def cells(self) -> list[Cell]:
        """Returns the cells of the result; all elements of a cell come from the same pieces."""
        shape = list(self.result.type.shape)
        cuts = [{0, extent} for extent in shape]
        for member in self.members:
            if member in self.aligned:
                for axis, places in enumerate(_cuts(member, len(shape))):
                    cuts[axis].update(n for n in places if 0 < n < shape[axis])
        return list(itertools.product(*(itertools.pairwise(sorted(x)) for x in cuts)))


def _cuts(member: ir.Operation, rank: int) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in range(rank)]
    if member.name == "stablehlo.concatenate":
        axis = ir.IntegerAttr(member.attributes["dimension"]).value
        found[axis] = list(itertools.accumulate(x.type.shape[axis] for x in member.operands))
    elif member.name == "stablehlo.pad":
        for axis, start in enumerate(_low(member)):
            found[axis] = [start, start + member.operands[0].type.shape[axis]]
    return found


def _low(pad: ir.Operation) -> list[int]:
    return list(ir.DenseI64ArrayAttr(pad.attributes["edge_padding_low"]))


def run(move: Move) -> ir.Value:
    """Builds the kernel at the insertion point; returns the result."""
    operands = move.outside()
    size = hlo.bytes_of(move.result)
    workgroups = max(1, min(_MOST_WORKGROUPS, size // _BYTES_PER_WORKGROUP))

    def kernel(workgroup: Scalar, *memories: Memory) -> None:
        *arrays, target = memories
        outside: dict[ir.Value, Value] = {}
        for x, memory in zip(operands, arrays, strict=True):
            outside[x] = Stored(memory, is_own=False)
        # Vectors run along the last axis with several elements.
        shape = _without_last_ones(target.shape)
        for cell in move.cells():
            reading = _Reading(move, outside, cell)
            value = reading.without_last(reading.value(move.result), len(target.shape) - len(shape))
            Writing(
                target.reshaped(shape),
                value,
                cell[: len(shape)],
                reading.forget,
                workgroup,
                workgroups,
            ).write()

    [made] = dispatch(kernel, operands, [move.result.type], workgroups=workgroups, name="move")
    return made


def _without_last_ones(shape: Sequence[int]) -> tuple[int, ...]:
    count = max((axis + 1 for axis, extent in enumerate(shape) if extent > 1), default=1)
    return tuple(shape[:count])


class _Reading:
    """The formulas of the members in a cell; a formula computes the elements at a position."""

    def __init__(self, move: Move, outside: Mapping[ir.Value, Value], cell: Cell):
        self._move, self._cell = move, cell
        self._known = dict(outside)
        self._once: list[_Once] = []
        self._in_shapes: dict[tuple[Value, tuple[int, ...]], Value] = {}
        self._parts: dict[tuple[Value, int, int], Value] = {}

    def forget(self) -> None:
        """Discards computed elements: they are not available in another place of the code."""
        for x in self._once:
            x.forget()

    def value(self, x: ir.Value) -> Value:
        """Returns an array as it is read in the cell."""
        found = self._known.get(x)
        if found is None:
            made = x.owner.operation
            found = self._known[x] = uniform(made) if is_uniform(x) else self._value(made)
        return found

    def _value(self, made: ir.Operation) -> Value:
        kind = made.results[0].type
        shape, element = list(kind.shape), signless(kind.element_type)
        if made in self._move.aligned:
            if made.name == "stablehlo.concatenate":
                return self._piece(made, shape)
            if made.name == "stablehlo.pad":
                return self._padded(made, shape, element)
        operands = [self.value(x) for x in made.operands]
        if made.name == "stablehlo.concatenate":
            axis = ir.IntegerAttr(made.attributes["dimension"]).value
            return Joined(operands, shape, axis)
        if made.name == "stablehlo.reduce":
            return self._reduced(made, *operands)
        if made.name == "stablehlo.reshape":
            return self.in_shape(operands[0], tuple(shape))
        if made.name in VIEWS:
            view = VIEWS[made.name](made, operands)
            return self._read_once(view) if made.name == "stablehlo.gather" else view
        formula = formula_of(made)
        assert formula is not None
        return self._computed_once(shape, element, formula, operands)

    def _computed_once(
        self,
        shape: Sequence[int],
        element: ir.Type,
        formula: Returning[Scalar],
        operands: Sequence[Value],
    ) -> Value:
        return self._read_once(Mapped(shape, element, formula, operands, 0))

    def _read_once(self, x: Value) -> Value:
        if isinstance(x, Computed) and not isinstance(x.read, _Once):
            x.read = _Once(x.read)
            self._once.append(x.read)
        return x

    def _picked(self, x: Value, axis: int, number: int) -> Value:
        key = x, axis, number
        if key not in self._parts:
            self._parts[key] = self._read_once(picked(x, axis, number, self._picked))
        return self._parts[key]

    def in_shape(self, x: Value, shape: tuple[int, ...]) -> Value:
        """Returns an array with fewer or more axes of extent 1.

        Where the last axis is removed, elementwise operations are computed in the new shape, in
        vectors along an axis that was not the last.
        """
        if x.shape == shape:
            return x
        if isinstance(x, Number):
            return Number(shape, x.scalar)
        if isinstance(x, Reshaped):
            return self.in_shape(x.sources[0], shape)
        if isinstance(x, Mapped) and x.shape[-1:] == (1,):
            key = x, shape
            if key not in self._in_shapes:
                sources = [self.in_shape(y, shape) for y in x.sources]
                self._in_shapes[key] = self._computed_once(shape, x.element, x.formula, sources)
            return self._in_shapes[key]
        found = reshaped(x, list(shape))
        assert found is not None
        return found

    def without_last(self, x: Value, count: int) -> Value:
        """Returns an array without some last axes, which are only read at index 0.

        Pieces of arrays have different extents there.
        """
        if not count:
            return x
        shape = x.shape[:-count]
        if isinstance(x, Number):
            return Number(shape, x.scalar)
        if isinstance(x, Mapped):
            key = x, shape
            if key not in self._in_shapes:
                sources = [self.without_last(y, count) for y in x.sources]
                self._in_shapes[key] = self._computed_once(shape, x.element, x.formula, sources)
            return self._in_shapes[key]
        if isinstance(x, (Reshaped, Stored)) and x.shape == (*shape, *[1] * count):
            return self.in_shape(x, shape)
        if isinstance(x, Gathered):
            return x.without_last(count, self.without_last)

        def read(position: Indices, lanes: int | None) -> Scalar:
            places = [position] if lanes is None else lanes_of(position, lanes)
            whole = [(*place, *[0] * count) for place in places]
            return x.at(whole[0], None) if lanes is None else elements_apart(x, whole)

        return Computed(shape, x.element, read, (x,))

    def _piece(self, made: ir.Operation, shape: list[int]) -> Value:
        axis = ir.IntegerAttr(made.attributes["dimension"]).value
        start = 0
        for x in made.operands:
            if self._cell[axis][0] < start + x.type.shape[axis]:
                break
            start += x.type.shape[axis]
        return _shifted(self.value(x), [-start if d == axis else 0 for d in range(len(shape))])

    def _padded(self, made: ir.Operation, shape: list[int], element: ir.Type) -> Value:
        low = _low(made)
        extents = made.operands[0].type.shape
        ranges = zip(low, extents, self._cell, strict=True)
        if all(start <= lower and upper <= start + n for start, n, (lower, upper) in ranges):
            return _shifted(self.value(made.operands[0]), [-start for start in low])
        filler = self.value(made.operands[1])
        return Mapped(shape, element, lambda number: number, (_number(filler),), 0)

    def _reduced(self, made: ir.Operation, x: Value, init: Value) -> Value:
        """Returns a reduction along a short axis: its elements are combined where it is read."""
        [axis] = ir.DenseI64ArrayAttr(made.attributes["dimensions"])
        combine = formula_of(operations_of(made)[0][0])
        assert combine is not None
        parts = [self._picked(x, axis, number) for number in range(x.shape[axis])]
        kind = made.results[0].type

        def formula(*numbers: Scalar) -> Scalar:
            return functools.reduce(combine, numbers)

        sources = [_number(init), *parts]
        return self._computed_once(list(kind.shape), parts[0].element, formula, sources)


def _number(x: Value) -> Value:
    return x if isinstance(x, Number) else Number(x.shape, x.at((0,) * len(x.shape), None))


def _shifted(x: Value, steps: Sequence[int]) -> Value:
    if not any(steps):
        return x

    def read(position: Indices, lanes: int | None) -> Scalar:
        return x.at(tuple(map(plus, position, steps)), lanes)

    return Computed(x.shape, x.element, read, (x,))


class _Once:
    """A reader that computes elements once for a position, even if they are read several times."""

    def __init__(self, read: Reader):
        self._read = read
        self._found: list[tuple[Indices, int | None, Scalar]] = []

    def forget(self) -> None:
        """Discards the computed elements."""
        self._found.clear()

    def __call__(self, position: Indices, lanes: int | None) -> Scalar:
        """Returns the elements at a position."""
        for place, width, known in self._found:
            if width == lanes and _is_same(place, position):
                return known
        made = self._read(position, lanes)
        self._found.append((position, lanes, made))
        return made


def _is_same(one: Indices, other: Indices) -> bool:
    """Tells whether positions are known to be the same."""
    return len(one) == len(other) and all(
        x is y or (isinstance(x, int) and isinstance(y, int) and x == y)
        for x, y in zip(one, other, strict=True)
    )
