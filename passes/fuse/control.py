"""Loops, branches and calls in a kernel.

Numbers that a loop carries stay in registers. Each carried array has a place in memory, where the
next iteration reads it. An iteration writes its results there when it ends, in an order that
overwrites no array that is still read.
"""

from __future__ import annotations

from collections.abc import Sequence

from iree.compiler import ir

from axir.dialect.builders.kernels import Memory, branch, repeat_while
from axir.dialect.builders.scalars import Scalar, signless
from axir.passes.legalize.regions import captured_by, operations_of

from .emitter import Emitter, Rule
from .values import Number, Stored, Value, may_replace, reads


def _while(emitter: Emitter, created: ir.Operation, operands: list[Value]) -> Sequence[Value]:
    held = _hold_captured(emitter, created)
    inits = [emitter.values[x] for x in created.operands]
    results = run_loop(emitter, created, inits, [None] * len(inits))
    emitter.hand_on(held)
    return results


def run_loop(
    emitter: Emitter, created: ir.Operation, inits: list[Value], places: Sequence[Memory | None]
) -> list[Value]:
    """Builds a `stablehlo.while`.

    Args:
        emitter: Builds the operations.
        created: The loop.
        inits: The initial values.
        places: Memory for some of the arrays that it carries.

    Returns:
        The final values.
    """
    read = [emitter.values[x] for x in captured_by(created)]
    condition, body = operations_of(created)
    arguments = [list(region.blocks[0].arguments) for region in created.regions]
    carried = _Carried(emitter, inits, places, changed(body[-1], arguments[1]), read)

    def holds(*numbers: Scalar) -> Scalar:
        values = carried.values(numbers, is_own=False)
        [truth] = emitter.block(condition, zip(arguments[0], values, strict=True))
        emitter.release(truth)
        return truth.at((), None)

    def step(*numbers: Scalar) -> tuple[Scalar, ...]:
        values = carried.values(numbers, is_own=True)
        ends = emitter.block(body, zip(arguments[1], values, strict=True))
        carried.store(ends)
        numbers_after = tuple(
            end.at((0,) * len(end.shape), None)
            for end, place in zip(ends, carried.places, strict=True)
            if place == "number"
        )
        for end in dict.fromkeys(ends):
            emitter.release(end)
        return numbers_after

    numbers = repeat_while(carried.numbers, holds, step)
    return carried.values(numbers, is_own=True, is_temporary=True)


def _hold_captured(emitter: Emitter, created: ir.Operation) -> list[Value]:
    """Stores the values that an operation's regions capture, because they may read them many times.

    Returns the values with one more holder, so that no operation in a region is their last reader.
    """
    for x in captured_by(created):
        if emitter.values[x].cost:
            emitter.force(x)
    held = [emitter.values[x] for x in captured_by(created)]
    for value in dict.fromkeys(held):
        value.holders += 1
    return held


def changed(last: ir.Operation, arguments: list[ir.Value]) -> list[bool]:
    """Tells which carried values an iteration may change: all but those passed on unchanged."""
    return [x != argument for x, argument in zip(last.operands, arguments, strict=True)]


class _Carried:
    """The values that a loop carries: numbers, arrays with places in memory, unchanged values."""

    def __init__(
        self,
        emitter: Emitter,
        inits: list[Value],
        places: Sequence[Memory | None],
        is_changed: list[bool],
        read: list[Value],
    ):
        self.emitter = emitter
        self.inits = inits
        self.places: list[Memory | str] = []
        self.is_temporary: list[bool] = []
        # Values that the loop also captures, or carries unchanged, keep their memory. The memory of
        # each other value may be taken once.
        kept = [init for init, changes in zip(inits, is_changed, strict=True) if not changes]
        readers = [*read, *kept]
        for init, place, changes in zip(inits, places, is_changed, strict=True):
            self.is_temporary.append(False)
            if not changes or not init.size:
                self.places.append("unchanged")
            elif isinstance(init, Number):
                self.places.append("number")
            else:
                self.places.append(place or self._place(init, readers))
                if place is not None:
                    emitter.fill(place, init)
        self.numbers = tuple(
            init.scalar
            for init, place in zip(inits, self.places, strict=True)
            if place == "number" and isinstance(init, Number)
        )

    def _place(self, init: Value, readers: list[Value]) -> Memory:
        """Returns the memory of a value without other readers, or a copy of the value."""
        is_free = isinstance(init, Stored) and init.is_own and init.holders == 1
        if isinstance(init, Stored) and is_free and not any(reads(x, init.memory) for x in readers):
            readers.append(init)
            self.is_temporary[-1], init.is_temporary = init.is_temporary, False
            return init.memory
        stored = self.emitter.allocate(init.shape, init.element)
        self.emitter.fill(stored.memory, init)
        self.is_temporary[-1] = True
        return stored.memory

    def values(
        self, numbers: Sequence[Scalar], *, is_own: bool, is_temporary: bool = False
    ) -> list[Value]:
        """Returns the carried values, given the numbers of an iteration."""
        scalars = iter(numbers)
        found: list[Value] = []
        for init, place, frees in zip(self.inits, self.places, self.is_temporary, strict=True):
            if place == "unchanged":
                found.append(init)
            elif isinstance(place, Memory):
                found.append(Stored(place, is_own=is_own, is_temporary=is_temporary and frees))
            else:
                found.append(Number(init.shape, next(scalars)))
        return found

    def store(self, ends: list[Value]) -> None:
        """Writes the final arrays of an iteration to their places; `ends` may be replaced."""
        pending = {
            number: place
            for number, place in enumerate(self.places)
            if isinstance(place, Memory) and not _lies_in(ends[number], place)
        }
        # A copy reads no other array, so any can be stored once all are copies.
        not_copied = list(pending)
        while pending:
            number = next((n for n in pending if self._can_store(n, ends, pending)), None)
            if number is None:
                self._copy(not_copied.pop(0), ends)
                continue
            if number in not_copied:
                not_copied.remove(number)
            self.emitter.fill(pending.pop(number), ends[number])

    def _can_store(self, number: int, ends: list[Value], pending: dict[int, Memory]) -> bool:
        place = pending[number]
        others = (end for n, end in enumerate(ends) if n != number and n in pending)
        return may_replace(ends[number], place) and not any(reads(x, place) for x in others)

    def _copy(self, number: int, ends: list[Value]) -> None:
        """Replaces a final value of an iteration by a copy, which reads no other array."""
        end = ends[number]
        copy = self.emitter.allocate(end.shape, end.element)
        self.emitter.fill(copy.memory, end)
        copy.holders = 1
        if ends.count(end) == 1:
            self.emitter.release(end)
        ends[number] = copy


def _lies_in(x: Value, place: Memory) -> bool:
    return isinstance(x, Stored) and x.memory.value == place.value


# Branches ---------------------------------------------------------------------------------------


def _choice(emitter: Emitter, created: ir.Operation, operands: list[Value]) -> Sequence[Value]:
    held = _hold_captured(emitter, created)
    results = [_result(emitter, x) for x in created.results]
    types = [signless(x.type.element_type) for x in created.results]
    scalar_types = [kind for kind, x in zip(types, results, strict=True) if x is None]
    blocks = operations_of(created)

    def run(operations: list[ir.Operation]) -> tuple[Scalar, ...]:
        ends = emitter.block(operations, ())
        scalars = []
        for end, result in zip(ends, results, strict=True):
            if result is None:
                scalars.append(end.at((0,) * len(end.shape), None))
            else:
                emitter.fill(result.memory, end)
        for end in dict.fromkeys(ends):
            emitter.release(end)
        return tuple(scalars)

    def choose(number: int) -> tuple[Scalar, ...]:
        if number == len(blocks) - 1:
            return run(blocks[number])
        selector = operands[0].at((), None)
        truth = selector if created.name == "stablehlo.if" else selector == number
        return branch(truth, lambda: run(blocks[number]), lambda: choose(number + 1), scalar_types)

    scalars = iter(choose(0))
    emitter.hand_on(held)
    return [
        Number(list(x.type.shape), next(scalars)) if result is None else result
        for x, result in zip(created.results, results, strict=True)
    ]


def _result(emitter: Emitter, x: ir.Value) -> Stored | None:
    shape = list(x.type.shape)
    if all(extent == 1 for extent in shape):
        return None
    return emitter.allocate(shape, signless(x.type.element_type))


# Calls ------------------------------------------------------------------------------------------


def _call(emitter: Emitter, created: ir.Operation, operands: list[Value]) -> Sequence[Value]:
    callee = emitter.code.functions[ir.FlatSymbolRefAttr(created.attributes["callee"]).value]
    [operations] = operations_of(callee)
    arguments = callee.regions[0].blocks[0].arguments
    return emitter.hand_on(emitter.block(operations, zip(arguments, operands, strict=True)))


RULES: dict[str, Rule] = {
    "stablehlo.while": _while,
    "stablehlo.if": _choice,
    "stablehlo.case": _choice,
    "func.call": _call,
}
