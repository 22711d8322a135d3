"""Functions of complex numbers, as formulas on their parts in double precision.

A number is the pair of its parts. Zeros, infinities and nan give the results that C99 (annex G)
prescribes. The formulas for inverse functions are W. Kahan's (Branch cuts for complex elementary
functions, 1987).

Elsewhere: functions of real numbers (`passes/legalize/numbers/expand_hyperbolic.py`), and the pass
(`complex_operations.py`).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

from axir.dialect.builders.expressions import is_nan, select, sqrt
from axir.dialect.builders.scalars import (
    Scalar,
    bitcast,
    convert_float,
    copy_sign,
    float32,
    float64,
    fused_multiply_add,
    operation,
)
from axir.passes.legalize.doubles import (
    exponential,
    exponential_minus_one,
    logarithm,
    logarithm_plus_one,
)
from axir.passes.legalize.numbers import expand_trigonometry as trigonometry
from axir.passes.legalize.numbers.expand_hyperbolic import (
    hyperbolic_cosine,
    hyperbolic_sine,
    inverse_hyperbolic_sine,
)
from axir.passes.legalize.numbers.expand_inverse_trigonometry import arc_tangent_2

_EXPONENT = 0x7FF << 52
_LARGE_HYPERBOLIC = 40.0  # from here on sinh and cosh are e^|x| / 2
_LARGE_TANGENT = 20.0  # from here on tanh is 1 less 2 e^(-2 |x|)
_FAR = 1e100  # squares of this stay in range


@dataclasses.dataclass(frozen=True)
class Complex:
    """A complex number as two doubles, its parts.

    `is_single` tells that it was converted from single precision, and that the result will be
    converted back: squares stay in range, and functions of single precision are accurate enough.
    `fuses` tells whether the machine multiplies and adds with one rounding.
    """

    real: Scalar
    imag: Scalar
    is_single: bool = False
    fuses: bool = True

    def with_parts(self, real: Scalar, imag: Scalar) -> Complex:
        """Returns another number of the same precision."""
        return Complex(real, imag, self.is_single, self.fuses)

    def __add__(self, other: float) -> Complex:
        return self.with_parts(self.real + other, self.imag)

    def __neg__(self) -> Complex:
        return self.with_parts(-self.real, -self.imag)

    def times_i(self) -> Complex:
        """i z."""
        return self.with_parts(-self.imag, self.real)

    def over_i(self) -> Complex:
        """-i z."""
        return self.with_parts(self.imag, -self.real)

    def sine_and_cosine(self) -> tuple[Scalar, Scalar]:
        """Returns the sine and cosine of the imaginary part."""
        if self.is_single:
            narrow = convert_float(self.imag, float32())
            parts = [f(narrow, self.fuses) for f in (trigonometry.sine, trigonometry.cosine)]
            return convert_float(parts[0], float64()), convert_float(parts[1], float64())
        return operation("math.sin", (self.imag,)), operation("math.cos", (self.imag,))

    def angle(self, y: Scalar, x: Scalar) -> Scalar:
        """Returns the angle of a point, to this number's precision."""
        if self.is_single:
            narrow = (convert_float(y, float32()), convert_float(x, float32()))
            return convert_float(arc_tangent_2(*narrow), float64())
        return operation("math.atan2", (y, x))


def choose(condition: Scalar, on_true: Complex, on_false: Complex) -> Complex:
    """`select` for both parts."""
    return on_true.with_parts(
        select(condition, on_true.real, on_false.real),
        select(condition, on_true.imag, on_false.imag),
    )


def is_finite(x: Scalar) -> Scalar:
    """Neither infinite nor nan."""
    return abs(x) < math.inf


def is_infinite(x: Scalar) -> Scalar:
    """Infinite."""
    return abs(x) == math.inf


def _ordered(z: Complex) -> tuple[Scalar, Scalar]:
    """Returns the larger and the smaller of the parts' magnitudes."""
    width, height = abs(z.real), abs(z.imag)
    is_steep = height > width
    return select(is_steep, height, width), select(is_steep, width, height)


def magnitude(z: Complex) -> Scalar:
    """|z| without overflow; infinite if a part is, even if the other is nan."""
    if z.is_single:
        result = sqrt(z.real * z.real + z.imag * z.imag)
    else:
        larger, smaller = _ordered(z)
        ratio = select((larger > 0) & (larger < math.inf), smaller / larger, 0)
        result = larger * sqrt(1 + ratio * ratio)
    result = select(is_nan(z.real) | is_nan(z.imag), math.nan, result)
    return select(is_infinite(z.real) | is_infinite(z.imag), math.inf, result)


def sign(z: Complex) -> Complex:
    """z / |z|, and 0 for 0."""
    size = magnitude(z)
    divisor = select(size == 0, 1, size)
    return z.with_parts(z.real / divisor, z.imag / divisor)


def divide(x: Complex, y: Complex) -> Complex:
    """x / y, both scaled by powers of two so that products stay in range."""
    if x.is_single:
        return _divide_special(x, y, _divide_plain(x, y))
    x_scaled, x_exponent = _scale(x)
    y_scaled, y_exponent = _scale(y)
    quotient = _divide_plain(x_scaled, y_scaled)
    count = x_exponent - y_exponent
    real = _times_power_of_two(quotient.real, count)
    imag = _times_power_of_two(quotient.imag, count)
    return _divide_special(x, y, quotient.with_parts(real, imag))


def _divide_plain(x: Complex, y: Complex) -> Complex:
    """Divides by Smith's formula (1962); zeros have the signs of NumPy's and JAX's zeros."""
    is_wide = abs(y.real) >= abs(y.imag)
    large, small = select(is_wide, y.real, y.imag), select(is_wide, y.imag, y.real)
    ratio = small / large
    scale = large + small * ratio
    real = select(is_wide, x.real + x.imag * ratio, x.real * ratio + x.imag)
    imag = select(is_wide, x.imag - x.real * ratio, x.imag * ratio - x.real)
    return x.with_parts(real / scale, imag / scale)


def _divide_special(x: Complex, y: Complex, quotient: Complex) -> Complex:
    """Annex G.5.1: division of anything by zero, of infinities, and by infinities."""
    is_lost = is_nan(quotient.real) & is_nan(quotient.imag)
    x_is_nan = is_nan(x.real) & is_nan(x.imag)
    by_zero = (y.real == 0) & (y.imag == 0) & ~x_is_nan
    pole = x.with_parts(math.inf * x.real, math.inf * x.imag)  # whatever the sign of zero
    x_is_infinite = is_infinite(x.real) | is_infinite(x.imag)
    y_is_infinite = is_infinite(y.real) | is_infinite(y.imag)
    x_unit, y_unit = _unit_box(x), _unit_box(y)
    infinite = _box_product(x_unit, y, math.inf)
    zero = _box_product(x, y_unit, 0.0)
    of_infinity = x_is_infinite & is_finite(y.real) & is_finite(y.imag)
    by_infinity = y_is_infinite & is_finite(x.real) & is_finite(x.imag)
    result = choose(is_lost & by_infinity, zero, quotient)
    result = choose(is_lost & of_infinity, infinite, result)
    return choose(is_lost & by_zero, pole, result)


def _unit_box(z: Complex) -> Complex:
    """Returns ones for infinite parts and zeros for others, with their signs."""
    parts = (copy_sign(select(is_infinite(p), p.constant(1), 0), p) for p in (z.real, z.imag))
    return z.with_parts(*parts)


def _box_product(x: Complex, y: Complex, factor: float) -> Complex:
    """factor x conj(y)."""
    return x.with_parts(
        (x.real * y.real + x.imag * y.imag) * factor,
        (x.imag * y.real - x.real * y.imag) * factor,
    )


def _scale(z: Complex) -> tuple[Complex, Scalar]:
    """z divided by a power of two, so that its larger part is about 1, and the exponent."""
    larger, _ = _ordered(z)
    biased = (larger.bits() & _EXPONENT) >> 52
    # At 2^1023 the inverse would be denormal, which the processor treats as 0.
    biased = select(biased > 2045, 2045, biased)
    inverse = bitcast((2046 - biased) << 52, float64())
    return z.with_parts(z.real * inverse, z.imag * inverse), biased


def _times_power_of_two(x: Scalar, exponent: Scalar) -> Scalar:
    """x 2^exponent, in two steps because 2^exponent itself may be out of range."""
    half = exponent.shift_right_signed(1)
    for part in (half, exponent - half):
        x = x * bitcast((part + 1023) << 52, float64())
    return x


def root(z: Complex) -> Complex:
    """Returns the square root with a real part that is not negative."""
    larger, _ = _ordered(z)
    is_large = larger > 2.0**1000
    down, up = select(is_large, larger.constant(0.25), 1), select(is_large, larger.constant(2), 1)
    x, y = z.real * down, z.imag * down
    major = sqrt((abs(x) + magnitude(z.with_parts(x, y))) * 0.5)
    minor = select(major == 0, 0, abs(y) * 0.5 / major)
    major, minor = major * up, minor * up
    is_right = ~z.real.is_negative()
    result = z.with_parts(select(is_right, major, minor), select(is_right, minor, major))
    # Infinities: of only the real part, and of the imaginary part.
    is_bare = is_infinite(z.real) & is_finite(z.imag)
    at_infinity = z.with_parts(
        select(is_right, result.real.constant(math.inf), 0),
        select(is_right, result.real.constant(0), math.inf),
    )
    result = choose(is_bare, at_infinity, result)
    is_vertical = is_infinite(z.imag)
    infinity = z.real.constant(math.inf)
    result = choose(is_vertical, z.with_parts(infinity, infinity), result)
    return z.with_parts(result.real, copy_sign(result.imag, z.imag))


def inverse_root(z: Complex) -> Complex:
    """1 / sqrt(z)."""
    one = z.real.constant(1)
    return divide(z.with_parts(one, z.real.constant(0)), root(z))


def log(z: Complex) -> Complex:
    """Returns the logarithm; the real part is right where |z| is near 1."""
    larger, smaller = _ordered(z)
    is_regular = (larger > 0) & (larger < math.inf)
    ratio = select(is_regular, smaller / larger, 0)
    apart = logarithm(larger) + 0.5 * logarithm_plus_one(ratio * ratio)
    excess = fused_multiply_add(smaller, smaller, (larger - 1) * (larger + 1))
    real = select(abs(larger - 1) < 0.5, 0.5 * logarithm_plus_one(excess), apart)
    real = select(is_nan(z.real) | is_nan(z.imag), math.nan, real)
    real = select(is_infinite(z.real) | is_infinite(z.imag), math.inf, real)
    return z.with_parts(real, z.angle(z.imag, z.real))


def log_plus_one(z: Complex) -> Complex:
    """log(1 + z)."""
    larger, _ = _ordered(z)
    excess = fused_multiply_add(z.imag, z.imag, z.real * (2 + z.real))
    apart = log(z + 1)
    real = select(larger < 0.5, 0.5 * logarithm_plus_one(excess), apart.real)
    return z.with_parts(real, apart.imag)


def exp(z: Complex) -> Complex:
    """e^z, where e^x may be out of range if e^x sin y is not."""
    half = exponential(z.real * 0.5)
    sine, cosine = z.sine_and_cosine()
    real = half * cosine * half
    imag = select(z.imag == 0, z.imag, half * sine * half)
    real = select((z.real == math.inf) & ~is_finite(z.imag), math.inf, real)
    is_vanishing = (z.real == -math.inf) & ~is_finite(z.imag)
    zero = copy_sign(z.imag.constant(0), z.imag)
    return z.with_parts(select(is_vanishing, 0, real), select(is_vanishing, zero, imag))


def exp_minus_one(z: Complex) -> Complex:
    """e^z - 1."""
    _, cosine = z.sine_and_cosine()
    half_sine, _ = z.with_parts(z.real, z.imag * 0.5).sine_and_cosine()
    whole = exp(z)
    real = exponential_minus_one(z.real) * cosine - 2 * half_sine * half_sine
    is_near = abs(z.real) < 1
    return z.with_parts(select(is_near, real, whole.real - 1), whole.imag)


def sinh(z: Complex) -> Complex:
    """sinh x cos y + i cosh x sin y."""
    sine_factor, cosine_factor, scale = _scaled_hyperbolic(z.real)
    sine, cosine = z.sine_and_cosine()
    real = sine_factor * cosine * scale
    imag = cosine_factor * sine * scale
    is_kept = (z.real == 0) | is_infinite(z.real)
    real = select(is_kept & ~is_finite(z.imag), z.real, real)
    return z.with_parts(real, select(z.imag == 0, z.imag, imag))


def cosh(z: Complex) -> Complex:
    """cosh x cos y + i sinh x sin y."""
    sine_factor, cosine_factor, scale = _scaled_hyperbolic(z.real)
    sine, cosine = z.sine_and_cosine()
    real = cosine_factor * cosine * scale
    imag = sine_factor * sine * scale
    is_on_axis = (z.real == 0) | (z.imag == 0)
    side = select(is_finite(z.imag), sine, z.imag)
    zero = copy_sign(z.real.constant(0), z.real) * copy_sign(z.real.constant(1), side)
    real = select(is_infinite(z.real) & ~is_finite(z.imag), math.inf, real)
    return z.with_parts(real, select(is_on_axis, zero, imag))


def _scaled_hyperbolic(x: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    """sinh x and cosh x, each over a factor that keeps them in range."""
    is_large = abs(x) > _LARGE_HYPERBOLIC
    bounded = select(is_large, 0, x)
    half = exponential(select(is_large, abs(x), 0) * 0.5)
    sine_factor = select(is_large, copy_sign(half * 0.5, x), hyperbolic_sine(bounded))
    cosine_factor = select(is_large, half * 0.5, hyperbolic_cosine(bounded))
    return sine_factor, cosine_factor, half


def tanh(z: Complex) -> Complex:
    """Kahan's formula in t = tan y and s = sinh x; far out, the sign of x and a decaying rest."""
    x, y = z.real, z.imag
    is_large = abs(x) > _LARGE_TANGENT
    sine, cosine = z.sine_and_cosine()
    tangent = sine / cosine
    factor = 1 + tangent * tangent
    s = hyperbolic_sine(select(is_large, 1, x))
    rho = sqrt(1 + s * s)
    divisor = 1 + factor * s * s
    near = z.with_parts(factor * rho * s / divisor, tangent / divisor)
    decay = exponential(-abs(x))
    rest = 4 * (sine * cosine) * decay * decay
    rest = select(is_finite(y), rest, copy_sign(y.constant(0), y))
    rest = select(is_infinite(x), copy_sign(x.constant(0), rest), rest)
    is_known = is_finite(y) | is_infinite(x)
    far = z.with_parts(
        select(is_known, copy_sign(x.constant(1), x), math.nan), select(is_known, rest, math.nan)
    )
    result = choose(is_large, far, near)
    # tanh(0 + i inf) = 0 + i nan; tanh(x + 0 i) has no imaginary part, even for nan.
    real = select(x == 0, x, result.real)
    return z.with_parts(real, select(y == 0, y, result.imag))


def logistic(z: Complex) -> Complex:
    """1 / (1 + e^-z), by the exponential that does not grow."""
    is_right = ~z.real.is_negative()
    decaying = exp(choose(is_right, -z, z))
    one = z.with_parts(z.real.constant(1), z.real.constant(0))
    result = divide(choose(is_right, one, decaying), decaying + 1)
    is_gone = ~is_right & (decaying.real == 0) & (decaying.imag == 0)
    result = choose(is_gone, decaying, result)
    return z.with_parts(result.real, select(z.imag == 0, z.imag, result.imag))


def atanh(z: Complex) -> Complex:
    """log1p(4x / ((1 - x)^2 + y^2)) / 4 + i atan2(2y, (1 - x)(1 + x) - y^2) / 2, for x >= 0."""
    x, y = abs(z.real), abs(z.imag)
    larger, _ = _ordered(z)
    is_far = larger > _FAR
    x_near, y_near = select(is_far, 0, x), select(is_far, 0, y)
    distance = (1 - x_near) * (1 - x_near) + y_near * y_near
    real = 0.25 * logarithm_plus_one(4 * x_near / distance)
    imag = 0.5 * z.angle(2 * y_near, (1 - x_near) * (1 + x_near) - y_near * y_near)
    # The real part of 1/z is x / |z|^2; it is zero if z is infinite.
    inverse = select(is_infinite(larger), 0, x / larger / larger)
    real = select(is_far, inverse, real)
    imag = select(is_far, math.pi / 2, imag)
    is_lost = (is_nan(z.real) | is_nan(z.imag)) & ~is_infinite(z.imag)
    real = select(is_lost, math.nan, real)
    return z.with_parts(copy_sign(real, z.real), copy_sign(select(is_lost, math.nan, imag), z.imag))


def atan(z: Complex) -> Complex:
    """-i atanh(i z)."""
    return atanh(z.times_i()).over_i()


def asin(z: Complex) -> Complex:
    """atan(x / Re(a b)) + i asinh(Im(conj(a) b)) with a = sqrt(1 - z), b = sqrt(1 + z)."""
    a, b = root(-z + 1), root(z + 1)
    is_endless = is_infinite(z.real) | is_infinite(z.imag)
    beside = select(is_endless, abs(z.imag), a.real * b.real - a.imag * b.imag)
    real = z.angle(z.real, beside)
    return z.with_parts(real, inverse_hyperbolic_sine(a.real * b.imag - a.imag * b.real))


def acos(z: Complex) -> Complex:
    """2 atan(Re a / Re b) + i asinh(Im(conj(b) a)) with a = sqrt(1 - z), b = sqrt(1 + z)."""
    a, b = root(-z + 1), root(z + 1)
    imag = inverse_hyperbolic_sine(b.real * a.imag - b.imag * a.real)
    return z.with_parts(_angle_between(z, abs(z.imag), a.real, b.real), imag)


def _angle_between(z: Complex, height: Scalar, y: Scalar, x: Scalar) -> Scalar:
    """Twice the angle of x + i y; of an infinite number z, the angle of Re z + i height."""
    is_endless = is_infinite(z.real) | is_infinite(z.imag)
    angle = z.angle(select(is_endless, height, y), select(is_endless, z.real, x))
    return angle * select(is_endless, angle.constant(1), 2)


def asinh(z: Complex) -> Complex:
    """-i asin(i z)."""
    return asin(z.times_i()).over_i()


def acosh(z: Complex) -> Complex:
    """asinh(Re(conj(a) b)) + 2i atan(Im a / Re b) with a = sqrt(z - 1), b = sqrt(z + 1)."""
    a, b = root(z + -1), root(z + 1)
    real = inverse_hyperbolic_sine(a.real * b.real + a.imag * b.imag)
    return z.with_parts(real, _angle_between(z, z.imag, a.imag, b.real))


def sin(z: Complex) -> Complex:
    """-i sinh(i z)."""
    return sinh(z.times_i()).over_i()


def cos(z: Complex) -> Complex:
    """cosh(i z)."""
    return cosh(z.times_i())


def tan(z: Complex) -> Complex:
    """-i tanh(i z)."""
    return tanh(z.times_i()).over_i()


def power(z: Complex, w: Complex) -> Complex:
    """e^(w log z); 0^w is 0 for Re w > 0, and z^0 is 1."""
    logged = log(Complex(z.real, z.imag))
    # The angle of the result is no single precision number: `is_single` ends here.
    exponent = Complex(
        w.real * logged.real - w.imag * logged.imag, w.real * logged.imag + w.imag * logged.real
    )
    result = exp(exponent)
    zero, one = z.real.constant(0), z.real.constant(1)
    is_zero = (z.real == 0) & (z.imag == 0)
    result = choose(is_zero & (w.real > 0), Complex(zero, zero), result)
    return choose((w.real == 0) & (w.imag == 0), Complex(one, zero), result)


UNARY: dict[str, Callable[[Complex], Complex]] = {
    "stablehlo.sign": sign,
    "stablehlo.sqrt": root,
    "stablehlo.rsqrt": inverse_root,
    "stablehlo.log": log,
    "stablehlo.log_plus_one": log_plus_one,
    "stablehlo.exponential": exp,
    "stablehlo.exponential_minus_one": exp_minus_one,
    "stablehlo.tanh": tanh,
    "stablehlo.logistic": logistic,
    "stablehlo.sine": sin,
    "stablehlo.cosine": cos,
    "stablehlo.tan": tan,
    "chlo.tan": tan,
    "chlo.sinh": sinh,
    "chlo.cosh": cosh,
    "chlo.asin": asin,
    "chlo.acos": acos,
    "chlo.atan": atan,
    "chlo.asinh": asinh,
    "chlo.acosh": acosh,
    "chlo.atanh": atanh,
}
BINARY: dict[str, Callable[[Complex, Complex], Complex]] = {
    "stablehlo.divide": divide,
    "stablehlo.power": power,
}
