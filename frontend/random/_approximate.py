"""Gamma and Poisson numbers without loops: near their distributions, not of them.

Gamma numbers come from a chi-square distribution with a parameter that is larger by 4. Its
quantiles are the cube of a polynomial in a normal number (R. B. Goldstein, "Algorithm 451:
Chi-square quantiles", CACM 16, 1973; the leading coefficient is 1, the limit of the polynomial).
Powers of uniform numbers reduce the parameter by 4 again (A. Stuart, "Gamma-distributed products of
independent random variables", Biometrika 49, 1962). Poisson numbers invert the distribution
function: small rates term by term, large ones by D. B. Peizer's and J. W. Pratt's normal
approximation ("A normal approximation for binomial, F, beta, and other common, related tail
probabilities", JASA 63, 1968).
"""

from __future__ import annotations

import math

import numpy as np

import axir.numpy as jnp
from axir._later import later
from axir.dialect.core.errors import ParameterError
from axir.dialect.program.rules import Value
from axir.lax import polynomial

from ._gaussian import draw_normal
from ._inversion import exponential
from ._keys import split_pair

# Coefficients of t^k nu^(-j), where t is a normal number over the root of nu: a row for each k.
_QUANTILES = (
    (1.0, -0.2237368, -0.01513904),
    (0.4713941, 0.02607083, -0.008986007),
    (0.0001348028, 0.01128186, 0.02277679),
    (-0.008553069, -0.01153761, -0.01323293),
    (0.00312558, 0.005169654, -0.006950356),
    (-0.0008426812, 0.00253001, 0.001060438),
    (0.00009780499, -0.001450117, 0.001565326),
)
_RAISED = 4  # by so much is the parameter larger for which quantiles are computed
_SMALL_RATE = 7.0  # up to which Poisson numbers are found term by term
_TERMS = 19
_CORRECTION = 0.02  # Peizer's and Pratt's
_MIDDLE = 0.6  # in the middle of how far a guess of a Poisson number may be off


def is_approximate(name: str, method: str) -> bool:
    """Tells whether a method of drawing is the approximate one.

    Raises:
        ParameterError: for an unknown name.
    """
    if method not in ("exact", "approximate"):
        raise ParameterError(
            f"random.{name}: method is {method!r}.", "It is 'exact' or 'approximate'."
        )
    return method == "approximate"


def approximate_gamma(key: Value, a: Value, *, is_logarithmic: bool) -> Value:
    """Draws for each element of `a` a gamma number, or its logarithm."""
    dtype = jnp.float32.dtype if a.dtype.itemsize < 4 else a.dtype
    first, second = split_pair(key)
    parameter = a.astype(dtype)
    logarithms = -exponential(second, (_RAISED, *a.shape), dtype)
    raised = jnp.arange(_RAISED, dtype=dtype).reshape((_RAISED,) + (1,) * a.ndim)
    lowered = jnp.sum(logarithms / (parameter[None] + raised), axis=0)
    logarithm = _logarithm_of_gamma(first, parameter + _RAISED) + lowered
    return (logarithm if is_logarithmic else jnp.exp(logarithm)).astype(a.dtype)


def _logarithm_of_gamma(key: Value, a: Value) -> Value:
    nu = 2 * a
    t = draw_normal(key, a.shape, a.dtype) / jnp.sqrt(nu)
    root = polynomial(t, [polynomial(1 / nu, row) for row in _QUANTILES])
    least = float(np.finfo(a.dtype).tiny)
    return jnp.log(a) + 3 * jnp.log(jnp.maximum(root, least))


def approximate_poisson(key: Value, rate: Value, dtype: np.dtype) -> Value:
    """Draws for each rate a Poisson number of a dtype."""
    z = draw_normal(key, rate.shape, rate.dtype)
    is_small = rate < _SMALL_RATE
    small = _term_by_term(later.ndtr(z), jnp.where(is_small, rate, 0.0))
    large = _by_normal(z, jnp.where(is_small, _SMALL_RATE, rate))
    drawn = jnp.where(is_small, small, large).astype(dtype)
    return jnp.where(jnp.isnan(rate), -1, drawn).astype(dtype)


def _term_by_term(u: Value, rate: Value) -> Value:
    """Counts the values of the distribution function below `u`; the number is small."""
    probability = below = jnp.exp(-rate)
    count = (below < u).astype(u.dtype)
    for k in range(1, _TERMS):
        probability = probability * (rate / k)
        below = below + probability
        count = count + (below < u).astype(u.dtype)
    return count


def _by_normal(z: Value, rate: Value) -> Value:
    """Returns the least of three counts around a guess with a normal score of at least `z`.

    The guess is the expansion of E. A. Cornish and R. A. Fisher.
    """
    root = jnp.sqrt(rate)
    guess = rate + root * z - 2 / 3 + z * z / 6 + z * (1 - z * z) / (72 * root)
    middle = jnp.ceil(guess + _MIDDLE)

    def is_enough(count: Value) -> Value:
        score = jnp.where(count < 0, -jnp.inf, _score(jnp.maximum(count, 0.0), rate))
        return (score >= z).astype(z.dtype)

    return jnp.maximum(middle + 1 - is_enough(middle) - is_enough(middle - 1), 0.0)


def _score(count: Value, rate: Value) -> Value:
    skew = _skew((count + 0.5) / rate)
    distance = count - rate + 2 / 3 + _CORRECTION / (count + 1)
    return distance * jnp.sqrt((1 + skew) / rate)


def _skew(y: Value) -> Value:
    """(1 - y^2 + 2 y log y) / (1 - y)^2, by its series where y is near 1."""
    d = y - 1
    is_near = jnp.abs(d) < 0.25
    terms = [0.0, *(2 * math.pow(-1, k) / ((k + 1) * (k + 2)) for k in range(1, 10))]
    series = polynomial(d, terms)
    far, distance = jnp.where(is_near, 2.0, y), jnp.where(is_near, 1.0, d)
    direct = (1 - far * far + 2 * far * jnp.log(far)) / (distance * distance)
    return jnp.where(is_near, series, direct)
