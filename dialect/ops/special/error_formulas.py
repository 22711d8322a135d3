"""The scaled complementary error function, Dawson's integral and Faddeeva's function: formulas.

Sources: DLMF 7.2 (definitions), 7.4 (symmetries); for complex numbers J. A. C. Weideman, SIAM J.
Numer. Anal. 31, 1994. The polynomials are fits at Chebyshev nodes, after a change of the variable
that maps a half-axis to [-1, 1]; their errors are about 1e-16.
"""

from __future__ import annotations

import math

from axir.dialect.builders.expressions import (
    Number,
    chebyshev,
    cos,
    exp,
    log,
    maximum,
    minimum,
    polynomial,
    select,
    sin,
    sqrt,
)

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
# The normal quantile of p over 2 p - 1, for w = -log(4 p (1 - p)): in w / 3.125 - 1 up to w = 6.25,
# in (sqrt(w) - 4.25) / 1.75 up to 36, and over sqrt(w) in the inverse of that above.
_QUANTILE_NEAR = (
    2.338620710026593, 1.0613592459410592, -0.08332909352800218, -0.031967516158619286,
    0.025184826807117817, -0.005851046104325073, -0.0017984444538759962, 0.0017429978064726565,
    -0.0003739091051012717, -0.00016530578149390792, 0.00013204139423169176,
    -2.1252396846471607e-05, -1.5920118491014357e-05, 1.0083436566839643e-05,
    -9.672440946803279e-07, -1.49812865540668e-06, 7.633776907238985e-07, -1.4379555950208642e-08,
    -1.400784516764829e-07, 5.535609619759047e-08, 7.127065688015976e-09, -1.2102817144701446e-08,
    2.0451013754117762e-09, 1.0862560903018892e-09, -3.601458602357009e-10,
)  # fmt: skip
_QUANTILE_MIDDLE = (
    5.787277866012329, 2.4995687102114066, 0.003086940826130004, -0.004607411695387357,
    0.002814264485231054, -0.0014952860429518057, 0.0008928397668331339, -0.0007249067745402908,
    0.0007224220600355385, -0.0006990593369620852, 0.0005677221456165505, -0.000343539263852961,
    0.00010882323832095592, 5.2355231453295694e-05, -0.00010762149962065085, 8.382464849558731e-05,
    -3.3765710233314475e-05, -3.1714910367561774e-06, 1.585927645446451e-05, -1.170371901109096e-05,
    3.03881491987077e-06, 1.3031350296018982e-06, -9.117992433646932e-07, 2.3212623041335564e-07,
    -5.062560165620189e-07, 2.92072161104013e-07, 1.6624211775347703e-07, -1.4156291382744344e-07,
    -9.122414986343297e-09, 1.6478563244824786e-08,
)  # fmt: skip
_QUANTILE_FAR = (
    1.3983799190278055, -0.015676001372038464, -0.002055528787497352, 0.0006308101311377267,
    -0.00010402969256405128, 2.5832506113574694e-05, -8.470329435473476e-06, 3.1234828859986166e-06,
    -1.2521526284926883e-06, 5.353270516019469e-07, -2.403457121640622e-07, 1.1267100883070539e-07,
    -5.4458228131142296e-08, 2.51976425819853e-08, -1.213924353788009e-08, 9.884782443526512e-09,
    -6.0484549746013036e-09, -2.17542546181225e-09, 2.0988329684685517e-09, 4.1434652702693434e-09,
    -2.8805648916508853e-09, -1.7328869875507894e-09, 1.196768208448769e-09, 5.384718175745816e-10,
    -3.417627353792437e-10,
)  # fmt: skip
_LENGTH = math.sqrt(len(_WEIDEMAN) / math.sqrt(2))


def erfcx(x: Number) -> Number:
    """Returns exp(x^2) times the complementary error function, by symmetry for x < 0."""
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
    scale = low + abs(a)  # so that no square overflows
    p, q = low / scale, a / scale
    inverse = 1 / ((p * p + q * q) * scale)
    p, q = p * inverse, q * inverse  # 1 / (L - iz)
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


_ENDS = (1 / 27.5, 1 / 6)  # of 1 / sqrt(w) where it is large


def normal_quantile(p: Number) -> Number:
    """Returns the point where the normal distribution function is p; nan unless p is in [0, 1]."""
    return _quantile_of_half(2 * p)


def inverse_complement(y: Number) -> Number:
    """Returns the point where the complementary error function is y; nan unless 0 <= y <= 2.

    It is -sqrt(1/2) times the quantile of y / 2 (DLMF 7.17). The formula does not compute y / 2,
    because that is 0 for some numbers above 0.
    """
    return -math.sqrt(0.5) * _quantile_of_half(y)


def _quantile_of_half(y: Number) -> Number:
    """Returns the point where the normal distribution function is y / 2.

    It is an odd function of y - 1, and smooth in w = -log(y (2 - y)), like the approximations of
    the inverse error function by M. B. Giles (GPU Computing Gems, 2012).
    """
    safe = select((y > 0) & (y < 2), y, 1.0)
    w = -log(safe * (2 - safe))
    w = maximum(w, 0.0)
    root = sqrt(w)
    near = polynomial(minimum(w, 6.25) / 3.125 - 1, _QUANTILE_NEAR)
    place = minimum(maximum(root, 2.5), 6.0)
    middle = polynomial((place - 4.25) / 1.75, _QUANTILE_MIDDLE)
    low, high = _ENDS
    far = maximum(root, 6.0)
    inverse = (1 / far - low) * (2 / (high - low)) - 1
    above = far * polynomial(inverse, _QUANTILE_FAR)
    factor = select(w < 6.25, near, select(root < 6, middle, above))
    value = (safe - 1) * factor
    value = select(y == 0, -math.inf, select(y == 2, math.inf, value))
    return select((y >= 0) & (y <= 2), value, math.nan)
