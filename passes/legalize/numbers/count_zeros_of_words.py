"""`count-zeros-of-words`: leading zeros are counted in 32 bits, for Vulkan."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.legalize.rewriting import RewritePass

_UNSIGNED = {8: np.uint8, 16: np.uint16, 64: np.uint64}
_WORD = 32


class CountZerosOfWords(RewritePass):
    """Counts the leading zeros of integers of other widths with words of 32 bits.

    The fact: SPIR-V finds the highest set bit only in 32 bits ("failed to legalize operation
    'math.ctlz'").

    1. For fewer bits: count the zeros of the number as an unsigned word, and subtract the added
       bits.
    2. For 64 bits: count the zeros of the upper word; if it is zero, add 32 to the lower word's.

    Before::

        %0 = stablehlo.count_leading_zeros %x : tensor<4xi8>

    After::

        %1 = stablehlo.convert %x : (tensor<4xui8>) -> tensor<4xui32>
        %2 = stablehlo.count_leading_zeros %1
        %3 = stablehlo.subtract %2, %c24
        %0 = stablehlo.convert %3 : (tensor<4xui32>) -> tensor<4xi8>
    """

    name: ClassVar[str] = "count-zeros-of-words"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.count_leading_zeros",)

    def rewrite(self, operation: ir.Operation) -> ir.Value | None:
        """Builds the count."""
        operand = operation.operands[0]
        element = hlo.element_type_of(operand)
        width = element.width
        if width == _WORD:
            return None
        bits = hlo.bitcast_convert(operand, _UNSIGNED[width])
        if width < _WORD:
            zeros = hlo.count_leading_zeros(hlo.convert(bits, np.uint32))
            zeros = hlo.subtract(zeros, hlo.full_like(zeros, _WORD - width))
        else:
            upper = hlo.shift_right_logical(bits, hlo.full_like(bits, _WORD))
            zeros = _of_pair(hlo.convert(upper, np.uint32), hlo.convert(bits, np.uint32))
        return hlo.convert(zeros, element)


def _of_pair(upper: ir.Value, lower: ir.Value) -> ir.Value:
    none = hlo.full_like(upper, 0)
    below = hlo.add(hlo.count_leading_zeros(lower), hlo.full_like(upper, _WORD))
    return hlo.select(hlo.compare(upper, none, "EQ"), below, hlo.count_leading_zeros(upper))
