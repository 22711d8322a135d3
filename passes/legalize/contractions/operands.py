"""Operands of contractions that IREE reads wrongly: unsigned numbers, booleans, empty arrays.

Elsewhere: the sums of contractions and reductions (`sums.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
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


class FillEmptyDot(RewritePass):
    """Replaces a contraction over an empty dimension by zeros.

    The fact: IREE's compiler divides by zero on a `dot_general` with a contracted extent of 0.

    1. Find contractions with an extent of 0 in an operand.
    2. Their result, an empty sum (or empty itself), is a constant of zeros.

    Before::

        %0 = stablehlo.dot_general %a, %b … : (tensor<4x0xf32>, tensor<0x6xf32>) -> tensor<4x6xf32>

    After::

        %0 = stablehlo.constant dense<0.0> : tensor<4x6xf32>
    """

    name: ClassVar[str] = "fill-empty-dot"
    operations: ClassVar[tuple[str, ...]] = CONTRACTIONS

    def rewrite(self, operation: ir.Operation) -> ir.Value | None:
        """Builds the constant."""
        if not any(0 in operand.type.shape for operand in operation.operands):
            return None
        return hlo.full_like(operation.results[0], 0)
