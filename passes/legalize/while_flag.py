"""`unflag-while`: a loop that ends on its own flag does not return the flag."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from iree.compiler import ir

from axir.dialect import stablehlo as hlo
from axir.passes.legalize.rewriting import RewritePass


@dataclasses.dataclass(frozen=True)
class UnflagWhile(RewritePass):
    """Replaces the result of a loop's flag by what it always is.

    The fact: IREE's compiler crashes on a `stablehlo.while` whose condition is one of its own
    carried truth values, if that result of the loop is used.

    1. Find loops whose condition region returns one of its arguments.
    2. When such a loop has ended, this value is false: its uses get a constant.

    Before::

        %0:2 = stablehlo.while(%flag = %p, %x = %a) … cond { stablehlo.return %flag }
        return %0#0, %0#1

    After::

        %0:2 = stablehlo.while(%flag = %p, %x = %a) … cond { stablehlo.return %flag }
        %false = stablehlo.constant dense<false> : tensor<i1>
        return %false, %0#1
    """

    name: ClassVar[str] = "unflag-while"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.while",)

    def rewrite(self, operation: ir.Operation) -> None:
        """Changes the uses of one result in place."""
        block = operation.regions[0].blocks[0]
        terminator = block.operations[len(block.operations) - 1]
        for argument, result in zip(block.arguments, operation.results, strict=True):
            if terminator.operands[0] == argument:
                result.replace_all_uses_with(hlo.constant(False))
