"""The operations of a kernel of rows: which ones belong together, and their division.

Here: programs, their results, and plans: the operands and results of a kernel, and the division of
its rows. Elsewhere: the code of such a kernel (`code.py`), and how a module is searched
(`fuse_rows.py`).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Hashable, Sequence

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.legalize.copies import uniform_number

from .reductions import REDUCE, accumulated, is_down, is_end, space_of, terms_of
from .spaces import (
    BROADCAST,
    Leaf,
    Space,
    counted_axis,
    is_full,
    is_per_row,
    is_spread,
    is_view,
    leaf_of,
    owner_of,
    shape_or_none,
)

# Operations that cost more than writing a number and reading it again.
_EXPENSIVE = frozenset(
    f"stablehlo.{name}" for name in "exponential log tanh logistic divide sqrt rsqrt".split()
)


@dataclasses.dataclass
class Program:
    """Operations that become one kernel.

    Attributes:
        space: The rows.
        members: The operations, in their order.
        outputs: The results that are used elsewhere, or are reductions down the columns.
    """

    space: Space
    members: list[ir.Operation]
    outputs: list[ir.Value]

    @functools.cached_property
    def inside(self) -> frozenset[ir.Operation]:
        """The members, for lookups."""
        return frozenset(self.members)


def programs(block: ir.Block, space: Space) -> list[Program]:
    """Returns the programs of a space in a block.

    No operation of a program depends on another one through an operation outside of the program.
    """
    groups = _groups(space, _members(block, space))
    return [Program(space, group, _outputs(group)) for group in groups]


def _members(block: ir.Block, space: Space) -> dict[ir.Operation, int]:
    """Returns candidates, and how often a path to them leaves the candidates."""
    stages: dict[ir.Operation, int] = {}
    found: dict[ir.Operation, int] = {}
    on_rows: set[ir.Operation] = set()
    for view in block.operations:
        made = view.operation
        sources = [x.owner for x in reads(made) if not isinstance(x, ir.BlockArgument)]
        reads_rows = any(x in on_rows for x in sources)
        is_row = reads_rows and is_per_row(made, space)
        is_reduction = made.name == REDUCE and space_of(made) == space
        is_inside = (
            is_row
            or is_reduction
            or is_full(made, space)
            or (reads_rows and is_spread(made, space))
        )
        stage = 0
        for source in sources:
            leaves = source in found and (not is_inside or is_end(source))
            stage = max(stage, stages.get(source, 0) + leaves)
        stages[made] = stage
        if is_inside:
            found[made] = stage
        if is_row or (is_reduction and not is_down(made)):
            on_rows.add(made)
    return found


def reads(made: ir.Operation) -> list[ir.Value]:
    """Returns the operands of an operation and of its inner operations."""
    values = list(made.operands)
    if len(made.regions) and made.name != REDUCE:

        def visit(inner: ir.Operation) -> ir.WalkResult:
            values.extend(inner.operands)
            return ir.WalkResult.ADVANCE

        made.walk(visit)
    return values


def _groups(space: Space, found: dict[ir.Operation, int]) -> list[list[ir.Operation]]:
    """Groups connected operations, and then groups that read the same array."""
    sets = _Sets()
    arrays: list[tuple[ir.Operation, Hashable]] = []
    for made, stage in found.items():
        for x in made.operands:
            source = owner_of(x)
            if source is not None and found.get(source) == stage and not is_end(source):
                sets.join(made, source)
            elif shape_or_none(x) == space.shape and uniform_number(x) is None:
                arrays.append((made, (x, stage)))
    reducing = {sets.leader(made) for made in found if made.name == REDUCE}
    for made, array in arrays:
        if sets.leader(made) in reducing:
            sets.join(made, array)
            reducing.add(sets.leader(made))
    groups: dict[Hashable, list[ir.Operation]] = {}
    for made in found:
        if sets.leader(made) in reducing:
            groups.setdefault(sets.leader(made), []).append(made)
    return list(groups.values())


class _Sets:
    """Disjoint sets that are joined by pairs of members."""

    def __init__(self) -> None:
        self.leaders: dict[Hashable, Hashable] = {}

    def leader(self, x: Hashable) -> Hashable:
        """Returns the representative of a member's set."""
        while self.leaders.setdefault(x, x) != x:
            x = self.leaders[x]
        return x

    def join(self, x: Hashable, y: Hashable) -> None:
        """Joins the sets of two members."""
        self.leaders[self.leader(x)] = self.leader(y)


def _outputs(group: list[ir.Operation]) -> list[ir.Value]:
    """Returns the results with outside users, except results that are cheap to recompute there."""
    members = set(group)
    again: set[ir.Operation] = set()
    for made in group:
        inner = [x for x in map(owner_of, made.operands) if x in members]
        if made.name != REDUCE and not is_expensive(made) and all(x in again for x in inner):
            again.add(made)
    wanted: set[ir.Value] = set()
    found: list[ir.Value] = []
    for made in reversed(group):
        used = [
            x
            for x in made.results
            if x in wanted or is_end(made) or any(use.owner not in members for use in x.uses)
        ]
        if made in again:
            continue
        if used and made.name in (BROADCAST, "stablehlo.reshape"):
            wanted.add(made.operands[0])  # the user only reinterprets it
        else:
            found.extend(used)
    return found[::-1]


def is_expensive(made: ir.Operation) -> bool:
    """Tells whether computing an operation again costs more than storing its result."""
    return made.name in _EXPENSIVE


def operands_of(made: ir.Operation) -> list[ir.Value]:
    """Returns the arrays that an operation computes with, without a reduction's initial values."""
    return terms_of(made) if made.name == REDUCE else list(made.operands)


def reached(roots: Sequence[ir.Value], program: Program) -> list[ir.Value]:
    """Returns the values of the space that roots are computed from, the roots included."""
    found: dict[ir.Value, None] = {}
    pending = list(roots)
    while pending:
        value = pending.pop()
        made = owner_of(value)
        if made is None or made not in program.inside or not is_full(made, program.space):
            continue
        if value in found:
            continue
        found[value] = None
        pending.extend(made.operands)
    return list(found)


def row_values(roots: Sequence[ir.Value], program: Program) -> list[ir.Value]:
    """Returns the numbers of a row that elements are computed from."""
    spreads: dict[ir.Value, None] = {}
    for value in [*reached(roots, program), *roots]:
        made = owner_of(value)
        is_inside = made is not None and made in program.inside
        for x in [value, *(made.operands if made is not None and is_inside else [])]:
            inner = owner_of(x)
            if inner is None or inner not in program.inside or not is_view(inner):
                continue
            if not is_full(inner, program.space):
                spreads[inner.operands[0]] = None
    return list(spreads)


def levels_of(program: Program) -> list[list[ir.Operation]]:
    """Returns the reductions along rows in levels; a level depends only on earlier levels."""
    depth: dict[ir.Operation, int] = {}
    levels: list[list[ir.Operation]] = []
    for made in program.members:
        owners = [owner_of(x) for x in made.operands]
        inner = [depth[x] for x in owners if x is not None and x in program.inside]
        depth[made] = max(inner, default=0)
        if made.name == REDUCE and not is_down(made):
            if depth[made] == len(levels):
                levels.append([])
            levels[depth[made]].append(made)
            depth[made] += 1
    return levels


_MOST_WORKGROUPS = 8
_BYTES_PER_WORKGROUP = 1 << 18
# Sums of so many numbers one after the other are accurate enough.
_ROWS_PER_PART = 1 << 10


class Plan:
    """The properties of a kernel that are known before its code is written."""

    def __init__(self, program: Program):
        self.program = program
        self.space = program.space
        self.leaves: dict[ir.Value, Leaf] = {}
        for made in program.members:
            for x in operands_of(made):
                self._note(x)
        size = sum(hlo.bytes_of(leaf.value) for leaf in self.leaves.values() if leaf.has_columns)
        self.workgroups = max(1, min(_MOST_WORKGROUPS, size // _BYTES_PER_WORKGROUP))
        rows = self.space.rows // self.space.batches
        even = -(-self.workgroups // self.space.batches)
        self.parts = min(max(even, rows // _ROWS_PER_PART), rows)

    def _note(self, value: ir.Value) -> None:
        if value in self.leaves or owner_of(value) in self.program.inside:
            return
        if uniform_number(value) is None and counted_axis(value, self.space) is None:
            self.leaves[value] = leaf_of(value, self.space)

    def operand(self, leaf: Leaf) -> ir.Value:
        """Returns an input array in the shape in which it is read."""
        count = hlo.size_of(leaf.value)
        if not leaf.has_columns:
            return hlo.reshape(leaf.value, (count,))
        return hlo.reshape(leaf.value, (count // self.space.columns, self.space.columns))

    def memory_type(self, value: ir.Value) -> ir.Type:
        """Returns the type of the memory of an output."""
        element = hlo.element_type_of(value)
        if is_end(value.owner):
            count = self.space.batches * self.parts
            kept = accumulated(element) if len(value.owner.results) == 1 else element
            return hlo.tensor_type((count, self.space.columns), kept)
        if value.owner.name != REDUCE and is_full(value.owner, self.space):
            return hlo.tensor_type((self.space.rows, self.space.columns), element)
        return hlo.tensor_type((self.space.rows,), element)
