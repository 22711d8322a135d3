"""`read-carries`: a loop's body reads every carried value whose last one is used."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from iree.compiler import ir

from axir.dialect import stablehlo as hlo
from axir.passes.legalize.rewriting import RewritePass, hidden_truths


@dataclasses.dataclass(frozen=True)
class ReadCarries(RewritePass):
    """Lets the next value of a carry seem to depend on the last one.

    The fact: IREE's compiler does not end, and crashes when the memory does, on a loop with a
    carried value that neither its condition nor its body reads but that is used after it, such as
    the last but one approximation of an iteration until convergence.

    1. Visit every loop. Find carried values that are read nowhere in it, but whose result is used.
    2. Return from the body a choice between the next value and the last one, by a truth value that
       is true, which the compiler does not know.

    Before::

        %0:2 = stablehlo.while(%last = %a, %x = %b) … do { … stablehlo.return %x, %1 }

    After::

        %t = util.optimization_barrier %true : tensor<i1>
        %0:2 = stablehlo.while(%last = %a, %x = %b) … do {
          …
          %2 = stablehlo.select %t, %x, %last : tensor<i1>, tensor<4xf32>
          stablehlo.return %2, %1
        }

    Precondition: the passes have run that remove barriers (`protect-inputs`,
    `copy-returned-inputs`).
    """

    name: ClassVar[str] = "read-carries"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.while",)

    def rewrite(self, operation: ir.Operation) -> None:
        """Changes operands of the body's end in place."""
        condition, body = (region.blocks[0] for region in operation.regions)
        end = body.operations[len(body.operations) - 1].operation
        unread = [
            index
            for index, result in enumerate(operation.results)
            if _is_used(result)
            and not _is_used(condition.arguments[index])
            and not _is_used(body.arguments[index])
        ]
        if not unread:
            return
        truths = hidden_truths(len(unread))
        with ir.InsertionPoint(end):
            for index, truth in zip(unread, truths, strict=True):
                end.operands[index] = hlo.select(truth, end.operands[index], body.arguments[index])


def _is_used(value: ir.Value) -> bool:
    return any(True for _ in value.uses)
