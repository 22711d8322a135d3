"""Follows the blocks of a function, and at each branch restates the facts for the next block.

The facts about a buffer's contents refer to values by name. On the way into a block, the name of a
passed value becomes the name of the block's argument, and values computed in an earlier pass of a
loop lose their names. A block is run again with the facts that hold on all ways into it, until they
do not change. Elsewhere: the effects of operations (`execution.py`).
"""

from __future__ import annotations

from .contents import CONSTANT, FILL, GLOBAL, UNKNOWN, Fact, Piece, UnprovableError
from .execution import Execution
from .matching import operations_of
from .reading import Block, Operation
from .scalars import passed_by
from .state import Buffer, State

_LASTING = (CONSTANT, FILL, GLOBAL)
_MOST_STATES = 2000
_Key = tuple[str, str, tuple[tuple[int, int], ...], tuple[tuple[str, int], ...]]


def follow(execution: Execution, blocks: list[Block]) -> None:
    """Runs a function from its first block on.

    Raises:
        UnprovableError: if its blocks do not correspond to the blocks of the function with values.
    """
    first = blocks[0]
    if len(blocks) == 1:
        for operation in first.operations:
            execution.run(operation)
        return
    _Walk(execution, blocks).run()


class _Walk:
    def __init__(self, execution: Execution, blocks: list[Block]) -> None:
        self._execution = execution
        self._blocks = {block.label: block for block in blocks}
        self._first = blocks[0].label
        self._live = _live_names(blocks)
        values = execution.values
        self._above = _dominators(
            next(iter(values.blocks)),
            {label: block.operations[-1].successors for label, block in values.blocks.items()},
        )
        # States by block, the block of the function with values, and where values point to.
        self._states: dict[_Key, State] = {}
        self._waiting: list[_Key] = []

    def run(self) -> None:
        start = (self._first, next(iter(self._execution.values.blocks)), (), ())
        self._states[start] = State()
        self._waiting.append(start)
        count = 0
        while self._waiting:
            key = self._waiting.pop()
            count += 1
            if count > _MOST_STATES:
                raise UnprovableError("blocks that do not come to rest")
            self._run_block(key)

    def _run_block(self, key: _Key) -> None:
        label, meant, *_ = key
        execution = self._execution
        state = self._states[key]
        execution.scalars.bound = dict(state.numbers)
        # Operations change the state in place, and the kept state must not change: copy all of it.
        names = {name: name for name in state.places}
        execution.state = state.entered(names, {x: x for x in state.done}, _same_facts)
        for name, place in state.places.items():
            new = execution.state.places[name]
            execution.state.places[name] = new._replace(is_argument=place.is_argument)
        block = self._blocks[label]
        for operation in block.operations[:-1]:
            execution.run(operation)
        end = block.operations[-1]
        if end.name in ("cf.br", "cf.cond_br"):
            self._branch(block, end, meant)
        else:
            execution.run(end)

    def _branch(self, block: Block, end: Operation, meant: str) -> None:
        passed = passed_by(end)
        values = self._execution.values
        last = values.blocks[meant].operations[-1]
        if _maps_constants(block) or (not last.successors and _reads_constants(block)):
            # The program with values has one block here: constants are mapped, or else read.
            for label, operands in zip(end.successors, passed, strict=True):
                self._enter(label, operands, meant, {})
            return
        if len(last.successors) != len(end.successors):
            raise UnprovableError("other blocks")
        meant_passed = passed_by(last)
        for index, label in enumerate(end.successors):
            target = values.blocks[last.successors[index]]
            bound = {
                argument: value
                for argument, value, kind in zip(
                    target.arguments, meant_passed[index], target.types, strict=True
                )
                if kind.startswith("!stream.resource")
            }
            numbers = self._execution.scalars.bound
            scalars = self._execution.scalars
            scalars.bound = dict(numbers)
            if end.name == "cf.br" or scalars.choose(end.operands[0], index):
                self._enter(label, passed[index], target.label, bound)
            self._execution.scalars.bound = numbers

    def _enter(self, label: str, operands: list[str], meant: str, bound: dict[str, str]) -> None:
        state = self._execution.state
        block = self._blocks[label]
        arrays, points, numbers = {}, {}, {}
        names = [*((x, x) for x in self._live[label]), *zip(block.arguments, operands, strict=True)]
        for new, old in names:
            if old in state.places:
                arrays[new] = old
            elif old in state.done:
                points[new] = old
            elif new in block.arguments or old in self._execution.scalars.bound:
                number = self._execution.scalars.passed_number(old)
                if number is not None:
                    numbers[new] = number
        translator = _Translator(self._execution, meant, bound, self._above)
        entered = state.entered(arrays, points, translator.facts)
        entered.numbers = numbers
        key = (label, meant, entered.key(sorted(arrays)), tuple(sorted(numbers.items())))
        known = self._states.get(key)
        if known is None:
            self._states[key] = entered
        else:
            joined = known.joined(entered)
            if joined is None:
                return
            self._states[key] = joined
        if key not in self._waiting:
            self._waiting.append(key)


class _Translator:
    """Restates the facts about a buffer in the names of a block that is about to begin."""

    def __init__(
        self,
        execution: Execution,
        target: str,
        bound: dict[str, str],
        above: dict[str, set[str]],
    ) -> None:
        values = execution.values
        self._homes = values.homes
        self._above = above.get(target, set())
        self._bound = {name: values.pieces(value) for name, value in bound.items()}

    def facts(self, buffer: Buffer, offsets: tuple[int, ...]) -> tuple[Fact, ...]:
        contents = buffer.contents
        found = [x for x in contents.facts if self._lasts(x.atom)]
        for name, pieces in self._bound.items():
            real = [x for x in pieces if x.atom is not None]
            if not real:
                continue
            places = dict.fromkeys(
                (x.start if x.atom.startswith(FILL) else x.base + real[0].offset) - real[0].start
                for x in contents.facts
                if x.atom == real[0].atom
            )
            for at in dict.fromkeys((*offsets, *places)):
                length = length_there(buffer, at, pieces)
                if length:
                    found.append(Fact(at, at + length, name, at))
        return tuple(dict.fromkeys(found))

    def _lasts(self, atom: str) -> bool:
        name = atom.rpartition(":")[2] if atom.startswith(FILL) else atom
        if not name.startswith("%") and atom.startswith(_LASTING):
            return True
        return self._homes.get(name) in self._above


def length_there(buffer: Buffer, at: int, pieces: tuple[Piece, ...]) -> int:
    """Returns how many bytes of a value a buffer is known to hold at a place, 0 if not all."""
    end = 0
    for piece in pieces:
        if piece.atom is None:
            end = piece.start + piece.length
            continue
        first = at + piece.start
        reached = buffer.contents.reached(first, piece)
        if piece.start + piece.length >= UNKNOWN:
            return piece.start + reached - first
        if reached < first + piece.length:
            return 0
        end = piece.start + piece.length
    return end


def _same_facts(buffer: Buffer, offsets: tuple[int, ...]) -> tuple[Fact, ...]:
    return buffer.contents.facts


def _maps_constants(block: Block) -> bool:
    end = block.operations[-1]
    if end.name != "cf.cond_br":
        return False
    mapped = [x for x in block.operations if x.name == "stream.resource.try_map"]
    return bool(mapped) and end.operands[0] == mapped[-1].results[0]


def _reads_constants(block: Block) -> bool:
    return any(x.name == "stream.file.read" for x in block.operations)


def _live_names(blocks: list[Block]) -> dict[str, list[str]]:
    """Returns which names each block uses that it does not define, nor takes, or passes on."""
    used: dict[str, set[str]] = {}
    defined: dict[str, set[str]] = {}
    for block in blocks:
        defined[block.label] = set(block.arguments)
        used[block.label] = set()
        for operation in operations_of([block]):
            used[block.label].update(operation.operands)
            defined[block.label].update(operation.results)
            for inner in operation.blocks:
                defined[block.label].update(inner.arguments)
    live = {label: names - defined[label] for label, names in used.items()}
    changed = True
    while changed:
        changed = False
        for block in reversed(blocks):
            after: set[str] = set()
            for label in block.operations[-1].successors:
                after |= live[label]
            more = (after - defined[block.label]) - live[block.label]
            if more:
                live[block.label] |= more
                changed = True
    return {label: sorted(names) for label, names in live.items()}


def _dominators(first: str, successors: dict[str, list[str]]) -> dict[str, set[str]]:
    """Returns the strict dominators of each block: all ways to the block go through them."""
    every = set(successors)
    above = {label: every for label in successors}
    above[first] = {first}
    before: dict[str, list[str]] = {label: [] for label in successors}
    for label, followers in successors.items():
        for follower in followers:
            before[follower].append(label)
    changed = True
    while changed:
        changed = False
        for label in successors:
            if label == first or not before[label]:
                continue
            new = set.intersection(*(above[x] for x in before[label])) | {label}
            if new != above[label]:
                above[label] = new
                changed = True
    return {label: names - {label} for label, names in above.items()}
