"""`store-moved-conversions`: floats that are widened and then moved are kept in memory on CUDA."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.legalize.rewriting import RewritePass

_MOVES = frozenset(
    f"stablehlo.{name}" for name in ("concatenate", "gather", "pad", "reverse", "scatter", "slice")
)
_VIEWS = frozenset(f"stablehlo.{name}" for name in ("broadcast_in_dim", "reshape", "transpose"))


@dataclasses.dataclass(frozen=True)
class StoreMovedConversions(RewritePass):
    """Puts optimization barriers on widened floats that are then sliced, concatenated or moved.

    The fact: IREE repeats the conversion in each dispatch that reads the wide floats. Its fusion
    for CUDA fails if that dispatch is a scatter, or a concatenation of slices ("failed to apply
    fusion + hoisting patterns"). Examples are `cumlogsumexp` of bf16 and the gradient of `max_pool`
    of f16.

    1. Visit the conversions of floats to wider floats that such an operation reads, directly or
       through views.
    2. Put a barrier on the result.

    Before::

        %0 = stablehlo.convert %x : (tensor<7x4xbf16>) -> tensor<7x4xf32>
        %1 = stablehlo.slice %0 [0:7, 0:4:2]

    After::

        %2 = stablehlo.convert %x : (tensor<7x4xbf16>) -> tensor<7x4xf32>
        %0 = stablehlo.optimization_barrier %2
        %1 = stablehlo.slice %0 [0:7, 0:4:2]

    Precondition: `protect-inputs` has run, which would remove the barriers.
    """

    name: ClassVar[str] = "store-moved-conversions"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.convert",)

    def rewrite(self, operation: ir.Operation) -> list[ir.Value] | None:
        """Builds the conversion behind a barrier."""
        (operand,), (result,) = operation.operands, operation.results
        kinds = hlo.element_type_of(operand), hlo.element_type_of(result)
        widens = all(isinstance(kind, ir.FloatType) for kind in kinds) and (
            kinds[0].width < kinds[1].width
        )
        if not widens or not _is_moved(result):
            return None
        return hlo.optimization_barrier(hlo.convert(operand, kinds[1]))


def _is_moved(value: ir.Value) -> bool:
    """Tells whether an operation that moves elements reads an array, or a view of it does."""
    users = [use.owner.operation for use in value.uses]
    return any(
        user.name in _MOVES or (user.name in _VIEWS and _is_moved(user.results[0]))
        for user in users
    )
