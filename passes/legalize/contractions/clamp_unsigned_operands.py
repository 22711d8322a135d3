"""`clamp-unsigned-operands`: contractions treat unsigned operands as unsigned."""

from __future__ import annotations

from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.legalize.rewriting import RewritePass

from .select_boolean_operands import reaches_contraction


class ClampUnsignedOperands(RewritePass):
    """Keeps conversions of unsigned integers unsigned where contractions read them.

    The fact: IREE moves a conversion into a contraction that reads it directly, and the contraction
    converts all its operands as signed integers: 255 of ui8 counts as -1, also in a product of
    floats. An operation that does more than convert is not moved; it is computed within the same
    dispatch.

    1. Find conversions of unsigned integers to wider integers or to floats with a result that
       reaches a contraction, directly or through moves.
    2. Take the maximum of the result and 0, which changes no number. For integers it is a signed
       maximum, because an unsigned maximum with 0 is simplified away.

    Before::

        %0 = stablehlo.convert %image : (tensor<4x5xui8>) -> tensor<4x5xf32>
        %1 = stablehlo.dot_general %0, %b … : (tensor<4x5xf32>, tensor<5x6xf32>) -> tensor<4x6xf32>

    After::

        %0 = stablehlo.convert %image : (tensor<4x5xui8>) -> tensor<4x5xf32>
        %1 = stablehlo.maximum %0, %zeros : tensor<4x5xf32>
        %2 = stablehlo.dot_general %1, %b … : (tensor<4x5xf32>, tensor<5x6xf32>) -> tensor<4x6xf32>

    Precondition: `widen-unsigned-dot` has written out the conversions that contractions imply.
    """

    name: ClassVar[str] = "clamp-unsigned-operands"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.convert",)

    def rewrite(self, operation: ir.Operation) -> ir.Value | None:
        """Builds the conversion and the maximum."""
        operand, result = operation.operands[0], operation.results[0]
        element = hlo.element_type_of(result)
        if not hlo.is_unsigned(operand) or not _widens(operand, element):
            return None
        if not reaches_contraction(result):
            return None
        converted = hlo.convert(operand, element)
        if isinstance(element, ir.IntegerType):
            converted = hlo.bitcast_convert(converted, ir.IntegerType.get_signless(element.width))
        clamped = hlo.maximum(converted, hlo.full_like(converted, 0))
        return hlo.bitcast_convert(clamped, element)


def _widens(operand: ir.Value, element: ir.Type) -> bool:
    if isinstance(element, ir.IntegerType):
        width: int = element.width
        return hlo.element_type_of(operand).width < width
    return isinstance(element, ir.FloatType)
