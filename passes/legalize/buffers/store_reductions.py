"""`store-reductions`: broadcasts of sums along leading axes are read from memory on Vulkan."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.legalize.rewriting import ELEMENTWISE, RewritePass, defining_operation

_REDUCTIONS = frozenset(("stablehlo.dot_general", "stablehlo.reduce", "func.call"))
_SEARCHED = 64


@dataclasses.dataclass(frozen=True)
class StoreReductions(RewritePass):
    """Keeps results of reductions in memory before they are broadcast along leading axes.

    The fact: for SPIR-V, IREE tiles all loops of a dispatch like the loops of its reduction, with
    the axes of the result first. Operations in the same dispatch have their loops in another order
    if the result is broadcast along an axis that precedes its own axes: `x - x.sum(0)` was wrong,
    and so was `x - v @ x`.

    1. Visit each broadcast. Axes of extent 1 do not count.
    2. Put an optimization barrier on its operand under two conditions. The operand lacks an axis
       that precedes one of the operand's axes. And elementwise operations compute it from a
       reduction, a product or a call, or it is an argument of a called function.

    Before::

        %sum = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0]
        %use = stablehlo.broadcast_in_dim %sum, dims = [1]

    After::

        %sum = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0]
        %0 = stablehlo.optimization_barrier %sum
        %use = stablehlo.broadcast_in_dim %0, dims = [1]

    Precondition: `protect-inputs` has run, because it would remove the barriers.
    """

    name: ClassVar[str] = "store-reductions"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.broadcast_in_dim",)

    def rewrite(self, operation: ir.Operation) -> None:
        """Changes the operand of a broadcast in place."""
        operand = operation.operands[0]
        if _is_along_earlier_axes(operation) and _is_of_reduction(operand):
            operation.operands[0] = hlo.optimization_barrier(operand)[0]


def _is_along_earlier_axes(operation: ir.Operation) -> bool:
    """Tells whether a broadcast adds an axis before one of its operand's axes."""
    shape = operation.operands[0].type.shape
    placed = list(operation.attributes["broadcast_dimensions"])
    kept = [place for place, extent in zip(placed, shape, strict=True) if extent != 1]
    wide = [axis for axis, extent in enumerate(operation.results[0].type.shape) if extent != 1]
    return kept != wide[: len(kept)]


def _is_of_reduction(value: ir.Value) -> bool:
    """Tells whether one dispatch may compute a value and a reduction before it."""
    pending, seen = [value], {value}
    while pending:
        current = pending.pop()
        made_by = defining_operation(current)
        if made_by is None:
            if _is_of_called_function(current):
                return True
        elif made_by.name in _REDUCTIONS or len(seen) > _SEARCHED:
            return True
        elif made_by.name in ELEMENTWISE:
            fresh = [x for x in made_by.operands if x not in seen]
            seen.update(fresh)
            pending += fresh
    return False


def _is_of_called_function(value: ir.Value) -> bool:
    """Tells whether an argument of a block belongs to a function that is called."""
    function = value.owner.owner.operation
    return function.name == "func.func" and "sym_visibility" in function.attributes
