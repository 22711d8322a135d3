"""The meaning of each value of the scheduled program: the stream dialect before it gets memory.

In that program, values do not depend on storage: an operand is the result of its definition. A
value is described by its pieces, each a part of one operation's result (an atom). So slices, copies
and updates are no computations: a value is the same whether it was copied once, or twice, or never.
Elsewhere: the values in memory (`execution.py`).
"""

from __future__ import annotations

from collections.abc import Callable

from .conditions import without_conditions
from .contents import GLOBAL, UNKNOWN, Piece, UnprovableError, constant_atom, filling, part, placed
from .reading import Block, Operation
from .scalars import Scalars

# Operations that return their operand unchanged.
_SAME = frozenset(("stream.async.clone", "stream.async.transfer", "stream.async.cast"))


class Values:
    """The values of one function.

    Args:
        function: The function or initializer.

    Attributes:
        blocks: The blocks of the function.
        homes: The label of the block that defines each atom.
        makers: The operation that computes each atom.
    """

    def __init__(self, function: Operation) -> None:
        blocks = without_conditions(function.blocks)
        self.blocks = {block.label: block for block in blocks}
        self.homes: dict[str, str] = {}
        self.makers: dict[str, Operation] = {}
        self._definitions: dict[str, tuple[Operation, int]] = {}
        self._same: dict[str, str] = {}
        self._sizes: dict[str, str] = {}
        self._pieces: dict[str, tuple[Piece, ...]] = {}
        self.order: list[Operation] = []
        for block in blocks:
            for argument in block.arguments:
                self.homes[argument] = block.label
            self._collect(block, block.label)
        self.scalars = Scalars(blocks)
        for operation in self.order:  # from the first on, or long chains recur too deeply
            if operation.name in _MEANINGS and "!stream.resource" in operation.text:
                for index, result in enumerate(operation.results):
                    if operation.gives_array(index):
                        self.pieces(result)

    def _collect(self, block: Block, home: str) -> None:
        for operation in block.operations:
            for index, result in enumerate(operation.results):
                self._definitions[result] = operation, index
                self.homes[result] = home
            if operation.regions:
                self._enter(operation, home)
            else:
                self.order.append(operation)

    def _enter(self, operation: Operation, home: str) -> None:
        if operation.name not in ("stream.async.execute", "stream.async.concurrent"):
            raise UnprovableError(operation.name)
        (inner,) = operation.blocks
        for argument, value in zip(inner.arguments, operation.segments()[0], strict=False):
            self._same[argument] = value
        self._collect(inner, home)
        results = operation.results
        if operation.name == "stream.async.execute":
            results = results[:-1]  # the last one says when it is done
        for result, value in zip(results, inner.operations[-1].operands, strict=False):
            self._same[result] = value

    # Pieces --------------------------------------------------------------------------------------

    def pieces(self, name: str) -> tuple[Piece, ...]:
        """Returns the pieces of a value; the value's size is the last piece's end.

        Raises:
            UnprovableError: if an operation is not known, or a size.
        """
        chain = []
        while name in self._same and name not in self._pieces:
            chain.append(name)
            name = self._same[name]
        found = self._pieces.get(name)
        if found is None:
            found = self._pieces[name] = self._made(name)
        for passed in chain:
            self._pieces[passed] = found
        return found

    def atom(self, name: str, size: int) -> tuple[Piece, ...]:
        """Returns the pieces of a value that is an atom: one piece."""
        return (Piece(0, size, name, 0),)

    def _made(self, name: str) -> tuple[Piece, ...]:
        if name not in self._definitions:  # a block's argument: its size is known where it is used
            return (Piece(0, UNKNOWN, name, 0),)
        operation, index = self._definitions[name]
        if operation.name in _SAME:
            return self.pieces(operation.operands[0])
        if operation.name not in _MEANINGS:
            raise UnprovableError(operation.name)
        return _MEANINGS[operation.name](self, operation, index)

    def _size(self, name: str) -> int:
        number = self.scalars.number(name)
        if number is None:
            raise UnprovableError("a size that is not known when the program is compiled")
        return number

    def _opaque(self, operation: Operation, index: int, size: int) -> tuple[Piece, ...]:
        name = operation.results[index]
        self.makers[name] = operation
        return self.atom(name, size)

    def _imported(self, operation: Operation, index: int) -> tuple[Piece, ...]:
        return self._opaque(operation, index, self._size(operation.operands[-1]))

    def _loaded(self, operation: Operation, index: int) -> tuple[Piece, ...]:
        atom = GLOBAL + operation.symbol("global")
        self.makers[atom] = operation
        return self.atom(atom, UNKNOWN)

    def _awaited(self, operation: Operation, index: int) -> tuple[Piece, ...]:
        return self.pieces(operation.segments()[0][index])

    def _passed(self, operation: Operation, index: int) -> tuple[Piece, ...]:
        return self.pieces(operation.operands[index])

    def _splat(self, operation: Operation, index: int) -> tuple[Piece, ...]:
        return (Piece(0, self._size(operation.operands[1]), self.filled(operation), 0),)

    def filled(self, operation: Operation) -> str:
        """Returns the atom of memory that an operation fills with a number."""
        return filling(operation, self.scalars)

    def _constant(self, operation: Operation, index: int) -> tuple[Piece, ...]:
        return self.atom(constant_atom(operation.text), self._size(operation.operands[0]))

    def _allocated(self, operation: Operation, index: int) -> tuple[Piece, ...]:
        return (Piece(0, self._size(operation.operands[-1]), None, 0),)

    def _sliced(self, operation: Operation, index: int) -> tuple[Piece, ...]:
        source, _, first, _, size = operation.operands
        start = self.scalars.number(first)
        if start is None:
            return self._opaque(operation, index, self._size(size))
        return part(self.pieces(source), start, self._size(size))

    def _updated(self, operation: Operation, index: int) -> tuple[Piece, ...]:
        target, size, first, _, source, length = operation.operands
        start = self.scalars.number(first)
        if start is None:
            return self._opaque(operation, index, self._size(size))
        length_ = self._size(length)
        return placed(self.pieces(target), start, part(self.pieces(source), 0, length_))

    def _copied(self, operation: Operation, index: int) -> tuple[Piece, ...]:
        target, size, first, _, source, _, source_first, _, length = operation.operands
        start, from_ = self.scalars.number(first), self.scalars.number(source_first)
        if start is None or from_ is None:
            return self._opaque(operation, index, self._size(size))
        taken = part(self.pieces(source), from_, self._size(length))
        return placed(self.pieces(target), start, taken)

    def _filled(self, operation: Operation, index: int) -> tuple[Piece, ...]:
        target, size, first, _, length, _ = operation.operands
        start = self.scalars.number(first)
        if start is None:
            return self._opaque(operation, index, self._size(size))
        made = (Piece(0, self._size(length), self.filled(operation), 0),)
        return placed(self.pieces(target), start, made)

    def _dispatched(self, operation: Operation, index: int) -> tuple[Piece, ...]:
        _, firsts, _, lengths, result_sizes = ranges_of(operation)
        tied = ties_of(operation)[index]
        if tied < 0:
            return self._opaque(operation, index, self._size(result_sizes[index]))
        operand = operation.segments()[1][tied]
        which = positions_of(operation).index(tied)
        start = self.scalars.number(firsts[which])
        if start is None:
            return self._opaque(operation, index, self._size(operation.segments()[2][which]))
        made = self._opaque(operation, index, self._size(lengths[which]))
        return placed(self.pieces(operand), start, made)


def positions_of(dispatch: Operation) -> list[int]:
    """Returns which operands of a dispatch are arrays."""
    groups = dispatch.segments()
    kinds = dispatch.kinds()[len(groups[0]) :]
    return [x for x in range(len(groups[1])) if kinds[x].startswith("!stream.resource")]


def ranges_of(dispatch: Operation) -> tuple[list[str], list[str], list[str], list[str], list[str]]:
    """Returns the arrays that a dispatch reads: names, firsts, ends, lengths; and its results'."""
    _, operands, _, firsts, ends, lengths, result_sizes = dispatch.segments()
    return [operands[x] for x in positions_of(dispatch)], firsts, ends, lengths, result_sizes


def ties_of(dispatch: Operation) -> list[int]:
    """Returns the operand that each result of a dispatch takes its memory from, or -1."""
    return dispatch.numbers("tied_operands") or [-1] * len(dispatch.results)


_MEANINGS: dict[str, Callable[[Values, Operation, int], tuple[Piece, ...]]] = {
    "stream.async.alloca": Values._allocated,
    "stream.async.constant": Values._constant,
    "stream.async.copy": Values._copied,
    "stream.async.dispatch": Values._dispatched,
    "stream.async.fill": Values._filled,
    "stream.async.slice": Values._sliced,
    "stream.async.splat": Values._splat,
    "stream.async.update": Values._updated,
    "stream.tensor.import": Values._imported,
    "stream.timepoint.await": Values._awaited,
    "util.global.load": Values._loaded,
    "util.optimization_barrier": Values._passed,
}
