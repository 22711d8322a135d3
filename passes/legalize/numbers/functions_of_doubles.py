"""Trigonometric and other functions of doubles, for code that has no C library to call.

Fitted polynomials, and arithmetic that is exact where it matters. Elsewhere: exponentials and
logarithms (`expand_hyperbolic.py`), single precision (`expand_trigonometry.py`,
`expand_inverse_trigonometry.py`).
"""

from __future__ import annotations

import math

from iree.compiler import ir

from axir.dialect.builders.expressions import is_nan, polynomial, select, sqrt
from axir.dialect.builders.scalars import (
    Scalar,
    bitcast,
    copy_sign,
    float64,
    fused_multiply_add,
    operation,
    to_float,
)
from axir.passes.legalize.doubles import ROUNDING, Double

# (sin(r)/r - 1)/r^2 and (cos(r) - 1 + r^2/2)/r^4 in r^2 on |r| <= pi/4, and (atan(t)/t - 1)/t^2 in
# t^2 on t <= tan(pi/8): at Chebyshev nodes, relative errors 6e-18, 1e-18 and 3e-18.
_SINE = (
    -0.16666666666666666,
    0.008333333333333331,
    -0.00019841269841265063,
    2.7557319219337312e-06,
    -2.5052106231802837e-08,
    1.6058531516797758e-10,
    -7.586691094197958e-13,
)
_COSINE = (
    0.041666666666666664,
    -0.0013888888888887398,
    2.480158729876456e-05,
    -2.7557317271145144e-07,
    2.087614614655861e-09,
    -1.1382623647474604e-11,
)
_ATAN = (
    -0.3333333333333333,
    0.19999999999999804,
    -0.14285714285659779,
    0.11111111105150588,
    -0.09090908753259112,
    0.07692296368042296,
    -0.0666642476020052,
    0.05878927554473807,
    -0.05230443640686948,
    0.045515447340221615,
    -0.03456931506332609,
    0.016284375050043393,
)
_TAN_PI_8 = math.tan(math.pi / 8)
# pi/2 and its multiples as sums of doubles.
_HALF_PI = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33)
_QUARTER, _HALF, _WHOLE = ((k * _HALF_PI[0], k * _HALF_PI[1]) for k in (0.5, 1, 2))
# From here on n pi/2 in three doubles is not exact enough relative to the remainder.
_LARGE = 2.0**28
_TINY = 2.0**-27
# The first 1,280 binary digits of 2/pi, behind the point.
_DIGITS = 1280
_TWO_OVER_PI = int(
    "a2f9836e4e441529fc2757d1f534ddc0db6295993c439041fe5163abdebbc561b7246e3a424dd2e006492eea09d1921c"
    "fe1deb1cb129a73ee88235f52ebb4484e99c7026b45f7e413991d639835339f49c845f8bbdf9283b1ff897ffde05980f"
    "ef2f118b5a0a6d1f6d367ecf27cb09b74f463f669e5fea2d7527bac7ebe5f17b3d0739f78a5292ea6bfb5fb11f8d5d08"
    "56033046fc7b6babf0cfbc209af4361d",
    16,
)
_WORD = 64
# x = m 2^e with m < 2^53: e is at least this where |x| is large.
_LEAST_EXPONENT = 28 - 52


# Sine, cosine, tangent ---------------------------------------------------------------------------


def sine(x: Scalar) -> Scalar:
    """sin x, to one unit in the last place; sin(tiny) = tiny, sin(-0) = -0, nan for infinities."""
    angle, quadrant = reduce_angle(x)
    return select(abs(x) < _TINY, x, _sine_in_quadrant(angle, quadrant))


def cosine(x: Scalar) -> Scalar:
    """cos x, to one unit in the last place."""
    angle, quadrant = reduce_angle(x)
    return _sine_in_quadrant(angle, quadrant + 1)


def tangent(x: Scalar) -> Scalar:
    """tan x, to two units in the last place."""
    angle, quadrant = reduce_angle(x)
    sin, cos = _sine_and_cosine(angle)
    is_odd = (quadrant & 1) == 1
    ratio = select(is_odd, -cos, sin) / select(is_odd, sin, cos)
    return select(abs(x) < _TINY, x, ratio)


def reduce_angle(x: Scalar) -> tuple[Double, Scalar]:
    """x = angle + quadrant pi/2 modulo 2 pi, with |angle| <= pi/4; nan for infinities.

    The quadrant is an i64; only its last two bits count.
    """
    near, near_quadrant = _reduce_small(x)
    far, far_quadrant = _reduce_large(x)
    is_small, is_finite = abs(x) < _LARGE, abs(x) < math.inf
    high = select(is_finite, select(is_small, near[0], far[0]), math.nan)
    return (high, select(is_small, near[1], far[1])), select(is_small, near_quadrant, far_quadrant)


def _reduce_small(x: Scalar) -> tuple[Double, Scalar]:
    """Cody and Waite's reduction: subtract n pi/2 in three parts, the first one exactly."""
    rounded = fused_multiply_add(x, x.constant(2 / math.pi), x.constant(ROUNDING))
    count = rounded - ROUNDING
    first, second, third = map(x.constant, _HALF_PI)
    rest = fused_multiply_add(-count, first, x)
    part = count * second
    lost = fused_multiply_add(count, second, -part)
    high, low = _difference(rest, part)
    low = low - lost - count * third
    total = high + low
    return (total, (high - total) + low), rounded.bits()


def _difference(x: Scalar, y: Scalar) -> Double:
    """Returns x - y and its rounding error (Knuth)."""
    total = x - y
    other = total - x
    return total, (x - (total - other)) - (y + other)


def _reduce_large(x: Scalar) -> tuple[Double, Scalar]:
    """Payne and Hanek's reduction: the fraction of x 2/pi in 64-bit integers.

    x = m 2^e. For m (2^e 2/pi) modulo 4 only the digits of 2/pi from number e - 2 on matter; 192 of
    them leave 63 digits of the fraction even if its first 62 are zeros.
    """
    bits = x.bits()
    mantissa = (bits & ((1 << 52) - 1)) | (1 << 52)
    first = ((bits >> 52) & 2047) - (1075 + _LEAST_EXPONENT)  # digits to leave out
    first = select(first < 0, 0, first)
    words = _window(first)
    low_high, low = _product(mantissa, words[1])
    least_high, _ = _product(mantissa, words[2])
    middle = low + least_high
    carried = select(_is_below(middle, low), bits.constant(1), 0)
    turns = mantissa * words[0] + low_high + carried  # two digits of the quadrant, then the rest
    nearest = turns + (1 << 61)
    quadrant = nearest >> 62
    # 126 digits of the fraction, which now has a sign: 53 of them exactly, then the others. The
    # digits are taken from its absolute value, because a small negative number would lose them all.
    signed = ((nearest << 2) | (middle >> 62)) - (1 << 63)
    sign = signed.shift_right_signed(63)
    high_digits, low_digits = signed ^ sign, (middle << 2) ^ sign
    over = to_float(high_digits & ~0x7FF, float64()) * 2.0**-64
    rest = to_float(low_digits >> 1, float64()) * 2.0**-127
    under = to_float(high_digits & 0x7FF, float64()) * 2.0**-64 + rest
    total = over + under
    angle = _times_half_pi((total, (over - total) + under))
    is_negative = (bits ^ sign) < 0
    high, low = (select(is_negative, -part, part) for part in angle)
    return (high, low), select(bits < 0, -quadrant, quadrant)


def _window(first: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    """Returns 192 digits of 2/pi; digit 0 is the first that x >= `_LARGE` needs."""
    total = _DIGITS + 2 - _LEAST_EXPONENT  # with zeros before the point
    ends = range(total - _WORD, 0, -_WORD)
    digits = [(_TWO_OVER_PI >> end) & (2**_WORD - 1) for end in ends]
    place = first >> 6
    # Numbers of words are below 16, so each number has four bits, with a select for each.
    taken = [_chosen(place, digits[k : k + 16]) for k in range(4)]
    within = first & 63
    high, middle, low = (
        (taken[k] << within) | ((taken[k + 1] >> 1) >> (63 - within)) for k in range(3)
    )
    return high, middle, low


def _chosen(place: Scalar, words: list[int]) -> Scalar:
    """Returns the word at a place, by its binary digits; the last word for places behind it."""
    choices = [place.constant(word) for word in words]
    bit = 1
    while len(choices) > 1:
        is_odd = (place & bit) != 0
        pairs = zip(choices[::2], [*choices[1::2], choices[-1]], strict=False)
        choices = [even if even is odd else select(is_odd, odd, even) for even, odd in pairs]
        bit *= 2
    return choices[0]


def _product(x: Scalar, y: Scalar) -> tuple[Scalar, Scalar]:
    """Returns the high and the low half of the 128 bits of a product of unsigned integers."""
    made = ir.Operation.create(
        "arith.mului_extended", results=[x.type, x.type], operands=[x.value, y.value]
    )
    return Scalar(made.results[1]), Scalar(made.results[0])


def _is_below(x: Scalar, y: Scalar) -> Scalar:
    """x < y of unsigned integers."""
    top = 1 << 63
    return (x ^ top) < (y ^ top)


def _times_half_pi(x: Double) -> Double:
    first, second = _HALF_PI[:2]
    product = x[0] * first
    lost = fused_multiply_add(x[0], x[0].constant(first), -product)
    rest = lost + (x[0] * second + x[1] * first)
    total = product + rest
    return total, (product - total) + rest


def _sine_and_cosine(angle: Double) -> tuple[Scalar, Scalar]:
    """Polynomials on [-pi/4, pi/4], with the angle's rounding error to first order."""
    x, rest = angle
    square = x * x
    half = square * 0.5
    cubic = x * square * polynomial(square, _SINE)
    sin = x + (cubic + rest * (1 - half))
    whole = 1 - half
    cos = whole + (
        ((1 - whole) - half) + (square * square * polynomial(square, _COSINE) - x * rest)
    )
    return sin, cos


def _sine_in_quadrant(angle: Double, quadrant: Scalar) -> Scalar:
    sin, cos = _sine_and_cosine(angle)
    magnitude = select((quadrant & 1) == 1, cos, sin)
    return bitcast(magnitude.bits() ^ ((quadrant & 2) << 62), float64())


# Inverses ----------------------------------------------------------------------------------------


def arc_tangent_2(y: Scalar, x: Scalar) -> Scalar:
    """Returns the angle of the point (x, y), to two units in the last place.

    Zeros and infinities as C99 (annex F.9.1.4) has them: atan2(-0, -1) = -pi, atan2(0, 0) = 0.
    """
    width, height = abs(x), abs(y)
    is_steep = height > width
    larger, smaller = select(is_steep, height, width), select(is_steep, width, height)
    # Halves and doubles of numbers at the ends of the range, so that nothing overflows or is lost.
    scale = select(larger > 2.0**1000, x.constant(2.0**-100), 1)
    scale = select(larger < 2.0**-900, 2.0**100, scale)
    larger, smaller = larger * scale, smaller * scale
    # Both infinite, or both zero: the direction of the diagonal, or of the axis.
    is_even = larger == smaller
    slope = select(is_even, select(larger == 0, larger, 1), smaller / larger)
    lost = fused_multiply_add(-slope, larger, smaller) / larger
    is_regular = (larger > 0) & (larger < math.inf) & (slope > 2.0**-900)
    angle = _arc_tangent_below_one(slope, select(is_even, 0, select(is_regular, lost, 0)))
    angle = select(is_steep, (_HALF[0] - angle) + _HALF[1], angle)
    angle = select(x.is_negative(), (_WHOLE[0] - angle) + _WHOLE[1], angle)
    angle = select(is_nan(x) | is_nan(y), math.nan, angle)
    return copy_sign(angle, y)


def _arc_tangent_below_one(slope: Scalar, lost: Scalar) -> Scalar:
    """atan(t + lost) for 0 <= t <= 1; above tan(pi/8) it is pi/4 + atan((t - 1) / (t + 1))."""
    is_high = slope > _TAN_PI_8
    reduced = select(is_high, (slope - 1) / (slope + 1), slope)
    square = reduced * reduced
    correction = lost / (1 + slope * slope)
    rest = reduced * square * polynomial(square, _ATAN) + correction
    return select(is_high, _QUARTER[0] + (reduced + (rest + _QUARTER[1])), reduced + rest)


def arc_tangent(x: Scalar) -> Scalar:
    """atan x, to two units in the last place."""
    return arc_tangent_2(x, x.constant(1))


def arc_sine(x: Scalar) -> Scalar:
    """asin x, to three units in the last place; nan where |x| > 1."""
    return arc_tangent_2(x, sqrt((1 - x) * (1 + x)))


def arc_cosine(x: Scalar) -> Scalar:
    """acos x, to three units in the last place; nan where |x| > 1."""
    return arc_tangent_2(sqrt((1 - x) * (1 + x)), x)


# Others ------------------------------------------------------------------------------------------


def remainder(x: Scalar, y: Scalar) -> Scalar:
    """x - y n with n = x / y without its fraction, which is exact; nan for y = 0 and infinite x.

    x = a 2^i and y = b 2^j with whole numbers a and b of up to 53 bits, i >= j: the result is
    (a 2^(i - j) modulo b) 2^j. The power is made by squaring, modulo b.
    """
    dividend, divisor = abs(x), abs(y)
    is_regular = (divisor > 0) & (dividend < math.inf) & (dividend >= divisor)
    a, i = _whole_and_exponent(select(is_regular, dividend, 1))
    b, j = _whole_and_exponent(select(is_regular, divisor, 1))
    modulus = _Modulus(b)
    distance = i - j  # up to 2097: 12 bits; the upper 6 are a power of up to 2^32
    one = a.constant(1)
    power = modulus.reduced(one << (distance >> 6))
    for bit in range(5, -1, -1):
        power = modulus.product(power, power)
        power = modulus.reduced_once(power << ((distance >> bit) & 1))
    whole = to_float(modulus.product(modulus.reduced(a), power), float64())
    exponent = j - 1075
    half = exponent.shift_right_signed(1)
    first, second = (bitcast((part + 1023) << 52, float64()) for part in (half, exponent - half))
    result = select(is_regular, whole * first * second, dividend)
    is_undefined = is_nan(x) | is_nan(y) | (divisor == 0) | (dividend == math.inf)
    return copy_sign(select(is_undefined, math.nan, result), x)


def _whole_and_exponent(x: Scalar) -> tuple[Scalar, Scalar]:
    """x = whole 2^(exponent - 1075) for finite x > 0."""
    bits = x.bits()
    exponent, fraction = bits >> 52, bits & ((1 << 52) - 1)
    is_denormal = exponent == 0
    whole = fraction | select(is_denormal, bits.constant(0), 1 << 52)
    return whole, select(is_denormal, bits.constant(1), exponent)


class _Modulus:
    """Arithmetic of whole numbers modulo one of up to 53 bits."""

    def __init__(self, modulus: Scalar):
        self._modulus = modulus
        self._double = to_float(modulus, float64())

    def reduced(self, x: Scalar) -> Scalar:
        """Returns x modulo the modulus, for 0 <= x < 2^54."""
        return self._rest(x, to_float(x, float64()))

    def reduced_once(self, x: Scalar) -> Scalar:
        """Returns x modulo the modulus, for x less than twice as large."""
        return select(x >= self._modulus, x - self._modulus, x)

    def product(self, x: Scalar, y: Scalar) -> Scalar:
        """Returns x y modulo the modulus, for both below it."""
        return self._rest(x * y, to_float(x, float64()) * to_float(y, float64()))

    def _rest(self, low: Scalar, value: Scalar) -> Scalar:
        """Returns a number, by its low 64 bits and its rounded value, modulo the modulus.

        The quotient is rounded three times, so that it is off by two at most. The remainder is
        therefore small, and fits into its low 64 bits.
        """
        kind = low.type
        quotient = operation("arith.fptosi", (value / self._double,), kind)
        rest = low - quotient * self._modulus
        rest = select(rest < 0, rest + 4 * self._modulus, rest)
        for factor in (4, 2, 1):
            multiple = factor * self._modulus
            rest = select(rest >= multiple, rest - multiple, rest)
        return rest
