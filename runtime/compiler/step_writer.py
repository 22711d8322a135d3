"""Writes the steps of a program and the places of its arrays: loops and branches become jumps.

Arrays that only steps see lie in one space, and reuse the places of arrays that are no longer
needed. A loop's carry has a slot, which is a place with changing memory: at the end of a pass the
slots of the carry and of its next value exchange their memory, and nothing is copied. Elsewhere:
the last reader of an array (`module_structure.py`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.legalize.regions import BRANCHES, host_function, operations_of
from axir.runtime.native.kernel_program import (
    AGAIN,
    CHOOSE,
    COPY,
    EXCHANGE,
    HOST_CALL,
    JUMP,
    UNLESS,
    Place,
    Step,
)

from .module_structure import (
    LOOP,
    Structure,
    block_of,
    inner_blocks,
    is_made,
    is_step,
    places_of,
    ties_of,
)
from .program_memory import Group, Slots, Space, rounded


@dataclass
class _Loop:
    """A loop that is being written: the memory of its carry, and the carry's slots."""

    group: Group
    slots: set[int] = field(default_factory=set)


class StepWriter:
    """Writes steps.

    Args:
        structure: The reads of the steps.
        known: The places of arguments and constants.
        returned: The places of arrays that the program returns.
        space: The number of the array that serves as the space.
        workgroups: The number of workgroups of each kernel.

    Attributes:
        steps: The steps.
        space: The bytes that the steps need.
        slots: The slots that the steps exchange.
    """

    def __init__(
        self,
        structure: Structure,
        known: Mapping[ir.Value, Place],
        returned: Mapping[ir.Value, Place],
        space: int,
        workgroups: Mapping[str, int],
    ):
        self.steps: list[Step] = []
        self.space = Space()
        self.slots = Slots(space + 1)
        self._structure = structure
        self._returned = returned
        self._number_of_space = space
        self._workgroups = workgroups
        self._depth = 0
        self._places: dict[ir.Value, Place] = dict(known)
        # For arrays in the space: their bytes there, or the group of their slot.
        self._bytes: dict[ir.Value, tuple[int, int]] = {}
        self._groups: dict[ir.Value, Group] = {}
        self._holders: set[ir.Value] = set()
        # Required places of the arrays that a branch yields, and loops of arrays that a pass ends
        # with.
        self._targets: dict[ir.Value, Place] = {}
        self._kept: dict[ir.Value, _Loop] = {}

    def write(self, operations: Iterable[ir.Operation]) -> None:
        """Writes the steps among some operations, which are a block."""
        for operation in filter(is_step, operations):
            if operation.name == LOOP:
                self._loop(operation)
            elif operation.name in BRANCHES:
                self._choice(operation)
            else:
                self._call(operation)
            for value in {*self._structure.reads[operation], *operation.results}:
                if self._structure.is_last(value, operation):
                    self._free(value)

    # Kernels, and functions of the host ---------------------------------------------------------

    def _call(self, step: ir.Operation) -> None:
        """Writes a step, after copies of operands that it overwrites and that are needed later."""
        operands = list(map(self._structure.source, step.operands))
        places = [self._places[x] for x in operands]
        made: list[Place] = []
        choices = zip(step.results, places_of(step), ties_of(step), strict=True)
        for result, choice, tie in choices:
            if choice >= 0 and self._may_overwrite(operands, choice, result, step):
                # In the operand's place, which has no other use from now on.
                self._hand_over(operands[choice], result)
                if tie < 0:
                    made.append(places[choice])
                continue
            place = self._make(result)
            if tie < 0:
                made.append(place)
            else:
                self._copy(place, places[tie], hlo.bytes_of(result))
                places[tie] = place
        number = host_function(step)
        if number is not None:
            self.steps.append((HOST_CALL, number, (*places, *made)))
        else:
            name = executable_of(step)
            self.steps.append((name, self._workgroups[name], (*places, *made)))

    def _may_overwrite(
        self, operands: Sequence[ir.Value], tie: int, result: ir.Value, step: ir.Operation
    ) -> bool:
        operand = operands[tie]
        is_kept = result in self._kept and operand not in self._groups
        return (
            self._is_own(operand)
            and not (is_kept or result in self._returned or result in self._targets)
            and self._structure.is_last(operand, step)
            and operands.count(operand) == 1
        )

    def _is_own(self, x: ir.Value) -> bool:
        """Tells whether an array lies where only steps see it."""
        return (x in self._bytes or x in self._groups) and x not in self._returned

    def _hand_over(self, old: ir.Value, new: ir.Value) -> None:
        self._places[new] = self._places[old]
        if old in self._bytes:
            self._bytes[new] = self._bytes.pop(old)
        if old in self._groups:
            self._groups[new] = self._groups.pop(old)
        if old in self._holders:
            self._holders.remove(old)
            self._holders.add(new)

    def _make(self, result: ir.Value) -> Place:
        """Finds memory for a step's result."""
        size = hlo.bytes_of(result)
        if result in self._targets:
            place = self._targets.pop(result)
        elif result in self._returned:
            place = self._returned[result]
        elif result in self._kept:
            loop = self._kept[result]
            place = self._new_slot(loop, size)
            self._groups[result] = loop.group
        else:
            start = self.space.take(rounded(size))
            self._bytes[result] = start, rounded(size)
            place = self._number_of_space, start
        self._places[result] = place
        return place

    def _free(self, x: ir.Value) -> None:
        if x in self._bytes:
            self.space.give_back(*self._bytes.pop(x))
        if x in self._holders:
            self._holders.remove(x)
            self._groups[x].let_go()

    def _copy(self, target: Place, source: Place, size: int) -> None:
        if size and target != source:
            self.steps.append((COPY, size, (target, source)))

    def _end(self, last: ir.Operation) -> None:
        """Frees the arrays that the end of a block was the last to read."""
        for x in {self._structure.source(x) for x in last.operands}:
            if self._structure.is_last(x, last):
                self._free(x)

    # Loops --------------------------------------------------------------------------------------

    def _loop(self, step: ir.Operation) -> None:
        source = self._structure.source
        (*condition, truth), (*body, last) = operations_of(step)
        first_arguments, arguments = (list(x.blocks[0].arguments) for x in step.regions)
        loop = _Loop(Group(self.space))
        loop.group.hold()
        changed = [n for n in range(len(step.results)) if not self._structure.is_unchanged(step, n)]
        ends = self._begin(step, loop, changed)
        for n in changed:
            place = self._places[step.results[n]]
            self._places[first_arguments[n]] = self._places[arguments[n]] = place
            self._groups[arguments[n]] = loop.group
            loop.slots.add(place[0])
        self._keep({source(last.operands[n]) for n in changed}, last, loop)
        begin = len(self.steps)
        self._depth += 1
        self.write(condition)
        leave = self._jump(UNLESS, self._places[source(truth.operands[0])])
        self._end(truth)
        self.write(body)
        self._pass_on(loop, [(arguments[n], source(last.operands[n])) for n in changed])
        self._end(last)
        self._depth -= 1
        self.steps.append((AGAIN, begin, ()))
        self._land(leave)
        for result, place in ends.items():
            number, size = self._places[result][0], hlo.bytes_of(result)
            if number in self.slots.exchanged:
                # Else the memory of one result would hold another one, which is yet to be copied.
                start = loop.group.take_new(rounded(size))
                self.slots.move(number, (self._number_of_space, start))
            self._copy(place, self._places[result], size)
        for n in changed:
            self._groups[step.results[n]] = loop.group
            self._holders.add(step.results[n])
            loop.group.hold()
        loop.group.let_go()

    def _begin(
        self, step: ir.Operation, loop: _Loop, changed: Sequence[int]
    ) -> dict[ir.Value, Place]:
        """Finds slots for a loop's carry, and writes the initial values there.

        Returns:
            The places in which results have to be at the end, apart from the slots.
        """
        inits = [self._structure.source(x) for x in step.operands]
        results = [step.results[n] for n in changed]
        ends = {x: self._targets.pop(x) for x in results if x in self._targets}
        ends.update((x, self._returned[x]) for x in results if x in self._returned)
        free = {
            step.results[n]: inits[n]
            for n in changed
            if step.results[n] not in ends and self._may_take(inits[n], inits, step)
        }
        # Slots that another loop exchanges as well live as long as that loop's slots.
        joined = [self._groups[x] for x in free.values() if x in self._groups]
        joined += [self._kept[x].group for x in results if x in self._kept]
        for group in joined:
            group.join(loop.group)
        for n in changed:
            result, size = step.results[n], hlo.bytes_of(step.results[n])
            init = free.get(result)
            if init is not None and init in self._groups:
                self._hand_over(init, result)
                self._free(result)
                place = self._places[result]
            elif init is not None and not joined and not self._depth:
                # In another pass of an outer loop, the slot would have another place.
                start, room = self._bytes.pop(init)
                loop.group.add(start, room)
                place = self.slots.add((self._number_of_space, start), size)
            else:
                base = ends.get(result)
                if base is not None and base[0] <= self._number_of_space:
                    place = self.slots.add(base, size)
                else:
                    place = self._new_slot(loop, size)
                self._copy(place, self._places[inits[n]], size)
            self._places[result] = place
            if result in self._kept:
                self._kept[result].slots.add(place[0])
        return ends

    def _may_take(self, x: ir.Value, inits: Sequence[ir.Value], step: ir.Operation) -> bool:
        """Tells whether a loop may overwrite an initial value in place."""
        return (
            self._is_own(x)
            and self._structure.is_last(x, step)
            and x not in self._structure.captured[step]
            and inits.count(x) == 1
        )

    def _new_slot(self, loop: _Loop, size: int) -> Place:
        start = loop.group.take_new(rounded(size))
        place = self.slots.add((self._number_of_space, start), size)
        loop.slots.add(place[0])
        return place

    def _keep(self, values: set[ir.Value], last: ir.Operation, loop: _Loop) -> None:
        """Puts the values that a pass ends with, and operands that become them, into slots."""
        pending = list(values)
        while pending:
            x = pending.pop()
            if not is_made(x) or block_of(x) != last.block or x in self._kept:
                continue
            self._kept[x] = loop
            step, number = x.owner.operation, ir.OpResult(x).result_number
            if step.name == LOOP:
                pending.append(self._structure.source(step.operands[number]))
            elif (tie := ties_of(step)[number]) >= 0:
                pending.append(self._structure.source(step.operands[tie]))

    def _pass_on(self, loop: _Loop, pairs: Sequence[tuple[ir.Value, ir.Value]]) -> None:
        """Makes the slots of a loop's carry hold the values that its pass ended with."""
        slots = {x: self._places[x][0] for x, _ in pairs}
        # For each slot, the slot with the memory that it gets. Slots that already have it come
        # first.
        given: dict[int, int] = {}
        moves = {pair: self._places[pair[1]] != self._places[pair[0]] for pair in pairs}
        for x, end in sorted(pairs, key=moves.__getitem__):
            number, offset = self._places[end]
            is_here = number in loop.slots and not offset and number not in given.values()
            if is_here and self.slots.size_of(number) == self.slots.size_of(slots[x]):
                given[slots[x]] = number
        taking = dict.fromkeys([*slots.values(), *given.values()])
        left = [x for x in taking if x not in given.values()]
        for slot in taking:
            if slot not in given:
                same = [x for x in left if self.slots.size_of(x) == self.slots.size_of(slot)]
                given[slot] = slot if slot in same else same[0]
                left.remove(given[slot])
        changes = {slot: other for slot, other in given.items() if slot != other}
        if changes:
            moved = tuple((x, 0) for pair in changes.items() for x in pair)
            self.steps.append((EXCHANGE, 0, moved))
            self.slots.exchanged.update(changes)
        holders = {other: slot for slot, other in given.items()}
        for x, end in pairs:
            number, offset = self._places[end]
            holder = holders.get(number, number)
            self._copy(self._places[x], (holder, offset), hlo.bytes_of(x))

    # Branches -----------------------------------------------------------------------------------

    def _choice(self, step: ir.Operation) -> None:
        selector = self._places[self._structure.source(step.operands[0])]
        blocks = inner_blocks(step)
        places = list(map(self._make, step.results))
        ends = []
        if step.name == "stablehlo.if":
            others = [self._jump(UNLESS, selector)]
        else:
            self.steps.append((CHOOSE, len(blocks), (selector,)))
            others = [self._jump(JUMP) for _ in blocks]
            self._land(others.pop(0))
        for number, block in enumerate(blocks):
            if number:
                ends.append(self._jump(JUMP))
                self._land(others.pop(0))
            self._branch(block, places)
        for end in ends:
            self._land(end)

    def _branch(self, block: Sequence[ir.Operation], places: Sequence[Place]) -> None:
        *operations, last = block
        ends = list(map(self._structure.source, last.operands))
        made: set[int] = set()
        for number, (x, place) in enumerate(zip(ends, places, strict=True)):
            if is_made(x) and block_of(x) == last.block and x not in self._targets:
                self._targets[x] = place
                made.add(number)
        self.write(operations)
        for number, (x, place) in enumerate(zip(ends, places, strict=True)):
            if number not in made:
                self._copy(place, self._places[x], hlo.bytes_of(x))
        self._end(last)

    # Jumps --------------------------------------------------------------------------------------

    def _jump(self, kind: str, *places: Place) -> int:
        self.steps.append((kind, 0, places))
        return len(self.steps) - 1

    def _land(self, jump: int) -> None:
        """Makes a jump lead to the next step."""
        kind, _, places = self.steps[jump]
        self.steps[jump] = kind, len(self.steps), places


def executable_of(kernel: ir.Operation) -> str:
    """Returns the name of the executable that a kernel is."""
    [entry] = ir.ArrayAttr(kernel.attributes["entry_points"])
    return str(entry).partition("::")[0].removeprefix("@")


def workgroups_of(executable: ir.Operation) -> int:
    """Returns how many workgroups of an executable run."""
    [[export, *_]] = operations_of(executable)
    [[*counts, _]] = operations_of(export)
    return math.prod(ir.IntegerAttr(x.attributes["value"]).value for x in counts)
