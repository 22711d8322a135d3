"""`select-boolean-operands`: truth values are chosen numbers where contractions take them."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.legalize.rewriting import RewritePass

from .widen_unsigned_dot import CONTRACTIONS

# What a value may pass on its way to a contraction without ceasing to be a converted one.
_MOVES = tuple(f"stablehlo.{n}" for n in ("reshape", "transpose", "broadcast_in_dim", "slice"))
# What IREE leaves out where it finds that it changes nothing, such as the addition of zeros.
_FOLDED = tuple(
    f"stablehlo.{n}"
    for n in "add subtract multiply divide and or xor maximum minimum select".split()
)


@dataclasses.dataclass(frozen=True)
class SelectBooleanOperands(RewritePass):
    """Writes conversions of truth values that contractions take as selections.

    The fact: IREE moves a conversion from i1 into the product of a vector and a matrix, whose
    form does not allow it: "'linalg.vecmat' op expected type of bb argument #0 ('i1') to match".

    And where an elementwise operation between them turns out to change nothing, it takes the
    conversion for one of signed integers: true is -1.

    1. Find conversions of i1 whose result reaches a contraction, directly, moved, or through
       operations that may be left out.
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
        if (
            not is_mask
            or hlo.is_complex(result)
            or not reaches_contraction(result, (*_MOVES, *_FOLDED))
        ):
            return None
        return hlo.select(mask, hlo.full_like(result, 1), hlo.full_like(result, 0))


def reaches_contraction(value: ir.Value, through: Collection[str] = _MOVES) -> bool:
    """Tells whether a contraction takes a value, directly or through operations of some names."""
    pending, seen = [value], {value}
    while pending:
        for use in pending.pop().uses:
            user = use.owner
            if user.name in CONTRACTIONS:
                return True
            if user.name in through and user.results[0] not in seen:
                seen.add(user.results[0])
                pending.append(user.results[0])
    return False
