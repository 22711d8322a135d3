"""Moving data: gathers, scatters, slices, transposes, concatenations."""

from __future__ import annotations

import numpy as np

from benchmarks.harness.program import floats, integers
from benchmarks.programs.groups import kernels


@kernels.program(
    {"rows": (10_000, 64, 20_000), "elements": (1_000_000, 1, 1_000_000), "none": (10, 4, 0)},
    tiny=(5, 3, 4),
    numpy=lambda x, rows: x[rows],
    torch=lambda torch, x, rows: x[rows.long()],
)
def gather(jax, rows, width, count):
    return lambda x, indices: x[indices], [floats(rows, width), integers(rows, count)]


@kernels.program((1000, 1000), tiny=(3, 4))
def take_along_axis(jax, rows, columns):
    args = [floats(rows, columns), integers(columns, rows, columns)]
    return lambda x, indices: jax.numpy.take_along_axis(x, indices, 1), args


@kernels.program(
    {"rows": (10_000, 64, 20_000), "elements": (100_000, 1, 300_000), "none": (10, 4, 0)},
    tiny=(5, 3, 4),
)
def scatter_add(jax, rows, width, count):
    args = [floats(rows, width), integers(rows, count), floats(count, width)]
    return lambda x, indices, updates: x.at[indices].add(updates), args


@kernels.program((100_000, 32, 1000), tiny=(7, 2, 3))
def segment_sum(jax, rows, width, segments):
    def add(x, indices):
        return jax.ops.segment_sum(x, indices, segments)

    return add, [floats(rows, width), integers(segments, rows)]


@kernels.program((20_000, 64, 4096), tiny=(5, 2, 3))
def embedding_gradient(jax, rows, width, tokens):
    loss = lambda table, indices: (table[indices] ** 2).sum()  # noqa: E731
    return jax.grad(loss), [floats(rows, width), integers(rows, tokens)]


@kernels.program((100_000, 100_000), tiny=(7, 3))
def scatter_set(jax, size, count):
    order = np.random.default_rng(0).permutation(size)[:count].astype(np.int32)

    def put(x, indices, updates):
        return x.at[indices].set(updates, unique_indices=True)

    return put, [floats(size), order, floats(count)]


@kernels.program(
    {"2048": (2048, 2048), "odd": (1001, 1999)},
    tiny=(2, 3),
    numpy=lambda x: np.ascontiguousarray(x.T),
)
def transpose(jax, *shape):
    return lambda x: x.T, [floats(*shape)]


@kernels.program((16, 128, 8, 64), tiny=(1, 2, 3, 2))
def transpose_heads(jax, *shape):
    return lambda x: x.transpose(0, 2, 1, 3), [floats(*shape)]


@kernels.program((1000, 1000), tiny=(2, 3))
def concatenate(jax, *shape):
    jnp = jax.numpy
    return lambda x, y: (jnp.concatenate([x, y]), jnp.concatenate([x, y], 1)), [
        floats(*shape),
        -floats(*shape),
    ]


@kernels.program((1000, 1000), tiny=(2, 3))
def pad(jax, *shape):
    return lambda x: jax.numpy.pad(x, ((1, 2), (3, 4))), [floats(*shape)]


@kernels.program((1000, 1000), tiny=(2, 3))
def roll_and_flip(jax, *shape):
    jnp = jax.numpy
    return lambda x: jnp.roll(x, 7, 1) + jnp.flip(x, 0), [floats(*shape)]


@kernels.program((100, 1000), tiny=(2, 3))
def tile_and_repeat(jax, *shape):
    jnp = jax.numpy
    return lambda x: (jnp.tile(x, (3, 2)), jnp.repeat(x, 3, axis=0)), [floats(*shape)]


@kernels.program((4096, 1000), tiny=(3, 4))
def one_hot(jax, rows, classes):
    return lambda labels: jax.nn.one_hot(labels, classes), [integers(classes, rows)]


@kernels.program((1000, 1000), tiny=(3, 3))
def lower_triangle(jax, *shape):
    return lambda x: jax.numpy.tril(x) + jax.numpy.diag(jax.numpy.diag(x)), [floats(*shape)]


@kernels.program((4096, 512), tiny=(5, 3))
def dynamic_update(jax, rows, columns):
    def update(x, row, start):
        row = row + jax.lax.dynamic_slice(x, (start, 0), (1, columns))
        return jax.lax.dynamic_update_slice(x, row, (start, 0))

    return update, [floats(rows, columns), floats(1, columns), integers(rows)]


@kernels.program((1000, 1000), tiny=(4, 6))
def strided_slices(jax, *shape):
    return lambda x: x[::2, 1::2] * x[1::2, ::2], [floats(*shape)]


@kernels.program((512, 512), tiny=(5, 6))
def laplacian(jax, *shape):
    def stencil(x):
        return x[2:, 1:-1] + x[:-2, 1:-1] + x[1:-1, 2:] + x[1:-1, :-2] - 4 * x[1:-1, 1:-1]

    return stencil, [floats(*shape)]


@kernels.program((256, 256, 100_000), tiny=(5, 6, 7))
def bilinear_sampling(jax, height, width, points):
    """Values of an image between its pixels, at many points."""
    jnp = jax.numpy

    def sample(image, place):
        low = jnp.floor(place).astype(int)
        part = place - low
        (i, j), (s, t) = low, part
        top = image[i, j] * (1 - t) + image[i, j + 1] * t
        bottom = image[i + 1, j] * (1 - t) + image[i + 1, j + 1] * t
        return top * (1 - s) + bottom * s

    place = np.abs(floats(2, points)) % 1 * np.float32(min(height, width) - 2)
    return sample, [floats(height, width), place]
