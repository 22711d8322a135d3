"""Programs as JAX's users write them, with arguments, to test the import of StableHLO."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy as jsp
import numpy as np

_GENERATOR = np.random.default_rng(0)


@dataclasses.dataclass(frozen=True)
class JaxProgram:
    """A function of arrays, and arguments for it.

    Attributes:
        function: From arrays to an array or a tuple of arrays.
        arguments: Its arguments.
        is_differentiable: Whether gradients are compared.
        tolerance: The allowed difference of values, relative to the largest one.
    """

    function: Callable[..., Any]
    arguments: tuple[np.ndarray, ...]
    is_differentiable: bool = True
    tolerance: float = 2e-4


PROGRAMS: dict[str, JaxProgram] = {}


def program(*arguments: Any, **options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        arrays = tuple(map(np.asarray, arguments))
        PROGRAMS[function.__name__] = JaxProgram(function, arrays, **options)
        return function

    return register


def draw(*shape: int) -> np.ndarray:
    return _GENERATOR.standard_normal(shape).astype(np.float32)


def definite(size: int) -> np.ndarray:
    root = draw(size, size)
    return root @ root.T + size * np.eye(size, dtype=np.float32)


# Networks ---------------------------------------------------------------------------------------


def convolve(x: Any, w: Any, stride: int = 1) -> Any:
    layout = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=layout)


@program(draw(2, 6, 6, 2), draw(3, 3, 2, 3), draw(3), draw(3, 3, 3, 3))
def resnet_block(x, w1, scale, w2):
    h = convolve(x, w1, 2)
    h = (h - h.mean((0, 1, 2))) * jax.lax.rsqrt(h.var((0, 1, 2)) + 1e-5) * scale
    h = h + convolve(jax.nn.relu(h), w2)
    h = jax.lax.reduce_window(h, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 1, 1, 1), "VALID")
    h = jax.lax.reduce_window(h, 0.0, jax.lax.add, (1, 2, 2, 1), (1, 1, 1, 1), "SAME")
    return jax.nn.log_softmax(h.mean((1, 2)))


@program(draw(2, 4, 6), draw(6, 18), draw(6, 6), draw(6, 8), draw(8, 6))
def transformer_layer(x, attention, output, up, down):
    def normalized(x):
        centred = x - x.mean(-1, keepdims=True)
        return centred / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)

    def heads(x):
        return x.reshape(2, 4, 2, 3).transpose(0, 2, 1, 3)

    q, k, v = map(heads, jnp.split(normalized(x) @ attention, 3, -1))
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / 3**0.5
    scores = jnp.where(jnp.tril(jnp.ones((4, 4), bool)), scores, -1e9)
    mixed = jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores), v)
    x = x + mixed.transpose(0, 2, 1, 3).reshape(2, 4, 6) @ output
    return x + jax.nn.gelu(normalized(x) @ up) @ down


@program(draw(5, 2, 3), draw(3, 8), draw(2, 8))
def lstm(xs, inward, across):
    def cell(state, x):
        h, c = state
        i, f, g, o = jnp.split(x @ inward + h @ across, 4, -1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    zeros = jnp.zeros((2, 2))
    (h, _), hs = jax.lax.scan(cell, (zeros, zeros), xs)
    return hs, h


@program(draw(1, 2, 6, 6), draw(3, 2, 3, 3))
def gradients_of_convolutions(x, w):
    def loss(x, w):
        pads = [(1, 2), (2, 1)]
        y = jax.lax.conv_general_dilated(x, w, (2, 1), pads, (1, 2), (2, 1))
        return (y**2).sum()

    def pooled(x):
        window = (1, 1, 3, 3), (1, 1, 2, 2), "SAME"
        return (jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, *window) ** 2).sum()

    return *jax.grad(loss, (0, 1))(x, w), jax.grad(pooled)(x)


# Control flow -----------------------------------------------------------------------------------


@program(draw(3), draw(5, 3), draw(3, 3))
def scans(h, xs, w):
    def step(h, x):
        h = jnp.tanh(h @ w + x)
        return h, (h.sum(), h * 2)

    forward, ys = jax.lax.scan(step, h, xs)
    backward, zs = jax.lax.scan(step, h, xs, reverse=True)
    return forward, *ys, backward, *zs


@program(draw(4, 3))
def gradient_of_a_scan(xs):
    def loss(xs):
        c, ys = jax.lax.scan(lambda c, x: (jnp.sin(c + x), c * x), jnp.zeros(3), xs)
        return (c**2).sum() + ys.sum()

    return jax.grad(loss)(xs)


@program(draw(4))
def counted_loops(x):
    up = jax.lax.fori_loop(0, 4, lambda i, c: jnp.sin(c) * (i + 1) + x[i], x)
    return up, jax.lax.fori_loop(3, 5, lambda i, c: c * i, x[0])


@program(np.abs(draw(3)) + 1, is_differentiable=False)
def open_loop(x):
    return jax.lax.while_loop(lambda c: c[1].sum() < 100, lambda c: (c[0] + 1, c[1] * 1.5), (0, x))


@program(draw(3), np.int32(7), np.int32(-3))
def choices(x, high, low):
    branches = [jnp.sin, jnp.exp, lambda x: x * 2]
    chosen = [jax.lax.switch(i, branches, x) for i in (high, low)]
    return *chosen, jax.lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x)


@program(draw(3, 4), draw(4))
def vectorized(x, y):
    doubled = jax.vmap(lambda r: jax.lax.cond(r.sum() > 0, lambda r: r * 2, lambda r: r - y, r))
    return doubled(x), jax.vmap(jnp.linalg.norm)(x), jax.vmap(jnp.convolve, (0, None))(x, y)


# Linear algebra ---------------------------------------------------------------------------------


@program(definite(3), draw(3, 2))
def equations(a, b):
    lower = jnp.linalg.cholesky(a)
    substituted = jsp.linalg.solve_triangular(a, b, lower=True, trans=1)
    return jnp.linalg.solve(a, b), lower, jnp.linalg.inv(a), jnp.linalg.det(a), substituted


@program(definite(2)[None].repeat(2, 0), draw(2, 2, 2))
def stacked_equations(a, b):
    return jnp.linalg.solve(a, b), jnp.linalg.cholesky(a)


@program(draw(4, 3), definite(3))
def decompositions(a, s):
    q, r = jnp.linalg.qr(a)
    left, singular, right = jnp.linalg.svd(a, full_matrices=False)
    eigenvalues, vectors = jnp.linalg.eigh(s)
    rebuilt = (vectors * jnp.sin(eigenvalues)) @ vectors.T
    return q, r, (left * singular**2) @ right, singular, eigenvalues, rebuilt


@program(draw(3, 3), is_differentiable=False)
def general_matrices(a):
    q, r = jnp.linalg.qr(a[:, :2], mode="complete")
    triangle = jsp.linalg.schur(a)[0]
    tridiagonal = jax.lax.linalg.tridiagonal(a + a.T)[1:3]
    return jnp.linalg.eigvals(a), q @ r, triangle, jsp.linalg.hessenberg(a), *tridiagonal


@program(draw(4), draw(4), draw(4), draw(4, 2))
def banded_equations(lower, middle, upper, b):
    return jax.lax.linalg.tridiagonal_solve(lower, middle + 4, upper, b)


# Arrays -----------------------------------------------------------------------------------------


@program(draw(3, 4), draw(3, 4))
def sorts(x, y):
    pairs = jax.lax.sort((x.astype(int), y, x), num_keys=2)
    top = jax.lax.top_k(x, 2)
    complexes = jnp.sort(x + 1j * y)
    down = jnp.sort(x, descending=True)
    return jnp.sort(x, 0), jnp.argsort(x, 1), *pairs, *top, complexes.real, down, jnp.median(y)


@program(draw(4, 3) + 0.1)
def running(x):
    maxima = jax.lax.cummax(x, reverse=True)
    scanned = jax.lax.associative_scan(jnp.multiply, x)
    return jnp.cumsum(x, 0), jnp.cumprod(x, 1), maxima, jax.lax.cumlogsumexp(x), scanned


@program(draw(5, 4), np.array([0, 3, 3, -1, 9], np.int32))
def indexed(x, i):
    best = jnp.argmax(x, 1, keepdims=True)
    written = x.at[i].add(1.5), x.at[i].mul(2.0), x.at[i].max(0.0), x.at[i, 2].min(0.1)
    block = jax.lax.dynamic_slice(x, (i[1], 0), (2, 2))
    placed = jax.lax.dynamic_update_slice(x, x[:2, :2], (i[1], 1))
    taken = x[i[:4]], jnp.take(x, i, 0, mode="clip"), jnp.take_along_axis(x, best, 1), x[::2, ::-1]
    return *written, *taken, block, placed, x.at[i[:3]].set(0), jax.ops.segment_sum(x, i, 4)


@program(draw(3, 4))
def reductions(x):
    mixed = jax.lax.reduce(x, np.float32(1), lambda a, b: a * b + a + b, (0,))
    zeros = np.float32(0), np.float32(1)
    both = jax.lax.reduce((x, x), zeros, lambda a, b: (a[0] + b[0], a[1] * b[1]), (1,))
    numbers = jnp.argmax(x, 1), jnp.argmin(x), (x > 0).any(0), (x > 0).all(1)
    return x.sum(), x.max(0), x.min(1), x.prod(), x.std(), *numbers, mixed, *both


@program(np.abs(draw(5)) * 0.2 + 0.1)
def special_functions(x):
    s = jsp.special
    errors = s.erf(x), s.erfc(x), s.erfinv(x), s.ndtri(x)
    gammas = s.gammaln(x), s.digamma(x), s.polygamma(1, x), s.zeta(3.0, x)
    bessel = s.i0e(x), s.i1e(x)
    inverse = jnp.arcsin(x), jnp.arccosh(x + 2), jnp.arctan2(x, 1 - x)
    return *errors, *gammas, *bessel, *inverse, jnp.cbrt(x), jnp.tan(x), jnp.power(x, x)


@program(draw(3) + 1j * draw(3), draw(4, 5))
def transforms(z, x):
    spectra = jnp.fft.rfft(x).real, jnp.abs(jnp.fft.fft2(x)), jnp.fft.irfft(jnp.fft.rfft(x), 5)
    return *spectra, jnp.abs(z), (z**2).imag, jnp.exp(z).real, jnp.angle(z), jnp.fft.ifft(z).imag


@program(draw(4).astype(np.float16), draw(4).astype(jnp.bfloat16))
def half_precision(a, b):
    return a.sum(), b.sum(), jnp.exp(b), jnp.dot(a, a), jnp.cumsum(a), jax.nn.softmax(b)


@program(np.arange(6, dtype=np.int32), np.arange(6, dtype=np.uint8), is_differentiable=False)
def integers(i, u):
    bits = jnp.bitwise_count(u), jax.lax.clz(i), i << 1, u >> 1, ~u, jnp.packbits(u > 2)
    parts = i // 3, i % 4, i**3, -u, jnp.sign(i - 3), jnp.gcd(i, 4)
    return *bits, *parts, i.astype(bool), jax.lax.bitcast_convert_type(i, jnp.float32)


@program(np.array([1, 2], np.uint32), is_differentiable=False)
def random_numbers(words):
    key = jax.random.wrap_key_data(words)
    first, second = jax.random.split(key)
    folded = jax.random.key_data(jax.random.fold_in(key, 3))
    chosen = jax.random.randint(first, (5,), 0, 10), jax.random.permutation(second, 6)
    return jax.random.normal(first, (3, 2)), jax.random.uniform(second, (4,)), folded, *chosen
