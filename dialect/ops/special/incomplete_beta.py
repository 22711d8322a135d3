"""The regularized incomplete beta function: formulas.

Source: the continued fraction DLMF 8.17.22.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from axir.dialect.builders.expressions import Number, constant_like, exp, log, select
from axir.dialect.builders.formula import iterate

from .gamma_formulas import log1p_minus, log_gamma, stirling_rest

_RESOLUTION = 2.0**-55
_LIMIT = 10000  # steps; about the root of the larger parameter times seven are needed


def _log_density(a: Number, b: Number, x: Number, rest: Number) -> Number:
    """log(x^a (1 - x)^b / B(a, b)), relative to its peak, where the large terms cancel."""
    total = a + b
    # With x = p + d at the peak p = a / (a + b), the terms linear in d cancel exactly.
    distance = b * x - a * rest
    scaled = a * log1p_minus(distance / a, x * (total / a))
    scaled = scaled + b * log1p_minus(-distance / b, rest * (total / b))
    scaled = scaled + 0.5 * (log(a / total) + log(b / (2 * math.pi)))
    scaled = scaled + stirling_rest(total) - stirling_rest(a) - stirling_rest(b)
    # Quotients by the least parameters would overflow.
    is_small = (a < 1e-280) | (b < 1e-280)
    direct = a * log(x) + b * log(rest) + log_gamma(total) - log_gamma(a) - log_gamma(b)
    return select(is_small, direct, scaled)


def _fraction(a: Number, b: Number, x: Number) -> Number:
    """F with I(x; a, b) = x^a (1 - x)^b / (a B(a, b)) F, for x below (a + 1) / (a + b + 2).

    1 / (1 + d1 / (1 + d2 / ...)) as a sum of changes (Steed's method), which unlike a product of
    ratios does not gather rounding errors.
    """
    total = a + b

    def extend(numerator: Number, state: Sequence[Number]) -> list[Number]:
        denominator, change, value = state
        following = 1 / (1 + numerator * denominator)
        change = -numerator * denominator * following * change
        return [following, change, value + change]

    def step(m: Number, *state: Number) -> list[Number]:
        even = a + 2 * m
        odd = extend(-((a + m) / even) * ((total + m) / (even + 1)) * x, state)
        m, even = m + 1, even + 2
        return [m, *extend((m / (even - 1)) * ((b - m) / even) * x, odd)]

    def is_active(m: Number, denominator: Number, change: Number, value: Number) -> Number:
        return abs(change) > _RESOLUTION * abs(value)

    one = constant_like(x, 1.0)
    return iterate(step, is_active, [constant_like(x, 0.0), one, one, one], _LIMIT)[3]


def betainc(a: Number, b: Number, x: Number) -> Number:
    """Returns the share of B(a, b) that the integral of t^(a-1) (1-t)^(b-1) up to x makes.

    Above (a + 1) / (a + b + 2) as 1 - I(1 - x; b, a). nan unless a and b are at least 0 and x is in
    [0, 1]; also where both are 0, or both infinite.
    """
    inside = (a > 0) & (a < math.inf) & (b > 0) & (b < math.inf) & (x > 0) & (x < 1)
    p, q = select(inside, a, 1.0), select(inside, b, 1.0)
    y = select(inside, x, 0.5)
    is_mirrored = y > (p + 1) / (p + q + 2)
    lower, upper = select(is_mirrored, q, p), select(is_mirrored, p, q)
    y, rest = select(is_mirrored, 1 - y, y), select(is_mirrored, y, 1 - y)
    value = exp(_log_density(lower, upper, y, rest)) * _fraction(lower, upper, y) / lower
    value = select(is_mirrored, 1 - value, value)
    return select(inside, value, _at_the_edge(a, b, x))


def _at_the_edge(a: Number, b: Number, x: Number) -> Number:
    is_known = (a >= 0) & (b >= 0) & (x >= 0) & (x <= 1)
    is_known = is_known & ~((a == 0) & (b == 0)) & ~((a == math.inf) & (b == math.inf))
    # All mass lies at 0 or at 1, or x is one of them.
    at_zero = (a == 0) | (b == math.inf)
    share = select(x == 0, 0.0, select((x == 1) | at_zero, 1.0, constant_like(x, 0.0)))
    return select(is_known, share, math.nan)
