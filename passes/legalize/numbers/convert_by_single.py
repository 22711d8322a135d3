"""`convert-by-single`: integers become bf16 by way of f32."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.legalize.rewriting import RewritePass, defining_operation

# Operations between two conversions that the compiler still joins: they only move elements.
_MOVEMENTS = frozenset(
    f"stablehlo.{name}"
    for name in (
        "broadcast_in_dim", "concatenate", "dynamic_slice", "gather", "pad", "reshape", "reverse",
        "slice", "transpose",
    )
)  # fmt: skip


class ConvertBySingle(RewritePass):
    """Converts integers and booleans to bf16 by way of f32.

    The fact: LLVM converts an integer to bf16 by a function, `__truncsfbf2`, that no program of
    IREE has, and the process ends when the program is loaded ("undefined symbol"). IREE itself
    converts f32 to bf16.

    1. Convert to f32. NumPy's conversion rounds twice, too. Also take a conversion from f32 to bf16
       if the f32 number was converted from an integer, because the compiler joins both.
    2. The bits of bf16 are the upper half of the bits of f32: round the lower half away, ties to
       even. A carry goes into the exponent, which is correct.

    Before::

        %0 = stablehlo.convert %x : (tensor<4xi32>) -> tensor<4xbf16>

    After::

        %1 = stablehlo.convert %x : (tensor<4xi32>) -> tensor<4xf32>
        %2 = stablehlo.bitcast_convert %1 : (tensor<4xf32>) -> tensor<4xui32>
        ...
        %7 = stablehlo.convert %6 : (tensor<4xui32>) -> tensor<4xui16>
        %0 = stablehlo.bitcast_convert %7 : (tensor<4xui16>) -> tensor<4xbf16>
    """

    name: ClassVar[str] = "convert-by-single"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.convert",)

    def rewrite(self, operation: ir.Operation) -> ir.Value | None:
        """Builds the formula if the conversion is from an integer to bf16."""
        operand, result = operation.operands[0], operation.results[0]
        element = hlo.element_type_of(result)
        if not isinstance(element, ir.BF16Type) or not _was_integer(operand):
            return None
        single = hlo.convert(operand, np.float32)
        bits = hlo.bitcast_convert(single, np.uint32)
        half = hlo.full_like(bits, 16)
        is_odd = hlo.and_(hlo.shift_right_logical(bits, half), hlo.full_like(bits, 1))
        rounded = hlo.add(bits, hlo.add(is_odd, hlo.full_like(bits, 2**15 - 1)))
        upper = hlo.convert(hlo.shift_right_logical(rounded, half), np.uint16)
        return hlo.bitcast_convert(upper, element)


def _was_integer(value: ir.Value) -> bool:
    """Tells whether elements are integers, or were before a conversion to f32."""
    if hlo.is_integer(value):
        return True
    definition = defining_operation(value)
    if definition is None or not isinstance(hlo.element_type_of(value), ir.F32Type):
        return False
    if definition.name == "stablehlo.convert":
        return hlo.is_integer(definition.operands[0])
    if definition.name not in _MOVEMENTS:
        return False
    return any(
        _was_integer(operand)
        for operand in definition.operands
        if hlo.element_type_of(operand) == hlo.element_type_of(value)
    )
