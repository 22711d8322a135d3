"""The scaled complementary error function, Dawson's integral and Faddeeva's function: formulas.

Sources: DLMF 7.2 (definitions), 7.4 (symmetries); for complex numbers J. A. C. Weideman, SIAM J.
Numer. Anal. 31, 1994. The polynomials are fits at Chebyshev nodes, after a change of the variable
that maps a half-axis to [-1, 1]; their errors are about 1e-16.
"""

from __future__ import annotations

import math

from axir.dialect.builders.expressions import Number, chebyshev, cos, exp, polynomial, select, sin

# (1 + 2 x) erfcx(x) in 1 - 7.5 / (x + 3.75), for x >= 0.
_ERFCX = (
    1.2375126308378275, -0.14024059858554697, 0.0035854154854644293, 0.0822767384901452,
    -0.10880393014174886, 0.09230432116037748, -0.05869339858963677, 0.028362277418956406,
    -0.009746579558029276, 0.0017556258528952954, 0.0002937136655913448, -0.0002901540805408417,
    5.164909889268241e-05, 2.238423915508223e-05, -1.1444146237700524e-05, -9.73559896736775e-07,
    1.751637648849062e-06, -5.7218230603224086e-08, -2.5866850716155884e-07, 2.3263508708859124e-08,
    3.8675334242222354e-08, -3.744210080962018e-09, -5.1739902140113095e-09, 3.1114333809799254e-10,
    4.2514714447963895e-10,
)  # fmt: skip
# (1 + 2 x^2) dawsn(x) / x in 1 - 24 / (x^2 + 12), as Chebyshev coefficients.
_DAWSON = (
    1.178409897328075, -0.2223039507542565, 0.0034704685932345257, 0.109734904779436,
    -0.12885669104904363, 0.09497565003689232, -0.050145242333070224, 0.0182438223186789,
    -0.0033893986853841354, -0.0005884808482473304, 0.0005599365034065729, -7.901043690534086e-05,
    -5.323832895571035e-05, 2.0009318655858168e-05, 4.685451543483566e-06, -3.4286676192044567e-06,
    -4.77312523439895e-07, 5.658301499425555e-07, 7.326124179348294e-08, -9.5492437321212e-08,
    -1.7101668504980866e-08, 1.617606627502861e-08, 4.682956541110565e-09, -2.561856019099253e-09,
    -1.267625293597241e-09, 3.158443238898224e-10, 3.157779141858863e-10, -4.5171541460078514e-12,
    -6.840753593742743e-11, -1.4804095741664938e-11, 1.1486814010183288e-11, 6.365438055248919e-12,
    -8.515578643881528e-13, -1.7313179345242123e-12, -3.342317658262777e-13, 3.065933471760653e-13,
    1.8449189970809715e-13, -1.082131159231299e-14, -4.9918113068877076e-14,
    -1.6023355202520205e-14, 6.5347327417626835e-15, 6.751806523169357e-15, 1.0686837269543234e-15,
    -1.3319668680183023e-15, -8.622995563536859e-16, -2.3581366788438456e-17, 2.241033926413801e-16,
    1.1052968087621563e-16, -9.784907686291852e-18, -3.5684327550187194e-17, -1.483215172414421e-17,
)  # fmt: skip
# Weideman's expansion in Z = (L + iz) / (L - iz), for numbers of the upper half-plane.
_WEIDEMAN = (
    2.899624509389705, 2.6160541527618597, 2.201513794878312, 1.7253830848179779,
    1.2563815675765133, 0.8472174576593815, 0.5266528988277086, 0.2998943799615006,
    0.15504263802479498, 0.07182361779074328, 0.029202916471241895, 0.010048186242783535,
    0.002705405633073729, 0.0004398070159870029, -3.93936314548511e-05, -5.5913092642348794e-05,
    -1.8007447144728686e-05, -1.066013898426855e-06, 1.4835661132962113e-06, 5.912136953029057e-07,
    1.4198642352136748e-08, -6.351773483848077e-08, -1.83156168231946e-08, 3.249746582945079e-09,
    3.0177804477560245e-09, 2.1085995172143158e-10, -3.563234152181849e-10, -9.055138860958323e-11,
    3.4727420938907015e-11, 1.771418567386718e-11, -2.7277735625830245e-12, -2.90771851041427e-12,
    1.2032983242835385e-13, 4.5340796336714066e-13, 1.3765172593249721e-14, -7.071088022159408e-14,
    -5.2447678207180494e-15, 1.1519170220749485e-14, 1.2082006378733853e-15,
    -1.7356980998791865e-15,
)  # fmt: skip
_LENGTH = math.sqrt(len(_WEIDEMAN) / math.sqrt(2))


def erfcx(x: Number) -> Number:
    """The product of exp(x^2) and the complementary error function, by symmetry for x < 0."""
    size = abs(x)
    value = polynomial(1 - 7.5 / (size + 3.75), _ERFCX) / (1 + 2 * size)
    return select(x < 0, 2 * exp(x * x) - value, value)


def dawson(x: Number) -> Number:
    """Returns exp(-x^2) times the integral of exp(t^2) from 0 to x."""
    return chebyshev(1 - 24 / (x * x + 12), _DAWSON) / (1 / x + 2 * x)


def faddeeva(x: Number, y: Number) -> tuple[Number, Number]:
    """Returns real and imaginary part of w(z) = exp(-z^2) erfc(-iz) at z = x + iy.

    In the lower half-plane by w(z) = 2 exp(-z^2) - w(-z).
    """
    is_lower = y < 0
    a, b = select(is_lower, -x, x), abs(y)
    # L - iz and L + iz, and their quotient Z.
    low, high = _LENGTH + b, _LENGTH - b
    inverse = 1 / (low * low + a * a)
    p, q = low * inverse, a * inverse  # 1 / (L - iz)
    real, imag = high * p - a * q, a * p + high * q
    u, v = polynomial(real, _WEIDEMAN[-1:]), 0 * real
    for coefficient in _WEIDEMAN[-2::-1]:
        u, v = u * real - v * imag + coefficient, u * imag + v * real
    u, v = 2 * (u * p - v * q) + 1 / math.sqrt(math.pi), 2 * (u * q + v * p)
    u, v = u * p - v * q, u * q + v * p
    size = exp(y * y - x * x)
    u = select(y == 0, size, u)  # exact also where it is tiny
    is_infinite = (a == math.inf) | (a == -math.inf) | (b == math.inf)
    u, v = select(is_infinite, 0.0, u), select(is_infinite, 0.0, v)
    is_axis = (x == 0) | (y == 0)
    angle = select(is_axis, 0.0, 2 * x * y)
    other_u = 2 * size * cos(angle) - u
    other_v = select(is_axis, 0.0, -2 * size * sin(angle)) - v
    return select(is_lower, other_u, u), select(is_lower, other_v, v)
