"""Gives each part of a program separate fills with a number.

The parts of a program end where the host waits. IREE duplicates a fill for each group of operations
that reads it. If two groups before a wait have duplicates, IREE loses the readers behind that wait,
and then refuses the program ("streamable op expected to be in an execution region"). With a fill
for each part, no reader is behind a wait. Only a refused program gets separate fills. Elsewhere:
dispatches without array operands (`shared_dispatches.py`), and the order of the passes
(`stream_passes.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter

from iree.compiler import ir

from .own_copies import operations_named

_FILL = "stream.async.splat"
_WAITS = frozenset(("stream.async.load", "stream.timepoint.await", "util.optimization_barrier"))
_BRANCH = "scf."


def give_own_fills(module: ir.Operation) -> int:
    """Gives each part a separate fill, in place.

    Args:
        module: The module, in which arrays are values and operations are not yet scheduled.

    Returns:
        The number of fills added.
    """
    count = 0
    for operation, (_, *others) in list(_readers(module)):
        for readers in others:
            with ir.InsertionPoint(readers[0][0]), operation.location:
                filled = operation.clone().results[0]
            for _, use in readers:
                use.owner.operation.operands[use.operand_number] = filled
            count += 1
    return count


_Reader = tuple[ir.Operation, ir.OpOperand]


def _readers(module: ir.Operation) -> Iterator[tuple[ir.Operation, list[list[_Reader]]]]:
    """Yields fills with their uses, grouped by the parts of the fill's block, in order.

    A use is a pair: the operation in the fill's block that contains the reader, and the use.
    """
    fills = operations_named(module, frozenset((_FILL,)))
    for block in dict.fromkeys(fill.block for fill in fills):
        operations = [view.operation for view in block.operations]
        parts, part = {}, 0
        for number, operation in enumerate(operations):
            parts[operation] = part, number
            part += operation.name in _WAITS or operation.name.startswith(_BRANCH)
        for fill in operations:
            if fill.name == _FILL and (groups := _grouped(fill, parts)):
                yield fill, groups


def _grouped(fill: ir.Operation, parts: dict[ir.Operation, tuple[int, int]]) -> list[list[_Reader]]:
    groups: dict[int, list[tuple[int, _Reader]]] = {}
    for use in fill.results[0].uses:
        outer = use.owner.operation
        while outer not in parts:
            outer = outer.parent
        part, number = parts[outer]
        groups.setdefault(part, []).append((number, (outer, use)))
    by_place = [sorted(group, key=itemgetter(0)) for _, group in sorted(groups.items())]
    return [[reader for _, reader in group] for group in by_place]
