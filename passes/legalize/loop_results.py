"""`separate-loops`: a barrier between a loop and what uses its results."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from iree.compiler import ir

from axir.dialect import stablehlo as hlo
from axir.passes.legalize.rewriting import RewritePass


@dataclasses.dataclass(frozen=True)
class SeparateLoops(RewritePass):
    """Puts a barrier behind each loop.

    The fact: of a function with several `stablehlo.while` that use each other's results, as the
    gradient of a gradient of a scan has, IREE may fail to schedule the operations between them
    ("failed to schedule execution partitions without cyclic dependencies"). It does not when the
    results of the loops pass a barrier, which costs nothing: a loop's results are in memory anyway.

    1. Visit every loop.
    2. Pass each result that is used through a `util.optimization_barrier`, except unsigned
       integers, which IREE's barrier refuses, and results that a `flow.tensor.transfer` copies,
       which a barrier would undo. Each has a barrier of its own: IREE drops extents of 1 from some
       operands of a shared one only, and then rejects it.

    Before::

        %0:2 = stablehlo.while(…) …
        %1 = stablehlo.add %0#0, %0#1 : tensor<4xf32>

    After::

        %0:2 = stablehlo.while(…) …
        %1 = util.optimization_barrier %0#1 : tensor<4xf32>
        %2 = util.optimization_barrier %0#0 : tensor<4xf32>
        %3 = stablehlo.add %2, %1 : tensor<4xf32>

    Precondition: the passes have run that remove barriers or write transfers (`protect-inputs`,
    `copy-returned-inputs`).
    """

    name: ClassVar[str] = "separate-loops"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.while",)

    def rewrite(self, operation: ir.Operation) -> None:
        """Changes the uses of the results in place."""
        for result in operation.results:
            if not _needs_barrier(result):
                continue
            with ir.InsertionPoint.after(operation):
                barrier = ir.Operation.create(
                    "util.optimization_barrier", results=[result.type], operands=[result]
                )
            result.replace_all_uses_except(barrier.result, barrier)


def _needs_barrier(result: ir.Value) -> bool:
    users = [use.owner.operation.name for use in result.uses]
    return bool(users) and not hlo.is_unsigned(result) and "flow.tensor.transfer" not in users
