"""`expand-hyperbolic`: hyperbolic functions and their inverses, and exp and log near 1."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.expressions import select, sqrt
from axir.dialect.builders.scalars import Scalar, convert_float, copy_sign, float64
from axir.passes.legalize.doubles import LN2, exponential_minus_one, logarithm_plus_one
from axir.passes.legalize.elementwise_loops import elementwise
from axir.passes.legalize.rewriting import RewritePass

_HUGE = 2.0**28  # 1 + x^2 is x^2 from here on
_TINY = 2.0**-28  # x^2 does not matter next to 1 below this

Function = Callable[[Scalar], Scalar]


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
    return copy_sign(result + select(is_large, result.constant(LN2[0]), 0), x)


def inverse_hyperbolic_cosine(x: Scalar) -> Scalar:
    """acosh x = log1p(t + sqrt(t (t + 2))) with t = x - 1."""
    is_large = x > _HUGE
    over = select(is_large, 1, x) - 1
    argument = over + sqrt(over * (over + 2))
    result = logarithm_plus_one(select(is_large, x - 1, argument))
    result = result + select(is_large, result.constant(LN2[0]), 0)
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
