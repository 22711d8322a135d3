"""Hypergeometric functions 1F1 and 2F1 of real numbers, and their derivatives: formulas.

Sources: DLMF 13.2.2 (series of 1F1), 13.2.39 (Kummer's transformation), 13.7.2 (far away); 15.2.1
(series of 2F1), 15.8.1 (Pfaff's transformation), 15.4.20 and 15.8.4 (at and near 1).

The series also gives the derivatives in the parameters: each term's derivative follows from the
derivative of the term before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from axir.dialect.builders.expressions import (
    Number,
    constant_like,
    exp,
    floor,
    log,
    log1p,
    maximum,
    round_to_even,
    select,
)
from axir.dialect.builders.formula import iterate, sum_over

from .gamma_formulas import log_gamma

_RESOLUTION = 2.0**-54
_CONFLUENT_LIMIT = 6000  # steps; about |x| of them are needed
_GAUSS_LIMIT = 200000  # about 36 / (1 - x)
_NEAR_ONE = 2e-4  # from 1; nearer the expansion there takes over


def _is_pole(x: Number) -> Number:
    """Tells whether a number is 0, -1, -2 ..."""
    return (x <= 0) & (x == round_to_even(x))


def _gamma_quotient(
    operands: Sequence[Number], rows: Sequence[Sequence[float]]
) -> tuple[Number, Number]:
    """Logarithm of the size, and sign, of a product of gamma functions.

    Args:
        operands: Numbers.
        rows: For each gamma function the factors of the operands in its argument, and 1 or -1 for
            numerator or denominator.
    """
    constants = [np.array(column) for column in zip(*rows, strict=True)]

    def argument(values: Sequence[Number]) -> Number:
        count = len(operands)
        return sum(factor * x for factor, x in zip(values, values[count + 1 :], strict=False))

    def logarithm(*values: Number) -> Number:
        return values[len(operands)] * log_gamma(argument(values))

    def negative(*values: Number) -> Number:
        x = argument(values)
        half = 0.5 * floor(x)
        is_negative = (x < 0) & (half != floor(half))
        return select(is_negative, 1.0, constant_like(x, 0.0))

    size = sum_over(logarithm, constants, operands)
    half = 0.5 * sum_over(negative, constants, operands)
    return size, select(half == floor(half), constant_like(size, 1.0), -1.0)


# 1F1 -------------------------------------------------------------------------------------------


def _confluent_series(a: Number, b: Number, x: Number) -> Number:
    """Returns the sum of (a)_k / (b)_k x^k / k!."""

    def step(k: Number, term: Number, total: Number) -> list[Number]:
        ratio = (a + k) / (b + k) * (x / (k + 1))
        term = select(term == 0, 0.0, term * ratio)
        return [k + 1, term, total + term]

    def is_active(k: Number, term: Number, total: Number) -> Number:
        return (abs(term) > _RESOLUTION * abs(total)) & (abs(total) < math.inf)

    one = constant_like(x, 1.0)
    return iterate(step, is_active, [constant_like(x, 0.0), one, one], _CONFLUENT_LIMIT)[2]


def _confluent_slopes(a: Number, b: Number, x: Number) -> tuple[Number, Number]:
    """Returns the derivatives of the series in a and b."""

    def step(k: Number, *state: Number) -> list[Number]:
        term, in_a, in_b, total_a, total_b = state
        below = 1 / (b + k)
        scale = below * x / (k + 1)
        ratio = (a + k) * scale
        in_a, in_b = in_a * ratio + term * scale, ratio * (in_b - term * below)
        return [k + 1, term * ratio, in_a, in_b, total_a + in_a, total_b + in_b]

    def is_active(k: Number, *state: Number) -> Number:
        _, in_a, in_b, total_a, total_b = state
        active = abs(in_a) > _RESOLUTION * abs(total_a)
        active = active | (abs(in_b) > _RESOLUTION * abs(total_b)) | (k < 2)
        return active & (abs(total_a) < math.inf)

    zero, one = constant_like(x, 0.0), constant_like(x, 1.0)
    state = iterate(step, is_active, [zero, one, zero, zero, zero, zero], _CONFLUENT_LIMIT)
    return state[4], state[5]


def _turned(a: Number, b: Number, x: Number) -> tuple[Number, Number, Number, Number]:
    """Kummer's transformation for x < 0: whether it is made, factor, a and x."""
    is_turned = (x < 0) & ~_is_pole(a)
    factor = exp(select(is_turned, x, 0.0))
    return is_turned, factor, select(is_turned, b - a, a), select(is_turned, -x, x)


def confluent(a: Number, b: Number, x: Number) -> Number:
    """1F1(a; b; x), infinite for b = 0, -1, -2 ... unless a is 0, which gives 1."""
    size = abs(x)
    parameters = abs(a) + abs(b)
    is_far = (size > 50 + parameters * parameters) & ~_is_pole(a) & ~_is_pole(b)
    _, factor, first, argument = _turned(a, b, select(is_far, 1.0, x))
    near = factor * _confluent_series(first, b, argument)
    far = _confluent_far(select(is_far, a, 1.0), select(is_far, b, 2.0), select(is_far, x, 100.0))
    value = select(is_far, far, near)
    value = select(_is_pole(b) & ~(_is_pole(a) & (a >= b)), math.inf, value)
    value = select((a == 0) | (x == 0), 1.0, value)
    is_known = (parameters < math.inf) & (size < math.inf)
    return select(is_known, value, math.nan)


def _confluent_far(a: Number, b: Number, x: Number) -> Number:
    is_negative = x < 0
    size = abs(x)
    # The divisor in gamma(b) / gamma(under); the power of |x|; the series' parameters.
    under = select(is_negative, b - a, a)
    first, second = select(is_negative, a, b - a), select(is_negative, a - b + 1, 1 - a)
    logarithm, sign = _gamma_quotient([b, under], [[1, 0, 1], [0, 1, -1]])
    power = select(is_negative, -a, a - b) * log(size)
    inverse = 1 / size
    term = total = constant_like(x, 1.0)
    for k in range(24):
        term = term * ((first + k) * (second + k) / (k + 1) * inverse)
        total = total + term
    return sign * total * exp(logarithm + power + maximum(x, 0.0))


def confluent_in_a(a: Number, b: Number, x: Number) -> Number:
    """Returns the derivative of 1F1 in a."""
    is_turned, factor, first, argument = _turned(a, b, x)
    in_a, _ = _confluent_slopes(first, b, argument)
    return factor * select(is_turned, -in_a, in_a)


def confluent_in_b(a: Number, b: Number, x: Number) -> Number:
    """Returns the derivative of 1F1 in b."""
    is_turned, factor, first, argument = _turned(a, b, x)
    in_a, in_b = _confluent_slopes(first, b, argument)
    return factor * select(is_turned, in_a + in_b, in_b)


# 2F1 -------------------------------------------------------------------------------------------


def _gauss_series(a: Number, b: Number, c: Number, x: Number) -> Number:
    """Returns the sum of (a)_k (b)_k / (c)_k x^k / k!."""
    threshold = _RESOLUTION * maximum(1 - abs(x), 0.0)

    def step(k: Number, term: Number, total: Number) -> list[Number]:
        ratio = (a + k) / (c + k) * ((b + k) / (k + 1)) * x
        term = select(term == 0, 0.0, term * ratio)
        return [k + 1, term, total + term]

    def is_active(k: Number, term: Number, total: Number) -> Number:
        return (abs(term) > threshold * abs(total)) & (abs(total) < math.inf)

    one = constant_like(x, 1.0)
    return iterate(step, is_active, [constant_like(x, 0.0), one, one], _GAUSS_LIMIT)[2]


def _gauss_slopes(
    a: Number, b: Number, c: Number, x: Number
) -> tuple[Number, Number, Number, Number]:
    """Returns the sum of the series, and its derivatives in a, b and c."""
    threshold = _RESOLUTION * maximum(1 - abs(x), 0.0)

    def step(k: Number, *state: Number) -> list[Number]:
        term, in_a, in_b, in_c, total, total_a, total_b, total_c = state
        below = 1 / (c + k)
        scale = below * x / (k + 1)
        left, right = (a + k) * scale, (b + k) * scale
        ratio = left * (b + k)
        in_a, in_b = in_a * ratio + term * right, in_b * ratio + term * left
        in_c, term = ratio * (in_c - term * below), term * ratio
        totals = [total + term, total_a + in_a, total_b + in_b, total_c + in_c]
        return [k + 1, term, in_a, in_b, in_c, *totals]

    def is_active(k: Number, *state: Number) -> Number:
        active = k < 2
        for term, total in zip(state[:4], state[4:], strict=True):
            active = active | (abs(term) > threshold * abs(total))
        return active & (abs(state[4]) < math.inf)

    zero, one = constant_like(x, 0.0), constant_like(x, 1.0)
    start = [zero, one, zero, zero, zero, one, zero, zero, zero]
    _, _, _, _, _, value, in_a, in_b, in_c = iterate(step, is_active, start, _GAUSS_LIMIT)
    return value, in_a, in_b, in_c


def _pfaff(a: Number, b: Number, c: Number, x: Number) -> tuple[Number, Number, Number, Number]:
    """Pfaff's transformation for x < 0: whether it is made, log(1 - x), b and x."""
    is_turned = (x < 0) & ~_is_pole(a) & ~_is_pole(b)
    safe = select(is_turned, x, 0.0)
    argument = select(is_turned, safe / (safe - 1), x)
    return is_turned, log1p(-safe), select(is_turned, c - b, b), argument


def gauss(a: Number, b: Number, c: Number, x: Number) -> Number:
    """2F1(a, b; c; x); infinite above 1, except for polynomials, and at poles in c."""
    is_polynomial = _is_pole(a) | _is_pole(b)
    is_turned = (x < 0) & ~is_polynomial
    turned = select(is_turned, x / (x - 1), x)
    is_near = ~is_polynomial & (turned > 1 - _NEAR_ONE) & (x <= 1)
    is_inside = (x < 1) & ~is_near | is_polynomial
    _, logarithm, second, argument = _pfaff(a, b, c, select(is_inside, x, 0.0))
    direct = exp(-a * logarithm) * _gauss_series(a, second, c, argument)
    # Near 1, and far below 0, because Pfaff's transformation maps that to near 1.
    second = select(is_turned, c - b, b)
    rest = select(is_turned, 1 / (1 - x), 1 - x)
    factor = exp(select(is_turned, a * log(select(is_turned, rest, 1.0)), 0.0))
    near = factor * _gauss_near_one(a, second, c, select(is_near, rest, _NEAR_ONE))
    is_finite = (_is_pole(a) & (a > c)) | (_is_pole(b) & (b > c))
    value = select(is_near, near, select(is_inside, direct, math.inf))
    value = select(_is_pole(c) & ~is_finite, math.inf, value)
    value = select((a == 0) | (b == 0) | (x == 0), 1.0, value)
    size = abs(a) + abs(b) + abs(c)
    return select((size < math.inf) & (abs(x) < math.inf), value, math.nan)


_SHIFT = 1e-4  # of c where the expansion has two poles that cancel


def _gauss_near_one(a: Number, b: Number, c: Number, rest: Number) -> Number:
    """2F1(a, b; c; 1 - rest) for small rest.

    If c - a - b is an integer, it comes from neighbours on both sides, by Richardson's
    extrapolation.
    """
    power = c - a - b
    is_degenerate = abs(power - round_to_even(power)) < 0.5 * _SHIFT
    at_one = select(power > 0, _at_one(a, b, c), math.inf)

    def neighbour(
        place: Number,
        weight: Number,
        a: Number,
        b: Number,
        c: Number,
        rest: Number,
        shift: Number,
    ) -> Number:
        return weight * _expansion(a, b, c + place * shift, rest)

    shift = select(is_degenerate, _SHIFT, constant_like(power, 0.0))
    safe = select(rest == 0, 1.0, rest)
    weights = [np.array([1.0, -1.0, 2.0, -2.0]), np.array([4.0, 4.0, -1.0, -1.0]) / 6]
    value = sum_over(neighbour, weights, [a, b, c, safe, shift])
    return select(rest == 0, at_one, value)


def _at_one(a: Number, b: Number, c: Number) -> Number:
    rows = [[0, 0, 1, 1], [-1, -1, 1, 1], [-1, 0, 1, -1], [0, -1, 1, -1]]
    logarithm, sign = _gamma_quotient([a, b, c], rows)
    return sign * exp(logarithm)


def _expansion(a: Number, b: Number, c: Number, rest: Number) -> Number:
    power = c - a - b
    rows = [[0, 0, 1, 1], [1, 1, -1, 1], [1, 0, 0, -1], [0, 1, 0, -1]]
    logarithm, sign = _gamma_quotient([a, b, c], rows)
    regular = _at_one(a, b, c) * _few_terms(a, b, 1 - power, rest)
    singular = sign * exp(logarithm + power * log(rest))
    return regular + singular * _few_terms(c - a, c - b, 1 + power, rest)


def _few_terms(a: Number, b: Number, c: Number, x: Number) -> Number:
    term = total = constant_like(x, 1.0)
    for k in range(6):
        term = term * ((a + k) * (b + k) / ((c + k) * (k + 1)) * x)
        total = total + term
    return total


def gauss_in(operand: int) -> Callable[[Number, Number, Number, Number], Number]:
    """Returns the derivative of 2F1 in a, b or c for x < 1; nan near 1 and below -5000."""

    def derivative(a: Number, b: Number, c: Number, x: Number) -> Number:
        is_inside = (x < 1 - _NEAR_ONE) & (x > -1 / _NEAR_ONE)
        is_turned, logarithm, second, argument = _pfaff(a, b, c, select(is_inside, x, 0.0))
        value, in_a, in_b, in_c = _gauss_slopes(a, second, c, argument)
        in_c = select(is_turned, in_b + in_c, in_c)
        in_b = select(is_turned, -in_b, in_b)
        slope = (in_a - logarithm * value, in_b, in_c)[operand]
        return select(is_inside, exp(-a * logarithm) * slope, math.nan)

    return derivative
