"""`expand-remainder`: exact remainders of floats and signed integers for Vulkan."""

from __future__ import annotations

import math
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.expressions import is_nan, maximum, minimum, select
from axir.dialect.builders.scalars import (
    Scalar,
    bitcast,
    convert_float,
    copy_sign,
    extend_unsigned,
    float32,
    operation,
    to_float,
    truncate,
)
from axir.passes.legalize.elementwise_loops import elementwise
from axir.passes.legalize.rewriting import RewritePass

# A remainder has 24 bits; shifted by so many it has 63, which a signed integer holds.
_BITS_AT_ONCE = 39
_MAGNITUDE = 0x7FFFFFFF
_LARGEST_DIFFERENCE = 277  # of exponents, also of denormals


def remainder(x: Scalar, y: Scalar) -> Scalar:
    """x - y trunc(x / y) in single precision, exactly; nan for infinite x and for y = 0."""
    dividend, exponent = _parts(x)
    divisor, smaller_exponent = _parts(y)
    wide = extend_unsigned(divisor, 64)
    wide = select(wide == 0, 1, wide)
    rest = _modulo(extend_unsigned(dividend, 64), wide)
    left = maximum(exponent - smaller_exponent, 0)
    for _ in range(-(-_LARGEST_DIFFERENCE // _BITS_AT_ONCE)):
        bits = minimum(left, _BITS_AT_ONCE)
        rest = _modulo(rest << extend_unsigned(bits, 64), wide)
        left = left - bits
    magnitude = to_float(truncate(rest, 32), float32())
    # rest 2^(exponent - 150), in two steps, since the power itself may be denormal.
    half = (smaller_exponent - 150).shift_right_signed(1)
    for power in (half, smaller_exponent - 150 - half):
        magnitude = magnitude * bitcast((power + 127) << 23, float32())
    result = copy_sign(magnitude, x)
    # In integers, since machines may take denormal numbers for zeros.
    result = select((x.bits() & _MAGNITUDE) < (y.bits() & _MAGNITUDE), x, result)
    is_undefined = is_nan(x) | is_nan(y) | (divisor == 0) | (abs(x) == math.inf)
    return select(is_undefined, math.nan, result)


def _parts(x: Scalar) -> tuple[Scalar, Scalar]:
    """|x| = mantissa 2^(exponent - 150) with integers."""
    bits = x.bits() & _MAGNITUDE
    field = bits >> 23
    mantissa = select(field == 0, bits, (bits & 0x7FFFFF) | 0x800000)
    return mantissa, maximum(field, 1)


def _modulo(x: Scalar, y: Scalar) -> Scalar:
    return operation("arith.remsi", (x, y))


class ExpandRemainder(RewritePass):
    """Writes out remainders of signed integers and of floats of up to 32 bits.

    The fact: SPIR-V computes x - y trunc(x / y) with a rounded quotient. The remainder of 1e5 by 3
    may then have no correct digit, and the remainder of 1 by infinity is nan. IREE's remainder of
    the smallest integer has the wrong sign.

    1. Integers: x - (x / y) y, where (x / y) of zero divisors makes it x.
    2. Floats: with x = m 2^d and y = n in units of y's last place, m 2^d modulo n in integers, 39
       of the d bits at once.

    Before::

        %0 = stablehlo.remainder %x, %y : tensor<4xi32>

    After::

        %1 = stablehlo.divide %x, %y : tensor<4xi32>
        %2 = stablehlo.multiply %1, %y : tensor<4xi32>
        %0 = stablehlo.subtract %x, %2 : tensor<4xi32>
    """

    name: ClassVar[str] = "expand-remainder"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.remainder",)

    def rewrite(self, operation: ir.Operation) -> ir.Value | list[ir.Value] | None:
        """Builds the formula."""
        x, y = operation.operands
        element = hlo.element_type_of(x)
        if hlo.is_integer(x) and not hlo.is_unsigned(x):
            return hlo.subtract(x, hlo.multiply(hlo.divide(x, y), y))
        if not isinstance(element, ir.FloatType) or element.width > 32:
            return None

        def body(x: Scalar, y: Scalar) -> Scalar:
            wide = (convert_float(x, float32()), convert_float(y, float32()))
            return convert_float(remainder(*wide), element)

        return elementwise(operation.name, [x, y], body, [element])
