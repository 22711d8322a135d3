"""`select-boolean-operands`: contractions read booleans as selected numbers."""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.legalize.rewriting import RewritePass

from .widen_unsigned_dot import CONTRACTIONS

# Operations behind which a converted value still counts as a conversion for a contraction.
_MOVES = tuple(f"stablehlo.{n}" for n in ("reshape", "transpose", "broadcast_in_dim", "slice"))
# Operations that IREE folds away where they change nothing, such as the addition of zeros.
_FOLDED = tuple(
    f"stablehlo.{n}"
    for n in "add subtract multiply divide and or xor maximum minimum select".split()
)


class SelectBooleanOperands(RewritePass):
    """Writes conversions of booleans as selects where contractions read them.

    The fact: IREE moves a conversion from i1 into the product of a vector and a matrix, which does
    not accept i1: "'linalg.vecmat' op expected type of bb argument #0 ('i1') to match".

    Where it folds away an elementwise operation between the two, it treats the conversion as
    signed: true becomes -1.

    1. Find conversions of i1 with a result that reaches a contraction, directly, through moves, or
       through operations that may fold away.
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
    """Tells whether a contraction reads a value, directly or through operations of some names."""
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
