"""Straight code: many elementwise operations on arrays of one shape, for one loop.

The emitter stores each array that several operations read, in a separate loop. Thousands of such
loops take LLVM minutes, because compile time grows faster than the number of blocks. As values of
one loop the arrays need no memory. Elsewhere: the loop itself (`emitter.py`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple

from iree.compiler import ir

from .elementwise import can_compute

FEWEST = 64
"""Shorter code stays loops that may become part of others."""

# Vectors that are needed at a time; vectors that do not fit into registers are on the stack.
_MOST_LIVE = 64
# Arrays that a loop writes before it may end: the address of each takes a register, or a place on
# the stack, and LLVM more than its share of time.
_ENOUGH_STORED = 24
# So many are no reason to look for another order.
_FEW_LIVE = 16
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


class Member(NamedTuple):
    """An elementwise operation, with what MLIR's bindings make anew whenever they are asked."""

    operation: ir.Operation
    operands: tuple[ir.Value, ...]
    result: ir.Value


@dataclass(frozen=True)
class Straight:
    """Operations that are one loop.

    Attributes:
        operations: The operations, in an order in which few results are needed at a time.
        kept: The results with readers outside of the loop, and the number of these readers.
    """

    members: list[Member]
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
            members = [Member(x, tuple(x.operands), x.results[0]) for x in alike]
            inside = Counter(x for member in members for x in set(member.operands))
            ends = {x.result for x in members if uses[x.result] > inside[x.result]}
            for part in _cut(_ordered(members), most, ends):
                yield Straight(part, _kept(part, uses))


def _kept(part: Sequence[Member], uses: Counter[ir.Value]) -> dict[ir.Value, int]:
    inside = Counter(x for member in part for x in set(member.operands))
    results = (member.result for member in part)
    return {x: uses[x] - inside[x] for x in results if uses[x] > inside[x]}


def _ordered(members: list[Member]) -> list[Member]:
    """Returns operations in program order or depth first: the order that needs fewer live results.

    Depth first is better if the program computes all leaves of a tree first. Program order is
    better for two chains that read each other, because depth first computes all of one chain first.
    """
    most = _most_live(members)
    if most <= _FEW_LIVE:
        return members
    other = _depth_first(members)
    return other if _most_live(other) < most else members


def _most_live(members: list[Member]) -> int:
    """Returns how many results are needed at a time."""
    return max(map(len, _live(members)), default=0)


def _live(members: list[Member]) -> Iterator[set[ir.Value]]:
    """Yields after each operation the results that are needed later: one set, which changes.

    Who clears it has the next operations begin with registers that are free.
    """
    last = {x: place for place, member in enumerate(members) for x in member.operands}
    live: set[ir.Value] = set()
    for place, member in enumerate(members):
        for x in member.operands:
            if last[x] == place:
                live.discard(x)
        if member.result in last:
            live.add(member.result)
        yield live


def _depth_first(members: list[Member]) -> list[Member]:
    """Returns operations in an order in which each comes shortly before its first reader."""
    makers = {member.result: member for member in members}
    read = {x for member in members for x in member.operands}
    ordered: dict[ir.Value, Member] = {}
    # Operations without readers here, in their order; all others are added with them.
    for last in members:
        if last.result in read:
            continue
        pending: list[tuple[Member, Iterator[ir.Value]]] = [(last, iter(last.operands))]
        while pending:
            member, operands = pending[-1]
            due = next((x for x in operands if x in makers and x not in ordered), None)
            if due is None:
                pending.pop()
                ordered[member.result] = member
            else:
                pending.append((makers[due], iter(makers[due].operands)))
    return list(ordered.values())


def _cut(members: list[Member], most: int, ends: Set[ir.Value]) -> Iterator[list[Member]]:
    """Yields parts of operations with few enough live results for the registers, roughly."""
    part: list[Member] = []
    stored = 0
    for member, live in zip(members, _live(members), strict=True):
        part.append(member)
        stored += member.result in ends
        is_closed = stored >= _ENOUGH_STORED and not live
        if is_closed or len(part) >= most or len(live) >= _MOST_LIVE:
            yield part
            part, stored = [], 0
            live.clear()
    if part:
        yield part


def operands_of(part: Straight) -> Iterable[ir.Value]:
    """Returns the outside operands of a loop, once for each operation that reads them."""
    made = {member.result for member in part.members}
    return [x for member in part.members for x in set(member.operands) if x not in made]
