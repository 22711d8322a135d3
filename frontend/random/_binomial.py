"""The binomial and the multinomial distribution.

Few expected successes by inversion: geometric waiting times between successes are added up (L.
Devroye, "Non-Uniform Random Variate Generation", 1986, X.4.1); many by transformed rejection with
squeeze (W. Hörmann, "The generation of binomial random variates", 1993, algorithm BTRS).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

import axir.numpy as jnp
from axir.dialect.core.annotations import DTypeLike, UserObject
from axir.dialect.core.array import ArrayLike, as_array
from axir.dialect.core.errors import ShapeError
from axir.dialect.program.rules import Value
from axir.lax.control_flow import scan, while_loop
from axir.numpy._arguments.promotion import promote_inexact

from ._keys import split, split_pair
from ._parameters import check_key, check_shape, float_dtype, result_shape, to_value
from ._ranges import draw_uniform

# Up to this many expected successes (or failures) inversion is the faster one.
_FEW = 10.0
# ln k! less Stirling's approximation, for k from 0 to 9; by the series in 1/(k + 1) from there on.
_TAILS = tuple(
    math.lgamma(k + 1) - (0.5 * math.log(2 * math.pi) + (k + 0.5) * math.log(k + 1) - (k + 1))
    for k in range(10)
)


def _stirling_tail(k: Value) -> Value:
    """Returns f_c(k) in Hörmann's notation."""
    square = (k + 1) * (k + 1)
    series = (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (k + 1)
    table = as_array(np.asarray(_TAILS, k.dtype))
    position = jnp.floor(jnp.clip(k, 0.0, 9.0)).astype("int32")
    return jnp.where(k <= 9, table[position], series)


def _by_inversion(key: Value, count: Value, probability: Value) -> Value:
    """Counts how many geometric waiting times fit into the number of trials."""
    shape, real = count.shape, count.dtype
    logarithm = jnp.log1p(-probability)

    def step(state: UserObject) -> UserObject:
        successes, trials, key = state
        subkey, key = split_pair(key)
        successes = jnp.where(trials <= count, successes + 1, successes)
        uniform = draw_uniform("binomial", subkey, shape, real)
        return successes, trials + jnp.ceil(jnp.log(uniform) / logarithm), key

    start = (jnp.zeros(shape, real), jnp.zeros(shape, real), key)
    successes, _, _ = while_loop(lambda state: jnp.any(state[1] <= count), step, start)
    return successes - 1


def _by_rejection(key: Value, count: Value, probability: Value, is_unused: Value) -> Value:
    """Hörmann's algorithm BTRS, with the names of the paper; nothing where no number is used."""
    shape, real = count.shape, count.dtype
    deviation = jnp.sqrt(count * probability * (1 - probability))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * probability
    c = count * probability + 0.5
    v_r = 0.92 - 4.2 / b
    odds = probability / (1 - probability)
    alpha = (2.83 + 5.1 / b) * deviation
    mode = jnp.floor((count + 1) * probability)
    at_mode = _stirling_tail(mode) + _stirling_tail(count - mode)

    def log_ratio(k: Value) -> Value:
        """Returns the logarithm of the probability of k relative to the mode's."""
        return (
            (mode + 0.5) * jnp.log((mode + 1) / (odds * (count - mode + 1)))
            + (count + 1) * jnp.log((count - mode + 1) / (count - k + 1))
            + (k + 0.5) * jnp.log(odds * (count - k + 1) / (k + 1))
            + at_mode
            - _stirling_tail(k)
            - _stirling_tail(count - k)
        )

    def step(state: UserObject) -> UserObject:
        drawn, is_done, key = state
        keys = split(key, 3)
        u = draw_uniform("binomial", keys[1], shape, real) - 0.5
        v = draw_uniform("binomial", keys[2], shape, real)
        edge = 0.5 - jnp.abs(u)
        k = jnp.floor((2 * a / edge + b) * u + c)
        is_inner = (edge >= 0.07) & (v <= v_r)
        is_possible = (k >= 0) & (k <= count)
        is_below = jnp.log(v * alpha / (a / (edge * edge) + b)) <= log_ratio(k)
        is_good = is_inner | (is_possible & is_below)
        return jnp.where(is_good, k, drawn), is_done | is_good, keys[0]

    start = (jnp.full(shape, -1, real), jnp.broadcast_to(is_unused, shape), key)
    drawn, _, _ = while_loop(lambda state: ~jnp.all(state[1]), step, start)
    return drawn


def _draw(key: Value, count: Value, probability: Value, dtype: np.dtype) -> Value:
    """Draws with a count and a probability of one shape and dtype."""
    is_rare = probability < 0.5
    rarer = jnp.where(is_rare, probability, 1.0 - probability)
    is_invalid = jnp.isnan(rarer) | (rarer < 0.0)
    is_no_count = jnp.isnan(count) | (count < 0.0)
    is_endless = jnp.isinf(count)
    rarer = jnp.where(is_invalid, 0.01, rarer)
    is_few = is_no_count | (count * rarer <= _FEW)
    count = jnp.floor(count)
    # The draws of the other algorithm are ignored, but must end soon.
    few = _by_inversion(key, jnp.where(is_few, count, 0.0), rarer).astype(dtype)
    often = jnp.where(is_few, 1e4, count)
    many = _by_rejection(key, often, jnp.where(is_few, 0.5, rarer), jnp.all(is_few)).astype(dtype)
    drawn = jnp.where(is_few, few, many)
    whole = jnp.where(is_rare | is_endless, drawn, count.astype(dtype) - drawn)
    whole = jnp.where(is_endless, math.inf, whole)
    return jnp.where(is_invalid | is_no_count, math.nan, whole).astype(dtype)


def binomial(
    key: ArrayLike,
    n: ArrayLike,
    p: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike = None,
) -> Value:
    """Draws from the binomial distribution: successes among n trials of probability p.

    Args:
        key: The key.
        n: Numbers of trials, rounded down; array or scalar.
        p: Probabilities; array or scalar. They broadcast with `n`.
        shape: Shape of the result; by default the shape of n and p together.
        dtype: Float dtype of the result.

    Returns:
        Counts, as floats; nan where n or p lie outside their ranges, and inf where n is infinite.

    Raises:
        ParameterError: for another dtype, or if n or p do not broadcast to the shape.

    >>> from axir import random
    >>> random.binomial(random.key(0), 10, 1.0, (2,))
    Array([10., 10.], dtype=float32)
    """
    key = check_key("binomial", key)
    dtype = float_dtype("binomial", dtype)
    count, probability = to_value("binomial", "n", n), to_value("binomial", "p", p)
    extents = result_shape("binomial", shape, count.shape, probability.shape)
    (probability,) = promote_inexact("binomial", probability)
    count = jnp.broadcast_to(count.astype(probability.dtype), extents)
    return _draw(key, count, jnp.broadcast_to(probability, extents), dtype)


def multinomial(
    key: ArrayLike,
    n: ArrayLike,
    p: ArrayLike,
    *,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike = None,
    unroll: int | bool = 1,
) -> Value:
    """Draws from the multinomial distribution: how often each category occurs in n trials.

    The categories are drawn one after the other, each from a binomial distribution given the trials
    that remain.

    Args:
        key: The key.
        n: Numbers of trials; they broadcast to the leading axes of the result.
        p: Probabilities of the categories along the last axis; they are scaled to sum to one.
        shape: Shape of the result; by default the shape of p.
        dtype: Float dtype of the result.
        unroll: How many categories are drawn in one pass of the loop, as of `lax.scan`.

    Returns:
        Counts, as floats, which sum to n along the last axis.

    Raises:
        ShapeError: if p has no axis.
        ParameterError: if n or p do not broadcast to the shape.

    >>> from axir import random
    >>> random.multinomial(random.key(0), 6, random.uniform(random.key(1), (3,))).sum()
    Array(6., dtype=float32)
    """
    key = check_key("multinomial", key)
    asked = None if dtype is None else float_dtype("multinomial", dtype)
    trials, p = to_value("multinomial", "n", n), to_value("multinomial", "p", p)
    trials, p = promote_inexact("multinomial", trials, p)
    if not p.ndim:
        raise ShapeError("random.multinomial: p needs an axis, that of the categories.")
    extents = p.shape if shape is None else check_shape("multinomial", shape)
    result_shape("multinomial", extents, p.shape)
    result_shape("multinomial", extents[:-1], trials.shape)
    trials = jnp.broadcast_to(trials, extents[:-1])
    p = jnp.moveaxis(jnp.broadcast_to(p, extents), -1, 0)
    remaining = jnp.flip(jnp.cumsum(jnp.flip(p, 0), 0), 0)
    ratios = p / jnp.where(remaining == 0, 1, remaining)

    def step(left: Value, entry: tuple[Value, Value]) -> tuple[Value, Value]:
        ratio, subkey = entry
        drawn = _draw(subkey, left, jnp.clip(ratio, 0, 1), left.dtype)
        return left - drawn, drawn

    counts = scan(step, trials, (ratios, split(key, len(ratios))), unroll=unroll)[1]
    return jnp.moveaxis(counts, 0, -1).astype(p.dtype if asked is None else asked)
