"""Steps of random programs: integers, complex numbers, windows, indexing, decompositions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import axir
import axir.numpy as jnp
from axir import lax

from .random_steps import (
    alike,
    binary,
    indices,
    matrix,
    positive_definite,
    ranked,
    unary,
    vector,
)

Value = Any


# Integers and truth values ----------------------------------------------------------------------


def _integer(function: Callable[[Value, int], Value]) -> Callable[..., Value]:
    """Makes a step of a function of integers; takes its results modulo a small number."""

    def step(x: Value, y: Value, choice: int) -> Value:
        numbers = vector(indices(x)) * 37 - 101
        found = function(numbers, choice) % 7
        return vector(x)[: found.size] + vector(found).astype(x.dtype) / 8

    return step


def _unsigned(numbers: Value, choice: int) -> Value:
    words = numbers.astype((np.uint8, np.uint16, np.uint32, np.uint64)[choice % 4])
    return (words // 3 ^ (words << 2)) + jnp.max(words) - jnp.sum(words, dtype=words.dtype)


def _wrapped(numbers: Value, choice: int) -> Value:
    words = numbers.astype((np.int8, np.int16, np.int64)[choice % 3])
    return jnp.cumsum(words, dtype=words.dtype) * words - (words >> 1) + jnp.sign(words)


def _truths(numbers: Value, choice: int) -> Value:
    is_large, is_odd = numbers > 8, numbers % 2 == 1
    either = jnp.any(is_large & ~is_odd) | (is_large ^ is_odd)
    return either.astype(np.int32) + jnp.all(is_odd) + jnp.sort(is_large) * 2


def _brain(x: Value, y: Value, choice: int) -> Value:
    """Small whole numbers, exact in bfloat16 and half precision, times another value."""
    short = (indices(x) % 7 - 3).astype((jnp.bfloat16, np.float16)[choice % 2])
    longer = (short * 0.5 + jnp.max(short) - jnp.sum(short[..., None], -1)).astype(x.dtype)
    return x * longer + jnp.mean(y)


# Complex numbers --------------------------------------------------------------------------------


def _complex_root(x: Value, y: Value) -> Value:
    z = lax.complex(3 + jnp.tanh(x), y)
    return jnp.real(jnp.sqrt(z)) + jnp.imag(jnp.log(z)) + jnp.abs(z / (z + 1j))


def _complex_product(x: Value, y: Value, choice: int) -> Value:
    z = lax.complex(matrix(x), jnp.sin(matrix(x)))
    product = z.T @ jnp.conj(z)
    return jnp.real(product) - jnp.imag(product * 1j) + jnp.imag(jnp.sum(z))


def _convolved(x: Value, a: int) -> Value:
    spectrum = jnp.fft.fft(x, axis=a)
    return jnp.real(jnp.fft.ifft(spectrum * jnp.conj(spectrum), axis=a))


# Windows ----------------------------------------------------------------------------------------


def _window_sum(x: Value, axis: int) -> Value:
    ones = (1,) * x.ndim
    sizes, strides = (tuple(n if d == axis else 1 for d in range(x.ndim)) for n in (3, 2))
    return lax.reduce_window(x, 0.0, lax.add, sizes, strides, "SAME", window_dilation=ones)


def _pooling_gradient(x: Value, axis: int) -> Value:
    sizes = tuple(2 if d == axis else 1 for d in range(x.ndim))

    def pooled(v: Value) -> Value:
        largest = lax.reduce_window(v, -jnp.inf, lax.max, sizes, None, [(1, 0)] * x.ndim)
        return jnp.sum(jnp.sin(largest) * jnp.arange(largest.size).reshape(largest.shape) / 8)

    return axir.grad(pooled)(x)


def _dilated_convolution(x: Value, y: Value, choice: int) -> Value:
    rows, kernel = matrix(x).T, jnp.tanh(vector(y))[:3]
    dilations = {"lhs_dilation": (2,)} if choice % 2 else {"rhs_dilation": (2,)}
    return lax.conv_general_dilated(
        rows[:, None, :],
        kernel[None, None, :],
        (1,),
        [(2, 1)] if choice % 2 else "SAME",
        **dilations,
    )[:, 0, :]


def _grouped_convolution(x: Value, y: Value, choice: int) -> Value:
    rows, other = matrix(x).T, jnp.tanh(vector(y))
    kernel = jnp.stack([other[0] + 0.1 * j for j in range(2 * rows.shape[0])])
    return lax.conv_general_dilated(
        rows[None], kernel[:, None, None], (1,), "VALID", feature_group_count=rows.shape[0]
    )[0]


# Indexing ---------------------------------------------------------------------------------------


def _far(x: Value) -> Value:
    """Indices of a vector; some are out of bounds."""
    return indices(x)[:5] * 3 - 4


def _taken(x: Value, y: Value, choice: int) -> Value:
    x = vector(x)
    if choice % 3 == 2:
        return x.at[_far(x)].get(mode="fill", fill_value=2.5)
    return jnp.take(x, _far(x), mode=("clip", "wrap")[choice % 3])


def _stored(x: Value, y: Value, choice: int) -> Value:
    x = vector(x)
    updates = jnp.resize(vector(y), _far(x).shape).astype(x.dtype)
    place = x.at[_far(x)]
    if choice % 3 == 2:
        return place.add(updates, mode="clip")
    if choice % 3 == 1:
        return place.add(updates, mode="drop")
    return x.at[indices(x)[:3] + 1].multiply(jnp.tanh(updates[0]), unique_indices=True, mode="drop")


def _extreme(x: Value, y: Value, choice: int) -> Value:
    place = vector(x).at[jnp.array([1, 0, -1]) % x.size]
    updates = jnp.resize(vector(y), (3,)).astype(x.dtype)
    updates += jnp.array([0.0101, 0.0203, 0.0307], x.dtype)
    return place.max(updates) if choice % 2 else place.min(updates)


def _rows(x: Value, y: Value, choice: int) -> Value:
    table = matrix(x)
    where = vector(indices(x))[:4] * 5 % table.shape[0]
    return table[where, where % table.shape[1]][:, None] * table[where] + table[:, choice % 1][0]


def _segments(x: Value, y: Value, choice: int) -> Value:
    rows = matrix(x)
    groups = indices(rows)[:, 0] * 3 % 4 - choice % 2
    return axir.ops.segment_sum(rows, groups, num_segments=3)


def _permuted(x: Value, y: Value, choice: int) -> Value:
    x = vector(x)
    keys, values = lax.sort_key_val(indices(x) * 7 % 11, x)
    return values + keys.astype(x.dtype) / 8 + jnp.argsort(indices(x) * 5 % 13)[choice % x.size]


def _looked_up(x: Value, y: Value, choice: int) -> Value:
    knots = jnp.arange(5, dtype=x.dtype)
    return jnp.interp(2 + jnp.tanh(x), knots, jnp.sin(knots)) + jnp.mean(y)


# Decompositions ---------------------------------------------------------------------------------


def _spread(x: Value) -> Value:
    """A square matrix with eigenvalues, and singular values, that differ."""
    small = jnp.tanh(matrix(x)).T @ jnp.tanh(matrix(jnp.sin(x))) / matrix(x).shape[0]
    return small / small.shape[0] + jnp.diag(jnp.arange(1, small.shape[0] + 1) * 4.0).astype(
        x.dtype
    )


def _orthogonal(x: Value, y: Value, choice: int) -> Value:
    q, r = jnp.linalg.qr(_spread(x))
    return (q * jnp.sign(jnp.diagonal(r)), jnp.abs(jnp.diagonal(r)))[choice % 2]


def _triangular(x: Value, y: Value, choice: int) -> Value:
    system = positive_definite(x)
    right = jnp.ones((system.shape[0], 2), x.dtype) * jnp.mean(y)
    return lax.linalg.triangular_solve(
        system, right, left_side=True, lower=bool(choice % 2), transpose_a=choice % 3 == 0
    )


NUMERIC: dict[str, Callable[[Value, Value, int], Value]] = {
    "bits": _integer(lambda n, choice: lax.population_count(n) + lax.clz(n) * choice),
    "shifts": _integer(lambda n, choice: (n << choice) | lax.shift_right_logical(n, choice)),
    "divided": _integer(
        lambda n, choice: n // (choice + 2) + lax.rem(n, choice + 2) + lax.div(n, -3)
    ),
    "sorted_integers": _integer(lambda n, choice: jnp.sort(n * 7 % 31, descending=choice % 2 == 0)),
    "unsigned": _integer(_unsigned),
    "wrapped": _integer(_wrapped),
    "truths": _integer(_truths),
    "where_is": _integer(lambda n, choice: n + jnp.argmax(n * 7 % 13) - jnp.argmin(n * 5 % 11)),
    "integer_product": _integer(lambda n, choice: jnp.outer(n[:5], n[:5]) @ n[:5]),
    "brain": _brain,
    "complex_root": binary(_complex_root),
    "complex_product": _complex_product,
    "convolved": ranked(_convolved),
    "complex_power": binary(
        lambda x, y: jnp.real(lax.complex(2 + jnp.tanh(x), jnp.tanh(y)) ** (1 + 0.5j))
    ),
    "window_sum": ranked(_window_sum),
    "pooling_gradient": ranked(_pooling_gradient),
    "dilated_convolution": _dilated_convolution,
    "grouped_convolution": _grouped_convolution,
    "taken": _taken,
    "stored": _stored,
    "extreme": _extreme,
    "rows": _rows,
    "segments": _segments,
    "permuted": _permuted,
    "looked_up": _looked_up,
    "moving_slice": ranked(
        lambda x, a: lax.dynamic_slice_in_dim(
            x, jnp.max(indices(x)) % 3 - 1, x.shape[a] // 2 + 1, a
        )
    ),
    "moving_take": ranked(lambda x, a: jnp.take_along_axis(x, indices(x) % x.shape[a], a)),
    "differences": ranked(lambda x, a: jnp.diff(x, axis=a, append=0.25)),
    "median": ranked(lambda x, a: jnp.median(x, a)),
    "kronecker": lambda x, y, choice: jnp.kron(matrix(x)[:3, :2], matrix(y)[:2]),
    "norm": ranked(lambda x, a: jnp.linalg.norm(x, axis=a, keepdims=True) + x),
    "orthogonal": _orthogonal,
    "eigenvalues": unary(lambda x: jnp.linalg.eigvalsh(_spread(x))),
    "singular_values": unary(lambda x: jnp.linalg.svd(_spread(x), compute_uv=False)),
    "inverse": unary(lambda x: jnp.linalg.inv(_spread(x))),
    "determinant": unary(lambda x: jnp.linalg.det(positive_definite(x) / 2)),
    "triangular": _triangular,
    "trigonometry": unary(lambda x: jnp.arcsin(jnp.tanh(x) * 0.9) + jnp.tan(jnp.tanh(x))),
    "hyperbolic": unary(lambda x: jnp.arcsinh(x) + jnp.cosh(jnp.tanh(x)) - lax.cbrt(2 + x * x)),
    "erf_inv": unary(lambda x: lax.erf_inv(jnp.tanh(x) * 0.9)),
    "gamma": binary(
        lambda x, y: lax.igamma(lax.stop_gradient(2 + jnp.tanh(x)), 2 + jnp.tanh(y).astype(x.dtype))
    ),
    "rounded": unary(lambda x: x + jnp.round(indices(x) * 0.5 + 0.25).astype(x.dtype)),
    "swapped": unary(lambda x: alike(x, x.T)[1] + jnp.tri(*matrix(x).shape).sum()),
}
