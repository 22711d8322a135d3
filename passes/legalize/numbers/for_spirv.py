"""Elementwise operations that SPIR-V lacks, as formulas of others.

Here: leading zeros, quotients and remainders of integers, remainders of floats, fused multiply-adds
of doubles.
Elsewhere: sums that SPIR-V's compiler reorders (`keep_roundings.py`), operations with no formula
(`refuse_unsupported.py`).
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
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
from axir.passes.framework.base import Pass
from axir.passes.legalize.elementwise_loops import elementwise
from axir.passes.legalize.rewriting import RewritePass, replace

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


_SIGNED = {8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}


class DivideBySigned(RewritePass):
    """Divides unsigned integers with operations on signed ones.

    The fact: for SPIR-V IREE does not compile quotients and remainders of unsigned integers where
    each thread has one element ("bitwidth emulation is not implemented yet on unsigned op").

    1. For a divisor of 2^(w-1) or more the quotient is 0 or 1. For other divisors halve the
       dividend, which is then not negative, divide, and double the quotient: it is correct, or one
       too small (H. Warren, Hacker's Delight, 9-3).
    2. By zero the quotient is all ones and the remainder the dividend, as everywhere.

    Before::

        %0 = stablehlo.divide %x, %y : tensor<4xui32>

    After::

        %1 = stablehlo.shift_right_logical %x, %one : tensor<4xui32>
        ...
        %5 = stablehlo.divide %2, %3 : tensor<4xi32>
    """

    name: ClassVar[str] = "divide-by-signed"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.divide", "stablehlo.remainder")

    def rewrite(self, operation: ir.Operation) -> ir.Value | None:
        """Builds the formula, for unsigned integers."""
        x, y = operation.operands
        if not hlo.is_unsigned(x):
            return None
        width = hlo.element_type_of(x).width
        one, zero = hlo.full_like(x, 1), hlo.full_like(x, 0)
        half = _signed(hlo.shift_right_logical(x, one), width)
        is_large = hlo.compare(y, hlo.full_like(y, 2 ** (width - 1)), "GE")
        # A divisor that is not needed must not be zero or negative either.
        divisor = hlo.select(hlo.or_(is_large, hlo.compare(y, zero, "EQ")), one, y)
        halves = _unsigned(hlo.divide(half, _signed(divisor, width)), x)
        small = hlo.select(is_large, zero, hlo.shift_left(halves, one))
        rest = hlo.subtract(x, hlo.multiply(small, y))
        is_short = hlo.compare(rest, y, "GE")
        is_zero = hlo.compare(y, zero, "EQ")
        if operation.name == "stablehlo.divide":
            quotient = hlo.add(small, hlo.select(is_short, one, zero))
            return hlo.select(is_zero, hlo.full_like(x, 2**width - 1), quotient)
        remainder = hlo.subtract(rest, hlo.select(is_short, y, zero))
        return hlo.select(is_zero, x, remainder)


def _signed(x: ir.Value, width: int) -> ir.Value:
    return hlo.bitcast_convert(x, _SIGNED[width])


def _unsigned(x: ir.Value, like: ir.Value) -> ir.Value:
    return hlo.bitcast_convert(x, hlo.element_type_of(like))


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


_LOW_BITS = 27  # of the 53 of a mantissa


class WriteOutFusedProducts(Pass):
    """Writes out `math.fma` of f64.

    The fact: SPIR-V's `Fma` may round twice (lavapipe's does), and functions of doubles use it for
    the rounding error of a product. With two roundings, exponentials are wrong in the last nine
    bits.

    1. Split each factor into its upper 26 bits and the rest. The products of these parts are exact
       (T. J. Dekker 1971); their sum minus the rounded product is the rounding error. The split
       masks bits, because compilers simplify a split by the factor 2^27 + 1 away.
    2. Add the rounded product and the third operand, which cancel where functions need it, and then
       the rounding error of the product.

    Before::

        %0 = math.fma %x, %y, %z : f64

    After::

        %1 = arith.mulf %x, %y : f64
        ...
        %0 = arith.addf %sum, %lack : f64
    """

    name: ClassVar[str] = "write-out-fused-products"

    def run(self, module: ir.Module) -> None:
        """Writes them out, in the bodies of loops over elements."""
        found: list[ir.Operation] = []

        def collect(operation: ir.Operation) -> ir.WalkResult:
            if operation.name == "math.fma" and isinstance(operation.results[0].type, ir.F64Type):
                found.append(operation)
            return ir.WalkResult.ADVANCE

        module.operation.walk(collect)
        for fused in found:
            with ir.InsertionPoint(fused), fused.location:
                replace(fused, [_written_out(*map(Scalar, fused.operands)).value])


def _written_out(x: Scalar, y: Scalar, z: Scalar) -> Scalar:
    """Returns x y + z."""
    product = x * y
    (x_high, x_low), (y_high, y_low) = _halves(x), _halves(y)
    lack = (x_high * y_high - product) + x_high * y_low + x_low * y_high + x_low * y_low
    return (product + z) + lack


def _halves(x: Scalar) -> tuple[Scalar, Scalar]:
    """Returns the upper bits of a double as one double, and the rest as another."""
    high = bitcast((x.bits() >> _LOW_BITS) << _LOW_BITS, x.type)
    return high, x - high
