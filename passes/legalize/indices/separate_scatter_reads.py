"""`separate-scatter-reads`: a slice is in memory before a scatter updates it."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from iree.compiler import ir

from axir.passes.framework.base import Pass
from axir.passes.legalize.rewriting import defining_operation, find_operations, stored_alone


@dataclasses.dataclass(frozen=True)
class SeparateScatterReads(Pass):
    """Puts optimization barriers between a scatter and the slices that it updates.

    The fact: IREE fuses an operand that is a slice into the scatter, and keeps it on the stack
    there. More than 32 KB do not compile: "exceeded stack allocation limit".

    1. Visit every scatter with an operand that is a slice.
    2. Put an optimization barrier on the slice; copy it first if it has other readers.

    Before::

        %1 = stablehlo.slice %0 [0:10000, 0:3] : (tensor<10000x5xf32>) -> tensor<10000x3xf32>
        %2 = "stablehlo.scatter"(%1, %i, %u) …

    After::

        %b = stablehlo.optimization_barrier %1 : tensor<10000x3xf32>
        %2 = "stablehlo.scatter"(%b, %i, %u) …

    Precondition: `fit-scatter-operands` has run, because it makes slices, and `protect-inputs`,
    because it removes barriers.
    """

    name: ClassVar[str] = "separate-scatter-reads"

    def run(self, module: ir.Module) -> None:
        """Inserts the barriers."""
        for scatter in find_operations(module.operation, ("stablehlo.scatter",)):
            count = (len(scatter.operands) - 1) // 2
            for place, value in enumerate(list(scatter.operands)[:count]):
                maker = defining_operation(value)
                if maker is not None and maker.name == "stablehlo.slice":
                    with ir.InsertionPoint(scatter), scatter.location:
                        scatter.operands[place] = stored_alone(value)
