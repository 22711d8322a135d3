"""`part-loop-values`: a loop's body gives each carried value a value of its own."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np
from iree.compiler import ir

from axir.dialect import stablehlo as hlo
from axir.passes.legalize.rewriting import RewritePass


@dataclasses.dataclass(frozen=True)
class PartLoopValues(RewritePass):
    """Puts a barrier before the second and later occurrences of what a loop's body returns.

    The fact: IREE's compiler merges carried values for which the body of a loop returns the same
    value, also where they begin differently and its condition reads them, and then fails ("region
    branch point has 4 operands, but region successor needs 6 inputs"). Barriers keep them apart.

    1. Visit every loop. Find values that its body returns more than once.
    2. Pass the second and later occurrences through a `util.optimization_barrier`, unsigned
       integers as signless ones, which are those that the barrier takes.

    Before::

        stablehlo.return %x, %x : tensor<4xf32>, tensor<4xf32>

    After::

        %0 = util.optimization_barrier %x : tensor<4xf32>
        stablehlo.return %x, %0 : tensor<4xf32>, tensor<4xf32>

    Precondition: the passes have run that remove barriers (`protect-inputs`,
    `copy-returned-inputs`).
    """

    name: ClassVar[str] = "part-loop-values"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.while",)

    def rewrite(self, operation: ir.Operation) -> None:
        """Changes operands of the body's end in place."""
        block = operation.regions[1].blocks[0]
        end = block.operations[len(block.operations) - 1].operation
        seen: set[ir.Value] = set()
        with ir.InsertionPoint(end):
            for index, value in enumerate(end.operands):
                if value in seen:
                    end.operands[index] = _held(value)
                seen.add(value)


def _held(value: ir.Value) -> ir.Value:
    if not hlo.is_unsigned(value):
        return barrier(value)
    width = hlo.element_type_of(value).width
    signless = hlo.bitcast_convert(value, np.dtype(f"int{width}"))
    return hlo.bitcast_convert(barrier(signless), hlo.element_type_of(value))


def barrier(value: ir.Value) -> ir.Value:
    """Returns the same value, which the compiler takes for another."""
    # One value at a time: IREE's barrier on several fails where their memory is of several kinds.
    return ir.Operation.create(
        "util.optimization_barrier", results=[value.type], operands=[value]
    ).result
