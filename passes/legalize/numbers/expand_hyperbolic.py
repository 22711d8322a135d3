"""`expand-hyperbolic`: hyperbolic functions and their inverses, and exp and log near 1."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.expressions import is_nan, maximum, minimum, polynomial, select, sqrt
from axir.dialect.builders.scalars import (
    Scalar,
    bitcast,
    convert_float,
    copy_sign,
    float64,
    fused_multiply_add,
    to_float,
)
from axir.passes.legalize.elementwise_loops import elementwise
from axir.passes.legalize.rewriting import RewritePass

from .doubles import ATANH, EXP2_MINUS_ONE, ROUNDING, split_mantissa

_LOG2_E = (1.4426950408889634, 2.0355273740931033e-17)  # the number and what it lacks
_LN2 = (0.6931471805599453, 2.3190468138462996e-17)
_HUGE = 2.0**28  # 1 + x^2 is x^2 from here on
_TINY = 2.0**-28  # x^2 does not matter next to 1 below this

Function = Callable[[Scalar], Scalar]


def exponential(x: Scalar) -> Scalar:
    """e^x of a double, to one unit in the last place."""
    first, second, growth = _exponential_parts(x)
    return select(is_nan(x), x, (first + first * growth) * second)


def exponential_minus_one(x: Scalar) -> Scalar:
    """e^x - 1 of a double, to one unit in the last place."""
    first, second, growth = _exponential_parts(x)
    # Where 2^n may be out of range, adding or subtracting 1 is nothing.
    near = (first * second) * growth + (first * second - 1)
    far = (first + first * growth) * second
    result = select(abs(x) < 700, near, select(x > 0, far, -1))
    result = select(abs(x) < 2.0**-54, x, result)
    return select(is_nan(x), x, result)


def _exponential_parts(x: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    """e^x = first second (1 + growth), where first and second are powers of two."""
    bounded = minimum(maximum(x, -1400), 1400)
    factor, factor_rest = _LOG2_E
    scaled = bounded * factor
    rest = fused_multiply_add(bounded, x.constant(factor), -scaled) + bounded * factor_rest
    rounded = scaled + ROUNDING
    fraction = (scaled - (rounded - ROUNDING)) + rest
    growth = fraction * polynomial(fraction, EXP2_MINUS_ONE)
    count = rounded.bits() - x.constant(ROUNDING).bits()
    half = count.shift_right_signed(1)
    first, second = (bitcast((part + 1023) << 52, float64()) for part in (half, count - half))
    return first, second, growth


def logarithm(x: Scalar) -> Scalar:
    """log x of a double, to one unit in the last place; 0 and infinity give infinities."""
    return _logarithm(x, x.constant(0))


def logarithm_plus_one(x: Scalar) -> Scalar:
    """log(1 + x) of a double, to two units in the last place."""
    total = 1 + x
    # What the sum lacks, relative to it; infinity minus itself must not come in.
    lost = select(x > 1, 1 - (total - x), x - (total - 1)) / total
    return select(abs(x) < 2.0**-54, x, _logarithm(total, lost))


def _logarithm(x: Scalar, lost: Scalar) -> Scalar:
    """log x + lost."""
    mantissa, exponent = split_mantissa(x, mantissa_bits=52, root_half=0x3FE6A09E667F3BCD)
    over, under = mantissa - 1, mantissa + 1
    ratio = over / under
    remainder = fused_multiply_add(-ratio, under, over) - ratio * (mantissa - (under - 1))
    square = ratio * ratio
    count = to_float(exponent, float64())
    small = ratio * square * polynomial(square, ATANH) + remainder / under
    rest = 2 * small + (lost + count * _LN2[1])
    regular = count * _LN2[0] + (2 * ratio + rest)
    result = select((x > 0) & (x < math.inf), regular, math.nan)
    result = select(x == 0, -math.inf, result)
    return select(x == math.inf, math.inf, result)


def hyperbolic_sine(x: Scalar) -> Scalar:
    """sinh x = (w + w / (w + 1)) / 2 with w = e^|x| - 1; from 40 on, (e^(|x|/2))^2 / 2."""
    magnitude = abs(x)
    is_large = magnitude > 40
    growth = exponential_minus_one(select(is_large, magnitude * 0.5, magnitude))
    power = growth + 1
    result = select(is_large, power * 0.5 * power, (growth + growth / power) * 0.5)
    return copy_sign(result, x)


def hyperbolic_cosine(x: Scalar) -> Scalar:
    """cosh x = 1 + w^2 / (2 (w + 1)) with w = e^|x| - 1; from 40 on, (e^(|x|/2))^2 / 2."""
    magnitude = abs(x)
    is_large = magnitude > 40
    growth = exponential_minus_one(select(is_large, magnitude * 0.5, magnitude))
    power = growth + 1
    return select(is_large, power * 0.5 * power, 1 + growth * growth / (2 * power))


def inverse_hyperbolic_sine(x: Scalar) -> Scalar:
    """asinh x = log1p(|x| + x^2 / (1 + sqrt(1 + x^2))), with the sign of x."""
    magnitude = abs(x)
    is_large = magnitude > _HUGE
    bounded = select(is_large, 1, magnitude)
    square = bounded * bounded
    argument = bounded + square / (1 + sqrt(1 + square))
    result = logarithm_plus_one(select(is_large, magnitude - 1, argument))
    return copy_sign(result + select(is_large, result.constant(_LN2[0]), 0), x)


def inverse_hyperbolic_cosine(x: Scalar) -> Scalar:
    """acosh x = log1p(t + sqrt(t (t + 2))) with t = x - 1."""
    is_large = x > _HUGE
    over = select(is_large, 1, x) - 1
    argument = over + sqrt(over * (over + 2))
    result = logarithm_plus_one(select(is_large, x - 1, argument))
    result = result + select(is_large, result.constant(_LN2[0]), 0)
    return select(x < 1, math.nan, result)


def inverse_hyperbolic_tangent(x: Scalar) -> Scalar:
    """atanh x = log1p(2 |x| / (1 - |x|)) / 2, with the sign of x."""
    magnitude = abs(x)
    result = logarithm_plus_one(2 * magnitude / (1 - magnitude)) * 0.5
    return copy_sign(select(magnitude < _TINY, magnitude, result), x)


_FUNCTIONS: dict[str, Function] = {
    "stablehlo.exponential_minus_one": exponential_minus_one,
    "stablehlo.log_plus_one": logarithm_plus_one,
    "chlo.sinh": hyperbolic_sine,
    "chlo.cosh": hyperbolic_cosine,
    "chlo.asinh": inverse_hyperbolic_sine,
    "chlo.acosh": inverse_hyperbolic_cosine,
    "chlo.atanh": inverse_hyperbolic_tangent,
}
_RIGHT_IN_SINGLE_PRECISION = frozenset(
    (
        "stablehlo.exponential_minus_one",
        "stablehlo.log_plus_one",
        "chlo.asinh",
        "chlo.acosh",
        "chlo.atanh",
    )
)


@dataclasses.dataclass(frozen=True)
class ExpandHyperbolic(RewritePass):
    """Writes out expm1, log1p, sinh, cosh, asinh, acosh and atanh.

    The fact: in f64 IREE's expm1 and log1p are right to 13 digits only, and with them sinh, asinh
    and atanh; f32 sinh and cosh are 15 units in the last place off from 50 on.

    1. Compute in double precision; of the smaller types only sinh and cosh need it.
    2. e^x - 1 = 2^n (1 + g) - 1 with n the integer nearest to x / ln 2 and g = 2^fraction - 1.
    3. log(1 + x) = log(1 + x rounded) + what rounding lost; the former by the series of atanh.
    4. The others by the formulas in their docstrings (Kahan, Branch cuts, 1987).

    Before::

        %0 = stablehlo.log_plus_one %x : tensor<9xf64>

    After::

        %0 = linalg.generic {…} ins(%x : tensor<9xf64>) … { ^bb0(%in: f64, %out: f64): … }
    """

    name: ClassVar[str] = "expand-hyperbolic"
    operations: ClassVar[tuple[str, ...]] = tuple(_FUNCTIONS)

    def rewrite(self, operation: ir.Operation) -> list[ir.Value] | None:
        """Builds the loop, for real numbers."""
        element = hlo.element_type_of(operation.results[0])
        if not isinstance(element, ir.FloatType):
            return None
        if element.width < 64 and operation.name in _RIGHT_IN_SINGLE_PRECISION:
            return None
        function = _FUNCTIONS[operation.name]

        def body(x: Scalar) -> Scalar:
            return convert_float(function(convert_float(x, float64())), element)

        return elementwise(operation.name, operation.operands, body, [element])
