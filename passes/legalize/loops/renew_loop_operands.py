"""`renew-loop-operands`: an array that a loop changes in place is made again in each iteration."""

from __future__ import annotations

from typing import ClassVar

from iree.compiler import ir

from axir.passes.legalize.buffers.storage import IN_PLACE, overwritten_places
from axir.passes.legalize.rewriting import RewritePass, innermost_loop_block, renewed


class RenewLoopOperands(RewritePass):
    """Copies a value that is the same in all iterations before the loop overwrites it.

    The fact: IREE hoists values that do not depend on the carried values out of a loop, also
    constants that are not uniform. It lets a scatter, a dynamic_update_slice or a sort in the loop
    work in place on that one array. From the second iteration on they find the result of the
    previous one. Transfers and barriers are hoisted as well; a select by a boolean behind a barrier
    is not.

    1. Visit every operation that works in place inside of a loop. (Functions that a loop calls
       compute their values in each call.)
    2. For each of its operands, follow the value backwards. If that does not lead to an argument
       of the innermost loop around the operation, select between the value and zeros by a boolean
       that is true but opaque to the compiler.

    Before::

        %0 = stablehlo.while(%i = %c) … do {
          %1:2 = "stablehlo.sort"(%keys, %iota) …

    After::

        %0 = stablehlo.while(%i = %c) … do {
          %t = util.optimization_barrier %true : tensor<i1>
          %1 = stablehlo.select %t, %iota, %zeros : tensor<i1>, tensor<4xi32>
          %2:2 = "stablehlo.sort"(%keys, %1) …

    Precondition: the passes that remove barriers (`protect-inputs`, `copy-returned-inputs`) have
    run.
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
    """Returns the operands of an operation and of the operations in its regions."""
    found: list[ir.Value] = []

    def visit(inner: ir.Operation) -> ir.WalkResult:
        found.extend(inner.operands)
        return ir.WalkResult.ADVANCE

    operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found
