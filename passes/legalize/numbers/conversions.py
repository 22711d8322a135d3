"""Conversions between types of numbers that IREE computes inexactly, or does not compile.

Here: integers to bf16, f64 to f16, any number to bf16, floats to integers.
Elsewhere: conversions of operands of contractions (`passes/legalize/contractions/operands.py`),
elements of fewer than eight bits (`narrow_elements.py`).
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.expressions import select
from axir.dialect.builders.scalars import Scalar, bitcast, convert_float, float32
from axir.dialect.core.types import numpy_dtype
from axir.passes.legalize.elementwise_loops import elementwise
from axir.passes.legalize.rewriting import RewritePass, constant_behind, defining_operation

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


class KeepDenormalHalves(RewritePass):
    """Converts f64 to f16 by way of f32.

    The fact: IREE's conversion from f64 to f16 turns numbers below 6e-5, which are denormal as f16,
    into 0, unless the CPU has arithmetic in f16. Its conversion from f32 to f16 does not.

    1. Round to f32, toward zero; if the result is inexact, set the last bit ("round to odd").
    2. Round to f16. Since f32 has at least two more bits than twice the bits of f16, the result
       equals a single rounding (S. Boldo and G. Melquiond, Emulation of a FMA, 2008).

    Before::

        %0 = stablehlo.convert %x : (tensor<9xf64>) -> tensor<9xf16>

    After::

        %0 = linalg.generic {…} ins(%x : tensor<9xf64>) … { ^bb0(%in: f64, %out: f16): … }
    """

    name: ClassVar[str] = "keep-denormal-halves"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.convert",)

    def rewrite(self, operation: ir.Operation) -> list[ir.Value] | None:
        """Builds the loop, for conversions from f64 to f16."""
        operand, result = operation.operands[0], operation.results[0]
        half = hlo.element_type_of(result)
        if not isinstance(hlo.element_type_of(operand), ir.F64Type):
            return None
        if not isinstance(half, ir.F16Type):
            return None

        def body(x: Scalar) -> Scalar:
            return convert_float(_round_to_odd(x), half)

        return elementwise(self.name, [operand], body, [half])


def _round_to_odd(x: Scalar) -> Scalar:
    """Returns a double as a single, with the last bit set if it is not exact."""
    nearest = convert_float(x, float32())
    back = convert_float(nearest, x.type)
    is_beyond = abs(back) > abs(x)
    toward_zero = nearest.bits() - select(is_beyond, nearest.bits().constant(1), 0)
    is_inexact = back != x
    return bitcast(select(is_inexact, toward_zero | 1, toward_zero), float32())


_BODIES = frozenset(
    f"stablehlo.{name}"
    for name in ("reduce", "reduce_window", "scatter", "select_and_scatter", "sort")
)


class RoundToBfloat16(RewritePass):
    """Rounds numbers to bf16's precision before they are converted to bf16.

    The fact: CPUs have no arithmetic in bf16, so IREE computes in f32 within a dispatch
    (`iree-convert-bf16-arith-to-f32`), and only rounds numbers that it writes to memory. A
    conversion to bf16 has no effect if its result is read in the same dispatch:
    `x.astype(bfloat16) == x` was true for all numbers.

    1. Visit each conversion to bf16 from another float type, except if its result is only returned,
       and except in bodies of reductions and the like.
    2. Round to f32 numbers that are also bf16 numbers: to the upper half of their bits, ties to
       even; nan does not change. Then convert, which is exact.

    Before::

        %0 = stablehlo.convert %x : (tensor<9xf32>) -> tensor<9xbf16>
        %1 = stablehlo.convert %0 : (tensor<9xbf16>) -> tensor<9xf32>

    After::

        %0 = linalg.generic {…} ins(%x : tensor<9xf32>) … { ^bb0(%in: f32, %out: bf16): … }
        %1 = stablehlo.convert %0 : (tensor<9xbf16>) -> tensor<9xf32>
    """

    name: ClassVar[str] = "round-to-bfloat16"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.convert",)

    def rewrite(self, operation: ir.Operation) -> list[ir.Value] | None:
        """Builds the loop."""
        operand, result = operation.operands[0], operation.results[0]
        element = hlo.element_type_of(result)
        source = hlo.element_type_of(operand)
        if not isinstance(element, ir.BF16Type) or element == source:
            return None
        if not isinstance(source, ir.F16Type | ir.F32Type | ir.F64Type):
            return None
        if operation.parent.name in _BODIES or _is_only_returned(result):
            return None
        single = hlo.convert(operand, np.float32)
        return elementwise(
            self.name, [single], lambda x: convert_float(_rounded(x), element), [element]
        )


def _is_only_returned(result: ir.Value) -> bool:
    return all(use.owner.operation.name == "func.return" for use in result.uses)


def _rounded(x: Scalar) -> Scalar:
    bits = x.bits()
    upward = ((bits >> 16) & 1) + 0x7FFF
    nearest = bitcast((bits + upward) & ~0xFFFF, float32())
    return select(x != x, x, nearest)


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
