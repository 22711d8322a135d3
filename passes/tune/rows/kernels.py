"""Kernels in place of programs: the dispatch, and combining the results of a kernel's parts.

Elsewhere: the code of kernels (`code.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.kernels import Memory, dispatch
from axir.dialect.builders.scalars import Scalar
from axir.dialect.core.annotations import Returning
from axir.passes.legalize.regions import IN_PLACE, KERNEL

from .code import build
from .plans import Plan
from .programs import Program
from .reductions import combining_arrays, inits_of, is_end


def run(program: Program, *, in_place: bool) -> list[ir.Value]:
    """Builds the kernel; returns the values of the outputs.

    `in_place` marks an operand whose memory may become that of the result.
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
    """Marks an operand with an element where the only result has one: it is read before that one is
    written.
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
