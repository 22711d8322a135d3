"""`saturate-conversions`: floats outside the range of an integer type become its limits."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core.types import numpy_dtype
from axir.passes.legalize.rewriting import RewritePass, constant_behind, defining_operation


class SaturateConversions(RewritePass):
    """Defines the conversion of floats to integers outside the integer's range.

    The fact: IREE's conversion of numbers out of range depends on the processor: nan becomes the
    smallest i32, 1000.0 becomes -24 as i8, -1.0 becomes 255 as ui8. JAX saturates, and turns nan
    into 0.

    1. Convert as before.
    2. Where x >= 2^bits, the smallest value that is too large, take the largest integer. (A power
       of two is exact in every float type that reaches it; otherwise infinity takes its place.)
    3. Where x <= the smallest integer, take that.
    4. Where x is nan, take 0.
    5. Omit a step where x is known to be within the bound because it has been clamped.

    Conversion to booleans (x != 0) is already correct.

    Before::

        %0 = stablehlo.convert %x : (tensor<4xf32>) -> tensor<4xi32>

    After::

        %1 = stablehlo.select %too_large, %largest, %0
        %2 = stablehlo.select %too_small, %smallest, %1
        %3 = stablehlo.select %is_nan, %zero, %2
    """

    name: ClassVar[str] = "saturate-conversions"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.convert",)

    def rewrite(self, operation: ir.Operation) -> ir.Value | None:
        """Builds the selects for a conversion from a float to an integer of two bits or more."""
        operand, result = operation.operands[0], operation.results[0]
        target = hlo.element_type_of(result)
        if not hlo.is_float(operand) or not isinstance(target, ir.IntegerType):
            return None
        if target.width == 1:
            return None
        limits = np.iinfo(numpy_dtype(target))
        converted = hlo.convert(operand, target)
        outside = []
        least, most = _range(operand)
        if not most <= limits.max:
            too_large = hlo.compare(operand, _bound(operand, limits.max + 1), "GE")
            outside.append((too_large, limits.max))
        if not least >= limits.min:
            too_small = hlo.compare(operand, _bound(operand, limits.min), "LE")
            outside.append((too_small, limits.min))
        outside.append((hlo.compare(operand, operand, "NE"), 0))
        for is_outside, replacement in outside:
            converted = hlo.select(is_outside, hlo.full_like(converted, replacement), converted)
        return converted


def _range(value: ir.Value) -> tuple[float, float]:
    """Returns the bounds of a value, unless it is nan, as far as clamps by constants give them."""
    operation = defining_operation(value)
    name = "" if operation is None else operation.name.removeprefix("stablehlo.")
    if operation is None or name not in ("minimum", "maximum", "clamp"):
        return -math.inf, math.inf
    operands = list(operation.operands)
    if name == "clamp":
        low, _, high = map(_number, operands)
        return -math.inf if low is None else low, math.inf if high is None else high
    least, most = -math.inf, math.inf
    for one, other in (operands, operands[::-1]):
        number = _number(other)
        if number is not None:
            least, most = _range(one)
            if name == "minimum":
                return min(least, number), min(most, number)
            return max(least, number), max(most, number)
    return least, most


def _number(value: ir.Value) -> float | None:
    """Returns the number that all elements of a constant are; None for any other value."""
    constant = constant_behind(value)
    if constant is None:
        return None
    dense = ir.DenseElementsAttr(constant.attributes["value"])
    return float(dense.get_splat_value().value) if dense.is_splat else None


def _bound(operand: ir.Value, bound: int) -> ir.Value:
    """Returns a power of two, or zero, as a float; infinity where the float type does not reach
    it.
    """
    with np.errstate(over="ignore"):
        return hlo.full_like(operand, float(bound))
