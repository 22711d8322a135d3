"""`select-boolean-operands`: truth values are chosen numbers where contractions take them."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.legalize.rewriting import RewritePass

from .widen_unsigned_dot import CONTRACTIONS

# What a value may pass on its way to a contraction without ceasing to be a converted one.
_MOVES = tuple(f"stablehlo.{n}" for n in ("reshape", "transpose", "broadcast_in_dim", "slice"))


@dataclasses.dataclass(frozen=True)
class SelectBooleanOperands(RewritePass):
    """Writes conversions of truth values that contractions take as selections.

    The fact: IREE moves a conversion from i1 into the product of a vector and a matrix, whose
    form does not allow it: "'linalg.vecmat' op expected type of bb argument #0 ('i1') to match".

    1. Find conversions of i1 whose result reaches a contraction, directly or moved.
    2. Select 1 or 0 instead.

    Before::

        %0 = stablehlo.convert %mask : (tensor<5xi1>) -> tensor<5xf32>
        %1 = stablehlo.dot_general %0, %b … : (tensor<5xf32>, tensor<5x6xf32>) -> tensor<6xf32>

    After::

        %0 = stablehlo.select %mask, %ones, %zeros : tensor<5xi1>, tensor<5xf32>
        %1 = stablehlo.dot_general %0, %b … : (tensor<5xf32>, tensor<5x6xf32>) -> tensor<6xf32>
    """

    name: ClassVar[str] = "select-boolean-operands"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.convert",)

    def rewrite(self, operation: ir.Operation) -> ir.Value | None:
        """Builds the selection."""
        mask, result = operation.operands[0], operation.results[0]
        is_mask = hlo.element_type_of(mask) == ir.IntegerType.get_signless(1)
        if not is_mask or hlo.is_complex(result) or not reaches_contraction(result):
            return None
        return hlo.select(mask, hlo.full_like(result, 1), hlo.full_like(result, 0))


def reaches_contraction(value: ir.Value) -> bool:
    """Tells whether a contraction takes a value, directly or moved."""
    users = [use.owner for use in value.uses]
    return any(
        user.name in CONTRACTIONS or (user.name in _MOVES and reaches_contraction(user.results[0]))
        for user in users
    )
