"""`fuse-rows`: reductions, and elementwise operations around them, in one pass over the rows.

Here: the pass, and kernels in place of programs: the dispatch, and combining the results of a
kernel's parts. Elsewhere: the code of kernels (`code.py`).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.kernels import Memory, dispatch
from axir.dialect.builders.scalars import Scalar
from axir.dialect.core.annotations import Returning
from axir.passes.framework.base import Pass
from axir.passes.legalize.copies import uniform_number
from axir.passes.legalize.regions import IN_PLACE, KERNEL
from axir.passes.legalize.rewriting import find_operations, replace

from .code import build
from .programs import Plan, Program, programs, reads
from .reductions import REDUCE, combining_arrays, identity_of, inits_of, is_end, space_of
from .spaces import Space, owner_of


def run(program: Program, *, in_place: bool) -> list[ir.Value]:
    """Builds the kernel; returns the values of the outputs.

    `in_place` marks an operand; its memory may become the result's.
    """
    plan = Plan(program)
    types = [plan.memory_type(x) for x in program.outputs]
    operands = [plan.operand(leaf) for leaf in plan.leaves.values()]

    def kernel(workgroup: Scalar, *arrays: Memory) -> None:
        build(plan, workgroup, arrays)

    results = dispatch(kernel, operands, types, workgroups=plan.workgroups, name="rows")
    if in_place:
        _mark(plan, operands, results)
    found = dict(zip(program.outputs, results, strict=True))
    for made in program.members:
        if is_end(made):
            whole = _combined(made, [found[x] for x in made.results], plan)
            found.update(zip(made.results, whole, strict=True))
    return [hlo.reshape(found[x], hlo.shape_of(x)) for x in program.outputs]


def _mark(plan: Plan, operands: Sequence[ir.Value], results: Sequence[ir.Value]) -> None:
    """Marks an operand that has an element where the only result has one.

    A kernel reads this element before it writes the result's.
    """
    kernel = results[0].owner
    if len(results) > 1 or kernel.name != KERNEL or len(kernel.operands) != len(operands):
        return
    leaves = zip(plan.leaves.values(), operands, strict=True)
    for number, (leaf, operand) in enumerate(leaves):
        if operand.type == results[0].type and hlo.shape_of(leaf.value) == plan.space.shape:
            place = ir.IntegerAttr.get(ir.IndexType.get(), number)
            kernel.attributes[IN_PLACE] = ir.ArrayAttr.get([place])
            return


def _combined(reduce: ir.Operation, parts: list[ir.Value], plan: Plan) -> list[ir.Value]:
    """Reduces the results down the columns of all parts, with the reduction's initial values."""
    inits = [
        hlo.convert(init, hlo.element_type_of(part))
        for init, part in zip(inits_of(reduce), parts, strict=True)
    ]
    is_whole = hlo.shape_of(reduce.results[0]) == ()
    if plan.parts > 1 or is_whole:
        shape = (plan.space.batches, plan.parts, plan.space.columns)
        blocks = [hlo.reshape(x, shape) for x in parts]
        if len(parts) == 1 and is_whole:
            # `split-reductions` handles a single row.
            blocks = [hlo.reshape(parts[0], (math.prod(shape),))]
            parts = hlo.reduce(blocks, inits, [0], _builder_of(reduce))
        else:
            parts = hlo.reduce(blocks, inits, [0, 1, 2] if is_whole else [1], _builder_of(reduce))
    elif len(parts) == 1:
        wide = hlo.broadcast_in_dim(inits[0], hlo.shape_of(parts[0]), [])
        parts = [_builder_of(reduce)(wide, parts[0])]
    elements = [hlo.element_type_of(x) for x in reduce.results]
    return [hlo.convert(x, element) for x, element in zip(parts, elements, strict=True)]


def _builder_of(reduce: ir.Operation) -> Returning[ir.Value | list[ir.Value]]:
    """Returns a function that builds the body of a reduction on other operands."""
    if len(reduce.results) == 1:
        return combining_arrays(reduce)

    def build(*numbers: ir.Value) -> list[ir.Value]:
        block = reduce.regions[0].blocks[0]
        *body, end = (made.operation for made in block.operations)
        found = dict(zip(block.arguments, numbers, strict=True))
        for made in body:
            copy = ir.Operation.create(
                made.name,
                results=[x.type for x in made.results],
                operands=[found[x] for x in made.operands],
                attributes={name: made.attributes[name] for name in made.attributes},
            )
            found[made.results[0]] = copy.results[0]
        return [found[x] for x in end.operands]

    return build


_SHORTEST_ROW = 16
_FEWEST_ROWS = 16
_MOST_ARRAYS = 24


@dataclasses.dataclass(frozen=True)
class FuseRows(Pass):
    """Computes reductions of large arrays by kernels that go through memory once, row by row.

    The facts: IREE computes a softmax in three passes over memory and a layer norm's gradient in
    eight; for a sum down the columns it reads a strip of a few columns at a time, one element in a
    page, and operations before the sum run in that order or go through memory. Maxima take twice as
    long as sums, and `any` and `all` twenty times as long.

    1. Take reductions of one operand by add, multiply, maximum or minimum, or of booleans by `or`
       and `and`, along rows (the last dimensions) or across them (the first ones), of arrays with
       at least `elements` elements.
    2. Add the elementwise operations on arrays of this shape, and on one number for each row, that
       they read or that read them, as far as no other operation has to run in between
       (`programs.py`).
    3. Write a kernel for each such program (`code.py`): for each row its reductions, then the
       values that depend on them. Expensive values that several loops over a row need are kept on
       the stack. Sums down the columns are kept in memory, and eight rows are added to them at
       once.
    4. Divide the rows among workgroups. Their number depends only on the size, so results do not
       depend on how many run at a time. The workgroups' results down the columns are reduced
       afterwards.
    5. With `in_place`, mark an operand if the result may take its memory.

    Before::

        %1 = stablehlo.reduce(%x init: %c) applies stablehlo.maximum across dimensions = [1]
        %2 = stablehlo.broadcast_in_dim %1, dims = [0]
        %3 = stablehlo.subtract %x, %2 : tensor<1024x1024xf32>

    After::

        %3 = flow.dispatch @rows_0::@rows_0(%x) : (tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
    """

    name: ClassVar[str] = "fuse-rows"
    elements: int = 1 << 15
    in_place: bool = False

    def run(self, module: ir.Module) -> None:
        """Builds the kernels of each block."""
        for made in find_operations(module.operation, (REDUCE,)):
            self._separate(made)
        blocks: dict[ir.Block, set[Space]] = {}
        for made in find_operations(module.operation, (REDUCE,)):
            space = space_of(made)
            if space is not None and self._is_large(space) and _has_rows(made, space):
                blocks.setdefault(made.block, set()).add(space)
        for block, spaces in blocks.items():
            for space in sorted(
                spaces, key=lambda x: (-math.prod(x.shape), x.shape, x.split, x.batch)
            ):
                for program in programs(block, space):
                    if _fits(program):
                        _replace(block, program, in_place=self.in_place)

    def _separate(self, made: ir.Operation) -> None:
        """Splits a reduction over axes that are not adjacent into two, the last axes first."""
        axes = sorted(made.attributes["dimensions"])
        place = next((n for n in range(1, len(axes)) if axes[-n - 1] != axes[-n] - 1), len(axes))
        is_large = hlo.size_of(made.operands[0]) >= self.elements
        number = identity_of(made)
        if place == len(axes) or not is_large or number is None:
            return
        with ir.InsertionPoint(made), made.location:
            operand, init = made.operands
            combine = combining_arrays(made)
            nothing = hlo.full(number, (), hlo.element_type_of(operand))
            [inner] = hlo.reduce([operand], [nothing], axes[-place:], combine)
            [outer] = hlo.reduce([inner], [init], axes[:-place], combine)
        replace(made, outer)

    def _is_large(self, space: Space) -> bool:
        is_large = math.prod(space.shape) >= self.elements
        return is_large and space.columns >= _SHORTEST_ROW


def _has_rows(made: ir.Operation, space: Space) -> bool:
    """Tells whether rows are enough to divide them; reductions of several arrays need none."""
    return space.rows // space.batches >= _FEWEST_ROWS or len(made.results) > 1


def _fits(program: Program) -> bool:
    """Tells whether a kernel fits: initial values are known, and arrays are not too many."""
    for made in program.members:
        is_along = made.name == REDUCE and not is_end(made)
        if is_along and any(uniform_number(x) is None for x in inits_of(made)):
            return False
    inputs = {
        x
        for made in program.members
        for x in made.operands
        if owner_of(x) not in program.inside and uniform_number(x) is None
    }
    return bool(program.outputs) and len(inputs) + len(program.outputs) <= _MOST_ARRAYS


def _replace(block: ir.Block, program: Program, *, in_place: bool) -> None:
    """Puts the kernel behind all its operands, and the readers of its results behind the kernel."""
    members = set(program.members)
    order = {view.operation: number for number, view in enumerate(block.operations)}
    inputs = [x for made in program.members for x in made.operands]
    before = [
        x.owner.operation
        for x in inputs
        if not isinstance(x, ir.BlockArgument) and x.owner not in members and x.owner in order
    ]
    first = order[program.members[0]]
    last = max([order[x] for x in before], default=first)
    later = _that_follow(block, members, max(last, first), order)
    anchor = next(
        view.operation for view in block.operations if order[view.operation] > max(last, first)
    )
    for made in later:
        made.move_before(anchor)
    start = later[0] if later else anchor
    with ir.InsertionPoint(start), program.members[-1].location:
        values = run(program, in_place=in_place)
    for value, result in zip(program.outputs, values, strict=True):
        value.replace_all_uses_with(result)
    for made in reversed(program.members):
        if not any(True for x in made.results for _ in x.uses):
            made.erase()


def _that_follow(
    block: ir.Block, members: set[ir.Operation], last: int, order: dict[ir.Operation, int]
) -> list[ir.Operation]:
    """Returns the operations up to a place that depend on members, in their order."""
    following: set[ir.Operation] = set(members)
    found = []
    for view in block.operations:
        made = view.operation
        if order[made] > last:
            break
        owners = [x.owner for x in reads(made) if not isinstance(x, ir.BlockArgument)]
        if made in members or any(x in following for x in owners):
            following.add(made)
            found.append(made)
    return found
