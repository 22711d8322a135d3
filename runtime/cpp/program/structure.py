"""`structured`: blocks and jumps as loops and choices.

Algorithm: a loop's header is a block that dominates a block that jumps back to it; a choice ends at
the block that its own block dominates immediately and that several others jump to (N. Ramsey,
Beyond Relooper, 2022).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from .host_program import Block, Branch, Jump, Operand, Return, Target, targets_of


@dataclass(frozen=True)
class Run:
    """Does the steps of a block."""

    block: int


@dataclass(frozen=True)
class Give:
    """Gives a block its arguments."""

    target: Target


@dataclass(frozen=True)
class Choose:
    """Does one of two things."""

    condition: Operand
    then: Tree
    otherwise: Tree


@dataclass(frozen=True)
class Loop:
    """Repeats its body until that leaves the loop."""

    body: Tree


@dataclass(frozen=True)
class Leave:
    """Leaves the innermost loop."""


@dataclass(frozen=True)
class Again:
    """Begins the next pass of the innermost loop."""


@dataclass(frozen=True)
class End:
    """Ends the function."""

    end: Return


Item: TypeAlias = "Run | Give | Choose | Loop | Leave | Again | End"
Tree: TypeAlias = "tuple[Item, ...]"


def structured(blocks: tuple[Block, ...]) -> Tree | None:
    """Returns blocks as a tree of statements; None if a jump fits no loop or choice."""
    try:
        return _Structure(blocks).tree(0, _Context())
    except _UnstructuredError:
        return None


def ends_always(tree: Tree) -> bool:
    """Tells whether the code after a tree is never reached."""
    return bool(tree) and isinstance(tree[-1], (Leave, Again, End))


class _UnstructuredError(Exception):
    """A jump that fits no loop or choice."""


@dataclass(frozen=True)
class _Context:
    """Targets of control flow: the next block, the next pass of a loop, and the loop's exit."""

    following: int | None = None
    header: int | None = None
    leaving: int | None = None


class _Structure:
    def __init__(self, blocks: tuple[Block, ...]):
        self._blocks = blocks
        following = [[t.block for t in targets_of(block.end)] for block in blocks]
        self._dominators = _dominators(following)
        self._before: dict[int, set[int]] = {number: set() for number in range(len(blocks))}
        self._loops: dict[int, set[int]] = {}
        for number, targets in enumerate(following):
            for target in targets:
                if target in self._dominators[number]:
                    self._loops.setdefault(target, {target}).add(number)
                else:
                    self._before[target].add(number)
        for header, members in self._loops.items():
            self._add_members(header, members, following)
        self._leaving = {
            header: {t for n in members for t in following[n]} - members
            for header, members in self._loops.items()
        }

    @staticmethod
    def _add_members(header: int, members: set[int], following: list[list[int]]) -> None:
        """Adds the blocks that lead to the blocks that jump back."""
        waiting = [n for n in members if n != header]
        while waiting:
            last = waiting.pop()
            for number, targets in enumerate(following):
                if last in targets and number not in members:
                    members.add(number)
                    waiting.append(number)

    def tree(self, number: int, context: _Context) -> Tree:
        """Returns the statements from a block on, up to where the context goes on."""
        if number not in self._loops or context.header == number:
            return self._straight(number, context)
        leaving = self._leaving[number]
        if len(leaving) > 1:
            raise _UnstructuredError
        (out,) = leaving or (None,)
        loop = Loop(self._straight(number, _Context(number, number, out)))
        return (loop,) if out is None else (loop, *self._go(out, context, self._loops[number]))

    def _straight(self, number: int, context: _Context) -> Tree:
        end = self._blocks[number].end
        if isinstance(end, Return):
            return Run(number), End(end)
        if isinstance(end, Jump):
            return Run(number), *self._jump(end.target, context, number)
        merging = {
            n
            for n, before in self._before.items()
            if len(before) > 1 and self._immediate(n) == number and n != context.leaving
        }
        if len(merging) > 1:
            raise _UnstructuredError
        (merge,) = merging or (None,)
        inner = context if merge is None else _Context(merge, context.header, context.leaving)
        assert isinstance(end, Branch)
        choose = Choose(
            end.condition,
            self._jump(end.then, inner, number),
            self._jump(end.otherwise, inner, number),
        )
        rest = () if merge is None else self.tree(merge, context)
        return Run(number), choose, *rest

    def _immediate(self, number: int) -> int | None:
        own = self._dominators[number] - {number}
        return max(own, key=lambda n: len(self._dominators[n]), default=None)

    def _jump(self, target: Target, context: _Context, source: int) -> Tree:
        return Give(target), *self._go(target.block, context, {source})

    def _go(self, number: int, context: _Context, sources: set[int]) -> Tree:
        """Returns the statements after a jump to a block that only the sources may jump to."""
        if number == context.following:
            return ()
        if number == context.header:
            return (Again(),)
        if number == context.leaving:
            return (Leave(),)
        if not self._before[number] <= sources:
            raise _UnstructuredError
        return self.tree(number, context)


def _dominators(following: list[list[int]]) -> Mapping[int, set[int]]:
    """Returns the dominators of each block, with the block."""
    numbers = set(range(len(following)))
    before = {n: {m for m, targets in enumerate(following) if n in targets} for n in numbers}
    found = {n: set(numbers) if n else {0} for n in numbers}
    is_changing = True
    while is_changing:
        is_changing = False
        for number in numbers - {0}:
            new = {number} | set.intersection(*(found[n] for n in before[number]))
            is_changing |= new != found[number]
            found[number] = new
    return found
