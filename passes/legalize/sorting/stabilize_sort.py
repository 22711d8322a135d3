"""`stabilize-sort`: equal elements keep their order."""

from __future__ import annotations

from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.legalize.rewriting import RewritePass


class StabilizeSort(RewritePass):
    """Makes a stable `stablehlo.sort` stable.

    The fact: IREE exchanges neighbours unless the comparator says that they are in order, so that
    it also exchanges equal ones: ties are reversed, and `is_stable` is ignored.

    1. For each sort with `is_stable`, let the comparator be c(a, b): a must come before b.
    2. Replace it by not c(b, a): a may stay before b. For a strict order the two differ only in
       ties.
    3. Clear `is_stable`, so that the pass does nothing when it runs again.

    Before::

        ^bb0(%a, %b):
          %0 = stablehlo.compare LT, %a, %b
          stablehlo.return %0

    After::

        ^bb0(%b, %a):
          %0 = stablehlo.compare LT, %a, %b
          %1 = stablehlo.not %0
          stablehlo.return %1
    """

    name: ClassVar[str] = "stabilize-sort"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.sort",)

    def rewrite(self, operation: ir.Operation) -> None:
        """Changes the comparator in place."""
        if not ir.BoolAttr(operation.attributes["is_stable"]).value:
            return
        block = operation.regions[0].blocks[0]
        _exchange_pairs(block)
        terminator = block.operations[len(block.operations) - 1].operation
        with ir.InsertionPoint(terminator):
            terminator.operands[0] = hlo.not_(terminator.operands[0])
        operation.attributes["is_stable"] = ir.BoolAttr.get(False)


def _exchange_pairs(block: ir.Block) -> None:
    """Exchanges the uses of arguments 2i and 2i + 1."""
    arguments = list(block.arguments)
    for lhs, rhs in zip(arguments[::2], arguments[1::2], strict=True):
        uses = [(use.owner, use.operand_number) for use in lhs.uses]
        rhs.replace_all_uses_with(lhs)
        for owner, number in uses:
            owner.operands[number] = rhs
