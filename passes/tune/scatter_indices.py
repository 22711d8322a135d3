"""`separate-scatter-indices`: what a scatter reads is in memory before the scatter begins."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from iree.compiler import ir

from axir.dialect import stablehlo as hlo
from axir.passes.base import Pass
from axir.passes.legalize.rewriting import find_operations

_BARRIER = "stablehlo.optimization_barrier"


@dataclasses.dataclass(frozen=True)
class SeparateScatterIndices(Pass):
    """Puts an optimization barrier between a scatter and the computation of its indices.

    The fact: IREE fuses what computes the indices into the scatter, and keeps them on the stack
    there. More than 32 KB of them do not compile: "exceeded stack allocation limit".

    1. Visit every scatter whose indices are neither an argument nor a constant.
    2. Let it read them through an optimization barrier.

    Before::

        %1 = stablehlo.select %fits, %i, %outside : tensor<20000x1xi1>, tensor<20000x1xi32>
        %2 = "stablehlo.scatter"(%0, %1, %u) …

    After::

        %b = stablehlo.optimization_barrier %1 : tensor<20000x1xi32>
        %2 = "stablehlo.scatter"(%0, %b, %u) …

    Precondition: `drop-scatter` has run, which computes indices.
    """

    name: ClassVar[str] = "separate-scatter-indices"

    def run(self, module: ir.Module) -> None:
        """Inserts the barriers."""
        for scatter in find_operations(module.operation, ("stablehlo.scatter",)):
            place = (len(scatter.operands) - 1) // 2
            indices = scatter.operands[place]
            if isinstance(indices, ir.BlockArgument) or indices.owner.name in (
                _BARRIER,
                "stablehlo.constant",
            ):
                continue
            with ir.InsertionPoint(scatter), scatter.location:
                scatter.operands[place] = hlo.optimization_barrier(indices)[0]
