"""Matrix products and convolutions, in every layout and dtype."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from benchmarks.harness.program import floats, integers, weights
from benchmarks.programs.groups import kernels


@kernels.program(
    {
        "3000": (3000, 3000, 3000),
        "1024": (1024, 1024, 1024),
        "256": (256, 256, 256),
        "64": (64, 64, 64),
        "8": (8, 8, 8),
        "odd": (127, 129, 131),
        "tall": (100_000, 16, 16),
        "deep": (16, 100_000, 16),
        "wide": (16, 16, 100_000),
        "empty": (16, 0, 16),
    },
    tiny=(2, 3, 4),
    numpy=np.matmul,
    torch=lambda torch, x, y: x @ y,
)
def matmul(jax, rows, inner, columns):
    return lambda x, y: x @ y, [floats(rows, inner), weights(inner, columns)]


@kernels.program({"1024": 1024, "200": 200}, tiny=3)
def matmul_transposed_right(jax, n):
    return lambda x, y: x @ y.T, [floats(n, n), weights(n, n)]


@kernels.program({"1024": 1024, "200": 200}, tiny=3)
def matmul_transposed_left(jax, n):
    return lambda x, y: x.T @ y, [floats(n, n), weights(n, n)]


@kernels.program({"4096": (4096, 4096), "odd": (1001, 999), "3": (3, 3)}, tiny=(3, 4))
def matvec(jax, rows, columns):
    return lambda x, y: x @ y, [floats(rows, columns), floats(columns)]


@kernels.program((4096, 4096), tiny=(3, 4))
def vecmat(jax, rows, columns):
    return lambda x, y: y @ x, [floats(rows, columns), floats(rows)]


@kernels.program(10_000_000, tiny=5, numpy=np.dot)
def dot(jax, n):
    return jax.numpy.dot, [floats(n), floats(n)]


@kernels.program((2000, 3000), tiny=(3, 4))
def outer(jax, rows, columns):
    return jax.numpy.outer, [floats(rows), floats(columns)]


@kernels.program({"64-of-128": (64, 128), "2000-of-8": (2000, 8), "5-of-33": (5, 33)}, tiny=(2, 3))
def batched_matmul(jax, batch, n):
    return jax.numpy.matmul, [floats(batch, n, n), weights(batch, n, n)]


@kernels.program(1024, tiny=3)
def matmul_bfloat16(jax, n):
    bfloat16 = ml_dtypes.bfloat16
    return lambda x, y: x @ y, [floats(n, n).astype(bfloat16), weights(n, n).astype(bfloat16)]


@kernels.program(512, tiny=3)
def matmul_float16(jax, n):
    return lambda x, y: x @ y, [floats(n, n, dtype=np.float16), weights(n, n).astype(np.float16)]


@kernels.program(512, tiny=3)
def matmul_int8(jax, n):
    def product(x, y):
        return jax.lax.dot(x, y, preferred_element_type=np.int32)

    return product, [integers(100, n, n, dtype=np.int8), integers(99, n, n, dtype=np.int8)]


@kernels.program(512, tiny=3, x64=True)
def matmul_float64(jax, n):
    return lambda x, y: x @ y, [floats(n, n, dtype=np.float64), floats(n, n, dtype=np.float64)]


@kernels.program((512, 1024, 1024), tiny=(2, 3, 4))
def dense_gelu(jax, rows, inner, columns):
    """A product with an epilogue: a bias, an activation and a sum."""
    return lambda x, w, b, r: jax.nn.gelu(x @ w + b) + r, [
        floats(rows, inner),
        weights(inner, columns),
        floats(columns),
        floats(rows, columns),
    ]


@kernels.program((8, 128, 8, 64), tiny=(1, 2, 2, 3))
def einsum_scores(jax, *shape):
    return lambda q, k: jax.numpy.einsum("bqhd,bkhd->bhqk", q, k), [floats(*shape), weights(*shape)]


def _convolve(jax, stride, padding, groups=1):
    def convolve(x, w):
        return jax.lax.conv_general_dilated(
            x,
            w,
            (stride, stride),
            padding,
            feature_group_count=groups,
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
        )

    return convolve


_IMAGES = {"56x64": (8, 56, 64, 64), "odd": (3, 31, 5, 7)}


@kernels.program(_IMAGES, tiny=(1, 5, 2, 3))
def convolution(jax, batch, side, channels, features):
    args = [floats(batch, side, side, channels), weights(3, 3, channels, features)]
    return _convolve(jax, 1, "SAME"), args


@kernels.program((4, 56, 32, 32), tiny=(1, 5, 2, 3))
def convolution_gradient(jax, batch, side, channels, features):
    convolve = _convolve(jax, 1, "SAME")
    args = [floats(batch, side, side, channels), weights(3, 3, channels, features)]
    return jax.grad(lambda x, w: (convolve(x, w) ** 2).mean(), argnums=(0, 1)), args


@kernels.program((4, 112, 3, 32), tiny=(1, 7, 2, 3))
def convolution_strided(jax, batch, side, channels, features):
    args = [floats(batch, side, side, channels), weights(7, 7, channels, features)]
    return _convolve(jax, 2, "SAME"), args


@kernels.program((4, 56, 64), tiny=(1, 5, 2))
def convolution_depthwise(jax, batch, side, channels):
    args = [floats(batch, side, side, channels), weights(3, 3, 1, channels)]
    return _convolve(jax, 1, "SAME", channels), args


@kernels.program((8, 28, 128, 64), tiny=(1, 4, 2, 3))
def convolution_pointwise(jax, batch, side, channels, features):
    args = [floats(batch, side, side, channels), weights(1, 1, channels, features)]
    return _convolve(jax, 1, "VALID"), args


@kernels.program((4, 28, 64, 32), tiny=(1, 4, 2, 3))
def convolution_transposed(jax, batch, side, channels, features):
    def convolve(x, w):
        return jax.lax.conv_transpose(
            x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )

    return convolve, [floats(batch, side, side, channels), weights(3, 3, channels, features)]


@kernels.program((100_000, 63), tiny=(20, 3), numpy=lambda x, w: np.convolve(x, w, "same"))
def convolve_signal(jax, n, width):
    return lambda x, w: jax.numpy.convolve(x, w, mode="same"), [floats(n), weights(width)]
