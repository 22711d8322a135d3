"""The normal distribution, and those made of normal numbers.

Formulas of densities: Johnson, Kotz and Balakrishnan, "Continuous Univariate Distributions".
Samples are differentiable in the parameters, and in the scale and shift that a caller applies.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache, lru_cache

import numpy as np

from axir._devices.placement import lies_where_told
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import DTypeLike, UserObject
from axir.dialect.core.array import ArrayLike
from axir.dialect.ops.elementwise.arithmetic import add, clamp, div, mul, nextafter, square, sub
from axir.dialect.ops.elementwise.comparison import le, select_n
from axir.dialect.ops.elementwise.conversion import complex_, convert_element_type, stop_gradient
from axir.dialect.ops.elementwise.transcendental import erf, erf_inv, exp, sqrt
from axir.dialect.ops.reductions.reduce import reduce_sum
from axir.dialect.program.rules import Value

from ._discrete import rademacher
from ._keys import split_pair
from ._parameters import (
    check_key,
    check_shape,
    constant,
    float_dtype,
    result_shape,
    spread,
    standard,
    with_parameters,
)
from ._ranges import draw_uniform


@lies_where_told
def normal(
    key: ArrayLike,
    shape: Sequence[int] = (),
    dtype: DTypeLike = None,
    *,
    out_sharding: object = None,
) -> Value:
    """Draws from the normal distribution of mean 0 and variance 1.

    A complex dtype draws real and imaginary part with variance 1/2 each.

    Args:
        key: The key.
        shape: Shape of the result.
        dtype: Float or complex dtype of the result; float32 by default, float64 with
            `jax_enable_x64`.
        out_sharding: Placement of the result: a sharding, or a `PartitionSpec`.

    Raises:
        ParameterError: for another dtype.

    >>> from axir import random
    >>> random.normal(random.PRNGKey(0), (1,))
    Array([-0.205842...], dtype=float32)
    """
    key = check_key("normal", key)
    extents = check_shape("normal", shape)
    if dtype is not None and dtypes.is_complex(canonical := dtypes.canonicalize_dtype(dtype)):
        part = dtypes.real_dtype(canonical)
        real, imaginary = (draw_normal(k, extents, part) for k in split_pair(key))
        half = constant(math.sqrt(2), part)
        return complex_(div(real, half), div(imaginary, half))
    return draw_normal(key, extents, float_dtype("normal", dtype))


@cache
def _above_minus_one(dtype: np.dtype) -> float:
    return float(np.nextafter(np.asarray(-1, dtype), np.asarray(0, dtype)))


def draw_normal(key: Value, shape: tuple[int, ...], dtype: np.dtype) -> Value:
    """Draws standard normal floats with checked arguments: sqrt(2) erf_inv(u), |u| < 1."""
    u = draw_uniform("normal", key, shape, dtype, _above_minus_one(dtype), 1.0)
    return mul(constant(math.sqrt(2), dtype), erf_inv(u))


@lies_where_told
def truncated_normal(
    key: UserObject,
    lower: object,
    upper: object,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike = None,
    *,
    out_sharding: object = None,
) -> Value:
    """Draws from the standard normal distribution, limited to the open interval (lower, upper).

    Args:
        key: The key.
        lower: Lower bound, a number or an array.
        upper: Upper bound.
        shape: Shape of the result; by default the shape of the bounds.
        dtype: Float dtype of the result.
        out_sharding: Placement of the result: a sharding, or a `PartitionSpec`.

    Raises:
        ParameterError: for a dtype that is not a float type, or bounds that do not broadcast.

    >>> from axir import random
    >>> random.truncated_normal(random.PRNGKey(0), -1.0, 1.0, (2,))
    Array([-0.50631...,  0.54645...], dtype=float32)
    """
    name = "truncated_normal"
    if type(lower) is float and type(upper) is float:
        key, extents = check_key(name, key), result_shape(name, shape, ())
        dtype = float_dtype(name, dtype)
        limits = _known_limits(lower, upper, dtype)
    else:
        key, extents, dtype, (low, high) = with_parameters(
            name, key, shape, dtype, lower=lower, upper=upper
        )
        limits = _limits(low, high, dtype)
    first, last, above, below = limits
    u = draw_uniform(name, key, extents, dtype, first, last)
    return clamp(above, mul(constant(math.sqrt(2), dtype), erf_inv(u)), below)


def _limits(low: Value, high: Value, dtype: np.dtype) -> tuple[Value, Value, Value, Value]:
    """Returns the bounds of u in sqrt(2) erf_inv(u), and the least and the greatest result."""
    first, last = (erf(div(x, constant(math.sqrt(2), dtype))) for x in (low, high))
    above = nextafter(stop_gradient(low), constant(math.inf, dtype))
    below = nextafter(stop_gradient(high), constant(-math.inf, dtype))
    return first, last, above, below


@lru_cache(maxsize=256)
def _known_limits(lower: float, upper: float, dtype: np.dtype) -> tuple[Value, Value, Value, Value]:
    return _limits(constant(lower, dtype), constant(upper, dtype), dtype)


@lies_where_told
def lognormal(
    key: UserObject,
    sigma: object = 1.0,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike = None,
    *,
    out_sharding: object = None,
) -> Value:
    """Draws log-normal numbers: the logarithm has mean 0 and standard deviation sigma.

    Args:
        key: The key.
        sigma: Standard deviation of the logarithm.
        shape: Shape of the result; by default the shape of sigma.
        dtype: Float dtype of the result.
        out_sharding: Placement of the result: a sharding, or a `PartitionSpec`.
    """
    key, extents, dtype, (sigma,) = with_parameters("lognormal", key, shape, dtype, sigma=sigma)
    return exp(mul(draw_normal(key, extents, dtype), sigma))


@lies_where_told
def maxwell(
    key: ArrayLike,
    shape: Sequence[int] = (),
    dtype: DTypeLike = None,
    *,
    out_sharding: object = None,
) -> Value:
    """Draws from the Maxwell distribution, of density sqrt(2/pi) x^2 exp(-x^2/2) for x >= 0.

    Args:
        key: The key.
        shape: Shape of the result.
        dtype: Float dtype of the result.
        out_sharding: Placement of the result: a sharding, or a `PartitionSpec`.
    """
    key, extents, dtype = standard("maxwell", key, shape, dtype)
    vectors = draw_normal(key, (*extents, 3), dtype)
    return sqrt(reduce_sum(square(vectors), (len(extents),)))


def double_sided_maxwell(
    key: UserObject,
    loc: object,
    scale: object,
    shape: Sequence[int] = (),
    dtype: DTypeLike = None,
) -> Value:
    """Draws `loc + scale z`, where |z| has the Maxwell distribution and either sign is as likely.

    Args:
        key: The key.
        loc: The center.
        scale: The scale.
        shape: Shape that is put before the parameters' shape; by default the parameters' shape.
        dtype: Float dtype of the result.
    """
    name = "double_sided_maxwell"
    key, together, dtype, (loc, scale) = with_parameters(
        name, key, None, dtype, loc=loc, scale=scale
    )
    extents = (check_shape(name, shape) or together) + together
    magnitude_key, sign_key = split_pair(key)
    magnitude = maxwell(magnitude_key, extents, dtype)
    signs = convert_element_type(rademacher(sign_key, extents, np.int32), dtype)
    return add(mul(mul(signs, magnitude), spread(scale, extents)), spread(loc, extents))


@lies_where_told
def wald(
    key: UserObject,
    mean: object,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike = None,
    *,
    out_sharding: object = None,
) -> Value:
    """Draws from the Wald (inverse Gaussian) distribution of the given mean and scale 1.

    The method is from Michael, Schucany and Haas, The American Statistician 30, 1976.

    Args:
        key: The key.
        mean: The mean, positive.
        shape: Shape of the result; by default the shape of the mean.
        dtype: Float dtype of the result.
        out_sharding: Placement of the result: a sharding, or a `PartitionSpec`.
    """
    key, extents, dtype, (mean,) = with_parameters("wald", key, shape, dtype, mean=mean)
    normal_key, uniform_key = split_pair(key)
    y = square(draw_normal(normal_key, extents, dtype))
    u = draw_uniform("wald", uniform_key, extents, dtype)
    mean_squared = square(mean)
    root = sqrt(add(mul(mul(4, mean), y), mul(mean_squared, square(y))))
    x = sub(add(mean, div(mul(mean_squared, y), 2)), mul(div(mean, 2), root))
    return select_n(le(u, div(mean, add(mean, x))), div(mean_squared, x), x)
