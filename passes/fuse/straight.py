"""Straight code: many elementwise operations on arrays of one shape, for one loop.

The emitter stores each array that several operations read, in a separate loop. Thousands of such
loops take LLVM minutes, because compile time grows faster than the number of blocks. As values of
one loop the arrays need no memory. Elsewhere: the loop itself (`emitter.py`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from iree.compiler import ir

from .elementwise import can_compute

FEWEST = 64
"""Shorter code stays loops that may become part of others."""

# Vectors that are needed at a time; vectors that do not fit into registers are on the stack.
_MOST_LIVE = 64
# Operations that may stand between if their operands are numbers.
_HOISTED = frozenset("constant broadcast_in_dim reshape iota".split())


@dataclass(frozen=True)
class Joined:
    """The size of loops of many operations.

    Attributes:
        most: The largest number of operations of a loop. The code generator processes a block as a
            whole, and moves the constants of a long block to the stack.
        vectors: The number of vectors that are computed side by side, because each operation waits
            for its operands.
    """

    most: int = 500
    vectors: int = 1


SHORT_LOOPS = Joined()
"""What is compiled soonest: for small arrays."""


@dataclass(frozen=True)
class Straight:
    """Operations that are one loop.

    Attributes:
        operations: The operations, in an order in which few results are needed at a time.
        kept: The results with readers outside of the loop, and the number of these readers.
    """

    operations: list[ir.Operation]
    kept: dict[ir.Value, int]


def straight_parts(
    operations: Sequence[ir.Operation], uses: Counter[ir.Value], most: int
) -> Iterator[ir.Operation | Straight]:
    """Yields operations of a block in an order in which they may run, many of them as one.

    Args:
        operations: The operations of the block without its terminator.
        uses: The number of operations that read each value that the block makes.
        most: The largest number of operations in one loop.
    """
    if len(operations) < FEWEST:
        yield from operations
        return
    run: list[tuple[ir.Operation, bool]] = []
    made: set[ir.Value] = set()
    for operation in operations:
        is_member = _is_member(operation)
        if not is_member and not _may_pass(operation, made):
            yield from _parts_of_run(run, uses, most)
            run, made = [], set()
            yield operation
            continue
        run.append((operation, is_member))
        if is_member:
            made.update(operation.results)
    yield from _parts_of_run(run, uses, most)


def _is_member(operation: ir.Operation) -> bool:
    kinds = [x.type for x in operation.results]
    return len(kinds) == 1 and math.prod(kinds[0].shape) > 1 and can_compute(operation)


def _may_pass(operation: ir.Operation, made: set[ir.Value]) -> bool:
    """Tells whether an operation may move before the operations of the run."""
    name = operation.name.rpartition(".")[2]
    is_number = all(math.prod(x.type.shape) <= 1 for x in operation.results)
    is_place = operation.name == "tensor.empty"
    is_hoisted = name in _HOISTED or is_place or (is_number and can_compute(operation))
    return is_hoisted and made.isdisjoint(operation.operands)


def _parts_of_run(
    run: list[tuple[ir.Operation, bool]], uses: Counter[ir.Value], most: int
) -> Iterator[ir.Operation | Straight]:
    members = [x for x, is_member in run if is_member]
    if len(members) < FEWEST:
        yield from (x for x, _ in run)
        return
    yield from (x for x, is_member in run if not is_member)
    shapes: dict[tuple[int, ...], list[ir.Operation]] = {}
    for member in members:
        shapes.setdefault(tuple(member.results[0].type.shape), []).append(member)
    for alike in shapes.values():
        if len(alike) < FEWEST:
            yield from alike
        else:
            for part in _cut(_ordered(alike), most):
                yield Straight(part, _kept(part, uses))


def _kept(part: Sequence[ir.Operation], uses: Counter[ir.Value]) -> dict[ir.Value, int]:
    inside = Counter(x for member in part for x in set(member.operands))
    results = (member.results[0] for member in part)
    return {x: uses[x] - inside[x] for x in results if uses[x] > inside[x]}


def _ordered(members: list[ir.Operation]) -> list[ir.Operation]:
    """Returns operations in program order or depth first: the order that needs fewer live results.

    Depth first is better if the program computes all leaves of a tree first. Program order is
    better for two chains that read each other, because depth first computes all of one chain first.
    """
    return min(members, _depth_first(members), key=_most_live)


def _most_live(members: list[ir.Operation]) -> int:
    """Returns how many results are needed at a time."""
    last = {x: place for place, member in enumerate(members) for x in member.operands}
    live: set[ir.Value] = set()
    most = 0
    for place, member in enumerate(members):
        live.difference_update(x for x in member.operands if last[x] == place)
        live.update(x for x in member.results if x in last)
        most = max(most, len(live))
    return most


def _depth_first(members: list[ir.Operation]) -> list[ir.Operation]:
    """Returns operations in an order in which each comes shortly before its first reader."""
    makers = {member.results[0]: member for member in members}
    read = {x for member in members for x in member.operands}
    ordered: dict[ir.Operation, None] = {}
    # Operations without readers here, in their order; all others are added with them.
    for last in members:
        if last.results[0] in read:
            continue
        pending: list[tuple[ir.Operation, Iterator[ir.Value]]] = [(last, iter(last.operands))]
        while pending:
            member, operands = pending[-1]
            maker = next((makers[x] for x in operands if _is_due(x, makers, ordered)), None)
            if maker is None:
                pending.pop()
                ordered[member] = None
            else:
                pending.append((maker, iter(maker.operands)))
    return list(ordered)


def _is_due(
    x: ir.Value, makers: dict[ir.Value, ir.Operation], ordered: dict[ir.Operation, None]
) -> bool:
    return x in makers and makers[x] not in ordered


def _cut(members: list[ir.Operation], most: int) -> Iterator[list[ir.Operation]]:
    """Yields parts of operations with few enough live results for the registers, roughly."""
    last = {x: place for place, member in enumerate(members) for x in member.operands}
    part: list[ir.Operation] = []
    live: set[ir.Value] = set()
    for place, member in enumerate(members):
        part.append(member)
        live.difference_update(x for x in member.operands if last[x] == place)
        live.update(x for x in member.results if x in last)
        if len(part) >= most or len(live) >= _MOST_LIVE:
            yield part
            part, live = [], set()
    if part:
        yield part


def operands_of(part: Straight) -> Iterable[ir.Value]:
    """Returns the outside operands of a loop, once for each operation that reads them."""
    made = {member.results[0] for member in part.operations}
    return [x for member in part.operations for x in set(member.operands) if x not in made]
