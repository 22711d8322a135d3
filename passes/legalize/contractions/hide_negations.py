"""`hide-negations`: a sum of negatives stays a sum, for GPUs."""

from __future__ import annotations

from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.legalize.numbers.keep_roundings import hidden
from axir.passes.legalize.rewriting import RewritePass, defining_operation

# Operations through which a negation moves, or stays visible, when IREE fuses loops.
_TRANSPARENT = frozenset(
    f"stablehlo.{name}"
    for name in (
        "broadcast_in_dim", "convert", "divide", "multiply", "negate", "reshape", "transpose"
    )
)  # fmt: skip
_NEGATE, _BROADCAST = "stablehlo.negate", "stablehlo.broadcast_in_dim"
_SEARCHED = 64


class HideNegations(RewritePass):
    """Hides negations from the sums that add their results.

    The fact: IREE simplifies `acc + (-x)` in a sum to `acc - x`. For GPUs it cannot divide a
    reduction by subtraction among threads ("Failed to get an identity value for the reduction
    operation").

    And a sum over several axes of products with an array that is broadcast does not compile for
    CUDA ("failed to distribute").

    1. Visit each reduction by addition. Follow its operand through products, quotients, conversions
       and views; skip the reduction if no negation is found.
    2. Hide floats as `keep-roundings` does. Put a barrier on integers, and on operands that are
       broadcast and then summed over several axes.

    Before::

        %0 = stablehlo.negate %x
        %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [0]

    After::

        %0 = stablehlo.negate %x
        %2 = stablehlo.bitcast_convert %0
        %3 = stablehlo.minimum %2, %c
        %4 = stablehlo.bitcast_convert %3
        %1 = stablehlo.reduce(%4 init: %zero) applies stablehlo.add across dimensions = [0]
    """

    name: ClassVar[str] = "hide-negations"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.reduce",)

    def rewrite(self, operation: ir.Operation) -> None:
        """Changes the operand of a sum in place."""
        body = operation.regions[0].blocks[0].operations
        if len(operation.operands) != 2 or body[0].operation.name != "stablehlo.add":
            return
        operand = operation.operands[0]
        names = _names_before(operand)
        if _NEGATE not in names:
            return
        is_spread = _BROADCAST in names and len(list(operation.attributes["dimensions"])) > 1
        is_stored = is_spread or not hlo.is_float(operand)
        operation.operands[0] = (
            hlo.optimization_barrier(operand)[0] if is_stored else hidden(operand)
        )


def _names_before(operand: ir.Value) -> set[str]:
    """Returns the names of the operations that compute a value, up to a limit."""
    names: set[str] = set()
    pending, looked = [operand], 0
    while pending:
        looked += 1
        if looked > _SEARCHED:  # the unseen operations may be anything
            return {_NEGATE, _BROADCAST}
        operation = defining_operation(pending.pop())
        if operation is not None:
            names.add(operation.name)
            if operation.name in _TRANSPARENT:
                pending += operation.operands
    return names
