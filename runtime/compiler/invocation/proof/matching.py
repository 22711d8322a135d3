"""Which operation of the program with memory is which one of the program with values.

The passes between the two keep the order of what computes, reads and writes for the host; copies
and slices come and go. What does not live here: what it means (`values.py`, `memory.py`).
"""

from __future__ import annotations

from collections.abc import Iterator

from .reading import Block, Operation
from .scalars import Scalars
from .values import UnprovableError, Values

# The kinds of operations that correspond one to one, by their names with values and with memory.
_KINDS = (
    ("stream.async.dispatch", "stream.cmd.dispatch"),
    ("stream.async.load", "stream.resource.load"),
    ("stream.async.store", "stream.resource.store"),
    ("stream.tensor.import", "stream.tensor.import"),
    ("stream.tensor.export", "stream.tensor.export"),
    ("util.call", "util.call"),
)
_FILLS = ("stream.async.splat", "stream.async.fill")
_OFFSETS = {"stream.async.update": (2,), "stream.async.slice": (2,), "stream.async.copy": (2, 6)}


def operations_of(blocks: list[Block]) -> Iterator[Operation]:
    """Yields all operations in blocks, with those of their regions."""
    for block in blocks:
        for operation in block.operations:
            yield operation
            if operation.regions:
                yield from operations_of(operation.all_blocks())


def match(values: Values, memory: Operation, scalars: Scalars) -> dict[Operation, Operation]:
    """Returns the operation with values for each one with memory that has one.

    Raises:
        UnprovableError: if there are more of the one than of the other, or other ones.
    """
    mine = {first: list[Operation]() for first, _ in _KINDS}
    theirs = {second: list[Operation]() for _, second in _KINDS}
    copies: tuple[list[Operation], list[Operation]] = ([], [])
    fills: tuple[list[Operation], list[Operation]] = ([], [])
    for operation in values.order:
        if operation.name in mine:
            mine[operation.name].append(operation)
        elif operation.name in _OFFSETS:
            if _is_computed(operation, _OFFSETS[operation.name], values.scalars):
                copies[0].append(operation)
        elif operation.name in _FILLS and _fills_unknown(operation, values.scalars):
            fills[0].append(operation)
    for operation in operations_of(memory.blocks):
        if operation.name in theirs:
            theirs[operation.name].append(operation)
        elif operation.name == "stream.cmd.copy":
            if _is_computed(operation, (2, 5), scalars):
                copies[1].append(operation)
        elif operation.name == "stream.cmd.fill" and _fills_unknown(operation, scalars):
            fills[1].append(operation)
    found: dict[Operation, Operation] = {}
    for first, second in _KINDS:
        _pair(mine[first], theirs[second], found)
    _pair(*copies, found)
    _pair(*fills, found)
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


def _is_computed(operation: Operation, places: tuple[int, ...], scalars: Scalars) -> bool:
    return any(scalars.is_computed(operation.operands[x]) for x in places)


def _fills_unknown(operation: Operation, scalars: Scalars) -> bool:
    which = 0 if operation.name == "stream.async.splat" else -1
    return scalars.constant(operation.operands[which]) is None
