"""The steps of random programs: each takes arrays of any shape, and computes a useful result.

A step gets the values that it may use and a choice, and returns one array. It is total and smooth
enough that rounding does not grow without bounds; its integers depend on shapes only.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import axir
import axir.numpy as jnp
from axir import lax, nn

Value = Any
# Larger values are averaged before the next step.
_LARGEST, _DEEPEST = 200, 4


def bounded(x: Value) -> Value:
    """Averages along axes until a value is small."""
    while x.size > _LARGEST or x.ndim > _DEEPEST:
        x = jnp.mean(x, axis=int(np.argmax(x.shape)))
    return x


def alike(x: Value, y: Value) -> tuple[Value, Value]:
    """Returns the second value in the shape and dtype of the first."""
    y = y.astype(x.dtype)
    try:
        return x, jnp.broadcast_to(y, x.shape)
    except (ValueError, TypeError):
        return x, jnp.broadcast_to(jnp.mean(y), x.shape)


def axis(x: Value, choice: int) -> int:
    return choice % x.ndim


def vector(x: Value) -> Value:
    return jnp.reshape(x, (-1,))


def matrix(x: Value) -> Value:
    x = vector(x)
    columns = max(d for d in range(1, math.isqrt(x.size) + 1) if x.size % d == 0)
    return jnp.reshape(x, (-1, columns))


def ranked(apply: Callable[[Value, int], Value]) -> Callable[..., Value]:
    """Makes a step of a function that needs an axis."""

    def step(x: Value, y: Value, choice: int) -> Value:
        x = jnp.reshape(x, (1,)) if x.ndim == 0 else x
        return apply(x, axis(x, choice))

    return step


def unary(apply: Callable[[Value], Value]) -> Callable[..., Value]:
    return lambda x, y, choice: apply(x)


def binary(apply: Callable[[Value, Value], Value]) -> Callable[..., Value]:
    return lambda x, y, choice: apply(*alike(x, y))


def counter(x: Value) -> Value:
    """Integers that depend on the shape only, so that no rounding decides about them."""
    return jnp.arange(x.size, dtype=np.int32).reshape(x.shape)


def indices(x: Value) -> Value:
    """The same integers, but computed from the values, so that they are batched where `x` is."""
    return counter(x) + (x > 1e30).astype(np.int32)


def positive_definite(x: Value) -> Value:
    factor = jnp.tanh(matrix(x))
    size = factor.shape[1]
    return factor.T @ factor / factor.shape[0] + 2 * jnp.eye(size, dtype=x.dtype)


def _window(x: Value, axis: int) -> Value:
    sizes = tuple(2 if d == axis else 1 for d in range(x.ndim))
    return lax.reduce_window(x, -jnp.inf, lax.max, sizes, (1,) * x.ndim, "SAME")


def _convolution(x: Value, y: Value, choice: int) -> Value:
    rows, kernel = matrix(x).T, jnp.tanh(vector(y))[:3]
    return lax.conv_general_dilated(
        rows[:, None, :], kernel[None, None, :], (1 + choice % 2,), "SAME"
    )[:, 0, :]


def _scan(x: Value, y: Value, choice: int) -> Value:
    rows = matrix(x)

    def body(carry: Value, row: Value) -> tuple[Value, Value]:
        new = jnp.tanh(carry * 0.9 + row + jnp.mean(y))
        return new, new * row

    last, stacked = lax.scan(body, jnp.zeros_like(rows[0]), rows, reverse=bool(choice % 2))
    return stacked + last


def _fori(x: Value, y: Value, choice: int) -> Value:
    x, y = alike(x, y)
    return lax.fori_loop(0, 1 + choice % 3, lambda i, c: jnp.sin(c) + y * (i + 1), x)


def _cond(x: Value, y: Value, choice: int) -> Value:
    x, y = alike(x, y)
    is_even = jnp.sum(counter(x)) % 2 == choice % 2
    return lax.cond(is_even, lambda a, b: jnp.sin(a) * b, lambda a, b: a - b, x, y)


def _switch(x: Value, y: Value, choice: int) -> Value:
    branches = [jnp.cos, lambda a: a * jnp.mean(y), lambda a: a]
    return lax.switch(jnp.sum(counter(x)) % 3 - 1 + choice % 2, branches, x)


# Functions to a vector or a matrix that meets itself along other axes.
_SOURCES: tuple[Callable[[Value], Value], ...] = (
    lambda x: jnp.sum(x, 1),
    lambda x: jnp.max(x, 0),
    lambda x: jnp.sqrt(1 + jnp.mean(x * x, 1)),
    lambda x: x @ jnp.tanh(x[0]),
    lambda x: nn.logsumexp(x, 0),
    lambda x: jnp.cumsum(x, 1)[:, 0],
    lambda x: jnp.tanh(x) @ jnp.tanh(x).T,
    lambda x: nn.softmax(x, 0),
)
_MEETINGS: tuple[Callable[[Value, Value], Value], ...] = (
    jnp.add,
    lambda a, b: jnp.sin(a) * b,
    lambda a, b: jnp.where(a > b + 0.0101, a, b),
    lambda a, b: (a - b) * jnp.tanh(a) + b,
)


def _meeting(x: Value, y: Value, choice: int) -> Value:
    """A vector against itself along the other axis, a matrix against itself or its transpose."""
    source = _SOURCES[(choice + x.size + y.size) % len(_SOURCES)](jnp.tanh(matrix(x)))
    size = source.shape[0]
    other = source.T if source.shape == (size, size) else source
    meet = _MEETINGS[(choice + y.ndim) % len(_MEETINGS)]
    if source.ndim == 1:
        return meet(source[:, None], source[None, :])
    if choice % 2:
        return meet(source[:, None, :4], other[None, :, :4])
    return meet(source, other) * jnp.mean(source, 1, keepdims=True)


OPERATIONS: dict[str, Callable[[Value, Value, int], Value]] = {
    # elementwise
    "sin": unary(jnp.sin),
    "cos": unary(jnp.cos),
    "tanh": unary(jnp.tanh),
    "logistic": unary(nn.sigmoid),
    "gauss": unary(lambda x: jnp.exp(-x * x)),
    "log1p": unary(lambda x: jnp.log1p(x * x)),
    "root": unary(lambda x: jnp.sqrt(1 + x * x)),
    "rsqrt": unary(lambda x: lax.rsqrt(1 + x * x)),
    "reciprocal": unary(lambda x: 1 / (2 + x * x)),
    "cube": unary(lambda x: jnp.tanh(x) ** 3),
    "atan": unary(jnp.arctan),
    "erf": unary(lax.erf),
    "expm1": unary(lambda x: jnp.expm1(jnp.tanh(x))),
    "abs": unary(lambda x: jnp.abs(x - 0.1234567)),
    "neg": unary(jnp.negative),
    "gelu": unary(nn.gelu),
    "stop_gradient": unary(lambda x: lax.stop_gradient(x) * 0.5),
    "digamma": unary(lambda x: lax.digamma(2 + x * x)),
    "lgamma": unary(lambda x: lax.lgamma(2 + x * x)),
    "counter": unary(lambda x: x + (counter(x) % 5 - (counter(x) >> 1)).astype(x.dtype) / 8),
    "half": unary(lambda x: jnp.tanh(x).astype(np.float32).astype(x.dtype)),
    "add": binary(jnp.add),
    "sub": binary(jnp.subtract),
    "mul": binary(jnp.multiply),
    "div": binary(lambda x, y: x / (1.5 + y * y)),
    "max": binary(lambda x, y: jnp.maximum(x, y + 0.0101)),
    "min": binary(lambda x, y: jnp.minimum(x, y - 0.0203)),
    "atan2": binary(lambda x, y: jnp.arctan2(x, 1.5 + y * y)),
    "pow": binary(lambda x, y: (1.5 + jnp.tanh(x)) ** jnp.tanh(y)),
    "where": binary(lambda x, y: jnp.where(counter(x) % 3 == 1, x, y)),
    "clamp": binary(lambda x, y: jnp.clip(x, -1.012345, 0.512345) + y),
    "complex": binary(lambda x, y: jnp.abs(jnp.exp(lax.complex(jnp.tanh(x), y)) + 3)),
    # along an axis
    "sum": ranked(lambda x, a: jnp.sum(x, a)),
    "weighted": unary(lambda x: x + 0.1 * jnp.sum(matrix(x) * jnp.cos(matrix(x)[0]))),
    "mean": ranked(lambda x, a: jnp.mean(x, a, keepdims=True)),
    "maximum": ranked(lambda x, a: jnp.max(x, a)),
    "largest": binary(lambda x, y: jnp.max(x * y + x) + jnp.sin(x * y)),
    "prod": ranked(lambda x, a: jnp.prod(jnp.tanh(x) + 1, a)),
    "logsumexp": ranked(lambda x, a: nn.logsumexp(x, a)),
    "softmax": ranked(lambda x, a: nn.softmax(x, a)),
    "variance": ranked(lambda x, a: jnp.var(x, a)),
    "cumsum": ranked(lambda x, a: jnp.cumsum(x, a)),
    "cumprod": ranked(lambda x, a: jnp.cumprod(jnp.tanh(x) + 1, a)),
    "cummax": ranked(lambda x, a: lax.cummax(x, a)),
    "cumlogsumexp": ranked(lambda x, a: lax.cumlogsumexp(x, a)),
    "sort": ranked(lambda x, a: jnp.sort(x, a)),
    "reverse": ranked(lambda x, a: jnp.flip(x, a)),
    "roll": ranked(lambda x, a: jnp.roll(x, 2, a)),
    "strided": ranked(lambda x, a: lax.slice_in_dim(x, 0, None, 2, a)),
    "take": ranked(lambda x, a: jnp.take(x, jnp.array([0, -1, 0]), a)),
    "take_along": ranked(lambda x, a: jnp.take_along_axis(x, counter(x) % x.shape[a], a)),
    "dynamic_slice": ranked(
        lambda x, a: lax.dynamic_slice_in_dim(x, jnp.sum(counter(x)) % 3, x.shape[a] // 2 + 1, a)
    ),
    "pool": ranked(_window),
    "top": ranked(lambda x, a: lax.top_k(jnp.moveaxis(x, a, -1), 1)[0]),
    "map": ranked(lambda x, a: lax.map(lambda row: row * jnp.sum(row), jnp.moveaxis(x, a, 0))),
    "associative": ranked(lambda x, a: lax.associative_scan(jnp.multiply, jnp.cos(x), axis=a)),
    "fourier": ranked(lambda x, a: jnp.fft.fft(x, axis=a).imag),
    "real_fourier": ranked(lambda x, a: jnp.abs(jnp.fft.rfft(x, axis=a) + 40)),
    # shapes
    "flatten": unary(vector),
    "matrix": unary(matrix),
    "transpose": unary(jnp.transpose),
    "expand": lambda x, y, choice: jnp.expand_dims(x, choice % (x.ndim + 1)),
    "element": lambda x, y, choice: vector(x)[choice % x.size :][:1].reshape(
        (1,) * (1 + choice % 3)
    ),
    "pad": unary(lambda x: lax.pad(x, jnp.zeros((), x.dtype), [(1, -1, 1)] * x.ndim)),
    "padded": lambda x, y, choice: lax.pad(
        x, jnp.asarray(0.3, x.dtype), [(choice % 2, 1, choice // 2 % 2)] * x.ndim
    ),
    "filled": lambda x, y, choice: jnp.full(9, 0.7, x.dtype).at[choice % 5].set(jnp.mean(x)),
    "concatenate": lambda x, y, choice: jnp.concatenate([vector(x), vector(y)]),
    "stack": binary(lambda x, y: jnp.stack([x, y], -1)),
    "outer": lambda x, y, choice: jnp.outer(vector(x)[:6], vector(y)[:6]),
    "meeting": _meeting,
    "triangle": unary(lambda x: jnp.tril(matrix(x))),
    "set": lambda x, y, choice: vector(x).at[choice % x.size].set(jnp.mean(y)),
    "scatter_add": lambda x, y, choice: vector(x).at[jnp.array([0, -1, 0])].add(jnp.sum(y)),
    "scatter_mul": lambda x, y, choice: (
        vector(x).at[jnp.array([choice % x.size])].multiply(jnp.mean(y))
    ),
    "dynamic_update": lambda x, y, choice: lax.dynamic_update_slice(
        vector(x), vector(y)[: min(x.size, y.size)], (jnp.sum(counter(y)) % 4,)
    ),
    # contractions, decompositions, loops
    "matmul": lambda x, y, choice: matrix(x).T @ matrix(alike(x, y)[1]),
    "einsum": lambda x, y, choice: jnp.einsum("i,j,j->i", *[vector(v)[:5] for v in (x, y, y)]),
    "convolution": _convolution,
    "cholesky": unary(lambda x: jnp.linalg.cholesky(positive_definite(x))),
    "solve": lambda x, y, choice: jnp.linalg.solve(
        positive_definite(x), jnp.ones(positive_definite(x).shape[0], x.dtype) * jnp.mean(y)
    ),
    "slogdet": unary(lambda x: jnp.linalg.slogdet(positive_definite(x))[1]),
    "scan": _scan,
    "fori": _fori,
    "cond": _cond,
    "switch": _switch,
    "jit": binary(axir.jit(lambda x, y: (jnp.sin(x) * y).T)),
    "checkpoint": binary(axir.checkpoint(lambda x, y: jnp.sin(jnp.cos(x) * y))),
    "vmap": ranked(lambda x, a: axir.vmap(lambda r: jnp.cumsum(r.ravel()), in_axes=a)(x)),
}
