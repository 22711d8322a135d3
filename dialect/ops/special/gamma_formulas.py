"""The gamma function's logarithm and its derivatives, Hurwitz' zeta function: formulas.

Sources: DLMF 5.5 (recurrence, reflection), 5.11 (Stirling's series), 5.15, 25.11 (zeta by the
Euler-Maclaurin formula). The polynomials are fits at Chebyshev nodes.
"""

from __future__ import annotations

import math

import numpy as np

from axir.dialect.builders.expressions import (
    Number,
    constant_like,
    exp,
    is_nan,
    log,
    maximum,
    minimum,
    polynomial,
    power,
    round_to_even,
    select,
)
from axir.dialect.builders.formula import sum_over

# log gamma(2 + z) / z in z for |z| <= 1/2; error 1e-19.
_LOG_GAMMA_AT_TWO = (
    0.42278433509846713, 0.3224670334241132, -0.06735230105319814, 0.02058080842778463,
    -0.007385551028668096, 0.0028905103307343394, -0.0011927539120033873, 0.0005096695250262799,
    -0.00022315475069647703, 9.945750665169756e-05, -4.492635166770342e-05,
    2.0507292365464966e-05, -9.438454884054723e-06, 4.374221208333783e-06, -2.044935323180052e-06,
    9.584290249224467e-07, -4.303234692956732e-07, 2.0192169921430407e-07, -1.341570273460026e-07,
    6.473973449314896e-08,
)  # fmt: skip
# digamma(x) / (x - root) in x - 3/2 for 1 <= x <= 2; error 1e-17.
_DIGAMMA_AT_ROOT = (
    0.9510558760318328, -0.4236274212814606, 0.24054248424078736, -0.14840492305388006,
    0.09498872445282817, -0.06192213327556183, 0.040760833944741226, -0.02697579665686472,
    0.01790724819228875, -0.011908220169786002, 0.007927024136843637, -0.0052799364178857415,
    0.0035180792717028125, -0.0023455016279107115, 0.0015635739915515125, -0.0010364227247828023,
    0.0006899428514219089, -0.00048606417050412354, 0.00032689316473621455,
    -0.00014460384609240088, 9.158816882117e-05, -0.00017837342400462423, 0.00012241591000024265,
)  # fmt: skip
_DIGAMMA_ROOT = (1.4616321449683622, 9.549995429965697e-17)  # a double and its error
# Bernoulli numbers B_2k over 2k (2k - 1), over 2k, and over (2k)!.
STIRLING = (
    0.08333333333333333, -0.002777777777777778, 0.0007936507936507937, -0.0005952380952380953,
    0.0008417508417508417, -0.0019175269175269176, 0.00641025641025641, -0.029550653594771242,
    0.17964437236883057,
)  # fmt: skip
_DIGAMMA_SERIES = (
    0.08333333333333333, -0.008333333333333333, 0.003968253968253968, -0.004166666666666667,
    0.007575757575757576, -0.021092796092796094, 0.08333333333333333, -0.4432598039215686,
    3.0539543302701198,
)  # fmt: skip
EULER_MACLAURIN = (
    0.08333333333333333, -0.001388888888888889, 3.306878306878307e-05, -8.267195767195768e-07,
    2.08767569878681e-08, -5.284190138687493e-10, 1.3382536530684679e-11, -3.3896802963225827e-13,
    8.586062056277845e-15, -2.174868698558062e-16, 5.5090028283602295e-18,
    -1.3954464685812522e-19,
)  # fmt: skip
# sin(pi x) / x and cos(pi x) in x^2 for |x| <= 1/2; error 1e-17.
_SINE = (
    3.141592653589793, -5.167712780049969, 2.5501640398773007, -0.599264529318946,
    0.08214588657312355, -0.007370430506093225, 0.00046629981702308817, -2.1903499125519212e-05,
    7.697847275590284e-07,
)  # fmt: skip
_COSINE = (
    1.0, -4.934802200544676, 4.058712126416498, -1.335262768843456, 0.23533063012967062,
    -0.02580688873817758, 0.001929556278037417, -0.00010456656706174584, 4.149578027057121e-06,
)  # fmt: skip
_HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)
_SERIES_START = 9.0  # from here on the series in 1/x^2 are exact to double precision


def log1p_minus(u: Number, ratio: Number) -> Number:
    """log(1 + u) - u for ratio = 1 + u, without cancellation for small u.

    With s = u / (2 + u), log(1 + u) = 2 atanh(s) and u = 2 s / (1 - s), so the difference is
    -u s + 2 (s^3/3 + s^5/5 + ...).
    """
    is_small = abs(u) < 0.5
    safe = select(is_small, u, 0.0)
    s = safe / (2 + safe)
    series = polynomial(s * s, [1 / (2 * k + 3) for k in range(18)])
    return select(is_small, 2 * s * s * s * series - safe * s, log(ratio) - u)


def _stirling(x: Number) -> Number:
    inverse = 1 / x
    return inverse * polynomial(inverse * inverse, STIRLING)


def _log_gamma_above_half(x: Number) -> Number:
    """log gamma(x) for x >= 1/2."""
    # From 2.5 down to [1.5, 2.5]: gamma(x) = (x - 1) ... (x - n) gamma(x - n).
    core = minimum(x, _SERIES_START)
    factor = constant_like(x, 1.0)
    for _ in range(7):
        is_above = core > 2.5
        core = select(is_above, core - 1, core)
        factor = select(is_above, factor * core, factor)
    is_low = core < 1.5
    z = select(is_low, core - 1, core - 2)
    is_far = x >= _SERIES_START
    far = maximum(x, _SERIES_START)
    # Below 1.5: gamma(x) = gamma(x + 1) / x. One logarithm serves all cases.
    logarithm = log(select(is_far, far, select(is_low, core, factor)))
    near = z * polynomial(z, _LOG_GAMMA_AT_TWO) + select(is_low, -logarithm, logarithm)
    series = far * (logarithm - 1) - 0.5 * logarithm + (_HALF_LOG_TWO_PI + _stirling(far))
    return select(is_far, series, near)


def _sine_of_turns(x: Number) -> tuple[Number, Number]:
    """sin and cos of pi times the distance of x from the nearest integer, and that is exact."""
    distance = x - round_to_even(x)
    square = distance * distance
    return distance * polynomial(square, _SINE), polynomial(square, _COSINE)


def log_gamma(x: Number) -> Number:
    """log |gamma(x)|; infinite at 0, -1, -2 ... and at both infinities.

    For x < 1/2 by reflection: log pi - log |sin(pi x)| - log gamma(1 - x).
    """
    is_reflected = x < 0.5
    upper = _log_gamma_above_half(select(is_reflected, 1 - x, x))
    sine, _ = _sine_of_turns(select(is_reflected, x, 0.25))
    reflected = math.log(math.pi) - log(abs(sine)) - upper
    is_pole = is_reflected & (sine == 0)
    is_infinite = is_pole | (abs(x) == math.inf)
    return select(is_infinite, math.inf, select(is_reflected, reflected, upper))


def stirling_rest(x: Number) -> Number:
    """log gamma(x) - ((x - 1/2) log x - x + log(2 pi) / 2) for x > 0: about 1 / (12 x)."""
    low = minimum(x, _SERIES_START)
    direct = _log_gamma_above_half(low + 1) - (low + 0.5) * log(low) + low - _HALF_LOG_TWO_PI
    return select(x < _SERIES_START, direct, _stirling(maximum(x, _SERIES_START)))


def _digamma_above_half(x: Number) -> Number:
    """digamma(x) for x >= 1/2."""
    core = minimum(x, _SERIES_START)
    # The sum of 1 / core as one quotient.
    over, under = constant_like(x, 0.0), constant_like(x, 1.0)
    for _ in range(7):
        is_above = core > 2
        core = select(is_above, core - 1, core)
        over = select(is_above, over * core + under, over)
        under = select(is_above, under * core, under)
    is_low = core < 1
    rest = select(is_low, -1.0, over) / select(is_low, core, under)
    core = select(is_low, core + 1, core)
    near = ((core - _DIGAMMA_ROOT[0]) - _DIGAMMA_ROOT[1]) * polynomial(core - 1.5, _DIGAMMA_AT_ROOT)
    far = maximum(x, _SERIES_START)
    inverse = 1 / far
    square = inverse * inverse
    series = log(far) - (0.5 * inverse + square * polynomial(square, _DIGAMMA_SERIES))
    return select(x < _SERIES_START, near + rest, series)


def digamma(x: Number) -> Number:
    """Returns the logarithmic derivative of gamma; nan at -1, -2 ..., infinite at the zeros.

    For x < 1/2 by reflection: digamma(1 - x) - pi / tan(pi x).
    """
    is_reflected = x < 0.5
    upper = _digamma_above_half(select(is_reflected, 1 - x, x))
    sine, cosine = _sine_of_turns(select(is_reflected, x, 0.25))
    at_pole = select(x == 0, -1 / x, math.nan)
    reflected = select(sine == 0, at_pole, upper - math.pi * cosine / sine)
    return select(is_reflected, reflected, upper)


SUMMED = 10  # number of leading terms of the zeta function that are added one by one


def zeta(s: Number, q: Number) -> Number:
    """Hurwitz' zeta function, the sum of (q + k)^-s over k = 0, 1, ..., for s > 1.

    The first terms are added. The rest is their integral, half a term and Euler-Maclaurin
    corrections (DLMF 25.11.5). q <= 0 takes integer s only; q = 0, -1, ... gives infinity.
    """
    terms = [np.arange(float(SUMMED))]
    total = sum_over(lambda k, s, q: power(q + k, -s), terms, [s, q])
    last = q + SUMMED
    final = power(last, -s)
    inverse = 1 / last
    factor, correction = s * inverse, constant_like(s, 0.0)
    for k, coefficient in enumerate(EULER_MACLAURIN):
        correction = correction + coefficient * factor
        factor = factor * ((s + (2 * k + 1)) * inverse) * ((s + (2 * k + 2)) * inverse)
    # High orders need no corrections, and these would overflow.
    rest = final * (last / (s - 1) + 0.5 + correction)
    total = total + select(final == 0, 0.0, rest)
    total = select(q == math.inf, 0.0, total)
    return _at_the_edge(s, q, total)


def _at_the_edge(s: Number, q: Number, total: Number) -> Number:
    """Gives zeta its values at infinite s, at poles, and nan outside its domain."""
    beyond = select(q < 1, math.inf, select(q == 1, 1.0, constant_like(q, 0.0)))
    total = select(s == math.inf, beyond, total)
    is_pole = (q <= 0) & (q == round_to_even(q))
    is_undefined = (s < 1) | is_nan(s) | is_nan(q)
    is_undefined = is_undefined | ((q < 0) & ~is_pole & (s != round_to_even(s)))
    is_infinite = (s == 1) | is_pole
    return select(is_undefined, math.nan, select(is_infinite, math.inf, total))


def polygamma(m: Number, x: Number) -> Number:
    """Derivative number m of digamma: (-1)^(m+1) m! zeta(m + 1, x) (DLMF 5.15.1, 25.11.12)."""
    is_known = (m == round_to_even(m)) & (m >= 0)
    safe = select(is_known, m, 0.0)
    half = 0.5 * safe
    sign = select(half == round_to_even(half), -1.0, constant_like(m, 1.0))
    order = select(m == 0, 1.0, safe)  # digamma has no zeta
    value = sign * exp(_log_gamma_above_half(order + 1)) * zeta(order + 1, x)
    value = select(m == 0, digamma(x), value)
    return select(is_known, value, math.nan)
