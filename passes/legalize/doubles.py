"""Exponentials and logarithms of doubles, and the functions that they share with others.

A pair (high, low) stands for high + low, where low is the rounding error of the double high. The
formulas are T. J. Dekker's (1971), with fused multiply-adds.
"""

from __future__ import annotations

import math

from axir.dialect.builders.expressions import is_nan, maximum, minimum, polynomial, select
from axir.dialect.builders.scalars import (
    Scalar,
    bitcast,
    copy_sign,
    fused_multiply_add,
    operation,
    to_float,
)

# (atanh(s)/s - 1) / s^2 in s^2; relative error 2e-22.
ATANH = (
    0.3333333333333333,
    0.2,
    0.1428571428571425,
    0.11111111111126576,
    0.09090909087504616,
    0.07692308122312976,
    0.06666633655072883,
    0.058839172555775476,
    0.052185969555950736,
    0.05455528121999531,
)
# (2^f - 1) / f on [-1/2, 1/2]; relative error 3e-19.
EXP2_MINUS_ONE = (
    0.6931471805599453,
    0.24022650695910072,
    0.055504108664821625,
    0.00961812910762848,
    0.001333355814640647,
    0.00015403530393370734,
    1.5252733841556773e-05,
    1.3215486808705563e-06,
    1.0178057087733941e-07,
    7.0548973041554995e-09,
    4.4558179083360645e-10,
    2.5729324177362305e-11,
)
ROUNDING = 1.5 * 2.0**52  # adding it to a double leaves the nearest integer in the low bits

LOG2_E = (1.4426950408889634, 2.0355273740931033e-17)  # the number and its rounding error
LN2 = (0.6931471805599453, 2.3190468138462996e-17)
THIRD_REST = 1.850371707708594e-17  # 1/3 less the nearest double

Double = tuple[Scalar, Scalar]  # a sum: a double and its rounding error


def product(x: Double, y: Double) -> Double:
    """Returns the product of two sums of two doubles, without the product of their low parts."""
    product = x[0] * y[0]
    return product, fused_multiply_add(x[0], y[0], -product) + (x[0] * y[1] + x[1] * y[0])


def split_mantissa(x: Scalar, mantissa_bits: int, root_half: int) -> tuple[Scalar, Scalar]:
    """x = mantissa 2^exponent with the mantissa in [sqrt(1/2), sqrt(2)], for x > 0.

    The bits of a denormal number, read as an integer, are the number times a power of two.
    """
    bits = x.bits()
    is_denormal = bits < (1 << mantissa_bits)
    bits = select(is_denormal, to_float(bits, x.element).bits(), bits)
    smallest_exponent = -149 if mantissa_bits == 23 else -1074
    exponent = (bits - root_half).shift_right_signed(mantissa_bits)
    mantissa = bitcast(bits - (exponent << mantissa_bits), x.type)
    return mantissa, exponent + select(is_denormal, bits.constant(smallest_exponent), 0)


# Functions ---------------------------------------------------------------------------------------


def exponential(x: Scalar) -> Scalar:
    """e^x of a double, to one unit in the last place."""
    first, second, growth = _exponential_parts(x)
    return select(is_nan(x), x, (first + first * growth) * second)


def exponential_minus_one(x: Scalar) -> Scalar:
    """e^x - 1 of a double, to one unit in the last place."""
    first, second, growth = _exponential_parts(x)
    # Where 2^n may be out of range, adding or subtracting 1 has no effect.
    near = (first * second) * growth + (first * second - 1)
    far = (first + first * growth) * second
    result = select(abs(x) < 700, near, select(x > 0, far, -1))
    result = select(abs(x) < 2.0**-54, x, result)
    return select(is_nan(x), x, result)


def _exponential_parts(x: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    """e^x = first second (1 + growth), where first and second are powers of two."""
    bounded = minimum(maximum(x, -1400), 1400)
    factor, factor_rest = LOG2_E
    scaled = bounded * factor
    rest = fused_multiply_add(bounded, x.constant(factor), -scaled) + bounded * factor_rest
    rounded = scaled + ROUNDING
    fraction = (scaled - (rounded - ROUNDING)) + rest
    growth = fraction * polynomial(fraction, EXP2_MINUS_ONE)
    count = rounded.bits() - x.constant(ROUNDING).bits()
    half = count.shift_right_signed(1)
    first, second = (bitcast((part + 1023) << 52, x.type) for part in (half, count - half))
    return first, second, growth


def logarithm(x: Scalar) -> Scalar:
    """log x of a double, to one unit in the last place; 0 and infinity give infinities."""
    return _logarithm(x, x.constant(0))


def logarithm_plus_one(x: Scalar) -> Scalar:
    """log(1 + x) of a double, to two units in the last place."""
    total = 1 + x
    # The relative rounding error of the sum; the formula must not subtract infinity from itself.
    lost = select(x > 1, 1 - (total - x), x - (total - 1)) / total
    return select(abs(x) < 2.0**-54, x, _logarithm(total, lost))


def _logarithm(x: Scalar, lost: Scalar) -> Scalar:
    """log x + lost."""
    mantissa, exponent = split_mantissa(x, mantissa_bits=52, root_half=0x3FE6A09E667F3BCD)
    over, under = mantissa - 1, mantissa + 1
    ratio = over / under
    remainder = fused_multiply_add(-ratio, under, over) - ratio * (mantissa - (under - 1))
    square = ratio * ratio
    count = to_float(exponent, x.element)
    small = ratio * square * polynomial(square, ATANH) + remainder / under
    rest = 2 * small + (lost + count * LN2[1])
    regular = count * LN2[0] + (2 * ratio + rest)
    result = select((x > 0) & (x < math.inf), regular, math.nan)
    result = select(x == 0, -math.inf, result)
    return select(x == math.inf, math.inf, result)


def hyperbolic_tangent(x: Scalar) -> Scalar:
    """tanh x = w / (w + 2) with w = e^(2 |x|) - 1, to three units in the last place."""
    magnitude = abs(x)
    growth = exponential_minus_one(2 * select(magnitude > 20, 20, magnitude))
    result = select(magnitude > 20, 1, growth / (growth + 2))
    result = select(magnitude < 2.0**-28, magnitude, result)
    return copy_sign(select(is_nan(x), x, result), x)


def logistic(x: Scalar) -> Scalar:
    """1 / (1 + e^-x), to two units in the last place."""
    return 1 / (1 + exponential(-x))


def arc_tangent_2_of_c(y: Scalar, x: Scalar) -> Scalar:
    """Returns `atan2` of the C library with the sign of `y`; at the origin without a call."""
    at_origin = select(x.is_negative(), x.constant(math.pi), x.constant(0))
    angle = select((x == 0) & (y == 0), at_origin, operation("math.atan2", (y, x)))
    return copy_sign(angle, y)
