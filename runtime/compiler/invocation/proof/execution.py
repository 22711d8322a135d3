"""Runs a host program on what is known of memory, and looks at each read.

Each command is given the meaning that the program with values has for it, and finds out whether
the bytes that it reads are those; whether what it touches is there, and whether all that must be
done before it is. What does not live here: the order of blocks (`blocks.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable

from .contents import Contents, Fact
from .reading import Operation
from .scalars import Scalars
from .state import END, Buffer, Place, State, Violation
from .values import (
    WIDTHS,
    Piece,
    UnprovableError,
    Values,
    constant_pieces,
    filling,
    part,
    positions_of,
    ranges_of,
    ties_of,
)

_WRITES, _READS = 2, 1
_LINE = re.compile(r'"([^"]+)":(\d+):\d+')
# One access of a command: the buffer, the first byte and the one behind the last, and if it writes.
_Access = tuple[Buffer, int, int, bool]


class Execution:
    """Runs the operations of one function.

    Args:
        values: The function with values.
        matched: Its operation for each one of the function with memory.
        scalars: The numbers of the function with memory.
        globals_: What is known of what globals hold, by name.
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
        # What commands of the execution at hand may rely on, and its own event.
        self._before = 0
        self._event = 0
        self._accesses: list[_Access] = []

    def run(self, operation: Operation) -> None:
        """Runs one operation of a block.

        Raises:
            UnprovableError: if it is not known.
        """
        name = operation.name
        handler = _HANDLERS.get(name)
        if handler is not None:
            handler(self, operation)
        elif "!stream.resource" in operation.text or name.startswith("stream."):
            raise UnprovableError(name)

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

    def _touch(self, operation: Operation, access: _Access) -> None:
        """Looks whether a part of a buffer is there, and free of others' work."""
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
                    done.append(other)  # who waits for this access waits for that one, too
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
        """Looks whether bytes are those that the program means."""
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
        """Looks whether commands that may run at the same time leave each other alone."""
        outer = self._accesses
        earlier: list[_Access] = []
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
        if _conflict((*read, False), (*written, True)):
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

    # Memory --------------------------------------------------------------------------------------

    def _allocate(self, operation: Operation) -> None:
        buffer = self._new(operation.results[0])
        if len(operation.results) > 1:
            event = self.state.event()
            buffer.accesses[0, END, True] = event
            before = self.state.before(operation.operands[1:])
            self.state.done[operation.results[1]] = before | event

    def _free(self, operation: Operation) -> None:
        place = self._place(operation.operands[0])
        self._before = self.state.before(operation.operands[2:])
        self._event = self.state.event()
        # Memory that a block was handed is not given back here (`passed_buffers.py`).
        if not place.is_argument:
            self._touch(operation, (place.buffer, 0, END, True))
            place.buffer.is_freed = True
        self.state.done[operation.results[0]] = self._before | self._event
        self._before = self._event = 0

    def _part(self, operation: Operation) -> None:
        source, _, first, _ = operation.operands
        place = self._place(source)
        offset = self.scalars.number(first)
        if offset is None:
            raise UnprovableError("a part of an array from a place that the program computes")
        self.state.places[operation.results[0]] = place._replace(offset=place.offset + offset)

    def _import(self, operation: Operation) -> None:
        meant = self._matched[operation]
        size = self._number(operation.operands[-1])
        self.values.pieces(meant.results[0])
        self._new(operation.results[0], Contents((Fact(0, size, meant.results[0], 0),)))

    def _load_global(self, operation: Operation) -> None:
        if "-> !stream.timepoint" in operation.text:
            self.state.done[operation.results[0]] = 0
        elif "-> !stream.resource" in operation.text:
            name = operation.symbol("global")
            if name not in self._globals:
                raise UnprovableError("a global that no initializer sets")
            self._new(operation.results[0], self._globals[name])

    def _store_global(self, operation: Operation) -> None:
        if ": (!stream.resource" in operation.text:
            place = self._place(operation.operands[0])
            self._host_touch(operation, (place.buffer, 0, END, False))
            self.stored[operation.symbol("global")] = place

    def _constant_buffer(self, operation: Operation) -> None:
        self._constants[operation.results[0]] = operation

    def _map(self, operation: Operation) -> None:
        buffer, offset, length = operation.operands
        self._new(operation.results[1], self._content(buffer, offset, length))

    def _file(self, operation: Operation) -> None:
        self._constants[operation.results[0]] = self._constants[operation.operands[0]]

    def _read_file(self, operation: Operation) -> None:
        file, _, target, _, to, length, *points = operation.operands
        place = self._place(target)
        self._before = self.state.before(points)
        self._event = self.state.event()
        start = place.offset + self._number(to)
        end = start + self._number(length)
        self._touch(operation, (place.buffer, start, end, True))
        place.buffer.contents.forget(start, end)
        contents = self._content(file, to, length)
        place.buffer.contents.learn(contents.taken(0, end - start, start))
        self.state.done[operation.results[0]] = self._before | self._event
        self._before = self._event = 0

    def _content(self, buffer: str, offset: str, length: str) -> Contents:
        if self._number(offset):
            raise UnprovableError("a part of a constant")
        pieces = constant_pieces(self._constants[buffer].text)
        facts = tuple(
            Fact(x.start, x.start + x.length, x.atom, x.start) for x in pieces if x.atom is not None
        )
        return Contents(facts)

    # The host ------------------------------------------------------------------------------------

    def _host_touch(self, operation: Operation, access: _Access) -> None:
        """Looks at an access of the host, which is done where it stands."""
        self._before, self._event = self.state.host, 0
        self._touch(operation, access)
        self._before = 0

    def _load(self, operation: Operation) -> None:
        meant = self._matched[operation]
        place = self._place(operation.operands[0])
        first, at = meant.operands[2], operation.operands[2]
        kind = operation.text[operation.text.rindex("-> ") + 3 :].split()[0]
        if kind not in WIDTHS:
            raise UnprovableError(f"a number of type {kind}")
        start = place.offset + self.scalars.base(at)
        pieces, length = self.values.pieces(meant.operands[0]), WIDTHS[kind]
        known = self.values.scalars.number(first)
        if known is None or self.scalars.number(at) is None:
            start -= self.values.scalars.base(first)
            length = self._meant_number(meant.operands[1])
            pieces = part(pieces, 0, length)
        else:
            pieces = part(pieces, known, length)
        self._require(operation, place.buffer, start, pieces)
        self._host_touch(operation, (place.buffer, start, start + length, False))

    def _export(self, operation: Operation) -> None:
        meant = self._matched[operation]
        place = self._place(operation.operands[0])
        size = self._number(operation.operands[-1])
        pieces = part(self.values.pieces(meant.operands[0]), 0, size)
        self._require(operation, place.buffer, place.offset, pieces)
        end = place.offset + size
        self._host_touch(operation, (place.buffer, place.offset, end, False))
        place.buffer.exported += ((place.offset, end),)

    def _wait(self, operation: Operation) -> None:
        arrays, _, points = operation.segments()
        self.state.host |= self.state.before(points)
        for result, value in zip(operation.results, arrays, strict=False):
            self.state.places[result] = self._place(value)

    def _join(self, operation: Operation) -> None:
        self.state.done[operation.results[0]] = self.state.before(operation.operands)

    def _immediate(self, operation: Operation) -> None:
        self.state.done[operation.results[0]] = 0

    def _barrier(self, operation: Operation) -> None:
        """Gives an array and the time point at which it is there: now, as far as the host knows."""
        self.state.places[operation.results[0]] = self._place(operation.operands[0])
        self.state.done[operation.results[1]] = self.state.host

    def _ignore(self, operation: Operation) -> None:
        """Runs what touches no memory."""


def _conflict(one: _Access, other: _Access) -> bool:
    return (
        one[0] is other[0] and one[1] < other[2] and other[1] < one[2] and (one[3] or other[3])
    )


def describe(operation: Operation) -> str:
    """Returns what an operation is called in messages."""
    symbol = operation.symbol("entry_points").rpartition("@")[2] or operation.name
    line = _LINE.search(operation.place)
    return f"{symbol} ({line[1]}:{line[2]})" if line else symbol


_HANDLERS: dict[str, Callable[[Execution, Operation], None]] = {
    "stream.cmd.concurrent": Execution._concurrent,
    "stream.cmd.copy": Execution._copy,
    "stream.cmd.discard": Execution._discard,
    "stream.cmd.dispatch": Execution._dispatch,
    "stream.cmd.execute": Execution._execute,
    "stream.cmd.fill": Execution._fill,
    "stream.cmd.flush": Execution._ignore,
    "stream.cmd.invalidate": Execution._ignore,
    "stream.cmd.serial": Execution._serial,
    "stream.file.constant": Execution._file,
    "stream.file.read": Execution._read_file,
    "stream.resource.alloc": Execution._allocate,
    "stream.resource.alloca": Execution._allocate,
    "stream.resource.dealloca": Execution._free,
    "stream.resource.size": Execution._ignore,
    "stream.resource.load": Execution._load,
    "stream.resource.subview": Execution._part,
    "stream.resource.try_map": Execution._map,
    "stream.tensor.export": Execution._export,
    "stream.tensor.import": Execution._import,
    "stream.timepoint.await": Execution._wait,
    "stream.timepoint.barrier": Execution._barrier,
    "stream.timepoint.immediate": Execution._immediate,
    "stream.timepoint.join": Execution._join,
    "stream.yield": Execution._ignore,
    "util.buffer.constant": Execution._constant_buffer,
    "util.global.load": Execution._load_global,
    "util.global.store": Execution._store_global,
    "util.optimization_barrier": Execution._alias,
}
