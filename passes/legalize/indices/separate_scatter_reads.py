"""`separate-scatter-reads`: what a scatter reads is in memory before the scatter begins."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from iree.compiler import ir

from axir.passes.framework.base import Pass
from axir.passes.legalize.rewriting import find_operations, stored_alone

_BARRIER = "stablehlo.optimization_barrier"


@dataclasses.dataclass(frozen=True)
class SeparateScatterReads(Pass):
    """Puts optimization barriers between a scatter and the computation of what it reads.

    The fact: IREE fuses what computes the indices into the scatter, and keeps them on the stack
    there, and so it does with an operand that is a slice. More than 32 KB of them do not compile:
    "exceeded stack allocation limit".

    1. Visit every scatter whose indices are neither an argument nor a constant, or one of whose
       operands is a slice.
    2. Let it read these through optimization barriers; copies of those that others read, too.

    Before::

        %1 = stablehlo.select %fits, %i, %outside : tensor<20000x1xi1>, tensor<20000x1xi32>
        %2 = "stablehlo.scatter"(%0, %1, %u) …

    After::

        %b = stablehlo.optimization_barrier %1 : tensor<20000x1xi32>
        %2 = "stablehlo.scatter"(%0, %b, %u) …

    Precondition: `drop-scatter` and `fit-scatter-operands`, which compute indices and slices, have
    run, and `protect-inputs`, which removes barriers.
    """

    name: ClassVar[str] = "separate-scatter-reads"

    def run(self, module: ir.Module) -> None:
        """Inserts the barriers."""
        for scatter in find_operations(module.operation, ("stablehlo.scatter",)):
            count = (len(scatter.operands) - 1) // 2
            for place, value in enumerate(list(scatter.operands)[: count + 1]):
                is_fused = _is_computed(value) if place == count else _is_slice(value)
                if is_fused:
                    with ir.InsertionPoint(scatter), scatter.location:
                        scatter.operands[place] = stored_alone(value)


def _is_computed(value: ir.Value) -> bool:
    is_argument = isinstance(value, ir.BlockArgument)
    return not is_argument and value.owner.name not in (_BARRIER, "stablehlo.constant")


def _is_slice(value: ir.Value) -> bool:
    return not isinstance(value, ir.BlockArgument) and value.owner.name == "stablehlo.slice"
