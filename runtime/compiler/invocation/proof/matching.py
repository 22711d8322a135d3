"""Pairs the operations of the program with memory and of the program with values.

The passes between the two keep the order of the operations that compute, read and write for the
host; copies and slices come and go. Elsewhere: the meaning of operations (`values.py`,
`commands.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .contents import UnprovableError
from .reading import Block, Operation
from .scalars import Scalars
from .values import Values

# The kinds of operations that correspond one to one, by their names with values and with memory.
_KINDS = (
    ("stream.async.dispatch", "stream.cmd.dispatch"),
    ("stream.async.load", "stream.resource.load"),
    ("stream.async.store", "stream.resource.store"),
    ("stream.tensor.import", "stream.tensor.import"),
    ("stream.tensor.export", "stream.tensor.export"),
    ("util.call", "util.call"),
)
_PAIRED = frozenset(name for pair in _KINDS for name in pair)
# Copies at places that the program computes correspond, too, and so do fills with computed numbers;
# these are the positions of the operands with the places and the numbers.
_COPIES, _FILLS = "copies", "fills"
_OFFSETS = {
    "stream.async.update": (2,),
    "stream.async.slice": (2,),
    "stream.async.copy": (2, 6),
    "stream.cmd.copy": (2, 5),
}
_FILLED = {"stream.async.splat": 0, "stream.async.fill": -1, "stream.cmd.fill": -1}


def operations_of(blocks: list[Block]) -> Iterator[Operation]:
    """Yields all operations in blocks and in the regions of these operations."""
    for block in blocks:
        for operation in block.operations:
            yield operation
            if operation.regions:
                yield from operations_of(operation.all_blocks())


def match(values: Values, memory: Operation, scalars: Scalars) -> dict[Operation, Operation]:
    """Returns the operation with values for each operation with memory that has a counterpart.

    Raises:
        UnprovableError: if the operations of the two programs differ in number or kind.
    """
    mine = _sorted(values.order, values.scalars)
    theirs = _sorted(operations_of(memory.blocks), scalars)
    found: dict[Operation, Operation] = {}
    for first, second in (*_KINDS, (_COPIES, _COPIES), (_FILLS, _FILLS)):
        _pair(mine.get(first, []), theirs.get(second, []), found)
    return found


def _sorted(operations: Iterable[Operation], scalars: Scalars) -> dict[str, list[Operation]]:
    """Returns the operations with counterparts by kind, in their order."""
    found: dict[str, list[Operation]] = {}
    for operation in operations:
        name = operation.name
        if name in _PAIRED:
            found.setdefault(name, []).append(operation)
        elif name in _OFFSETS:
            if any(scalars.is_computed(operation.operands[x]) for x in _OFFSETS[name]):
                found.setdefault(_COPIES, []).append(operation)
        elif name in _FILLED and scalars.constant(operation.operands[_FILLED[name]]) is None:
            found.setdefault(_FILLS, []).append(operation)
    return found


def _pair(
    mine: list[Operation], theirs: list[Operation], found: dict[Operation, Operation]
) -> None:
    if len(mine) != len(theirs):
        name = (mine or theirs)[0].name
        raise UnprovableError(f"{len(mine)} of {name} that became {len(theirs)}")
    for first, second in zip(mine, theirs, strict=True):
        if first.symbol("entry_points") != second.symbol("entry_points"):
            raise UnprovableError("another order of dispatches")
        found[second] = first
