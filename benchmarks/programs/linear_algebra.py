"""Factorizations, solutions and transforms of matrices small and large."""

from __future__ import annotations

import numpy as np

from benchmarks.harness.program import floats
from benchmarks.programs.groups import kernels

_MATRICES = {"4x4": (4, 4), "32x32": (32, 32), "200x200": (200, 200), "2000-of-3x3": (2000, 3, 3)}


def _heavy(*shape: int) -> np.ndarray:
    """Returns matrices with a heavy diagonal, which no method has trouble with."""
    return floats(*shape) + 3 * shape[-1] * np.eye(shape[-1], dtype=np.float32)


def _symmetric(*shape: int) -> np.ndarray:
    matrix = floats(*shape)
    return (matrix + matrix.swapaxes(-1, -2)) / 2 + _heavy(*shape) * np.eye(shape[-1], dtype="f4")


@kernels.program(
    {**_MATRICES, "64x64": (64, 64), "empty": (0, 0)},
    tiny=(3, 3),
    cold=True,
    numpy=lambda a: np.linalg.solve(a, a[..., :1]),
    torch=lambda torch, a: torch.linalg.solve(a, a[..., :1]),
)
def solve(jax, *shape):
    return lambda a: jax.numpy.linalg.solve(a, a[..., :1]), [_heavy(*shape)]


@kernels.program(_MATRICES, tiny=(3, 3), numpy=np.linalg.cholesky)
def cholesky(jax, *shape):
    return lambda a: jax.lax.linalg.cholesky(a, symmetrize_input=False), [_symmetric(*shape)]


@kernels.program(_MATRICES, tiny=(3, 3), check=np.abs)
def qr(jax, *shape):
    return lambda a: tuple(jax.numpy.linalg.qr(a)), [_heavy(*shape)]


@kernels.program(_MATRICES, tiny=(3, 3), check=np.abs, tolerance=5e-3)
def eigh(jax, *shape):
    return lambda a: tuple(jax.numpy.linalg.eigh(a, symmetrize_input=False)), [_symmetric(*shape)]


@kernels.program({"64x64": (64, 64), "200-of-8x8": (200, 8, 8)}, tiny=(3, 3))
def singular_values(jax, *shape):
    return lambda a: jax.numpy.linalg.svd(a, compute_uv=False), [_heavy(*shape)]


@kernels.program({"100x100": (100, 100), "2000-of-3x3": (2000, 3, 3)}, tiny=(3, 3))
def inverse(jax, *shape):
    return jax.numpy.linalg.inv, [_heavy(*shape)]


@kernels.program({"100x100": (100, 100), "2000-of-3x3": (2000, 3, 3)}, tiny=(3, 3))
def log_determinant(jax, *shape):
    return lambda a: jax.numpy.linalg.slogdet(a)[1], [_heavy(*shape)]


@kernels.program((50, 50), tiny=(3, 3))
def log_determinant_gradient(jax, *shape):
    return jax.grad(lambda a: jax.numpy.linalg.slogdet(a)[1]), [_heavy(*shape)]


@kernels.program((300, 300, 50), tiny=(3, 3, 2))
def triangular_solve(jax, rows, columns, count):
    def solve(a, b):
        return jax.scipy.linalg.solve_triangular(a, b, lower=True)

    return solve, [_heavy(rows, columns), floats(rows, count)]


@kernels.program((1000, 20), tiny=(6, 2), tolerance=1e-3)
def least_squares(jax, rows, columns):
    return lambda a, b: jax.numpy.linalg.lstsq(a, b)[0], [floats(rows, columns), floats(rows)]


@kernels.program((40, 40), tiny=(3, 3))
def matrix_exponential(jax, *shape):
    return jax.scipy.linalg.expm, [floats(*shape) / 20]


@kernels.program((64, 64), tiny=(3, 3), tolerance=1e-3)
def matrix_power(jax, *shape):
    return lambda a: jax.numpy.linalg.matrix_power(a, 10), [floats(*shape) / 8]


@kernels.program(
    {
        "1000": (1000,),
        "20500": (20_500,),
        "65536": (65_536,),
        "odd": (9_973,),
        "rows": (256, 1024),
        "short-rows": (5000, 48),
    },
    tiny=(2, 6),
)
def fft(jax, *shape):
    return jax.numpy.fft.fft, [floats(*shape).astype(np.complex64)]


@kernels.program({"44100": (44_100,), "rows": (100, 1000)}, tiny=(2, 6))
def real_fft(jax, *shape):
    return lambda x: jax.numpy.fft.irfft(jax.numpy.fft.rfft(x) * 0.5), [floats(*shape)]


@kernels.program({"120x50": (120, 50)}, tiny=(4, 6))
def fft_columns(jax, *shape):
    return lambda x: jax.numpy.fft.fft(x, axis=0), [floats(*shape).astype(np.complex64)]


@kernels.program({"512x512": (512, 512), "300x500": (300, 500)}, tiny=(4, 6))
def fft2_filter(jax, *shape):
    def blur(x, response):
        return jax.numpy.fft.irfft2(jax.numpy.fft.rfft2(x) * response, s=shape)

    return blur, [floats(*shape), floats(shape[0], shape[1] // 2 + 1)]


@kernels.program({"1e5": (100_000, 1000), "20000": (20_000, 501)}, tiny=(20, 5))
def fft_convolution(jax, n, width):
    return lambda x, w: jax.scipy.signal.fftconvolve(x, w, mode="same"), [floats(n), floats(width)]
