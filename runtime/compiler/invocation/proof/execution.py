"""Runs a host program on the known facts about memory: allocations, waits, reads, results.

Elsewhere: the commands of devices (`commands.py`), the order of blocks (`blocks.py`).
"""

from __future__ import annotations

from collections.abc import Callable

from .commands import Access, Commands
from .contents import WIDTHS, Contents, Fact, UnprovableError, constant_pieces, part
from .reading import Operation
from .state import END


class Execution(Commands):
    """Runs the operations of one function; see `Commands`."""

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
        # Memory that was passed to a block is not freed here (`passed_buffers.py`).
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

    def _host_touch(self, operation: Operation, access: Access) -> None:
        """Checks an access of the host, which takes place at once."""
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
        """Returns an array and the time point of its completion: now, as far as the host knows."""
        self.state.places[operation.results[0]] = self._place(operation.operands[0])
        self.state.done[operation.results[1]] = self.state.host

    def _ignore(self, operation: Operation) -> None:
        """Runs an operation that touches no memory."""


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
