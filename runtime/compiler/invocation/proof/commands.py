"""Runs the commands of a device on the known facts about memory, and checks each read.

The program with values gives each command its meaning. The command checks that the bytes it reads
are the meant ones, that the memory it touches is not freed, and that all work it depends on is done
before it. Elsewhere: memory and the host (`execution.py`).
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable

from .contents import Contents, Fact, Piece, UnprovableError, filling, part
from .reading import Operation
from .scalars import Scalars
from .state import Buffer, Place, State, Violation
from .values import Values, positions_of, ranges_of, ties_of

_WRITES, _READS = 2, 1
_LINE = re.compile(r'"([^"]+)":(\d+):\d+')
# An access of a command: the buffer, the first byte, the end, and whether it writes.
Access = tuple[Buffer, int, int, bool]


class Commands(ABC):
    """Runs the commands of one function's parts.

    Args:
        values: The function with values.
        matched: For each operation of the function with memory, the operation of the function with
            values.
        scalars: The numbers of the function with memory.
        globals_: The known facts about the contents of globals, by name.
        report: Takes violations.
    """

    def __init__(
        self,
        values: Values,
        matched: dict[Operation, Operation],
        scalars: Scalars,
        globals_: dict[str, Contents],
        report: Callable[[Violation], None],
    ) -> None:
        self.values = values
        self._matched = matched
        self.scalars = scalars
        self._globals = globals_
        self._report = report
        self._constants: dict[str, Operation] = {}
        self.stored: dict[str, Place] = {}
        self.state = State()
        # The events done before the current execution, and its own event.
        self._before = 0
        self._event = 0
        self._accesses: list[Access] = []

    @abstractmethod
    def run(self, operation: Operation) -> None:
        """Runs one operation of a block or a region.

        Raises:
            UnprovableError: if it is not known.
        """

    # Places --------------------------------------------------------------------------------------

    def _number(self, name: str) -> int:
        number = self.scalars.number(name)
        if number is None:
            raise UnprovableError("a size that is not known when the program is compiled")
        return number

    def _place(self, name: str) -> Place:
        place = self.state.places.get(name)
        if place is None:
            raise UnprovableError("an array that comes from elsewhere")
        return place

    def _new(self, name: str, contents: Contents | None = None) -> Buffer:
        buffer = Buffer(contents)
        self.state.places[name] = Place(buffer, 0)
        return buffer

    def _alias(self, operation: Operation) -> None:
        for result, value in zip(operation.results, operation.operands, strict=False):
            place = self.state.places.get(value)
            if place is not None:
                self.state.places[result] = place
            elif value in self.state.done:
                self.state.done[result] = self.state.done[value]

    # Accesses ------------------------------------------------------------------------------------

    def _say(self, kind: str, text: str, operation: Operation, other: str = "") -> None:
        self._report(Violation(kind, text, describe(operation), other))

    def _touch(self, operation: Operation, access: Access) -> None:
        """Checks that a part of a buffer is allocated, and free of concurrent accesses."""
        buffer, start, end, writes = access
        self._accesses.append(access)
        if buffer.is_freed:
            self._say("freed", "uses memory that has been given back", operation)
        key = (start, end, writes)
        if self._event and buffer.accesses.get(key) == self._event:
            return
        ready = self._before | self._event
        done = []
        for other, event in buffer.accesses.items():
            if not event & ~ready:
                if writes and start <= other[0] and other[1] <= end:
                    done.append(other)  # a wait for this access waits for that one, too
            elif (writes or other[2]) and other[0] < end and start < other[1]:
                what = "writes" if writes else "reads"
                before = "is written" if other[2] else "is read"
                self._say("race", f"{what} what {before} without waiting for that", operation)
        for other in done:
            del buffer.accesses[other]
        if self._event:
            buffer.accesses[key] = self._event
        if writes and any(first < end and start < last for first, last in buffer.exported):
            self._say("result", "overwrites what has been given to the caller", operation)

    def _require(
        self, operation: Operation, buffer: Buffer, at: int, pieces: tuple[Piece, ...]
    ) -> None:
        """Checks that the bytes are the ones that the program means."""
        lacking = buffer.contents.lacking(at, pieces)
        if lacking is None:
            return
        piece, place = lacking
        found = buffer.contents.atoms_at(place)
        holds = " or ".join(map(self._describe_atom, found)) or "something else"
        self._say(
            "value",
            f"reads {holds} (byte {place - at} of {self._size_of(pieces)}) "
            f"where {self._describe_atom(piece.atom)} is meant",
            operation,
            self._describe_atom(found[0]) if found else "",
        )

    @staticmethod
    def _size_of(pieces: tuple[Piece, ...]) -> int:
        return pieces[-1].start + pieces[-1].length

    def _describe_atom(self, atom: str | None) -> str:
        maker = self.values.makers.get(atom or "")
        if maker is not None:
            same = next((x for x, y in self._matched.items() if y is maker), maker)
            return f"the result of {describe(same)}"
        if atom is not None and atom in self.values.homes:
            return f"what the block {self.values.homes[atom]} was handed as {atom}"
        return str(atom)[:60]

    # Commands ------------------------------------------------------------------------------------

    def _execute(self, operation: Operation) -> None:
        arrays, _, points = (*operation.segments(), [])[:3]
        self._before = self.state.before(points)
        self._event = self.state.event()
        self._run_region(operation, arrays)
        self.state.done[operation.results[-1]] = self._before | self._event
        self._before = self._event = 0

    def _run_region(self, operation: Operation, arrays: list[str]) -> None:
        (inner,) = operation.blocks
        for argument, value in zip(inner.arguments, arrays, strict=False):
            self.state.places[argument] = self._place(value)
        for command in inner.operations:
            self.run(command)

    def _serial(self, operation: Operation) -> None:
        self._run_region(operation, [])

    def _concurrent(self, operation: Operation) -> None:
        """Checks that commands that may run at the same time do not touch each other's writes."""
        outer = self._accesses
        earlier: list[Access] = []
        for command in operation.blocks[0].operations:
            self._accesses = []
            self.run(command)
            for mine in self._accesses:
                if any(_conflict(mine, theirs) for theirs in earlier):
                    self._say("race", "touches what is written at the same time", command)
                    break
            earlier += self._accesses
        self._accesses = outer + earlier

    def _dispatch(self, operation: Operation) -> None:
        meant = self._matched[operation]
        _, _, arrays, _, firsts, lengths = operation.segments()
        modes = operation.numbers("resource_accesses")
        reads, meant_firsts, _, meant_lengths, _ = ranges_of(meant)
        tied = ties_of(meant)
        if len(reads) + tied.count(-1) != len(arrays):
            raise UnprovableError("another number of arrays of a dispatch")
        spans: list[tuple[Buffer, int, int]] = []
        for index, name in enumerate(arrays):
            place = self._place(name)
            start = place.offset + self.scalars.base(firsts[index])
            length = self._number(lengths[index])
            if index < len(reads):
                pieces = self.values.pieces(reads[index])
                first = self.values.scalars.number(meant_firsts[index])
                if first is None or self.scalars.number(firsts[index]) is None:
                    start -= self.values.scalars.base(meant_firsts[index])
                    length = self._whole(meant, index)
                    pieces = part(pieces, 0, length)
                else:
                    pieces = part(pieces, first, self._meant_number(meant_lengths[index]))
                if modes[index] & _READS:
                    self._require(operation, place.buffer, start, pieces)
            spans.append((place.buffer, start, start + length))
        self._look_at_overlaps(operation, spans, modes)
        for span, mode in zip(spans, modes, strict=True):
            self._touch(operation, (*span, bool(mode & _WRITES)))
        self._write(meant, spans, tied)

    def _meant_number(self, name: str) -> int:
        number = self.values.scalars.number(name)
        if number is None:
            raise UnprovableError("a size that is not known when the program is compiled")
        return number

    def _whole(self, dispatch: Operation, index: int) -> int:
        return self._meant_number(dispatch.segments()[2][index])

    def _look_at_overlaps(
        self, operation: Operation, spans: list[tuple[Buffer, int, int]], modes: list[int]
    ) -> None:
        accesses = [(*span, bool(mode & _WRITES)) for span, mode in zip(spans, modes, strict=True)]
        for index, mine in enumerate(accesses):
            if mine[3] and any(
                _conflict(mine, other) for other in accesses[:index] + accesses[index + 1 :]
            ):
                self._say("overlap", "writes to what it reads or writes elsewhere", operation)
                return

    def _write(
        self, meant: Operation, spans: list[tuple[Buffer, int, int]], tied: list[int]
    ) -> None:
        """Notes the results of a dispatch, each where the operand is that it is tied to."""
        positions = positions_of(meant)
        free = iter(spans[len(positions) :])
        written = [next(free) if x < 0 else spans[positions.index(x)] for x in tied]
        for buffer, start, end in written:
            buffer.contents.forget(start, end)
        for name, (buffer, start, end) in zip(meant.results, written, strict=True):
            buffer.contents.learn((Fact(start, end, name, start),))

    def _copy(self, operation: Operation) -> None:
        source, _, first, target, _, to, length = operation.operands
        from_, at = self._place(source), self._place(target)
        size = self._number(length)
        start = from_.offset + self.scalars.base(first)
        end = at.offset + self.scalars.base(to)
        read, written = (from_.buffer, start, start + size), (at.buffer, end, end + size)
        meant = self._matched.get(operation)
        if meant is None:
            facts = from_.buffer.contents.taken(start, size, end)
        else:
            read, written, facts = self._computed_copy(operation, meant, (read, written))
        # Of a place that is computed all of the array counts.
        is_known = meant is None or read != written
        if is_known and _conflict((*read, False), (*written, True)):
            self._say("overlap", "copies memory onto itself", operation)
        self._touch(operation, (*read, False))
        self._touch(operation, (*written, True))
        at.buffer.contents.forget(*written[1:])
        at.buffer.contents.learn(facts)

    def _computed_copy(
        self,
        operation: Operation,
        meant: Operation,
        spans: tuple[tuple[Buffer, int, int], tuple[Buffer, int, int]],
    ) -> tuple[tuple[Buffer, int, int], tuple[Buffer, int, int], tuple[Fact, ...]]:
        """Looks at a copy from or to a place that the program computes: all around it counts."""
        (source, start, _), (target, to, last) = spans
        operands, scalars = meant.operands, self.values.scalars
        size = self._meant_number(operands[1])
        whole = part(self.values.pieces(operands[0]), 0, size)
        if meant.name == "stream.async.slice":
            start -= scalars.base(operands[2])
            self._require(operation, source, start, whole)
            facts = (Fact(to, last, meant.results[0], to),)
            return (source, start, start + size), spans[1], facts
        if meant.name != "stream.async.update":
            raise UnprovableError("a copy between places that the program computes")
        to -= scalars.base(operands[2])
        self._require(operation, target, to, whole)
        length = self._meant_number(operands[5])
        self._require(operation, source, start, part(self.values.pieces(operands[4]), 0, length))
        facts = (Fact(to, to + size, meant.results[0], to),)
        return spans[0], (target, to, to + size), facts

    def _fill(self, operation: Operation) -> None:
        target, _, first, length, _ = operation.operands
        place = self._place(target)
        if self.scalars.number(first) is None:
            raise UnprovableError("memory that is filled from a place that the program computes")
        start = place.offset + self._number(first)
        end = start + self._number(length)
        self._touch(operation, (place.buffer, start, end, True))
        meant = self._matched.get(operation)
        if meant is None:
            atom = filling(operation, self.scalars)
        else:
            atom = self.values.filled(meant)
        place.buffer.contents.forget(start, end)
        place.buffer.contents.learn((Fact(start, end, atom, start),))

    def _discard(self, operation: Operation) -> None:
        target, _, first, length = operation.operands
        place = self._place(target)
        start = place.offset + self._number(first)
        place.buffer.contents.forget(start, start + self._number(length))


def _conflict(one: Access, other: Access) -> bool:
    return one[0] is other[0] and one[1] < other[2] and other[1] < one[2] and (one[3] or other[3])


def describe(operation: Operation) -> str:
    """Returns an operation's name for messages."""
    symbol = operation.symbol("entry_points").rpartition("@")[2] or operation.name
    line = _LINE.search(operation.place)
    return f"{symbol} ({line[1]}:{line[2]})" if line else symbol
