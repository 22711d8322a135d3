"""Reductions, normalizations, cumulative ops and windows: what should run at memory speed."""

from __future__ import annotations

import numpy as np

from benchmarks.harness.program import floats, integers, uniform
from benchmarks.programs.groups import kernels

_SQUARE = {"1024": (1024, 1024), "odd": (77, 1003), "small": (8, 16)}


@kernels.program({"1e7": 10_000_000, "odd": 10_007, "one": 1, "empty": 0}, tiny=6, numpy=np.sum)
def total(jax, n):
    return lambda x: x.sum(), [floats(n)]


@kernels.program(
    {"4096x1024": (4096, 1024), "tall": (1_000_000, 3)},
    tiny=(4, 5),
    numpy=lambda x: x.sum(0),
    torch=lambda torch, x: x.sum(0),
)
def column_sum(jax, *shape):
    return lambda x: x.sum(0), [floats(*shape)]


@kernels.program({"4096x1024": (4096, 1024), "tall": (1_000_000, 3)}, tiny=(4, 5))
def row_sum(jax, *shape):
    return lambda x: x.sum(1), [floats(*shape)]


@kernels.program((64, 512, 64), tiny=(2, 3, 4))
def middle_sum(jax, *shape):
    return lambda x: x.sum(1), [floats(*shape)]


@kernels.program((64, 512, 64), tiny=(2, 3, 4))
def outer_axes_max(jax, *shape):
    return lambda x: x.max((0, 2)), [floats(*shape)]


@kernels.program({"1e6": (1, 1_000_000), "rows": (1000, 1000)}, tiny=(2, 5))
def argmax(jax, *shape):
    return lambda x: jax.numpy.argmax(x, 1), [floats(*shape)]


@kernels.program((1000, 1000), tiny=(4, 5))
def argmin_columns(jax, *shape):
    return lambda x: jax.numpy.argmin(x, 0), [floats(*shape)]


@kernels.program((2048, 1024), tiny=(4, 5), numpy=lambda x: (x.mean(0), x.var(0)))
def moments(jax, *shape):
    return lambda x: (x.mean(0), x.var(0)), [floats(*shape)]


@kernels.program((1000, 1000), tiny=(4, 5))
def logsumexp(jax, *shape):
    return lambda x: jax.nn.logsumexp(x, axis=1), [floats(*shape)]


@kernels.program(1_000_000, tiny=6)
def any_all_count(jax, n):
    jnp = jax.numpy
    return lambda x: (jnp.any(x > 9), jnp.all(x > -9), jnp.count_nonzero(x > 0)), [floats(n)]


@kernels.program(1_000_000, tiny=6)
def integer_sum(jax, n):
    return lambda x: (x.sum(), x.max(), x.min()), [integers(1000, n)]


@kernels.program(_SQUARE, tiny=(3, 4), torch=lambda torch, x: torch.softmax(x, -1))
def softmax(jax, *shape):
    return lambda x: jax.nn.softmax(x, axis=-1), [floats(*shape)]


@kernels.program((1024, 1024), tiny=(3, 4))
def softmax_gradient(jax, *shape):
    return jax.grad(lambda x, y: (jax.nn.softmax(x, axis=-1) * y).sum()), [
        floats(*shape),
        uniform(*shape),
    ]


def _normalize(jax):
    def normalize(x, scale, shift):
        centered = x - x.mean(-1, keepdims=True)
        variance = (centered**2).mean(-1, keepdims=True)
        return centered / jax.numpy.sqrt(variance + 1e-5) * scale + shift

    return normalize


@kernels.program(_SQUARE, tiny=(3, 4), cold=True)
def layer_norm(jax, rows, columns):
    return _normalize(jax), [floats(rows, columns), uniform(columns), floats(columns)]


@kernels.program(_SQUARE, tiny=(3, 4))
def layer_norm_gradient(jax, rows, columns):
    normalize = _normalize(jax)
    loss = lambda x, scale, shift: (normalize(x, scale, shift) ** 3).sum()  # noqa: E731
    args = [floats(rows, columns), uniform(columns), floats(columns)]
    return jax.grad(loss, argnums=(0, 1, 2)), args


@kernels.program((32, 28, 28, 64), tiny=(2, 3, 3, 2))
def batch_norm(jax, *shape):
    def normalize(x):
        mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
        return (x - mean) * jax.lax.rsqrt(variance + 1e-5)

    return normalize, [floats(*shape)]


@kernels.program((1024, 1024), tiny=(3, 4))
def cross_entropy_gradient(jax, rows, columns):
    def loss(logits, labels):
        chosen = jax.numpy.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1)
        return -chosen.mean()

    return jax.grad(loss), [floats(rows, columns), integers(columns, rows)]


@kernels.program({"1e6": 1_000_000, "odd": 10_007, "empty": 0}, tiny=6, numpy=np.cumsum)
def cumsum(jax, n):
    return jax.numpy.cumsum, [uniform(n)]


@kernels.program({"rows": (1000, 1000, 1), "columns": (1000, 1000, 0)}, tiny=(3, 4, 0))
def cumsum_of(jax, rows, columns, axis):
    return lambda x: jax.numpy.cumsum(x, axis), [uniform(rows, columns)]


@kernels.program(100_000, tiny=6)
def cummax(jax, n):
    return jax.lax.cummax, [floats(n)]


@kernels.program((300, 1000), tiny=(3, 4))
def cumprod_gradient(jax, *shape):
    return jax.grad(lambda x: jax.numpy.cumprod(x, 1).sum()), [uniform(*shape) + 0.5]


def _pool(jax, stride):
    def pool(x):
        window = (1, 2, 2, 1) if stride == 2 else (1, 3, 3, 1)
        return jax.lax.reduce_window(
            x, -np.inf, jax.lax.max, window, (1, stride, stride, 1), "VALID"
        )

    return pool


@kernels.program({"2x2": (16, 56, 32, 2), "3x3": (16, 55, 32, 1)}, tiny=(1, 6, 2, 2))
def max_pool(jax, batch, side, channels, stride):
    return _pool(jax, stride), [floats(batch, side, side, channels)]


@kernels.program((16, 56, 32), tiny=(1, 6, 2))
def max_pool_gradient(jax, batch, side, channels):
    pool = _pool(jax, 2)
    return jax.grad(lambda x: (pool(x) ** 2).sum()), [floats(batch, side, side, channels)]


@kernels.program((16, 56, 32), tiny=(1, 6, 2))
def average_pool(jax, batch, side, channels):
    def pool(x):
        ones = (1, 4, 4, 1)
        return jax.lax.reduce_window(x, 0.0, jax.lax.add, ones, ones, "VALID") / 16

    return pool, [floats(batch, side, side, channels)]


@kernels.program(100_000, tiny=20)
def bincount(jax, n):
    return lambda x: jax.numpy.bincount(x, length=256), [integers(256, n)]


@kernels.program(100_000, tiny=20)
def histogram(jax, n):
    def count(x):
        return jax.numpy.histogram(x, bins=64, range=(-4.0, 4.0))[0]

    return count, [floats(n)]


@kernels.program((500, 500, 32), tiny=(3, 4, 2))
def pairwise_distances(jax, rows, columns, width):
    def distances(x, y):
        return jax.numpy.sqrt(((x[:, None] - y[None]) ** 2).sum(-1))

    return distances, [floats(rows, width), floats(columns, width)]
