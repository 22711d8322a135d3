"""`widen-unsigned-dot`: unsigned operands of contractions are as wide as the result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.legalize.rewriting import RewritePass

CONTRACTIONS = ("stablehlo.dot_general", "stablehlo.dot", "stablehlo.convolution")


class WidenUnsignedDot(RewritePass):
    """Widens unsigned operands before a contraction with a wider or floating-point result.

    The fact: IREE treats the operands of ui8 x ui8 -> i32 as signed, so that 255 counts as -1. It
    looks through conversions to find this form, so explicit conversions help only behind an
    optimization barrier.

    1. Find contractions with an unsigned operand that is narrower than the result, or with a
       floating-point result. For floats, convert both operands to the result's type;
       `clamp-unsigned-operands` then handles the conversions.
    2. Otherwise convert both operands to the result's type, bitcast to signed, through an
       optimization barrier.
    3. Contract in the signed type, where sums and products have the same bits, and bitcast.

    Before::

        %0 = stablehlo.dot_general %a, %b … : (tensor<4x5xui8>, tensor<5x6xui8>) -> tensor<4x6xui32>

    After::

        %1 = stablehlo.convert %a : (tensor<4x5xui8>) -> tensor<4x5xi32>
        %2 = stablehlo.optimization_barrier %1
        %3 = stablehlo.dot_general %2, … : (tensor<4x5xi32>, tensor<5x6xi32>) -> tensor<4x6xi32>
        %4 = stablehlo.bitcast_convert %3 : (tensor<4x6xi32>) -> tensor<4x6xui32>
    """

    name: ClassVar[str] = "widen-unsigned-dot"
    operations: ClassVar[tuple[str, ...]] = CONTRACTIONS

    def rewrite(self, operation: ir.Operation) -> ir.Value | None:
        """Builds the contraction of the widened operands."""
        result = operation.results[0]
        element = hlo.element_type_of(result)
        unsigned = [operand for operand in operation.operands if hlo.is_unsigned(operand)]
        if isinstance(element, ir.FloatType) and unsigned:
            return _contract(operation, [hlo.convert(o, element) for o in operation.operands])
        if not isinstance(element, ir.IntegerType) or not any(
            hlo.element_type_of(operand).width < element.width for operand in unsigned
        ):
            return None
        signed = ir.IntegerType.get_signless(element.width)
        operands = [
            hlo.optimization_barrier(hlo.bitcast_convert(hlo.convert(operand, element), signed))[0]
            for operand in operation.operands
        ]
        return hlo.bitcast_convert(_contract(operation, operands), element)


def _contract(operation: ir.Operation, operands: Sequence[ir.Value]) -> ir.Value:
    """Builds the same contraction of other operands, in their element type."""
    element = hlo.element_type_of(operands[0])
    return hlo.build(
        operation.name.split(".")[1],
        operation.name,
        operands,
        [hlo.tensor_type(operation.results[0].type.shape, element)],
        {name: operation.attributes[name] for name in operation.attributes},
    ).result
