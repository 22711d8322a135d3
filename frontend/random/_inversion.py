"""Continuous distributions drawn by inverting their distribution function.

Formulas of densities: Johnson, Kotz and Balakrishnan, "Continuous Univariate Distributions".
Samples are differentiable in the parameters, and in the scale and shift that a caller applies.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import ml_dtypes

from axir._devices.placement import lies_where_told
from axir.dialect.core.annotations import DTypeLike, UserObject
from axir.dialect.core.array import ArrayLike
from axir.dialect.ops.elementwise.arithmetic import abs, add, div, mul, neg, sign, sub
from axir.dialect.ops.elementwise.comparison import lt, select_n
from axir.dialect.ops.elementwise.transcendental import exp, log, log1p, pow, sqrt, tan
from axir.dialect.program.rules import Value

from ._parameters import constant, parameter, result_shape, spread, standard, with_parameters
from ._ranges import draw_uniform


@lies_where_told
def exponential(
    key: ArrayLike,
    shape: Sequence[int] = (),
    dtype: DTypeLike = None,
    *,
    out_sharding: object = None,
) -> Value:
    """Draws from the exponential distribution of mean 1.

    Args:
        key: The key.
        shape: Shape of the result.
        dtype: Float dtype of the result.
        out_sharding: Placement of the result: a sharding, or a `PartitionSpec`.

    >>> from axir import random
    >>> random.exponential(random.PRNGKey(0), (2,))
    Array([0.24372..., 1.63027...], dtype=float32)
    """
    key, extents, dtype = standard("exponential", key, shape, dtype)
    return neg(log1p(neg(draw_uniform("exponential", key, extents, dtype))))


@lies_where_told
def laplace(
    key: ArrayLike,
    shape: Sequence[int] = (),
    dtype: DTypeLike = None,
    *,
    out_sharding: object = None,
) -> Value:
    """Draws from the Laplace distribution, of density exp(-|x|) / 2.

    Args:
        key: The key.
        shape: Shape of the result.
        dtype: Float dtype of the result.
        out_sharding: Placement of the result: a sharding, or a `PartitionSpec`.
    """
    key, extents, dtype = standard("laplace", key, shape, dtype)
    low = -1.0 + float(ml_dtypes.finfo(dtype).epsneg)
    u = draw_uniform("laplace", key, extents, dtype, low, 1.0)
    return mul(sign(u), log1p(neg(abs(u))))


@lies_where_told
def logistic(
    key: ArrayLike,
    shape: Sequence[int] = (),
    dtype: DTypeLike = None,
    *,
    out_sharding: object = None,
) -> Value:
    """Draws from the logistic distribution, of distribution function 1 / (1 + exp(-x)).

    Args:
        key: The key.
        shape: Shape of the result.
        dtype: Float dtype of the result.
        out_sharding: Placement of the result: a sharding, or a `PartitionSpec`.
    """
    key, extents, dtype = standard("logistic", key, shape, dtype)
    tiny = float(ml_dtypes.finfo(dtype).tiny)
    u = draw_uniform("logistic", key, extents, dtype, tiny, 1.0)
    return sub(log(u), log1p(neg(u)))


@lies_where_told
def cauchy(
    key: ArrayLike,
    shape: Sequence[int] = (),
    dtype: DTypeLike = None,
    *,
    out_sharding: object = None,
) -> Value:
    """Draws from the Cauchy distribution, of density 1 / (pi (1 + x^2)).

    Args:
        key: The key.
        shape: Shape of the result.
        dtype: Float dtype of the result.
        out_sharding: Placement of the result: a sharding, or a `PartitionSpec`.
    """
    key, extents, dtype = standard("cauchy", key, shape, dtype)
    epsilon = float(ml_dtypes.finfo(dtype).eps)
    u = draw_uniform("cauchy", key, extents, dtype, epsilon, 1.0)
    return tan(mul(constant(math.pi, dtype), sub(u, constant(0.5, dtype))))


@lies_where_told
def rayleigh(
    key: UserObject,
    scale: object,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike = None,
    *,
    out_sharding: object = None,
) -> Value:
    """Draws from the Rayleigh distribution, of density x exp(-x^2 / (2 s^2)) / s^2 for x >= 0.

    Args:
        key: The key.
        scale: The scale s, positive.
        shape: Shape of the result; by default the shape of the scale.
        dtype: Float dtype of the result.
        out_sharding: Placement of the result: a sharding, or a `PartitionSpec`.
    """
    key, extents, dtype, (scale,) = with_parameters("rayleigh", key, shape, dtype, scale=scale)
    u = draw_uniform("rayleigh", key, extents, dtype)
    return mul(scale, sqrt(mul(log(u), constant(-2, dtype))))


@lies_where_told
def pareto(
    key: UserObject,
    b: object,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike = None,
    *,
    out_sharding: object = None,
) -> Value:
    """Draws from the Pareto distribution, of density b / x^(b + 1) for x >= 1.

    Args:
        key: The key.
        b: The exponent, positive.
        shape: Shape of the result; by default the shape of b.
        dtype: Float dtype of the result.
        out_sharding: Placement of the result: a sharding, or a `PartitionSpec`.
    """
    key, extents, dtype, (b,) = with_parameters("pareto", key, shape, dtype, b=b)
    return exp(div(exponential(key, extents, dtype), b))


def weibull_min(
    key: ArrayLike,
    scale: UserObject,
    concentration: UserObject,
    shape: Sequence[int] = (),
    dtype: DTypeLike = None,
) -> Value:
    """Draws from the Weibull distribution, of distribution function 1 - exp(-(x/s)^c) for x >= 0.

    Args:
        key: The key.
        scale: The scale s, positive.
        concentration: The exponent c, positive.
        shape: Shape of the draws; it broadcasts with the parameters' shape.
        dtype: Float dtype of the result.
    """
    key, extents, dtype = standard("weibull_min", key, shape, dtype)
    scale = parameter("weibull_min", "scale", scale, dtype)
    concentration = parameter("weibull_min", "concentration", concentration, dtype)
    together = result_shape("weibull_min", None, extents, scale.shape, concentration.shape)
    draws = spread(exponential(key, extents, dtype), together)
    power = pow(draws, div(constant(1, dtype), spread(concentration, together)))
    return mul(power, spread(scale, together))


@lies_where_told
def triangular(
    key: UserObject,
    left: object,
    mode: object,
    right: object,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike = None,
    *,
    out_sharding: object = None,
) -> Value:
    """Draws from the triangular distribution between left and right, with its peak at the mode.

    Args:
        key: The key.
        left: Lower end.
        mode: Place of the peak, `left <= mode <= right`.
        right: Upper end, greater than left.
        shape: Shape of the result; by default the shape of the parameters.
        dtype: Float dtype of the result.
        out_sharding: Placement of the result: a sharding, or a `PartitionSpec`.
    """
    key, extents, dtype, (left, mode, right) = with_parameters(
        "triangular", key, shape, dtype, left=left, mode=mode, right=right
    )
    width = sub(right, left)
    u = draw_uniform("triangular", key, extents, dtype)
    rising = add(left, sqrt(mul(mul(u, width), sub(mode, left))))
    falling = sub(right, sqrt(mul(mul(sub(1, u), width), sub(right, mode))))
    return select_n(lt(u, div(sub(mode, left), width)), falling, rising)
