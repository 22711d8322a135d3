"""Continuous distributions: floats made of uniform ones, mostly by inverting the distribution.

Formulas of densities: Johnson, Kotz and Balakrishnan, "Continuous Univariate Distributions".
Samples are differentiable in the parameters, and in the scale and shift that a caller applies.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import ml_dtypes
import numpy as np

from axir.dialect import dtypes
from axir.dialect.errors import ParameterError
from axir.dialect.ops.conversion import bitcast_convert_type, complex_, convert_element_type
from axir.dialect.ops.conversion import stop_gradient
from axir.dialect.ops.elementwise import (
    abs,
    add,
    and_,
    clamp,
    clz,
    div,
    eq,
    ge,
    le,
    lt,
    mul,
    neg,
    nextafter,
    not_,
    or_,
    select_n,
    shift_left,
    shift_right_logical,
    sign,
    square,
    sub,
)
from axir.dialect.ops.reduce import reduce_sum
from axir.dialect.ops.static_slicing import index_in_dim
from axir.dialect.ops.transcendental import erf, erf_inv, exp, log, log1p, pow, sqrt, tan

from .bits import random_bits
from .discrete import rademacher
from .keys import split_pair
from .parameters import (
    Value,
    check_key,
    check_shape,
    float_dtype,
    parameter,
    result_shape,
    spread,
)
from .uniform import draw_uniform


def _standard(
    name: str, key: Any, shape: Any, dtype: Any
) -> tuple[Value, tuple[int, ...], np.dtype]:
    """Checks the arguments of a distribution without parameters."""
    return check_key(name, key), check_shape(name, shape), float_dtype(name, dtype)


def _with_parameters(
    name: str, key: Any, shape: Any, dtype: Any, **parameters: Any
) -> tuple[Value, tuple[int, ...], np.dtype, list[Value]]:
    """Checks the arguments of a distribution, and broadcasts its parameters."""
    checked = check_key(name, key)
    result_dtype = float_dtype(name, dtype)
    values = [parameter(name, argument, x, result_dtype) for argument, x in parameters.items()]
    extents = result_shape(name, shape, *(x.shape for x in values))
    return checked, extents, result_dtype, [spread(x, extents) for x in values]


@lru_cache(maxsize=None)
def _constant(number: float, dtype: np.dtype) -> np.ndarray:
    return np.asarray(number, dtype)


# The normal distribution and its kin -----------------------------------------------------------


def normal(key: Any, shape: Sequence[int] = (), dtype: Any = None) -> Value:
    """Draws from the normal distribution of mean 0 and variance 1.

    A complex dtype draws real and imaginary part with variance 1/2 each.

    Args:
        key: The key.
        shape: Shape of the result.
        dtype: Float or complex dtype of the result; float32 by default, float64 with
            `jax_enable_x64`.

    Raises:
        ParameterError: for another dtype.

    >>> from axir import random
    >>> random.normal(random.PRNGKey(0), (1,))
    Array([-0.20584235], dtype=float32)
    """
    key = check_key("normal", key)
    extents = check_shape("normal", shape)
    if dtype is not None and dtypes.is_complex(canonical := dtypes.canonicalize_dtype(dtype)):
        part = dtypes.real_dtype(canonical)
        real, imaginary = (draw_normal(k, extents, part) for k in split_pair(key))
        half = _constant(math.sqrt(2), part)
        return complex_(div(real, half), div(imaginary, half))
    return draw_normal(key, extents, float_dtype("normal", dtype))


@lru_cache(maxsize=None)
def _above_minus_one(dtype: np.dtype) -> float:
    return float(np.nextafter(np.asarray(-1, dtype), np.asarray(0, dtype)))


def draw_normal(key: Value, shape: tuple[int, ...], dtype: np.dtype) -> Value:
    """Draws standard normal floats with checked arguments: sqrt(2) erf_inv(u), |u| < 1."""
    u = draw_uniform("normal", key, shape, dtype, _above_minus_one(dtype), 1.0)
    return mul(_constant(math.sqrt(2), dtype), erf_inv(u))


def truncated_normal(
    key: Any, lower: Any, upper: Any, shape: Sequence[int] | None = None, dtype: Any = None
) -> Value:
    """Draws from the standard normal distribution, limited to the open interval (lower, upper).

    Args:
        key: The key.
        lower: Lower bound, a number or an array.
        upper: Upper bound.
        shape: Shape of the result; by default that of the bounds.
        dtype: Float dtype of the result.

    Raises:
        ParameterError: for a dtype that is not a float type, or bounds that do not broadcast.

    >>> from axir import random
    >>> random.truncated_normal(random.PRNGKey(0), -1.0, 1.0, (2,))
    Array([ 0.16975603, -0.4744179 ], dtype=float32)
    """
    key, extents, dtype, (low, high) = _with_parameters(
        "truncated_normal", key, shape, dtype, lower=lower, upper=upper
    )
    root = _constant(math.sqrt(2), dtype)
    u = draw_uniform(
        "truncated_normal", key, extents, dtype, erf(div(low, root)), erf(div(high, root))
    )
    above = nextafter(stop_gradient(low), _constant(math.inf, dtype))
    below = nextafter(stop_gradient(high), _constant(-math.inf, dtype))
    return clamp(above, mul(root, erf_inv(u)), below)


def lognormal(
    key: Any, sigma: Any = 1.0, shape: Sequence[int] | None = None, dtype: Any = None
) -> Value:
    """Draws numbers whose logarithm is normal with mean 0 and standard deviation sigma.

    Args:
        key: The key.
        sigma: Standard deviation of the logarithm.
        shape: Shape of the result; by default that of sigma.
        dtype: Float dtype of the result.
    """
    key, extents, dtype, (sigma,) = _with_parameters("lognormal", key, shape, dtype, sigma=sigma)
    return exp(mul(draw_normal(key, extents, dtype), sigma))


def maxwell(key: Any, shape: Sequence[int] = (), dtype: Any = None) -> Value:
    """Draws from the Maxwell distribution, of density sqrt(2/pi) x^2 exp(-x^2/2) for x >= 0.

    Args:
        key: The key.
        shape: Shape of the result.
        dtype: Float dtype of the result.
    """
    key, extents, dtype = _standard("maxwell", key, shape, dtype)
    vectors = draw_normal(key, (*extents, 3), dtype)
    return sqrt(reduce_sum(square(vectors), (len(extents),)))


def double_sided_maxwell(
    key: Any, loc: Any, scale: Any, shape: Sequence[int] = (), dtype: Any = None
) -> Value:
    """Draws `loc + scale z`, where |z| has the Maxwell distribution and either sign is as likely.

    Args:
        key: The key.
        loc: The center.
        scale: The scale.
        shape: Shape that is put before that of the parameters; by default that of the parameters.
        dtype: Float dtype of the result.
    """
    name = "double_sided_maxwell"
    key, together, dtype, (loc, scale) = _with_parameters(
        name, key, None, dtype, loc=loc, scale=scale
    )
    extents = (check_shape(name, shape) or together) + together
    magnitude_key, sign_key = split_pair(key)
    magnitude = maxwell(magnitude_key, extents, dtype)
    signs = convert_element_type(rademacher(sign_key, extents, np.int32), dtype)
    return add(mul(mul(signs, magnitude), spread(scale, extents)), spread(loc, extents))


def wald(
    key: Any, mean: Any, shape: Sequence[int] | None = None, dtype: Any = None
) -> Value:
    """Draws from the Wald (inverse Gaussian) distribution of the given mean and scale 1.

    The method is that of Michael, Schucany and Haas, The American Statistician 30, 1976.

    Args:
        key: The key.
        mean: The mean, positive.
        shape: Shape of the result; by default that of the mean.
        dtype: Float dtype of the result.
    """
    key, extents, dtype, (mean,) = _with_parameters("wald", key, shape, dtype, mean=mean)
    normal_key, uniform_key = split_pair(key)
    y = square(draw_normal(normal_key, extents, dtype))
    u = draw_uniform("wald", uniform_key, extents, dtype)
    mean_squared = square(mean)
    root = sqrt(add(mul(mul(4, mean), y), mul(mean_squared, square(y))))
    x = sub(add(mean, div(mul(mean_squared, y), 2)), mul(div(mean, 2), root))
    return select_n(le(u, div(mean, add(mean, x))), div(mean_squared, x), x)


# By inversion of the distribution --------------------------------------------------------------


def exponential(key: Any, shape: Sequence[int] = (), dtype: Any = None) -> Value:
    """Draws from the exponential distribution of mean 1.

    Args:
        key: The key.
        shape: Shape of the result.
        dtype: Float dtype of the result.

    >>> from axir import random
    >>> random.exponential(random.PRNGKey(0), (2,))
    Array([1.0600121, 0.3469684], dtype=float32)
    """
    key, extents, dtype = _standard("exponential", key, shape, dtype)
    return neg(log1p(neg(draw_uniform("exponential", key, extents, dtype))))


def laplace(key: Any, shape: Sequence[int] = (), dtype: Any = None) -> Value:
    """Draws from the Laplace distribution, of density exp(-|x|) / 2.

    Args:
        key: The key.
        shape: Shape of the result.
        dtype: Float dtype of the result.
    """
    key, extents, dtype = _standard("laplace", key, shape, dtype)
    low = -1.0 + float(ml_dtypes.finfo(dtype).epsneg)
    u = draw_uniform("laplace", key, extents, dtype, low, 1.0)
    return mul(sign(u), log1p(neg(abs(u))))


def logistic(key: Any, shape: Sequence[int] = (), dtype: Any = None) -> Value:
    """Draws from the logistic distribution, of distribution function 1 / (1 + exp(-x)).

    Args:
        key: The key.
        shape: Shape of the result.
        dtype: Float dtype of the result.
    """
    key, extents, dtype = _standard("logistic", key, shape, dtype)
    tiny = float(ml_dtypes.finfo(dtype).tiny)
    u = draw_uniform("logistic", key, extents, dtype, tiny, 1.0)
    return sub(log(u), log1p(neg(u)))


def cauchy(key: Any, shape: Sequence[int] = (), dtype: Any = None) -> Value:
    """Draws from the Cauchy distribution, of density 1 / (pi (1 + x^2)).

    Args:
        key: The key.
        shape: Shape of the result.
        dtype: Float dtype of the result.
    """
    key, extents, dtype = _standard("cauchy", key, shape, dtype)
    epsilon = float(ml_dtypes.finfo(dtype).eps)
    u = draw_uniform("cauchy", key, extents, dtype, epsilon, 1.0)
    return tan(mul(_constant(math.pi, dtype), sub(u, _constant(0.5, dtype))))


def rayleigh(
    key: Any, scale: Any, shape: Sequence[int] | None = None, dtype: Any = None
) -> Value:
    """Draws from the Rayleigh distribution, of density x exp(-x^2 / (2 s^2)) / s^2 for x >= 0.

    Args:
        key: The key.
        scale: The scale s, positive.
        shape: Shape of the result; by default that of the scale.
        dtype: Float dtype of the result.
    """
    key, extents, dtype, (scale,) = _with_parameters("rayleigh", key, shape, dtype, scale=scale)
    u = draw_uniform("rayleigh", key, extents, dtype)
    return mul(scale, sqrt(mul(log(u), _constant(-2, dtype))))


def pareto(key: Any, b: Any, shape: Sequence[int] | None = None, dtype: Any = None) -> Value:
    """Draws from the Pareto distribution, of density b / x^(b + 1) for x >= 1.

    Args:
        key: The key.
        b: The exponent, positive.
        shape: Shape of the result; by default that of b.
        dtype: Float dtype of the result.
    """
    key, extents, dtype, (b,) = _with_parameters("pareto", key, shape, dtype, b=b)
    return exp(div(exponential(key, extents, dtype), b))


def weibull_min(
    key: Any, scale: Any, concentration: Any, shape: Sequence[int] = (), dtype: Any = None
) -> Value:
    """Draws from the Weibull distribution, of distribution function 1 - exp(-(x/s)^c) for x >= 0.

    Args:
        key: The key.
        scale: The scale s, positive.
        concentration: The exponent c, positive.
        shape: Shape of the draws, with which that of the parameters broadcasts.
        dtype: Float dtype of the result.
    """
    key, extents, dtype = _standard("weibull_min", key, shape, dtype)
    scale = parameter("weibull_min", "scale", scale, dtype)
    concentration = parameter("weibull_min", "concentration", concentration, dtype)
    together = result_shape("weibull_min", None, extents, scale.shape, concentration.shape)
    draws = spread(exponential(key, extents, dtype), together)
    power = pow(draws, div(_constant(1, dtype), spread(concentration, together)))
    return mul(power, spread(scale, together))


def triangular(
    key: Any,
    left: Any,
    mode: Any,
    right: Any,
    shape: Sequence[int] | None = None,
    dtype: Any = None,
) -> Value:
    """Draws from the triangular distribution between left and right, with its peak at the mode.

    Args:
        key: The key.
        left: Lower end.
        mode: Place of the peak, `left <= mode <= right`.
        right: Upper end, greater than left.
        shape: Shape of the result; by default that of the parameters.
        dtype: Float dtype of the result.
    """
    key, extents, dtype, (left, mode, right) = _with_parameters(
        "triangular", key, shape, dtype, left=left, mode=mode, right=right
    )
    width = sub(right, left)
    u = draw_uniform("triangular", key, extents, dtype)
    rising = add(left, sqrt(mul(mul(u, width), sub(mode, left))))
    falling = sub(right, sqrt(mul(mul(sub(1, u), width), sub(right, mode))))
    return select_n(lt(u, div(sub(mode, left), width)), falling, rising)


# The Gumbel distribution -----------------------------------------------------------------------


def gumbel(
    key: Any, shape: Sequence[int] = (), dtype: Any = None, mode: str | None = None
) -> Value:
    """Draws from the Gumbel distribution, of distribution function exp(-exp(-x)).

    Args:
        key: The key.
        shape: Shape of the result.
        dtype: Float dtype of the result.
        mode: How far the tail reaches: in float32, "low" (the default) yields values up to about
            16, "high" and "highest" up to about 32 at twice the cost.

    Raises:
        ParameterError: for another mode, or a dtype that is not a float type.
    """
    key, extents, dtype = _standard("gumbel", key, shape, dtype)
    return draw_gumbel("gumbel", key, extents, dtype, mode)


def draw_gumbel(
    name: str, key: Value, shape: tuple[int, ...], dtype: np.dtype, mode: str | None
) -> Value:
    """Draws Gumbel floats with checked arguments, save for the mode."""
    if mode not in (None, "low", "high", "highest"):
        raise ParameterError(
            f"random.{name}: there is no mode {mode!r}.", 'Pass "low", "high" or "highest".'
        )
    limits = ml_dtypes.finfo(dtype)
    if mode in (None, "low"):
        u = draw_uniform(name, key, shape, dtype, float(limits.tiny), 1.0)
        return neg(log(neg(log(u))))
    if mode == "highest" and dtype == dtypes.float32:
        return _finest_gumbel(key, shape)
    pair = draw_uniform(name, key, (2, *shape), dtype)
    high, low = (index_in_dim(pair, i, keepdims=False) for i in (0, 1))
    finer = add(add(high, mul(_constant(2.0**-limits.nmant, dtype), low)), limits.tiny)
    return _upper_gumbel(select_n(ge(high, _constant(0.5, dtype)), finer, high))


def _upper_gumbel(x: Value) -> Value:
    """Maps numbers of (0, 1) to Gumbel ones; those near 0, which are dense, to the long tail."""
    return neg(log(neg(log1p(neg(x)))))


def _finest_gumbel(key: Value, shape: tuple[int, ...]) -> Value:
    """Makes float32 Gumbel numbers of 64 bits each, without gaps at either end of (0, 1)."""
    drawn = random_bits(key, 32, (2, *shape))
    high, low = (index_in_dim(drawn, i, keepdims=False) for i in (0, 1))
    is_lower = lt(high, 1 << 31)
    # In the upper half, 2**64 - bits is the distance from one; the low words carry into the high.
    no_carry, carry = _constant(0, dtypes.uint32), _constant(1, dtypes.uint32)
    opposite_low = add(not_(low), carry)
    opposite_high = add(not_(high), select_n(eq(low, 0), no_carry, carry))
    x = _fixed_to_float(
        select_n(is_lower, opposite_high, high), select_n(is_lower, opposite_low, low)
    )
    return select_n(is_lower, neg(log(neg(log(x)))), _upper_gumbel(x))


def _fixed_to_float(high: Value, low: Value) -> Value:
    """Makes float32 of a 64-bit fixed-point fraction, keeping its leading 24 bits."""
    zeros_high, zeros_low = clz(high), clz(low)
    is_small = eq(high, 0)
    shifted = or_(
        shift_left(high, zeros_high),
        select_n(is_small, shift_right_logical(low, sub(32, zeros_high)),
                 shift_left(low, zeros_low)),
    )
    mantissa = and_(shift_right_logical(shifted, 8), (1 << 23) - 1)
    zeros = select_n(is_small, zeros_high, add(zeros_low, 32))
    exponent = and_(shift_left(sub(126, zeros), 23), 0x3F800000)
    return bitcast_convert_type(or_(exponent, mantissa), dtypes.float32)
