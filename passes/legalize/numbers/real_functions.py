"""Cube roots, powers, rounding and the digamma function of real numbers.

Here: a pass for each function, with its formula.
Elsewhere: trigonometric functions (`expand_trigonometry.py`, `expand_inverse_trigonometry.py`),
exponentials and hyperbolic functions (`expand_hyperbolic.py`), functions of doubles without a C
library (`expand_c_functions.py`).
"""

from __future__ import annotations

import math
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.expressions import floor, is_nan, maximum, minimum, polynomial, select
from axir.dialect.builders.scalars import (
    Scalar,
    bitcast,
    convert_float,
    copy_sign,
    extend_unsigned,
    float32,
    float64,
    fused_multiply_add,
    operation,
    to_float,
    truncate,
)
from axir.passes.legalize.doubles import (
    ATANH,
    EXP2_MINUS_ONE,
    ROUNDING,
    THIRD_REST,
    Double,
    product,
    split_mantissa,
)
from axir.passes.legalize.elementwise_loops import elementwise
from axir.passes.legalize.rewriting import RewritePass

# The high word of the double cbrt(x) is about a third of the high word of x plus this.
_THIRD_OF_BIAS = 715094163
_HALLEY_STEPS = 3


def cube_root(x: Scalar) -> Scalar:
    """Returns the cube root of a double, to one unit in the last place.

    The first guess, a third of the bits, is within 5 %; each step of Halley's method triples the
    number of right digits, and a step of Newton's with an exact residual rounds.
    """
    magnitude = abs(x)
    # Cubes of numbers near the ends of the range would overflow.
    is_small, is_large = magnitude < 1e-200, magnitude > 1e200
    scaled = magnitude * _scale(is_small, is_large, x.constant(2.0**300))
    # Arithmetic may treat denormal numbers as zeros, unlike comparisons.
    is_regular = (scaled > 0) & (scaled < math.inf)
    regular = select(is_regular, scaled, 1)
    high = truncate(regular.bits() >> 32, 32)  # positive, so that signed quotients are right
    third = operation("arith.divsi", (high, high.constant(3))) + _THIRD_OF_BIAS
    root = bitcast(extend_unsigned(third, 64) << 32, float64())
    for _ in range(_HALLEY_STEPS):
        cube = root * root * root
        root = root * (cube + 2 * regular) / (2 * cube + regular)
    square = root * root
    square_rest = fused_multiply_add(root, root, -square)
    cube = square * root
    cube_rest = fused_multiply_add(square, root, -cube) + square_rest * root
    root = root - ((cube - regular) + cube_rest) / (3 * square)
    root = root * _scale(is_large, is_small, x.constant(2.0**100))
    return copy_sign(select(is_regular, root, magnitude), x)


def _scale(grows: Scalar, shrinks: Scalar, factor: Scalar) -> Scalar:
    """Returns the factor, its inverse, or one."""
    return select(grows, factor, select(shrinks, 1 / factor, 1))


class ExpandCubeRoot(RewritePass):
    """Writes out cube roots.

    The fact: IREE does not compile cbrt of f64; its f32 one is 11 units in the last place off and
    nan for infinities.

    1. Widen to f64.
    2. Guess by a third of the bits, then three steps of Halley's method and one of Newton's.
    3. Zeros, infinities and nan are their own cube roots; the result has the sign of x.

    Before::

        %0 = stablehlo.cbrt %x : tensor<9xf32>

    After::

        %0 = linalg.generic {…} ins(%x : tensor<9xf32>) … { ^bb0(%in: f32, %out: f32): … }
    """

    name: ClassVar[str] = "expand-cube-root"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.cbrt",)

    def rewrite(self, operation: ir.Operation) -> list[ir.Value]:
        """Builds the loop."""
        element = hlo.element_type_of(operation.results[0])

        def body(x: Scalar) -> Scalar:
            return convert_float(cube_root(convert_float(x, float64())), element)

        return elementwise(operation.name, operation.operands, body, [element])


# log2(m) = s P(s^2) with s = (m - 1) / (m + 1), for m in [sqrt(1/2), sqrt(2)]. These and the
# following polynomials interpolate at Chebyshev nodes; relative error 3e-14.
_LOG2 = (
    2.88539008177785,
    0.9617966941132127,
    0.5770779423594591,
    0.412209256786155,
    0.3199053739227617,
    0.2829066165906811,
)
# 2^f on [-1/2, 1/2]; relative error 6e-11.
_EXP2 = (
    0.9999999999595618,
    0.6931471805568324,
    0.24022651213498092,
    0.055504109063258665,
    0.009618025613318034,
    0.0013333478473685416,
    0.00015469729214118296,
    1.5303700711365693e-05,
)
_TWO_OVER_LN2 = (2.8853900817779268, 4.0710547481862066e-17)  # the number and its rounding error


def power(x: Scalar, y: Scalar) -> Scalar:
    """x^y by the rules of C99 (annex F.9.4.4), in single or double precision.

    The error is below one unit in the last place; denormal results may be 0.
    """
    magnitude = (_magnitude_single if x.width == 32 else _magnitude_double)(abs(x), y)
    magnitude = select(abs(x) == 1, 1, magnitude)
    half = y * 0.5
    is_integer = floor(y) == y
    is_odd = is_integer & (floor(half) != half)
    result = select(x.is_negative() & is_odd, -magnitude, magnitude)
    is_undefined = (x < 0) & (x > -math.inf) & ~is_integer
    result = select(is_undefined | is_nan(x) | is_nan(y), math.nan, result)
    # Machines treat denormal exponents as zeros, but LLVM does not for a constant exponent.
    smallest = 2.0**-126 if x.width == 32 else 2.0**-1022
    return select((abs(y) < smallest) | (x == 1), 1, result)


def _magnitude_single(x: Scalar, y: Scalar) -> Scalar:
    """2^(y log2 x) for x >= 0, in double precision."""
    mantissa, exponent = split_mantissa(x, mantissa_bits=23, root_half=0x3F3504F3)
    wide = convert_float(mantissa, float64())
    ratio = (wide - 1) / (wide + 1)
    logarithm = to_float(exponent, float64()) + ratio * polynomial(ratio * ratio, _LOG2)
    logarithm = select(x == 0, -math.inf, select(x < math.inf, logarithm, math.inf))
    scaled = convert_float(y, float64()) * logarithm
    scaled = minimum(maximum(scaled, -300), 300)
    rounded = scaled + ROUNDING
    fraction = polynomial(scaled - (rounded - ROUNDING), _EXP2)
    scale = bitcast((rounded.bits() + 1023) << 52, float64())
    return convert_float(fraction * scale, float32())


def _magnitude_double(x: Scalar, y: Scalar) -> Scalar:
    """2^(y log2 x) for x >= 0; the logarithm and the product as sums of two doubles."""
    high, low = _log2_double(x)
    scaled = y * high
    rest = fused_multiply_add(y, high, -scaled) + y * low
    # Far outside the range, and where infinities meet, only the sign matters.
    is_moderate = abs(scaled) < 2000
    rest = select(is_moderate, rest, 0)
    scaled = minimum(maximum(scaled, -2000), 2000)
    rounded = scaled + ROUNDING
    fraction = (scaled - (rounded - ROUNDING)) + rest
    result = 1 + fraction * polynomial(fraction, EXP2_MINUS_ONE)
    count = rounded.bits() - x.constant(ROUNDING).bits()
    half = count.shift_right_signed(1)
    for part in (half, count - half):  # 2^count itself may be out of range
        result = result * bitcast((part + 1023) << 52, float64())
    return result


def _log2_double(x: Scalar) -> Double:
    """log2 x as a sum of two doubles, to 2^-65."""
    mantissa, exponent = split_mantissa(x, mantissa_bits=52, root_half=0x3FE6A09E667F3BCD)
    over, under = mantissa - 1, mantissa + 1
    under_rest = mantissa - (under - 1)
    ratio = over / under
    remainder = fused_multiply_add(-ratio, under, over) - ratio * under_rest
    ratio_rest = remainder / under
    # atanh(s) = s + s (s^2 / 3 + s^4 …): the second summand needs its low part as well.
    square = ratio * ratio
    square_rest = fused_multiply_add(ratio, ratio, -square) + 2 * ratio * ratio_rest
    tail = square * polynomial(square, ATANH[1:])
    third = tail + 1 / 3
    third_rest = tail - (third - 1 / 3) + THIRD_REST
    growth, growth_rest = product((square, square_rest), (third, third_rest))
    factor = (ratio.constant(_TWO_OVER_LN2[0]), ratio.constant(_TWO_OVER_LN2[1]))
    leading, leading_rest = product((ratio, ratio_rest), factor)
    higher, higher_rest = product((leading, leading_rest), (growth, growth_rest))
    logarithm = leading + higher
    logarithm_rest = higher - (logarithm - leading) + (leading_rest + higher_rest)
    count = to_float(exponent, float64())
    total = count + logarithm
    rest = (logarithm - (total - count)) + logarithm_rest
    high = total + rest
    low = rest - (high - total)
    is_regular = (x > 0) & (x < math.inf)
    high = select(is_regular, high, select(x == 0, high.constant(-math.inf), math.inf))
    return high, select(is_regular, low, 0)


class ExpandPower(RewritePass):
    """Writes out powers of real numbers.

    The fact: IREE computes x^y as exp(y log x): nan for every negative x, for 0^0 and 0^2, and
    30 units in the last place off for ordinary numbers.

    1. Widen f16 and bf16 to f32.
    2. |x| = m 2^k with m in [sqrt(1/2), sqrt(2)]; log2|x| = k + log2 m by a polynomial in
       (m - 1) / (m + 1). In double precision if x is single, else as the sum of two doubles.
    3. 2^(y log2|x|): the nearest integer goes into the exponent, the rest into a polynomial.
    4. Negative x: odd integers y negate the result, other integers do not, the rest give nan.
    5. x^0 = 1^y = 1, also for nan. Zeros and infinities follow from log2 0 = -inf.

    Before::

        %0 = stablehlo.power %x, %y : tensor<9xf32>

    After::

        %0 = linalg.generic {…} ins(%x, %y : tensor<9xf32>, tensor<9xf32>) …

    Powers of integers are already correct; `expand-complex` handles complex powers.
    """

    name: ClassVar[str] = "expand-power"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.power",)

    def rewrite(self, operation: ir.Operation) -> list[ir.Value] | None:
        """Builds the loop, for real numbers."""
        element = hlo.element_type_of(operation.results[0])
        if not isinstance(element, ir.FloatType):
            return None

        def body(x: Scalar, y: Scalar) -> Scalar:
            kind = element if element.width >= 32 else float32()
            return convert_float(power(convert_float(x, kind), convert_float(y, kind)), element)

        return elementwise(operation.name, operation.operands, body, [element])


_DIGITS = {32: 24, 64: 53}


def round_to_even(x: Scalar) -> Scalar:
    """Returns the nearest integer of a float or double; the even one of two.

    From 2^23 on (doubles 2^52) all numbers are integers, and a sum with that number is rounded to
    one, as numbers are: the nearest, halves to even ones.
    """
    magnitude = abs(x)
    smallest_integer = x.constant(2.0 ** (_DIGITS[x.width] - 1))
    rounded = (magnitude + smallest_integer) - smallest_integer
    return select(magnitude < smallest_integer, copy_sign(rounded, x), x)


class ExpandRounding(RewritePass):
    """Rounds by adding and subtracting a large number.

    The fact: IREE writes `math.roundeven` out as some twenty operations on the bits of a number,
    though it rounds up, down and towards zero by one instruction.

    1. Widen numbers that are narrower than f32.
    2. Add 2^23 (for f64 2^52) to the magnitude, and subtract it.
    3. Keep larger numbers and nan unchanged; give the others their sign.

    Before::

        %0 = stablehlo.round_nearest_even %x : tensor<9xf32>

    After::

        %0 = linalg.generic {…} ins(%x : tensor<9xf32>) … { ^bb0(%in: f32, %out: f32): … }
    """

    name: ClassVar[str] = "expand-rounding"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.round_nearest_even",)

    def rewrite(self, operation: ir.Operation) -> list[ir.Value]:
        """Builds the loop."""
        element = hlo.element_type_of(operation.results[0])

        def body(x: Scalar) -> Scalar:
            wide = x if x.width in _DIGITS else convert_float(x, float32())
            return convert_float(round_to_even(wide), element)

        return elementwise(operation.name, operation.operands, body, [element])


class DefineDigamma(RewritePass):
    """Makes digamma(0) nan, as at the other poles, and as in JAX.

    The fact: IREE computes -inf there.

    1. Compute as before, and select nan where x = 0.

    Before::

        %0 = chlo.digamma %x : tensor<9xf32>

    After::

        %0 = chlo.digamma %x : tensor<9xf32>
        %1 = stablehlo.select %is_zero, %nan, %0
    """

    name: ClassVar[str] = "define-digamma"
    operations: ClassVar[tuple[str, ...]] = ("chlo.digamma",)

    def rewrite(self, operation: ir.Operation) -> ir.Value:
        """Builds the select."""
        (operand,) = operation.operands
        is_zero = hlo.compare(operand, hlo.full_like(operand, 0), "EQ")
        value = hlo.digamma(operand)
        return hlo.select(is_zero, hlo.full_like(value, math.nan), value)
