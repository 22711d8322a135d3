"""The gamma distribution, and those made of gamma numbers: beta, chi-square, Dirichlet, t, F ...

Gamma numbers are drawn by the rejection method of G. Marsaglia and W. W. Tsang ("A simple method
for generating gamma variables", ACM TOMS 26, 2000); below a = 1, from gamma numbers of a + 1 times
a power of a uniform number. They are differentiable in `a` at a fixed probability (M. Figurnov, S.
Mohamed, A. Mnih, "Implicit reparameterization gradients", 2018).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from axir._devices.placement import lies_where_told
from axir.custom_derivatives import custom_jvp
from axir.dialect.core.annotations import DTypeLike, PyTree, UserObject
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import ShapeError
from axir.dialect.ops.elementwise.arithmetic import abs as absolute
from axir.dialect.ops.elementwise.arithmetic import add, div, mul, neg, square, sub
from axir.dialect.ops.elementwise.arithmetic import max as larger
from axir.dialect.ops.elementwise.comparison import and_, eq, ge, le, or_, select_n
from axir.dialect.ops.elementwise.conversion import stop_gradient
from axir.dialect.ops.elementwise.transcendental import exp, log, pow, sqrt
from axir.dialect.ops.indexing.static_slicing import index_in_dim
from axir.dialect.ops.reductions.reduce import reduce_max, reduce_sum
from axir.dialect.ops.shape.constants import full
from axir.dialect.ops.shape.rearranging import reshape
from axir.dialect.ops.special.special_functions import random_gamma_grad
from axir.dialect.program.rules import Value
from axir.lax.control_flow import while_loop

from ._approximate import approximate_gamma, is_approximate
from ._blocks import draw_in_blocks
from ._discrete import rademacher
from ._gaussian import draw_normal
from ._inversion import exponential
from ._keys import split, split_pair
from ._parameters import (
    check_key,
    constant,
    float_dtype,
    parameter,
    result_shape,
    spread,
    with_parameters,
)
from ._ranges import draw_uniform

_SQUEEZE = 0.0331  # Marsaglia's and Tsang's bound under which no logarithm is needed


def _three_keys(key: Value) -> tuple[Value, Value, Value]:
    keys = split(key, 3)
    first, second, third = (index_in_dim(keys, i, keepdims=False) for i in range(3))
    return first, second, third


def _draw_one(key: Value, a: Value, *, is_logarithmic: bool) -> Value:
    """Draws one gamma number, or its logarithm."""
    dtype = a.dtype
    one, third = constant(1, dtype), constant(1 / 3, dtype)
    is_large = ge(a, one)
    d = sub(select_n(is_large, add(a, one), a), third)
    c = div(third, sqrt(d))

    def propose(state: UserObject) -> object:
        key, subkey = split_pair(state[0])
        x = draw_normal(subkey, (), dtype)
        return key, x, add(one, mul(x, c))

    def is_rejected(state: UserObject) -> Value:
        _, squared, cubed, u = state
        is_outside = ge(u, sub(one, mul(constant(_SQUEEZE, dtype), mul(squared, squared))))
        bound = add(mul(squared, constant(0.5, dtype)), mul(d, add(sub(one, cubed), log(cubed))))
        return and_(is_outside, ge(log(u), bound))

    def attempt(state: UserObject) -> object:
        key, x_key, u_key = _three_keys(state[0])
        start = (x_key, constant(0, dtype), constant(-1, dtype))
        _, x, v = while_loop(lambda s: le(s[2], constant(0, dtype)), propose, start)
        u = draw_uniform("gamma", u_key, (), dtype)
        return key, square(x), mul(mul(v, v), v), u

    key, subkey = split_pair(key)
    start = (key, constant(0, dtype), one, constant(2, dtype))
    _, _, cubed, _ = while_loop(is_rejected, attempt, start)
    if is_logarithmic:
        uniform = neg(exponential(subkey, (), dtype))
        is_zero = eq(uniform, constant(0, dtype))
        boost = select_n(or_(is_large, is_zero), mul(uniform, div(one, a)), constant(0, dtype))
        return add(add(log(d), log(cubed)), boost)
    uniform = sub(one, draw_uniform("gamma", subkey, (), dtype))
    boost = select_n(is_large, pow(uniform, div(one, a)), one)
    return mul(mul(d, cubed), boost)


def _sampler(*, is_logarithmic: bool) -> UserObject:
    """Returns the function that draws for each of an array of numbers, with its derivative."""

    def draw_each(key: Value, each: Value) -> Value:
        return _draw_one(key, each, is_logarithmic=is_logarithmic)

    @custom_jvp
    def sample(key: Value, a: Value) -> Value:
        drawn = draw_in_blocks(draw_each, split(key, a.size), reshape(a, (a.size,)))
        return reshape(drawn, a.shape)

    @sample.defjvp
    def sample_jvp(primals: PyTree, tangents: PyTree) -> UserObject:
        drawn = sample(*primals)
        a, tangent = primals[1], tangents[1]
        if not is_logarithmic:
            return drawn, mul(random_gamma_grad(a, drawn), tangent)
        least = constant(float(np.finfo(np.float32).tiny), a.dtype)
        number = larger(exp(drawn), least)
        return drawn, mul(div(random_gamma_grad(a, number), number), tangent)

    return sample


_SAMPLERS = {flag: _sampler(is_logarithmic=flag) for flag in (False, True)}


def draw_gamma(key: Value, a: Value, *, is_logarithmic: bool) -> Value:
    """Draws for each element of `a` a gamma number, or its logarithm; differentiable in `a`."""
    return _SAMPLERS[is_logarithmic](key, a) if a.size else a


def _draw(name: str, method: str, key: Value, a: Value, *, is_logarithmic: bool) -> Value:
    if is_approximate(name, method):
        return approximate_gamma(key, a, is_logarithmic=is_logarithmic)
    return draw_gamma(key, a, is_logarithmic=is_logarithmic)


def whole(x: Value, shape: tuple[int, ...]) -> Value:
    """Broadcasts a parameter, scalars included."""
    if x.shape == shape:
        return x
    return mul(full(shape, 1, x.dtype), x) if not x.shape else spread(x, shape)


@lies_where_told
def gamma(
    key: UserObject,
    a: object,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike = None,
    *,
    method: str = "exact",
    out_sharding: object = None,
) -> Value:
    """Draws from the gamma distribution of shape parameter `a` and scale 1.

    The density is x**(a - 1) exp(-x) / gamma(a) for x > 0.

    Args:
        key: The key.
        a: Positive numbers.
        shape: Shape of the result; by default `a`'s, which must broadcast to it.
        dtype: Float dtype of the result.
        method: `exact`, or `approximate`: without loops, near the distribution (quantiles are
            off by less than a thousandth).
        out_sharding: Placement of the result: a sharding, or a `PartitionSpec`.

    >>> from axir import random
    >>> random.gamma(random.PRNGKey(0), 2.0, (2, 3)).shape
    (2, 3)
    """
    key, extents, _, (a,) = with_parameters("gamma", key, shape, dtype, a=a)
    return _draw("gamma", method, key, whole(a, extents), is_logarithmic=False)


@lies_where_told
def loggamma(
    key: UserObject,
    a: object,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike = None,
    *,
    method: str = "exact",
    out_sharding: object = None,
) -> Value:
    """Draws the logarithm of gamma numbers, which for small `a` do not underflow.

    Args:
        key: The key.
        a: Positive numbers.
        shape: Shape of the result; by default `a`'s.
        dtype: Float dtype of the result.
        method: `exact`, or `approximate`: without loops, near the distribution (quantiles are
            off by less than a thousandth).
        out_sharding: Placement of the result: a sharding, or a `PartitionSpec`.

    >>> from axir import random
    >>> random.loggamma(random.PRNGKey(0), 2.0, (2, 3)).shape
    (2, 3)
    """
    key, extents, _, (a,) = with_parameters("loggamma", key, shape, dtype, a=a)
    return _draw("loggamma", method, key, whole(a, extents), is_logarithmic=True)


@lies_where_told
def beta(
    key: UserObject,
    a: object,
    b: object,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike = None,
    *,
    method: str = "exact",
    out_sharding: object = None,
) -> Value:
    """Draws from the beta distribution, of density proportional to x**(a - 1) (1 - x)**(b - 1).

    Args:
        key: The key.
        a, b: Positive numbers.
        shape: Shape of the result; by default the broadcast shape of the parameters.
        dtype: Float dtype of the result.
        method: `exact`, or `approximate`: without loops, near the distribution (quantiles are
            off by less than a thousandth).
        out_sharding: Placement of the result: a sharding, or a `PartitionSpec`.

    >>> from axir import random
    >>> random.beta(random.PRNGKey(0), 2.0, 3.0, (2,)).shape
    (2,)
    """
    key, extents, _, (a, b) = with_parameters("beta", key, shape, dtype, a=a, b=b)
    first, second = split_pair(key)
    x = _draw("beta", method, first, whole(a, extents), is_logarithmic=True)
    y = _draw("beta", method, second, whole(b, extents), is_logarithmic=True)
    largest = larger(x, y)
    x, y = exp(sub(x, largest)), exp(sub(y, largest))
    return div(x, add(x, y))


@lies_where_told
def dirichlet(
    key: ArrayLike,
    alpha: UserObject,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike = None,
    *,
    out_sharding: object = None,
) -> Value:
    """Draws from the Dirichlet distribution: positive numbers along the last axis that sum to 1.

    Args:
        key: The key.
        alpha: Concentrations, of shape (..., n).
        shape: Shape of the result without its last axis; by default `alpha`'s without its.
        dtype: Float dtype of the result.
        out_sharding: Placement of the result: a sharding, or a `PartitionSpec`.

    Raises:
        ShapeError: for a scalar `alpha`.

    >>> import axir.numpy as jnp
    >>> from axir import random
    >>> random.dirichlet(random.PRNGKey(0), jnp.ones(3), (2,)).shape
    (2, 3)
    """
    key, result_dtype = check_key("dirichlet", key), float_dtype("dirichlet", dtype)
    alpha = parameter("dirichlet", "alpha", alpha, result_dtype)
    if not alpha.shape:
        raise ShapeError("random.dirichlet: alpha must have at least one axis.")
    extents = result_shape("dirichlet", shape, alpha.shape[:-1])
    concentrations = whole(alpha, (*extents, alpha.shape[-1]))
    logarithms = draw_gamma(key, concentrations, is_logarithmic=True)
    axis = logarithms.ndim - 1

    def along(x: Value) -> Value:
        return spread(reshape(x, (*extents, 1)), logarithms.shape)

    shifted = exp(sub(logarithms, along(stop_gradient(reduce_max(logarithms, (axis,))))))
    return div(shifted, along(reduce_sum(shifted, (axis,))))


def _draw_chisquare(key: Value, degrees: Value, method: str = "exact") -> Value:
    half = constant(0.5, degrees.dtype)
    logarithm = _draw("chisquare", method, key, mul(half, degrees), is_logarithmic=True)
    return mul(constant(2, degrees.dtype), exp(logarithm))


@lies_where_told
def chisquare(
    key: UserObject,
    df: object,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike = None,
    *,
    method: str = "exact",
    out_sharding: object = None,
) -> Value:
    """Draws from the chi-square distribution: the sum of squares of `df` normal numbers.

    Args:
        key: The key.
        df: Positive numbers, the degrees of freedom.
        shape: Shape of the result; by default `df`'s.
        dtype: Float dtype of the result.
        method: `exact`, or `approximate`: without loops, near the distribution (quantiles are
            off by less than a thousandth).
        out_sharding: Placement of the result: a sharding, or a `PartitionSpec`.

    >>> from axir import random
    >>> random.chisquare(random.PRNGKey(0), 4.0, (2,)).shape
    (2,)
    """
    key, extents, _, (df,) = with_parameters("chisquare", key, shape, dtype, df=df)
    return _draw_chisquare(key, whole(df, extents), method)


@lies_where_told
def f(
    key: UserObject,
    dfnum: object,
    dfden: object,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike = None,
    *,
    out_sharding: object = None,
) -> Value:
    """Draws from the F distribution: a quotient of chi-square numbers, each over its degrees.

    Args:
        key: The key.
        dfnum, dfden: Positive numbers, the degrees of freedom.
        shape: Shape of the result; by default the broadcast shape of the parameters.
        dtype: Float dtype of the result.
        out_sharding: Placement of the result: a sharding, or a `PartitionSpec`.

    >>> from axir import random
    >>> random.f(random.PRNGKey(0), 4.0, 6.0, (2,)).shape
    (2,)
    """
    key, extents, _, (upper, lower) = with_parameters(
        "f", key, shape, dtype, dfnum=dfnum, dfden=dfden
    )
    first, second = split_pair(key)
    upper, lower = whole(upper, extents), whole(lower, extents)
    denominator = div(_draw_chisquare(first, lower), lower)
    return div(div(_draw_chisquare(second, upper), upper), denominator)


@lies_where_told
def t(
    key: UserObject,
    df: object,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike = None,
    *,
    out_sharding: object = None,
) -> Value:
    """Draws from Student's t distribution.

    Args:
        key: The key.
        df: Positive numbers, the degrees of freedom.
        shape: Shape of the result; by default `df`'s.
        dtype: Float dtype of the result.
        out_sharding: Placement of the result: a sharding, or a `PartitionSpec`.

    >>> from axir import random
    >>> random.t(random.PRNGKey(0), 4.0, (2,)).shape
    (2,)
    """
    key, extents, result_dtype, (df,) = with_parameters("t", key, shape, dtype, df=df)
    first, second = split_pair(key)
    half = mul(constant(0.5, result_dtype), whole(df, extents))
    normal = draw_normal(first, extents, result_dtype)
    return mul(normal, sqrt(div(half, draw_gamma(second, half, is_logarithmic=False))))


@lies_where_told
def generalized_normal(
    key: ArrayLike,
    p: float,
    shape: Sequence[int] = (),
    dtype: DTypeLike = None,
    *,
    out_sharding: object = None,
) -> Value:
    """Draws from the distribution of density proportional to exp(-|x|**p).

    Args:
        key: The key.
        p: A positive number.
        shape: Shape of the result.
        dtype: Float dtype of the result.
        out_sharding: Placement of the result: a sharding, or a `PartitionSpec`.

    >>> from axir import random
    >>> random.generalized_normal(random.PRNGKey(0), 2.0, (2,)).shape
    (2,)
    """
    name = "generalized_normal"
    first, second = split_pair(check_key(name, key))
    result_dtype = float_dtype(name, dtype)
    size = gamma(first, 1 / p, shape, result_dtype)
    signs = rademacher(second, shape, result_dtype)
    return mul(signs, pow(size, constant(1 / p, result_dtype)))


@lies_where_told
def ball(
    key: ArrayLike,
    d: int,
    p: float = 2,
    shape: Sequence[int] = (),
    dtype: DTypeLike = None,
    *,
    out_sharding: object = None,
) -> Value:
    """Draws points of the d-dimensional unit ball of the p-norm, all equally likely.

    Source: F. Barthe, O. Guédon, S. Mendelson, A. Naor, Annals of Probability 33, 2005.

    Args:
        key: The key.
        d: Dimension.
        p: Exponent of the norm.
        shape: Shape of the result without its last axis, of extent d.
        dtype: Float dtype of the result.
        out_sharding: Placement of the result: a sharding, or a `PartitionSpec`.

    >>> from axir import random
    >>> random.ball(random.PRNGKey(0), 3, shape=(2,)).shape
    (2, 3)
    """
    first, second = split_pair(check_key("ball", key))
    result_dtype = float_dtype("ball", dtype)
    extents = tuple(shape)
    point = generalized_normal(first, p, (*extents, d), result_dtype)
    power, inverse = constant(p, result_dtype), constant(1 / p, result_dtype)
    added = reduce_sum(pow(absolute(point), power), (len(extents),))
    norm = pow(add(added, exponential(second, extents, result_dtype)), inverse)
    return div(point, spread(reshape(norm, (*extents, 1)), point.shape))
