"""The derivative of Hurwitz' zeta function in its exponent, written with differentiable ops.

Elsewhere: the function itself (`gamma_formulas.py`) and its op (`special_functions.py`).
"""

from __future__ import annotations

from axir.dialect.ops.elementwise.arithmetic import add, div, mul, neg, sub
from axir.dialect.ops.elementwise.transcendental import exp, log
from axir.dialect.program.rules import Value

from .gamma_formulas import EULER_MACLAURIN, SUMMED


def zeta_in_exponent(s: Value, q: Value) -> Value:
    """Returns the sum of -log(q + k) (q + k)^-s over k = 0, 1, ..., for s > 1 and q > 0; else nan.

    The first terms are added. The rest is the derivative of the Euler-Maclaurin formula (DLMF
    25.11.5) of the function.
    """
    total = neg(_weighted_power(s, q))
    for k in range(1, SUMMED):
        total = sub(total, _weighted_power(s, add(q, k)))
    last = add(q, SUMMED)
    logarithm, above = log(last), sub(s, 1)
    correction, slope = _correction(s, div(1, last))
    integral = div(last, above)
    rest = sub(slope, div(integral, above))
    rest = sub(rest, mul(logarithm, add(integral, add(correction, 0.5))))
    return add(total, mul(exp(neg(mul(s, logarithm))), rest))


def _weighted_power(s: Value, base: Value) -> Value:
    """Returns log(base) base^-s."""
    logarithm = log(base)
    return mul(logarithm, exp(neg(mul(s, logarithm))))


def _correction(s: Value, inverse: Value) -> tuple[Value, Value]:
    """Returns the Euler-Maclaurin corrections at 1 / inverse, and their derivative in s."""
    square = mul(inverse, inverse)
    factor, factor_slope = mul(s, inverse), inverse
    correction = mul(factor, EULER_MACLAURIN[0])
    slope = mul(factor_slope, EULER_MACLAURIN[0])
    for k, coefficient in enumerate(EULER_MACLAURIN[1:]):
        low, high = add(s, 2 * k + 1), add(s, 2 * k + 2)
        growth, growth_slope = mul(mul(low, high), square), mul(add(low, high), square)
        factor_slope = add(mul(factor_slope, growth), mul(factor, growth_slope))
        factor = mul(factor, growth)
        correction = add(correction, mul(factor, coefficient))
        slope = add(slope, mul(factor_slope, coefficient))
    return correction, slope
