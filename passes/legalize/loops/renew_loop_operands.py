"""`renew-loop-operands`: what a loop changes in place is made anew in each of its passes."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from iree.compiler import ir

from axir.passes.legalize.buffers.storage import IN_PLACE, overwritten_places
from axir.passes.legalize.rewriting import RewritePass, innermost_loop_block, renewed


@dataclasses.dataclass(frozen=True)
class RenewLoopOperands(RewritePass):
    """Copies a value that is the same in all passes of a loop before the loop overwrites it.

    The fact: IREE computes before a loop what does not depend on what it carries, constants that
    are not uniform among it, and lets a scatter, a dynamic_update_slice or a sort in the loop work
    in place on that one array. From the second pass on they find what the pass before left there.
    Transfers and barriers are computed before the loop as well; a choice by a truth value behind a
    barrier is not.

    1. Visit every operation that works in place inside of a loop. (Functions that a loop calls
       make their values anew.)
    2. For each of its operands, follow the value backwards. If that does not lead to an argument
       of the innermost loop around the operation, choose between the value and zeros by a truth
       value that is true, which the compiler does not know.

    Before::

        %0 = stablehlo.while(%i = %c) … do {
          %1:2 = "stablehlo.sort"(%keys, %iota) …

    After::

        %0 = stablehlo.while(%i = %c) … do {
          %t = util.optimization_barrier %true : tensor<i1>
          %1 = stablehlo.select %t, %iota, %zeros : tensor<i1>, tensor<4xi32>
          %2:2 = "stablehlo.sort"(%keys, %1) …

    Precondition: the passes have run that remove barriers (`protect-inputs`,
    `copy-returned-inputs`).
    """

    name: ClassVar[str] = "renew-loop-operands"
    operations: ClassVar[tuple[str, ...]] = IN_PLACE

    def rewrite(self, operation: ir.Operation) -> None:
        """Changes the operands in place."""
        block = innermost_loop_block(operation)
        if block is None:
            return
        fixed = [
            index
            for index in overwritten_places(operation)
            if not _depends_on_arguments(operation.operands[index], block)
        ]
        for index in fixed:
            operation.operands[index] = renewed(operation.operands[index])


def _depends_on_arguments(value: ir.Value, block: ir.Block) -> bool:
    """Tells whether a value is computed from an argument of the block."""
    pending, seen = [value], set()
    while pending:
        value = pending.pop()
        if isinstance(value, ir.BlockArgument):
            if value.owner == block:
                return True
        elif value.owner.operation not in seen:
            seen.add(value.owner.operation)
            pending += _operands_and_captures(value.owner.operation)
    return False


def _operands_and_captures(operation: ir.Operation) -> list[ir.Value]:
    """Returns what an operation and those in its regions read."""
    found: list[ir.Value] = []

    def visit(inner: ir.Operation) -> ir.WalkResult:
        found.extend(inner.operands)
        return ir.WalkResult.ADVANCE

    operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found
