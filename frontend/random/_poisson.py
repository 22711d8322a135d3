"""The Poisson distribution.

Small rates by D. E. Knuth's method (The Art of Computer Programming, volume 2, 3.4.1), large ones
by transformed rejection (W. Hörmann, "The transformed rejection method for generating Poisson
random variables", 1993, algorithm PTRS).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from axir._devices.placement import lies_where_told
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import DTypeLike, UserObject
from axir.dialect.core.array import ArrayLike
from axir.dialect.ops.elementwise.arithmetic import abs as absolute
from axir.dialect.ops.elementwise.arithmetic import add, div, floor, mul, neg, square, sub
from axir.dialect.ops.elementwise.comparison import (
    and_,
    eq,
    ge,
    gt,
    le,
    lt,
    ne,
    not_,
    or_,
    select_n,
)
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.ops.elementwise.transcendental import log, sqrt
from axir.dialect.ops.indexing.static_slicing import index_in_dim
from axir.dialect.ops.reductions.reduce import reduce_or
from axir.dialect.ops.shape.broadcasting import broadcast_in_dim
from axir.dialect.ops.shape.constants import full
from axir.dialect.ops.special.special_functions import lgamma
from axir.dialect.program.rules import Value
from axir.lax.control_flow import while_loop

from ._approximate import approximate_poisson, is_approximate
from ._gamma import whole
from ._keys import split, split_pair
from ._parameters import check_key, constant, integer_dtype, parameter, result_shape
from ._ranges import draw_uniform

_SMALL = 10  # below this rate Knuth's method is the faster one


def _any(flags: Value) -> Value:
    return reduce_or(flags, tuple(range(flags.ndim)))


def _knuth(key: Value, rate: Value, dtype: np.dtype) -> Value:
    """Counts uniform numbers until their product falls to exp(-rate)."""
    shape = rate.shape

    def is_above(logarithm: Value) -> Value:
        return gt(logarithm, neg(rate))

    def step(state: UserObject) -> UserObject:
        count, key, logarithm = state
        key, subkey = split_pair(key)
        count = select_n(is_above(logarithm), count, add(count, constant(1, dtype)))
        uniform = draw_uniform("poisson", subkey, shape, rate.dtype)
        return count, key, add(logarithm, log(uniform))

    start = (full(shape, 0, dtype), key, full(shape, 0, rate.dtype))
    count, _, _ = while_loop(lambda state: _any(is_above(state[2])), step, start)
    return sub(count, constant(1, dtype))


def _rejection(key: Value, rate: Value, dtype: np.dtype, is_unused: Value) -> Value:
    """Hörmann's algorithm, with the constants of the paper; nothing where no number is used."""
    shape, real = rate.shape, rate.dtype

    def number(value: float) -> Value:
        return constant(value, real)

    b = add(number(0.931), mul(number(2.53), sqrt(rate)))
    a = add(number(-0.059), mul(number(0.02483), b))
    inverse_alpha = add(number(1.1239), div(number(1.1328), sub(b, number(3.4))))
    largest_v = sub(number(0.9277), div(number(3.6224), sub(b, number(2.0))))
    logarithm = log(rate)

    def step(state: UserObject) -> UserObject:
        drawn, is_done, key = state
        keys = split(key, 3)
        key, u_key, v_key = (index_in_dim(keys, i, keepdims=False) for i in range(3))
        u = sub(draw_uniform("poisson", u_key, shape, real), number(0.5))
        v = draw_uniform("poisson", v_key, shape, real)
        edge = sub(number(0.5), absolute(u))
        scaled = add(div(mul(number(2), a), edge), b)
        k = floor(add(add(mul(scaled, u), rate), number(0.43)))
        s = log(div(mul(v, inverse_alpha), add(div(a, square(edge)), b)))
        bound = sub(sub(mul(k, logarithm), rate), lgamma(add(k, number(1))))
        is_inner = and_(ge(edge, number(0.07)), le(v, largest_v))
        is_outer = or_(lt(k, number(0)), and_(lt(edge, number(0.013)), gt(v, edge)))
        is_good = or_(is_inner, and_(not_(is_outer), le(s, bound)))
        drawn = select_n(is_good, drawn, k)
        return drawn, or_(is_done, is_good), key

    start = (full(shape, -1, real), broadcast_in_dim(is_unused, shape, ()), key)
    drawn, _, _ = while_loop(lambda state: _any(not_(state[1])), step, start)
    return convert_element_type(drawn, dtype)


@lies_where_told
def poisson(
    key: ArrayLike,
    lam: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike = None,
    *,
    method: str = "exact",
    out_sharding: object = None,
) -> Value:
    """Draws from the Poisson distribution: counts of rare events that happen at a rate.

    Args:
        key: The key.
        lam: The rates, at least 0.
        shape: Shape of the result; by default `lam`'s, which must broadcast to it.
        dtype: Integer dtype of the result.
        method: `exact`, or `approximate`: without loops, of a distribution with a total variation
            distance from Poisson's (half the sum of the probabilities' errors) below 1e-4.
        out_sharding: Placement of the result: a sharding, or a `PartitionSpec`.

    Returns:
        Counts; -1 where the rate is nan.

    >>> from axir import random
    >>> random.poisson(random.PRNGKey(0), 0.0, (2,))
    Array([0, 0], dtype=int32)
    """
    key, result_dtype = check_key("poisson", key), integer_dtype("poisson", dtype)
    real = getattr(lam, "dtype", None)
    is_double = real is not None and np.dtype(real) == dtypes.float64
    is_loose = is_approximate("poisson", method)
    is_double = is_double or (is_loose and result_dtype.itemsize > 4)
    rate = parameter("poisson", "lam", lam, dtypes.float64 if is_double else dtypes.float32)
    rate = whole(rate, result_shape("poisson", shape, rate.shape))
    if is_loose:
        return approximate_poisson(key, rate, result_dtype)
    is_small = or_(lt(rate, constant(_SMALL, rate.dtype)), ne(rate, rate))
    zero = constant(0, rate.dtype)
    small = _knuth(key, select_n(is_small, zero, rate), result_dtype)
    wide = select_n(is_small, rate, constant(1e5, rate.dtype))
    large = _rejection(key, wide, result_dtype, not_(_any(not_(is_small))))
    drawn = select_n(is_small, large, small)
    return select_n(eq(rate, zero), drawn, constant(0, result_dtype))
