"""Exponential, trigonometric and Fresnel integrals, the dilogarithm, Owen's T function: formulas.

Sources: DLMF 6 (exponential, sine and cosine integrals), 7.2 and 7.5 (Fresnel integrals), 8.19
(generalized exponential integrals), 25.12 (dilogarithm); D. B. Owen, Ann. Math. Stat. 27, 1956.
The polynomials are fits at Chebyshev nodes. They fit the functions divided by their behaviour at
the ends.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from axir.dialect.builders.expressions import (
    Number,
    constant_like,
    cos,
    erfc,
    exp,
    log,
    log1p,
    maximum,
    minimum,
    polynomial,
    round_to_even,
    select,
    sin,
)
from axir.dialect.builders.formula import iterate, sum_over

_EULER = 0.5772156649015329
# E1(x) + log(x) in 2 x - 1, for 0 <= x <= 1; x exp(x) E1(x) in 1 - 10 / (x + 4), for x >= 1.
_E1_NEAR = (
    -0.1333735857837845, 0.3934693402873666, -0.04510200521552493, 0.0047958926556569805,
    -0.00043790563907271195, 3.442312599049166e-05, -2.360822887020937e-06, 1.4319708844526943e-07,
    -7.774613682911808e-09, 3.8171727497211e-10, -1.7096548907755215e-11, 7.068015128480379e-13,
    -2.6899171572523866e-14,
)  # fmt: skip
_E1_FAR = (
    0.8716057754033214, 0.16873404637208275, -0.05754759340649453, 0.025022025052640312,
    -0.01164516693141682, 0.005778887406651975, -0.0029750841600024998, 0.0015813865271058528,
    -0.0008599284561403538, 0.00047690103685910405, -0.0002685973604099433, 0.00015331613754886224,
    -8.849279399711128e-05, 5.1669523726491025e-05, -3.0425770447948757e-05, 1.7611311759176808e-05,
    -1.0303004354228096e-05, 7.691028925312088e-06, -5.2207615743223416e-06, -9.714201010940216e-07,
    1.8689909846602005e-06, 7.3627784606022475e-06, -6.608056857204444e-06, -9.109756455038419e-06,
    8.17253068235422e-06, 1.0223604776622833e-05, -8.621926378944527e-06, -7.69628949910979e-06,
    6.2459415013485535e-06, 4.0738280381551385e-06, -3.1699416767634934e-06,
    -1.3047430848822252e-06, 9.798500554295324e-07, 2.0643896785292793e-07, -1.4898519745069136e-07,
)  # fmt: skip
# The zero of Ei as a double and its error; (Ei(x) - log(x / zero)) (x + 1)^2 exp(-x) / (x - zero)
# in x / 6 - 1, for 0 <= x <= 12; x exp(-x) Ei(x) in 48 / x - 3 up to 24, and in 48 / x - 1 above.
_EI_ZERO = (0.37250741078136663, 1.3140183414386028e-17)
_EI_BELOW_12 = (
    1.7959424303269196, -0.9260499747273133, 0.7158551913503958, -0.14528723556143627,
    -0.4996048242822228, 0.8738130317953694, -0.8521756928439568, 0.5628131621726958,
    -0.22313801038466533, -0.018519732277315813, 0.12710561478680632, -0.13930237186296393,
    0.10736490990552516, -0.06801213387003661, 0.037444640702250016, -0.018430611162228924,
    0.008250619973807693, -0.0033985638650695666, 0.001299265723411415, -0.00046411371469142425,
    0.0001556909354560714, -4.920264813694276e-05, 1.4749141607246102e-05, -4.255266166899422e-06,
    1.1522953316689352e-06, -2.6931670537402036e-07, 6.735406621281632e-08, -2.498773637343573e-08,
    5.627265077695358e-09,
)  # fmt: skip
_EI_BELOW_24 = (
    1.0723449766623854, 0.028391549978593562, 0.001940304027931447, 0.0002684049246182495,
    3.961169113365822e-05, -5.37275975225954e-06, -5.1601824361418225e-06, -2.2547676788072954e-07,
    4.922896187248928e-07, 4.033117166877781e-09, -4.963298627277413e-08, 7.121042345237143e-09,
    3.672995698476681e-09, -1.5907405176174908e-09, 3.3244058779267077e-11, 1.6705204248786374e-10,
    -5.116179338277017e-11, -6.270079689497129e-12, 5.141672387096858e-12,
)  # fmt: skip
_EI_ABOVE_24 = (
    1.0217607036601566, 0.02275307202736118, 0.001063768785547162, 7.863790796106851e-05,
    8.211967484590294e-06, 1.1430194165809206e-06, 2.053127853729203e-07, 4.683932673507851e-08,
    1.3569421721248852e-08, 5.066618689029302e-09, 2.4525109826562722e-09, 1.5501316315948316e-09,
    1.0652237994055923e-09, 1.3533583887966027e-10, -9.45986420556208e-10, -8.36950879209438e-10,
    1.9271607413852916e-10, 4.710006967535198e-10, 1.0585359469972874e-11, -1.352643885009724e-10,
    -7.958362416674816e-12, 1.7549760804295156e-11,
)  # fmt: skip
# Si(x) / x and (log(x) + gamma - Ci(x)) / x^2 in 2 x^2 / 25 - 1, for x <= 5.
_SINE = (
    0.5174366984140863, -0.3130002148429586, 0.1328951948236433, -0.03154670751337567,
    0.004628544775607469, -0.00045820206605929747, 3.26132510014839e-05, -1.7486261622424948e-06,
    7.316252358836472e-08, -2.4554223733041285e-09, 6.757496260817604e-11, -1.5543958225689337e-12,
    3.0267105534232556e-14,
)  # fmt: skip
_COSINE = (
    0.15052825501195546, -0.073592116542338, 0.021553580898550466, -0.003837051520787985,
    0.00044956550908990757, -3.7059129591893517e-05, 2.2611660107598896e-06,
    -1.0614790564223923e-07, 3.951243477158726e-09, -1.194677820176823e-10, 2.995474252134955e-12,
    -6.314571519290616e-14,
)  # fmt: skip
# x f(x) and x^2 g(x) of DLMF 6.2.17 and 6.2.18 in 1 - 120 / (x^2 + 35), for x >= 5.
_SICI_F = (
    0.979033150541287, 0.026716777154158405, -0.0076726474856261264, 0.002566798715837493,
    -0.0008742762334140262, 0.0003116618303531274, -0.00011167620550938327, 4.116318958421239e-05,
    -1.5130866111933893e-05, 5.7043149995532485e-06, -2.1254781161670053e-06, 8.162990706851641e-07,
    -3.0647092900469876e-07, 1.2200500444074197e-07, -4.191442678645188e-08, 1.3335850631279803e-08,
    -1.2397495258440874e-08, 1.0876355973929067e-08, 8.324142924308309e-09, -8.630352664608479e-09,
    -9.90830763224129e-09, 6.76729903234893e-09, 6.770906155751242e-09, -2.8641022087567614e-09,
    -2.770144985509726e-09, 5.773957486608728e-10, 5.222907233224585e-10,
)  # fmt: skip
_SICI_G = (
    0.9411843829062295, 0.07071992599190069, -0.015784501164133748, 0.004986605427865879,
    -0.001504237218966872, 0.0005195226713905657, -0.00016924530227760306, 6.189801813757854e-05,
    -2.0648966361770786e-05, 7.988897763086511e-06, -2.620241772528298e-06, 1.0982883948959342e-06,
    -3.378249331382905e-07, 1.799489888881561e-07, -1.3631039181424052e-08, -2.7841639703621183e-08,
    -8.333202114186654e-08, 1.456644974168006e-07, 1.88696925846757e-07, -2.4993575223779076e-07,
    -3.1546690766710283e-07, 3.2201378991805654e-07, 3.8121701490470646e-07, -2.8557238879967e-07,
    -3.2120059167224846e-07, 1.6855542778095075e-07, 1.8066240707840616e-07,
    -5.9393450602950615e-08, -6.093488210346114e-08, 9.619802567313559e-09, 9.446582115176146e-09,
)  # fmt: skip
# S(x) / x^3 and C(x) / x in s^2 / 8 - 1 for s = pi x^2 / 2 <= 4; x f(x) and x^3 g(x) of DLMF 7.2.10
# and 7.2.11 in 1 - 20 / (s + 6) above.
_FRESNEL_S = (
    0.290800580703672, -0.17532772653170733, 0.049318726771970786, -0.007419885568018858,
    0.0006868896441333484, -4.2962739436498e-05, 1.936013484800314e-06, -6.583812901996781e-08,
    1.7497379985030667e-09, -3.7344113527135024e-11, 6.545364420131893e-13, -9.57944438528851e-15,
)  # fmt: skip
_FRESNEL_C = (
    0.4471622511536044, -0.34963134481986297, 0.1640596859831984, -0.03468785305537545,
    0.004126689575352356, -0.0003147817661827979, 1.6719230050033612e-05, -6.542823256014991e-07,
    1.9657054656562865e-08, -4.678044009995999e-10, 9.044244955847052e-12, -1.4469397853470304e-13,
)  # fmt: skip
_FRESNEL_F = (
    0.31714062468222665, 0.0032147778697087428, -0.003346313657152092, 0.001888241420742086,
    -0.0008075470516007752, 0.00029783689614569037, -0.0001057617664589309, 3.822514650037086e-05,
    -1.3894129868708431e-05, 5.0635406619493044e-06, -1.8774617239115641e-06, 7.015983459595636e-07,
    -2.635184944296174e-07, 1.0038960285915206e-07, -3.8516094616629215e-08, 1.4840324849689562e-08,
    -5.541038711902967e-09, 2.1267451417019032e-09, -1.0756237488566873e-09, 4.405097635435626e-10,
    -1.374408000179409e-11, -7.846415538018184e-13, -6.031286057422253e-11, 2.517412753120569e-11,
)  # fmt: skip
_FRESNEL_G = (
    0.09951638233791742, 0.004824393254224738, -0.0046798437528441485, 0.0022048396131444984,
    -0.0006613592409075611, 0.00013988777063863572, -3.0084736798875372e-05, 8.644626405258954e-06,
    -1.93265317046345e-06, 3.544206311172509e-07, -1.1405812093900679e-07, 1.2408703275877461e-08,
    2.818238737233786e-09, -2.095109396713751e-10, 1.5643346629487824e-09, -5.365044982471574e-10,
    1.8195735144740182e-10, -2.0452925001027088e-10, 3.418467687624929e-11, 3.551286930410613e-13,
    8.496429923504425e-12, -8.084281480845766e-12, 3.5768069695459687e-12,
)  # fmt: skip
# Bernoulli numbers B_2k over (2k + 1)!, k from 1 on.
_DILOGARITHM = (
    0.027777777777777776, -0.0002777777777777778, 4.72411186696901e-06, -9.185773074661964e-08,
    1.8978869988971e-09, -4.0647616451442256e-11, 8.921691020456452e-13, -1.9939295860721074e-14,
    4.518980029619918e-16,
)  # fmt: skip


# Exponential integrals -------------------------------------------------------------------------


def exponential_integral(x: Number) -> Number:
    """E1(x), the integral of exp(-t) / t from x on; infinite at 0, nan for negative x."""
    near, far = minimum(x, 1.0), maximum(x, 1.0)
    below = polynomial(2 * near - 1, _E1_NEAR) - log(near)
    above = exp(-far) / far * polynomial(1 - 10 / (far + 4), _E1_FAR)
    return select(x < 1, below, select(x == math.inf, 0.0, above))


def principal_integral(x: Number) -> Number:
    """Ei(x), the principal value of the integral of exp(t) / t up to x; -E1(-x) for negative x."""
    is_negative = x < 0
    size = select(is_negative, 1.0, x)
    near, far = minimum(size, 12.0), maximum(size, 12.0)
    distance = (near - _EI_ZERO[0]) - _EI_ZERO[1]
    slope = polynomial(near / 6 - 1, _EI_BELOW_12) * exp(near) / ((near + 1) * (near + 1))
    below = log(near / _EI_ZERO[0]) + distance * slope
    inverse = 1 / far
    is_middle = far < 24
    middle = polynomial(48 * select(is_middle, inverse, 1 / 24) - 3, _EI_BELOW_24)
    rest = polynomial(48 * select(is_middle, 1 / 24, inverse) - 1, _EI_ABOVE_24)
    half = exp(0.5 * far)  # its square overflows later
    above = half * (select(is_middle, middle, rest) * inverse) * half
    above = select(far == math.inf, math.inf, above)
    negative = -exponential_integral(select(is_negative, -x, 1.0))
    return select(is_negative, negative, select(size < 12, below, above))


_RESOLUTION = 2.0**-54
_LIMIT = 400  # steps of the continued fraction; x = 1 needs about 80


def generalized_integral(n: Number, x: Number) -> Number:
    """E_n(x), the integral of exp(-x t) / t^n from 1 on; nan unless n is 0, 1, 2, ... and x >= 0.

    It is the continued fraction DLMF 8.19.17 above x = 1, and the power series 8.19.8 below.
    """
    is_known = (n >= 0) & (n < math.inf) & (n == round_to_even(n)) & (x >= 0)
    order = select(is_known & (n > 0), n, 1.0)
    inside = is_known & (x > 0) & (x < math.inf)
    near = _power_series(order, select(inside & (x <= 1), x, 0.5))
    far = select(inside & (x > 1), x, 2.0)
    value = select(x <= 1, near, exp(-far) * _continued_fraction(order, far))
    safe = select(inside, x, 1.0)
    value = select(n == 0, exp(-safe) / safe, value)
    at_zero = select(n < 2, math.inf, 1 / select(n < 2, 1.0, order - 1))
    at_end = select(x == 0, at_zero, 0.0)
    return select(inside, value, select(is_known, at_end, math.nan))


def _power_series(n: Number, x: Number) -> Number:
    logarithm = log(x)

    def step(m: Number, term: Number, harmonic: Number, total: Number) -> list[Number]:
        # The term with x^(n-1) has a logarithm.
        distance = n - 1 - m
        is_special = distance == 0
        factor = 1 / select(is_special, 1.0, distance)
        total = total + term * select(is_special, harmonic - _EULER - logarithm, factor)
        m = m + 1
        return [m, -term * x / m, harmonic + 1 / m, total]

    def is_active(m: Number, term: Number, harmonic: Number, total: Number) -> Number:
        return abs(term) > 1e-19

    zero, one = constant_like(x, 0.0), constant_like(x, 1.0)
    return iterate(step, is_active, [zero, one, zero, zero], 24)[3]


def _continued_fraction(n: Number, x: Number) -> Number:
    """1 / (x + n - n / (x + n + 2 - 2 (n + 1) / (x + n + 4 - ...))), as a sum of changes."""

    def step(
        k: Number, base: Number, denominator: Number, change: Number, value: Number
    ) -> list[Number]:
        k, base = k + 1, base + 2
        numerator = -k * (n - 1 + k)
        following = 1 / (base + numerator * denominator)
        change = change * (base * following - 1)
        return [k, base, following, change, value + change]

    def is_active(
        k: Number, base: Number, denominator: Number, change: Number, value: Number
    ) -> Number:
        return abs(change) > _RESOLUTION * abs(value)

    first = 1 / (x + n)
    state: Sequence[Number] = [constant_like(x, 0.0), x + n, first, first, first]
    return iterate(step, is_active, state, _LIMIT)[4]


# Sine and cosine integrals, Fresnel integrals --------------------------------------------------


def _sici_parts(size: Number) -> tuple[Number, Number, Number, Number, Number]:
    """2 x^2 / 25 - 1 for the polynomials below 5, f and g of DLMF 6.2, sine and cosine of x."""
    near, far = minimum(size, 5.0), maximum(minimum(size, 1e150), 5.0)
    variable, inverse = 1 - 120 / (far * far + 35), 1 / far
    f = inverse * polynomial(variable, _SICI_F)
    g = inverse * inverse * polynomial(variable, _SICI_G)
    return 0.08 * near * near - 1, f, g, sin(far), cos(far)


def sine_integral(x: Number) -> Number:
    """Si(x), the integral of sin(t) / t from 0 to x."""
    size = abs(x)
    variable, f, g, sine, cosine = _sici_parts(size)
    above = 0.5 * math.pi - f * cosine - g * sine
    above = select(size == math.inf, 0.5 * math.pi, above)
    near = select(size < 5, x, 1.0)
    return select(size >= 5, select(x < 0, -above, above), near * polynomial(variable, _SINE))


def cosine_integral(x: Number) -> Number:
    """Ci(|x|), minus the integral of cos(t) / t from |x| on; -inf at 0, nan at -inf."""
    size = abs(x)
    variable, f, g, sine, cosine = _sici_parts(size)
    near = minimum(size, 5.0)
    below = _EULER + log(near) - near * near * polynomial(variable, _COSINE)
    at_end = select(x > 0, 0.0, constant_like(x, math.nan))
    above = select(size == math.inf, at_end, f * sine - g * cosine)
    return select(size >= 5, above, below)


def _fresnel_parts(size: Number) -> tuple[Number, Number, Number, Number, Number]:
    """s^2 / 8 - 1 for the polynomials up to s = pi x^2 / 2 = 4, f and g, sine and cosine of s."""
    far = maximum(minimum(size, 1e18), 1.59)  # beyond, the square would overflow; f is negligible
    turns = 0.5 * far * far
    s, inverse = math.pi * turns, 1 / far
    variable = 1 - 20 / (s + 6)
    f = inverse * polynomial(variable, _FRESNEL_F)
    g = inverse * inverse * inverse * polynomial(variable, _FRESNEL_G)
    near = minimum(size, 1.6)
    square = 0.5 * math.pi * near * near
    angle = math.pi * (turns - 2 * round_to_even(0.5 * turns))
    return 0.125 * square * square - 1, f, g, sin(angle), cos(angle)


_FRESNEL_LIMIT = math.sqrt(8 / math.pi)


def fresnel_sine(x: Number) -> Number:
    """S(x), the integral of sin(pi t^2 / 2) from 0 to x."""
    size = abs(x)
    variable, f, g, sine, cosine = _fresnel_parts(size)
    above = 0.5 - f * cosine - g * sine
    near = select(size < _FRESNEL_LIMIT, x, 1.0)
    below = near * near * near * polynomial(variable, _FRESNEL_S)
    is_far = size >= _FRESNEL_LIMIT
    return select(is_far, select(x < 0, -above, above), select(x == x, below, x))


def fresnel_cosine(x: Number) -> Number:
    """C(x), the integral of cos(pi t^2 / 2) from 0 to x."""
    size = abs(x)
    variable, f, g, sine, cosine = _fresnel_parts(size)
    above = 0.5 + f * sine - g * cosine
    near = select(size < _FRESNEL_LIMIT, x, 1.0)
    is_far = size >= _FRESNEL_LIMIT
    below = near * polynomial(variable, _FRESNEL_C)
    return select(is_far, select(x < 0, -above, above), select(x == x, below, x))


# The dilogarithm -------------------------------------------------------------------------------


def spence(x: Number) -> Number:
    """Minus the integral of log(t) / (t - 1) from 1 to x; nan for negative x.

    In u = -log(x) the series has Bernoulli numbers and converges fast. DLMF 25.12.4 and 25.12.6
    bring x into [1/2, 1].
    """
    is_large = x > 1
    y = select(is_large, 1 / select(is_large, x, 1.0), x)
    is_small = y < 0.5
    u = 0 - log(select(is_small, 1 - y, y))  # no negative zero
    square = u * u
    core = u * (1 - 0.25 * u + square * polynomial(square, _DILOGARITHM))
    safe = select(is_small & (y > 0), y, 0.5)
    reflected = math.pi**2 / 6 - log(safe) * log1p(-safe) - core
    value = select(is_small, select(y == 0, math.pi**2 / 6, reflected), core)
    logarithm = log(select(is_large, x, 1.0))
    value = select(is_large, -value - 0.5 * logarithm * logarithm, value)
    return select((x < 0) | (x == math.inf), math.nan, value)


# Owen's T function -----------------------------------------------------------------------------

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)
_NODES, _WEIGHTS = 0.5 * (_NODES + 1), 0.5 * _WEIGHTS


def owens_t(h: Number, a: Number) -> Number:
    """Returns the integral of exp(-h^2 (1 + t^2) / 2) / (1 + t^2) from 0 to a, over 2 pi.

    Integrates by Gauss' rule. If a is above 1, it first applies
    `T(h, a) = (p + q) / 2 - p q - T(a h, 1 / a)`, where p and q are the normal distribution's upper
    tails from h and a h on.
    """
    h, end = abs(h), abs(a)
    is_swapped = end > 1
    product = select((h == 0) | (end == 0), 0.0, h * end)
    height, width = select(is_swapped, product, h), select(is_swapped, 1 / end, end)
    # Beyond 8.5 / h the integrand has vanished.
    width = minimum(width, 8.5 / height)
    scale = -0.5 * height * height

    def integrand(node: Number, weight: Number, width: Number, scale: Number) -> Number:
        t = width * node
        square = 1 + t * t
        return weight * exp(scale * square) / square

    integral = sum_over(integrand, [_NODES, _WEIGHTS], [width, scale])
    value = width * integral / (2 * math.pi)
    p, q = (0.5 * erfc(math.sqrt(0.5) * x) for x in (h, product))
    value = select(is_swapped, 0.5 * (p + q) - p * q - value, value)
    value = select(h == math.inf, 0.0, value)
    value = select(a < 0, -value, value)
    return select((h == h) & (a == a), value, math.nan)
