"""Memory of a program: results over the arguments that they copy, and one block for allocations.

`update_in_place` lets results that begin as copies of arguments be written over these. `place` puts
the allocations of functions without control flow into one block. Allocations that are live at the
same time do not overlap; each takes the lowest place that is free from its first step to its last,
large ones first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .host_program import (
    Allocate,
    Block,
    Constant,
    Copy,
    Export,
    HostFunction,
    Import,
    Part,
    Return,
    Span,
    Step,
    Value,
    used_values,
)


def update_in_place(function: HostFunction, pairs: Mapping[int, int]) -> HostFunction:
    """Leaves out copies of arguments that are donated to a result.

    IREE changes parts of a copy of the argument, and the copy becomes the result. If nothing reads
    the argument after the copy, its memory can be changed directly.

    Args:
        function: A function without control flow.
        pairs: For each donated argument, by its number, the number of the result.
    """
    (block,) = function.blocks
    steps = [step for step, _ in block.steps]
    for argument, result in pairs.items():
        copy = _first_copy(steps, block, function.arguments[argument], result)
        if copy is not None:
            memory = steps[copy].target.memory  # type: ignore[union-attr]
            source = steps[copy].source.memory  # type: ignore[union-attr]
            steps[copy] = Part(memory, source, Constant("index", 0))
            steps = [x for x in steps if not (isinstance(x, Allocate) and x.result is memory)]
    lines = {id(step): line for step, line in block.steps}
    changed = Block(block.arguments, [(x, lines.get(id(x))) for x in steps], block.end)
    return HostFunction(function.name, function.arguments, (changed,))


def _first_copy(steps: list[Step], block: Block, array: Value, result: int) -> int | None:
    """Returns the step that copies an argument to the future result, if the copy is not needed."""
    assert isinstance(block.end, Return)
    returned = block.end.values[result]
    made = [x for x in steps if isinstance(x, Export) and x.result is returned]
    taken = [x for x in steps if isinstance(x, Import) and x.array is array]
    if len(made) != 1 or len(taken) != 1:
        return None
    memory, source = made[0].memory, taken[0].result
    whole = Span(source, Constant("index", 0), taken[0].size)
    target = Span(memory, Constant("index", 0), taken[0].size)
    if Copy(whole, target) not in steps:
        return None
    number = steps.index(Copy(whole, target))
    names = {source}
    for step in steps:
        if isinstance(step, Part) and step.memory in names:
            names.add(step.result)
    is_read = any(names & set(used_values(step)) for step in steps[number + 1 :])
    is_early = any(memory in used_values(step) for step in steps[:number])
    is_own = any(isinstance(x, Allocate) and x.result is memory for x in steps)
    return number if is_own and not is_read and not is_early else None


ALIGNMENT = 64


@dataclass(frozen=True)
class Piece:
    """Memory that is needed from one step to another, both counted."""

    size: int
    first: int
    last: int


def place(pieces: Sequence[Piece]) -> tuple[list[int], int]:
    """Returns the offset of each piece, and the size of the block.

    >>> place([Piece(100, 0, 1), Piece(10, 1, 2), Piece(64, 2, 3)])
    ([0, 128, 0], 192)
    """
    offsets = [0] * len(pieces)
    placed: list[int] = []
    for index in sorted(range(len(pieces)), key=lambda n: (-pieces[n].size, n)):
        piece = pieces[index]
        others = sorted(
            (offsets[n], offsets[n] + _rounded(pieces[n].size))
            for n in placed
            if pieces[n].first <= piece.last and piece.first <= pieces[n].last
        )
        offset = 0
        for start, end in others:
            if offset + _rounded(piece.size) <= start:
                break
            offset = max(offset, end)
        offsets[index] = offset
        placed.append(index)
    size = max((o + _rounded(p.size) for o, p in zip(offsets, pieces, strict=True)), default=0)
    return offsets, size


def _rounded(size: int) -> int:
    return -(-max(size, 1) // ALIGNMENT) * ALIGNMENT
