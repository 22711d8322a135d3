"""The regularized incomplete gamma functions and their derivative: formulas.

P(a, x) is the share of gamma(a) that the integral of t^(a-1) e^-t up to x makes, Q = 1 - P. It uses
four methods (N. M. Temme, Methods Appl. Anal. 1994; W. Gautschi, ACM TOMS 5, 1979):

- the power series of P (DLMF 8.11.4), for x not above a;
- the continued fraction of Q (DLMF 8.9.2), for x above a;
- for small x, where Q = 1 - P cancels, Q from expm1 and an alternating series (DLMF 8.7.1);
- the expansion for large a that is uniform in x / a (DLMF 8.12).

Each method also differentiates its own terms, which gives the derivative in a.
"""

from __future__ import annotations

import dataclasses
import math

from axir.dialect.builders.expressions import (
    Number,
    constant_like,
    erfc,
    exp,
    expm1,
    log,
    polynomial,
    select,
    sqrt,
)
from axir.dialect.builders.formula import iterate

from .gamma_formulas import digamma, log1p_minus, log_gamma, stirling_rest

_RESOLUTION = 2.0**-54
_LIMIT = 2000  # steps; the uniform expansion takes over where more would be needed
_LARGE = 200.0  # from here on the uniform expansion holds, for |x - a| < a / 4
# d[k][n]: coefficients of a^-k eta^n in the uniform expansion (DLMF 8.12.12). They suffice for
# |eta| <= 0.3, a >= 200.
_UNIFORM = (
    (
        -0.3333333333333333, 0.08333333333333333, -0.014814814814814815, 0.0011574074074074073,
        0.0003527336860670194, -0.0001787551440329218, 3.919263178522438e-05,
        -2.185448510679992e-06, -1.85406221071516e-06, 8.296711340953087e-07,
        -1.7665952736826078e-07, 6.707853543401498e-09, 1.0261809784240309e-08,
        -4.382036018453353e-09, 9.14769958223679e-10, -2.5514193994946248e-11,
        -5.830772132550426e-11,
    ),
    (
        -0.001851851851851852, -0.003472222222222222, 0.0026455026455026454,
        -0.0009902263374485596, 0.00020576131687242798, -4.018775720164609e-07,
        -1.8098550334489977e-05, 7.64916091608111e-06, -1.6120900894563446e-06,
        4.647127802807434e-09, 1.378633446915721e-07, -5.752545603517705e-08,
        1.1951628599778148e-08,
    ),
    (
        0.004133597883597883, -0.0026813271604938273, 0.0007716049382716049,
        2.0093878600823047e-06, -0.0001073665322636516, 5.2923448829120125e-05,
        -1.2760635188618728e-05, 3.423578734096138e-08, 1.3721957309062934e-06,
        -6.298992138380055e-07, 1.4280614206064242e-07,
    ),
    (
        0.0006494341563786008, 0.00022947209362139917, -0.0004691894943952557,
        0.00026772063206283885, -7.561801671883977e-05, -2.396505113867297e-07,
        1.1082654115347302e-05, -5.6749528269915965e-06, 1.4230900732435883e-06,
    ),
    (
        -0.0008618882909167117, 0.0007840392217200666, -0.0002990724803031902,
        -1.4638452578843418e-06, 6.641498215465122e-05, -3.968365047179435e-05,
        1.1375726970678419e-05,
    ),
    (
        -0.00033679855336635813, -6.972813758365857e-05, 0.0002772753244959392,
        -0.00019932570516188847, 6.797780477937208e-05,
    ),
    (
        0.0005313079364639922, -0.0005921664373536939, 0.0002708782096718045,
    ),
    (
        0.00034436760689237765, 5.171790908260592e-05, -0.00033493161081142234,
    ),
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class _Regions:
    """The method for each element; `series` holds where no other method applies."""

    fraction: Number
    small: Number
    uniform: Number
    outside: Number  # neither number is in the domain, or one of them is 0, infinite or nan


def _regions(a: Number, x: Number) -> _Regions:
    outside = ~((a > 0) & (a < math.inf) & (x > 0) & (x < math.inf))
    uniform = ~outside & (a > _LARGE) & (abs(x - a) < 0.25 * a)
    fraction = ~outside & ~uniform & (x > 1.1) & (x > a)
    # Where P is near one although x is small (with Gautschi's bounds).
    is_cancelling = select(x <= 0.5, -0.4 > a * log(select(x > 0, x, 1.0)), x * 1.1 > a)
    small = ~outside & (x <= 1.1) & is_cancelling
    return _Regions(fraction, small, uniform, outside)


def _log_prefactor(a: Number, x: Number) -> Number:
    """log(x^a e^-x / gamma(a + 1)); for a not small without cancellation of its large terms."""
    is_low = a < 0.5
    direct = a * log(x) - x - log_gamma(select(is_low, a, 0.5) + 1)
    high = select(is_low, 0.5, a)
    scaled = high * log1p_minus((x - high) / high, x / high)
    scaled = scaled - 0.5 * log(2 * math.pi * high) - stirling_rest(high)
    return select(is_low, direct, scaled)


def _series(a: Number, x: Number) -> tuple[Number, Number]:
    """S with P = x^a e^-x / gamma(a + 1) S, and its derivative in a."""

    def step(
        n: Number, term: Number, total: Number, harmonic: Number, slope: Number
    ) -> list[Number]:
        n = n + 1
        term = term * (x / n)
        harmonic = harmonic + 1 / n
        return [n, term, total + term, harmonic, slope - term * harmonic]

    def is_active(
        n: Number, term: Number, total: Number, harmonic: Number, slope: Number
    ) -> Number:
        return term * (1 + harmonic) > _RESOLUTION * total

    one, zero = constant_like(x, 1.0), constant_like(x, 0.0)
    _, _, total, _, slope = iterate(step, is_active, [a, one, one, zero, zero], _LIMIT)
    return total, slope


def _fraction(a: Number, x: Number) -> tuple[Number, Number]:
    """F with Q = x^a e^-x / gamma(a) F, and its derivative in a.

    1 / (x + 1 - a - 1 (1 - a) / (x + 3 - a - 2 (2 - a) / ...)) as a sum of changes (Steed's
    method), which unlike a product of ratios does not gather rounding errors; d is the reciprocal
    of the last denominator.
    """

    def step(*state: Number) -> list[Number]:
        k, b, d, d_slope, change, change_slope, total, slope = state
        k, b = k + 1, b + 2
        numerator = k * (a - k)  # derivatives: k here, -1 of b
        inverse = 1 / (b + numerator * d)
        inverse_slope = inverse * inverse * (1 - k * d - numerator * d_slope)
        ratio = -numerator * d * inverse
        ratio_slope = -(k * d * inverse + numerator * (d_slope * inverse + d * inverse_slope))
        change_slope = ratio_slope * change + ratio * change_slope
        change = ratio * change
        return [
            k, b, inverse, inverse_slope, change, change_slope, total + change,
            slope + change_slope,
        ]  # fmt: skip

    def is_active(*state: Number) -> Number:
        change, change_slope, total, slope = state[4:]
        is_changing = abs(change) > _RESOLUTION * abs(total)
        return is_changing | (abs(change_slope) > _RESOLUTION * (abs(slope) + abs(total)))

    b = x + 1 - a
    d, slope = 1 / b, 1 / (b * b)
    state = [constant_like(x, 0.0), b, d, slope, d, slope, d, slope]
    result = iterate(step, is_active, state, _LIMIT)
    return result[6], result[7]


def _small_complement(a: Number, x: Number) -> Number:
    """Q for small x: 1 - x^a / gamma(a + 1) (1 + a sum of (-x)^n / (n! (a + n)))."""
    total, term = constant_like(x, 0.0), constant_like(x, 1.0)
    for n in range(1, 20):
        term = term * x * (-1 / n)
        total = total + term / (a + n)
    logarithm = a * log(x) - log_gamma(1 + a)
    return -(expm1(logarithm) + exp(logarithm) * a * total)


@dataclasses.dataclass(frozen=True)
class _Uniform:
    """Parts of the uniform expansion: Q = erfc(eta sqrt(a / 2)) / 2 + E T.

    E is exp(-a eta^2 / 2) / sqrt(2 pi a), and x / a - 1 - log(x / a) = eta^2 / 2.
    """

    eta: Number
    total: Number  # T
    slope: Number  # dT/da at fixed x
    mu: Number  # x / a - 1


def _uniform(a: Number, x: Number) -> _Uniform:
    mu = (x - a) / a
    root = sqrt(-2 * log1p_minus(mu, x / a))
    eta = select(mu < 0, -root, root)
    # Along a at fixed x, eta changes by -mu / (a eta), which tends to -1 / a.
    is_center = eta == 0
    ratio = select(is_center, 1.0, mu / select(is_center, 1.0, eta))
    inverse = 1 / a
    total, slope = constant_like(a, 0.0), constant_like(a, 0.0)
    power = constant_like(a, 1.0)
    for k, row in enumerate(_UNIFORM):
        value = polynomial(eta, row)
        change = polynomial(eta, [n * c for n, c in enumerate(row)][1:])
        total = total + power * value
        slope = slope - power * inverse * (k * value + ratio * change)
        power = power * inverse
    return _Uniform(eta, total, slope, mu)


def _feed(condition: Number, a: Number, x: Number, spare: tuple[float, float]) -> tuple:
    """Returns the operands where a method applies, and elsewhere substitutes for a fast run."""
    return select(condition, a, spare[0]), select(condition, x, spare[1])


def _by_series(regions: _Regions, a: Number, x: Number) -> tuple[Number, Number]:
    unused = regions.outside | regions.fraction | regions.uniform
    return _series(*_feed(~unused, a, x, (1.0, 0.5)))


def _by_fraction(regions: _Regions, a: Number, x: Number) -> tuple[Number, Number]:
    return _fraction(*_feed(regions.fraction, a, x, (1.0, 4.0)))


def _share_outside(a: Number, x: Number) -> Number:
    """P where a or x is 0 or infinite; nan where it is not defined."""
    is_known = (a >= 0) & (x >= 0) & ~((a == 0) & (x == 0)) & ~((a == math.inf) & (x == math.inf))
    is_whole = (x == math.inf) | (a == 0)
    return select(is_known, select(is_whole, 1.0, constant_like(x, 0.0)), math.nan)


def incomplete_gamma(a: Number, x: Number) -> tuple[Number, Number]:
    """P(a, x) and Q(a, x); nan unless a and x are at least 0, and not both 0 or infinite."""
    regions = _regions(a, x)
    inner_a, inner_x = _feed(~regions.outside, a, x, (1.0, 1.0))
    prefactor = exp(_log_prefactor(inner_a, inner_x))
    series = prefactor * _by_series(regions, inner_a, inner_x)[0]
    fraction = prefactor * inner_a * _by_fraction(regions, inner_a, inner_x)[0]
    small = _small_complement(*_feed(regions.small, inner_a, inner_x, (0.5, 0.5)))
    large_a, large_x = _feed(regions.uniform, a, x, (_LARGE, _LARGE))
    parts = _uniform(large_a, large_x)
    edge = parts.eta * sqrt(0.5 * large_a)
    rest = exp(-edge * edge) / sqrt(2 * math.pi * large_a) * parts.total
    lower = select(regions.fraction, 1 - fraction, series)
    upper = select(regions.fraction, fraction, select(regions.small, small, 1 - series))
    lower = select(regions.uniform, 0.5 * erfc(-edge) - rest, lower)
    upper = select(regions.uniform, 0.5 * erfc(edge) + rest, upper)
    outside = _share_outside(a, x)
    return select(regions.outside, outside, lower), select(regions.outside, 1 - outside, upper)


def gamma_sample_slope(a: Number, x: Number) -> Number:
    """-(dP/da) / (dP/dx): the rate at which a sample of gamma(a) moves with a at fixed P.

    dP/dx = x^(a-1) e^-x / gamma(a) cancels, so that nothing overflows or vanishes. 0 at x = 0.
    """
    regions = _regions(a, x)
    inner_a, inner_x = _feed(~regions.outside, a, x, (1.0, 1.0))
    slope = log(inner_x) - digamma(inner_a)  # of log(x^a e^-x / gamma(a)); of gamma(a + 1) 1/a less
    total, change = _by_series(regions, inner_a, inner_x)
    series = -(inner_x / inner_a) * (total * (slope - 1 / inner_a) + change)
    total, change = _by_fraction(regions, inner_a, inner_x)
    fraction = inner_x * (total * slope + change)
    large_a, large_x = _feed(regions.uniform, a, x, (_LARGE, _LARGE))
    parts = _uniform(large_a, large_x)
    is_center = parts.eta == 0
    ratio = select(is_center, 1.0, parts.mu / select(is_center, 1.0, parts.eta))
    uniform = ratio - 0.5 * parts.eta + parts.slope
    uniform = uniform + parts.total * (log(large_x / large_a) - 0.5 / large_a)
    uniform = uniform * (large_x / large_a) * exp(stirling_rest(large_a))
    value = select(regions.uniform, uniform, select(regions.fraction, fraction, series))
    is_start = (x == 0) & (a > 0) & (a < math.inf)
    return select(regions.outside, select(is_start, constant_like(x, 0.0), math.nan), value)


def igamma(a: Number, x: Number) -> Number:
    """P(a, x)."""
    return incomplete_gamma(a, x)[0]


def igammac(a: Number, x: Number) -> Number:
    """Q(a, x)."""
    return incomplete_gamma(a, x)[1]


def igamma_grad_a(a: Number, x: Number) -> Number:
    """dP/da; 0 at x = 0."""
    is_inner = (a > 0) & (a < math.inf) & (x > 0) & (x < math.inf)
    inner_a, inner_x = _feed(is_inner, a, x, (1.0, 1.0))
    density = exp(_log_prefactor(inner_a, inner_x)) * (inner_a / inner_x)
    return -gamma_sample_slope(a, x) * select(is_inner, density, 1.0)
