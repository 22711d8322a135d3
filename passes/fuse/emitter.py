"""The code of a kernel from operations of StableHLO: block by block, in the order of the program.

Elementwise operations and views stay formulas until they are read (`values.py`). An array is stored
if its elements would be computed more than once: if several operations read it, or one operation
reads elements repeatedly. Memory comes from the stack or, for large arrays, from a workspace. It is
reused when its contents have no more readers; `holders` counts the readers. An operation that
replaces parts of an array works in place if it is the last reader of the array. Many consecutive
elementwise operations become one loop (`straight.py`).

Elsewhere: the rules of operations (`views.py`, `reductions.py`, `products.py`, `updates.py`,
`control.py`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.kernels import Memory, call, loop, scratch, workspace
from axir.dialect.builders.scalars import Scalar, constant, index, operation, signless
from axir.passes.legalize.lanes import Lanes
from axir.passes.legalize.regions import HANDED_ON, operations_of

from .elementwise import DEAR, Code, cost_of, formula_name, formula_of, splat
from .straight import SHORT_LOOPS, Joined, Straight, operands_of, straight_parts
from .values import (
    VECTOR_BYTES,
    Computed,
    Indices,
    Mapped,
    Number,
    Stored,
    Value,
    flat_together,
    plus,
    reads,
)
from .views import VIEWS, reshaped

Rule = Callable[["Emitter", ir.Operation, list[Value]], Sequence[Value]]

LONGEST = 64
"""Formulas of more operations are put together of arrays: code grows with each reading of them."""
_ON_STACK = 4096
_STACK = 16384


class Emitter:
    """Builds the code of one kernel.

    Args:
        rules: Functions that build operations other than elementwise ones and views, by name.
        code: Functions and kernels of the module, which operations may call.
        joined: The size of loops that many elementwise operations become.

    Attributes:
        values: The arrays of the kernel, by the values of the program.
        targets: Memory in which some values may be computed, in full.
    """

    def __init__(self, rules: dict[str, Rule], code: Code, joined: Joined = SHORT_LOOPS):
        self.rules = rules
        self.code = code
        self.values: dict[ir.Value, Value] = {}
        self.targets: dict[ir.Value, Memory] = {}
        self._joined = joined
        self._pool: dict[tuple[tuple[int, ...], str], list[Memory]] = {}
        self._stack = 0
        self._handed_on: list[Value] = []

    # Values ------------------------------------------------------------------------------------

    def bind(self, x: ir.Value, value: Value, uses: int) -> None:
        """Binds an SSA value to an array; `uses` is the number of operations that will read it."""
        if value.size == 1 and not isinstance(value, _Nothing):
            value = self.number(value)
        elif isinstance(value, Computed) and value.cost and (uses > 1 or value.length > LONGEST):
            value = self.stored(value, self.targets.get(x))
        value.holders += uses
        self.values[x] = value
        if not uses:
            self.release(value, 0)

    def release(self, value: Value, count: int = 1) -> None:
        """Tells that an operation is done with a value."""
        value.holders -= count
        if value.holders > 0:
            return
        for source in value.sources:
            self.release(source)
        value.sources = ()
        if isinstance(value, Stored) and value.is_own and value.is_temporary:
            value.is_temporary = False
            self._pool.setdefault(_kind(value.memory), []).append(value.memory)

    def number(self, value: Value) -> Value:
        """Returns the only element of an array, computed here."""
        if isinstance(value, Number):
            return value
        result = Number(value.shape, value.at((0,) * len(value.shape), None))
        if not value.holders:
            self.release(value, 0)
        return result

    def stored(self, value: Value, target: Memory | None = None) -> Value:
        """Returns the array in memory (in `target` if given), or as a number."""
        if isinstance(value, (Stored, Number)):
            return value
        if target is None:
            result = self.allocate(value.shape, value.element)
        else:
            result = Stored(target, is_own=False)
        self.fill(result.memory, value)
        if not value.holders:
            self.release(value, 0)
        return result

    def settled(self, value: Value) -> Value:
        """Returns the array in a form that may be read many times."""
        return self.stored(value) if isinstance(value, Computed) and value.cost else value

    def force(self, x: ir.Value) -> Value:
        """Stores an operand, so that it no longer reads other arrays."""
        value = self.values[x]
        if not isinstance(value, Computed):
            return value
        result = self.stored(value)
        result.holders += value.holders
        if value.holders == 1:
            self.release(value)
        self.values[x] = result
        return result

    def hand_on(self, values: Sequence[Value]) -> Sequence[Value]:
        """Returns the final values of a block, and holds them until they are bound to results."""
        self._handed_on.extend(dict.fromkeys(values))
        return values

    def writable(self, value: Value) -> Stored:
        """Returns memory with the elements of an operand that only the present operation reads.

        It is the array's own memory if that has no other reader, else a copy.
        """
        if isinstance(value, Stored) and value.is_own and value.holders == 1:
            return value
        return self.copied(value)

    def copied(self, value: Value) -> Stored:
        """Returns new memory with an array's elements, which only the present operation uses."""
        result = self.allocate(value.shape, value.element)
        self.fill(result.memory, value)
        return result

    def allocate(self, shape: Sequence[int], element: ir.Type) -> Stored:
        """Returns new memory of the kernel."""
        free = self._pool.get((tuple(shape), str(element)))
        if free:
            return Stored(free.pop(), is_own=True, is_temporary=True)
        size = math.prod(shape) * hlo.element_bytes(element)
        if size <= _ON_STACK and self._stack + size <= _STACK:
            self._stack += -(-size // 64) * 64
            memory = scratch(shape, element)
        else:
            memory = workspace(shape, element)
        return Stored(memory, is_own=True, is_temporary=True)

    # Loops over elements -----------------------------------------------------------------------

    def fill(self, target: Memory, value: Value, offset: Indices | None = None) -> None:
        """Writes the elements of an array into memory, from an offset on."""
        if isinstance(value, _Nothing):
            return  # the operation that gets this place writes to it
        may_repeat = not reads(value, target)
        shape = value.shape
        if offset is None:
            [value], shape = flat_together([value], shape)
            target = target.reshaped(shape)

        def write(position: Indices, lanes: int | None) -> None:
            place = position
            if offset is not None:
                place = tuple(plus(p, o) for p, o in zip(position, offset, strict=True))
            _write(target, place, lanes, value.at(position, lanes))

        self.each(shape, write, lanes_for(value.element), may_repeat)

    def each(
        self,
        shape: Sequence[int],
        body: Callable[[Indices, int | None], None],
        widest: int,
        may_repeat: bool,
    ) -> None:
        """Runs `body(position, lanes)` for all elements of a shape, with the widest vectors.

        Args:
            shape: The shape.
            body: Builds the code of neighbours along the last axis.
            widest: The largest number of neighbours.
            may_repeat: Whether the body may run twice for an element: then it is built once.
        """
        if not shape:
            body((), None)
            return
        *outer, last = shape
        along = self.along if may_repeat else self._along_once
        self.nest(outer, lambda place: along(last, place, body, widest))

    def nest(self, extents: Sequence[int], body: Callable[[Indices], None]) -> None:
        """Runs `body(position)` for each position, single elements."""

        def level(rest: Sequence[int], place: Indices) -> None:
            if not rest:
                body(place)
            elif rest[0] == 1:
                level(rest[1:], (*place, 0))
            else:
                loop(0, rest[0], (), lambda i: level(rest[1:], (*place, i)))

        level(list(extents), ())

    def along(
        self,
        extent: int,
        place: Indices,
        body: Callable[[Indices, int | None], None],
        widest: int,
    ) -> None:
        """Runs `body`, which is built once, along the last axis; it may compute elements twice."""
        if not extent:
            return
        lanes = 1 << (min(widest, extent).bit_length() - 1)
        single = None if lanes == 1 else lanes

        def start(i: Scalar) -> Scalar:
            # The last vector begins earlier where the axis ends within it.
            return operation("arith.minsi", (i, index(extent - lanes))) if extent % lanes else i

        if lanes == extent:
            body((*place, 0), single)
        else:
            loop(0, extent, (), lambda i: body((*place, start(i)), single), stride=lanes)

    def _along_once(
        self,
        extent: int,
        place: Indices,
        body: Callable[[Indices, int | None], None],
        widest: int,
    ) -> None:
        """Runs `body` along the last axis: in whole vectors, then in smaller ones."""
        for start, end, lanes in pieces(extent, widest):
            single = None if lanes == 1 else lanes
            if end - start == lanes:
                body((*place, start), single)
            else:
                loop(start, end, (), lambda i, n=single: body((*place, i), n), stride=lanes)

    # Blocks ------------------------------------------------------------------------------------

    def block(
        self, operations: Sequence[ir.Operation], arguments: Iterable[tuple[ir.Value, Value]]
    ) -> list[Value]:
        """Builds the operations of a block; returns the operands of its terminator, still held."""
        bound = list(arguments)
        own = {argument for argument, _ in bound}
        own.update(result for operation in operations for result in operation.results)
        uses = Counter(x for operation in operations for x in read_by(operation) if x in own)
        for argument, value in bound:
            self.bind(argument, value, uses[argument])
        body = operations[:-1]
        for part in straight_parts(body, uses, self._joined.most):
            if isinstance(part, Straight):
                self._straight(part)
            else:
                self._operation(part, uses)
            for x in operands_of(part) if isinstance(part, Straight) else read_by(part):
                if x in own:
                    self.release(self.values[x])
            while self._handed_on:
                self.release(self._handed_on.pop())
        ends = [self.values[x] for x in operations[-1].operands]
        for value in dict.fromkeys(self.values[x] for x in operations[-1].operands if x not in own):
            value.holders += 1
        return ends

    def _operation(self, created: ir.Operation, uses: Counter[ir.Value]) -> None:
        kinds = [result.type for result in created.results]
        if kinds and all(map(is_empty, kinds)):
            results: Sequence[Value] = [nothing_of(kind) for kind in kinds]
        else:
            results = self._results(created, [self.values[x] for x in created.operands])
        for result, value in zip(created.results, results, strict=True):
            self.bind(result, value, uses[result])

    def _straight(self, part: Straight) -> None:
        """Computes elementwise operations in one loop."""
        shape = tuple(part.members[0].result.type.shape)
        read = {x: self.values[x] for x in operands_of(part)}
        read = {x: value for x, value in read.items() if not isinstance(value, _Nothing)}
        rows, shape = flat_together(list(read.values()), shape)
        read = dict(zip(read, rows, strict=True))
        kept = {x: self.place_of(x) for x in part.kept}
        memories = {x: stored.memory.reshaped(shape) for x, stored in kept.items()}
        formulas = [(x.operands, x.result, self._formula(x.operation)) for x in part.members]

        def compute(position: Indices, lanes: int | None) -> None:
            known: dict[ir.Value, Scalar] = {}
            for operands, result, formula in formulas:
                for x in operands:
                    # Arrays in memory are read again for each use, which takes no register.
                    if isinstance(read.get(x), Computed) and x not in known:
                        known[x] = read[x].at(position, lanes)
                inputs = [
                    known[x] if x in known else read[x].at(position, lanes)
                    for x in operands
                    if x in known or x in read
                ]
                known[result] = formula(*inputs)
                if result in memories:
                    _write(memories[result], position, lanes, known[result])

        elements = [value.element for value in read.values()]
        elements += [signless(x) for x in {x.result.type.element_type for x in part.members}]
        lanes = min(map(lanes_for, elements)) * self._joined.vectors
        self.each(shape, compute, lanes, may_repeat=True)
        for x, stored in kept.items():
            self.bind(x, stored, part.kept[x])

    def place_of(self, x: ir.Value) -> Stored:
        """Returns memory for all elements of a value; the kernel's results have their own."""
        if x in self.targets:
            return Stored(self.targets[x], is_own=False)
        return self.allocate(x.type.shape, signless(x.type.element_type))

    def _results(self, created: ir.Operation, operands: list[Value]) -> Sequence[Value]:
        name = created.name
        if name in self.rules:
            return self.rules[name](self, created, operands)
        if name in HANDED_ON:
            return operands
        if name == "stablehlo.constant":
            return [uniform(created)]
        if name == "tensor.empty":
            return [_Nothing(created)]
        if name == "stablehlo.reshape":
            shape = list(created.results[0].type.shape)
            return [reshaped(operands[0], shape) or self._stored_as(operands[0], shape)]
        if name == "stablehlo.broadcast_in_dim":
            operands = [self._once(operands[0], math.prod(created.results[0].type.shape))]
        if name in VIEWS:
            return [VIEWS[name](created, operands)]
        return [self._elementwise(created, operands)]

    def _once(self, value: Value, size: int) -> Value:
        """Returns an array for a broadcast to `size` elements; stored if it is expensive."""
        is_dear = isinstance(value, Computed) and value.cost >= DEAR
        return self.stored(value) if is_dear and 1 < value.size <= size // 2 else value

    def _stored_as(self, value: Value, shape: list[int]) -> Value:
        view = reshaped(self.stored(value), shape)
        assert view is not None
        return view

    def _elementwise(self, created: ir.Operation, operands: list[Value]) -> Value:
        formula = self._formula(created)
        inputs = [x for x in operands if not isinstance(x, _Nothing)]
        kind = created.results[0].type
        return Mapped(
            list(kind.shape), signless(kind.element_type), formula, inputs, cost_of(created.name)
        )

    def _formula(self, created: ir.Operation) -> Lanes:
        """Returns an operation's formula: inline, or as a call if many operations share it."""
        name = formula_name(created) if self.code.repeated else None
        if name is None or name not in self.code.repeated:
            return _written_out(created)
        # The formula is built once, with the function: a sine has a hundred operations.
        return lambda *xs: call(name, lambda *taken: _written_out(created)(*taken), xs)


class _Nothing(Value):
    """What `tensor.empty` returns: the place of a result, without contents."""

    def __init__(self, created: ir.Operation):
        kind = created.results[0].type
        super().__init__(list(kind.shape), kind.element_type)

    def at(self, position: Indices, lanes: int | None) -> Scalar:
        raise AssertionError("nobody reads an empty tensor")


def _write(target: Memory, position: Indices, lanes: int | None, x: Scalar) -> None:
    if lanes is None:
        target[position] = x
    else:
        target.write(position, x)


def _written_out(created: ir.Operation) -> Lanes:
    formula = formula_of(created)
    assert formula is not None, created.name
    return formula


def read_by(operation: ir.Operation) -> list[ir.Value]:
    """Returns the values that an operation reads, also in its regions, each once."""
    found = dict.fromkeys(operation.operands)
    if len(operation.regions) and operation.name != "linalg.generic":
        for inner in operations_of(operation):
            for child in inner:
                found.update(dict.fromkeys(read_by(child)))
    return list(found)


def pieces(extent: int, widest: int) -> list[tuple[int, int, int]]:
    """Cuts an axis into ranges of vectors: (start, end, width of the vectors).

    >>> pieces(37, 16)
    [(0, 32, 16), (32, 36, 4), (36, 37, 1)]
    """
    found, start, lanes = [], 0, widest
    while start < extent:
        count = (extent - start) // lanes
        if count:
            found.append((start, start + count * lanes, lanes))
            start += count * lanes
        lanes //= 2
    return found


def lanes_for(element: ir.Type) -> int:
    """Returns how many elements a vector has."""
    return VECTOR_BYTES // max(4, hlo.element_bytes(element))


def uniform(created: ir.Operation) -> Value:
    """Returns the array of a constant of equal elements."""
    shape = list(created.results[0].type.shape)
    number = Number(shape, splat(created))
    if number.size == 1:
        return number
    return Mapped(shape, number.element, lambda x: x, (number,), 0)


def is_empty(kind: ir.Type) -> bool:
    """Returns whether arrays of a type have no elements."""
    return 0 in kind.shape


def nothing_of(kind: ir.Type) -> Value:
    """Returns the only array of an empty type; reading it gives zero."""
    number = Number((), constant(0, signless(kind.element_type)))
    return Mapped(list(kind.shape), number.element, lambda x: x, (number,), 0)


def _kind(memory: Memory) -> tuple[tuple[int, ...], str]:
    return memory.shape, str(memory.element)
