"""Elementwise kernels, of every size: empty, one element, odd, large, huge."""

from __future__ import annotations

import numpy as np

from benchmarks.harness.program import floats, integers, seed, uniform
from benchmarks.programs.groups import kernels

_SIZES = {"1e6": 1_000_000, "odd": 10_007, "one": 1, "empty": 0}


def _torch_selu(torch, x):
    return 1.05 * torch.where(x > 0, x, 1.67 * torch.exp(x) - 1.67)


@kernels.program(
    _SIZES,
    tiny=5,
    cold=True,
    numpy=lambda x: 1.05 * np.where(x > 0, x, np.float32(1.67) * np.exp(x) - np.float32(1.67)),
    torch=_torch_selu,
)
def selu(jax, n):
    jnp = jax.numpy
    return lambda x: 1.05 * jnp.where(x > 0, x, 1.67 * jnp.exp(x) - 1.67), [floats(n)]


@kernels.program({"1e6": 1_000_000, "rows": (3, 333_333)}, tiny=6)
def gelu(jax, *shape):
    return jax.nn.gelu, [floats(*shape)]


@kernels.program(1_000_000, tiny=6)
def gelu_gradient(jax, n):
    return jax.grad(lambda x: jax.nn.gelu(x).sum()), [floats(n)]


@kernels.program(64_000_000, tiny=6)
def huge_add(jax, n):
    return lambda x, y: x + y, [floats(n), floats(n)]


@kernels.program(1_000_000, tiny=6)
def polynomial(jax, n):
    coefficients = [0.1, -0.2, 0.3, -0.4, 0.5, -0.6, 0.7, -0.8]

    def horner(x):
        total = x
        for coefficient in coefficients:
            total = total * x + coefficient
        return total

    return horner, [uniform(n)]


@kernels.program(1_000_000, tiny=6)
def transcendental(jax, n):
    jnp = jax.numpy
    return lambda x: jnp.sin(x) * jnp.exp(-x) + jnp.log1p(jnp.abs(x)) * jnp.tanh(x), [floats(n)]


@kernels.program(300_000, tiny=6)
def special_functions(jax, n):
    special = jax.scipy.special
    return lambda x: special.erf(x) + special.gammaln(x + 2) + special.digamma(x + 1), [uniform(n)]


@kernels.program(1_000_000, tiny=6)
def power(jax, n):
    return lambda x, y: x**y, [uniform(n), floats(n)]


@kernels.program(1_000_000, tiny=6)
def black_scholes(jax, n):
    jnp, distribution = jax.numpy, jax.scipy.special.ndtr

    def price(spot, strike, time):
        root = 0.2 * jnp.sqrt(time)
        upper = (jnp.log(spot / strike) + (0.01 + 0.02) * time) / root
        discount = jnp.exp(-0.01 * time)
        return spot * distribution(upper) - strike * discount * distribution(upper - root)

    return price, [uniform(n) + 0.5, uniform(n) + 0.6, uniform(n) + 0.1]


@kernels.program(1_000_000, tiny=6)
def bfloat16_scale(jax, n):
    bfloat16 = jax.numpy.bfloat16
    return lambda x: (x.astype(bfloat16) * 2 + 1).astype(bfloat16), [floats(n)]


@kernels.program(1_000_000, tiny=6)
def quantize_int8(jax, n):
    jnp = jax.numpy

    def quantize(x):
        scale = jnp.max(jnp.abs(x)) / 127
        return jnp.clip(jnp.round(x / scale), -127, 127).astype(jnp.int8), scale

    return quantize, [floats(n)]


@kernels.program(1_000_000, tiny=6)
def integer_hash(jax, n):
    def mix(x):
        x = (x ^ (x >> 16)) * np.uint32(0x45D9F3B)
        x = (x ^ (x >> 16)) * np.uint32(0x45D9F3B)
        return x ^ (x >> 16)

    return mix, [integers(2**31, n, dtype=np.uint32)]


@kernels.program(1_000_000, tiny=6)
def integer_division(jax, n):
    return lambda x, y: (x // y, x % y), [integers(10**6, n), integers(999, n) + 1]


@kernels.program(500_000, tiny=6)
def complex_product(jax, n):
    jnp = jax.numpy
    return lambda z, w: z * w + jnp.conj(z), [floats(n) + 1j * floats(n), floats(n) * 1j]


@kernels.program(500_000, tiny=6, x64=True)
def float64_exp(jax, n):
    return lambda x: jax.numpy.exp(x) * x, [floats(n, dtype=np.float64)]


@kernels.program((1000, 1001), tiny=(3, 4), numpy=lambda x, y, z: x[:, None] * y + z)
def broadcast(jax, rows, columns):
    return lambda x, y, z: x[:, None] * y + z, [floats(rows), floats(columns), floats(rows, 1)]


@kernels.program({"50": 50}, tiny=3)
def small_ops(jax, n):
    """Many small ops that depend on each other: what one dispatch too many costs."""
    jnp = jax.numpy

    def chain(x, y):
        for _ in range(10):
            x, y = jnp.sin(x) + y.mean(), jnp.cos(y) * x.max()
        return x, y

    return chain, [floats(n), uniform(n)]


@kernels.program(1_000_000, tiny=6)
def random_normal(jax, n):
    return lambda number: jax.random.normal(jax.random.key(number), (n,)), [seed()]


@kernels.program({"1e6": 1_000_000, "odd": 4_999}, tiny=7)
def random_uniform(jax, n):
    return lambda number: jax.random.uniform(jax.random.key(number), (n,)), [seed()]


@kernels.program((1000, 1000), tiny=(3, 5))
def dropout(jax, *shape):
    def drop(number, x):
        kept = jax.random.bernoulli(jax.random.key(number), 0.9, x.shape)
        return jax.numpy.where(kept, x / 0.9, 0)

    return drop, [seed(), floats(*shape)]


@kernels.program((1000, 128), tiny=(3, 5))
def random_categorical(jax, *shape):
    return lambda number, x: jax.random.categorical(jax.random.key(number), x), [
        seed(),
        floats(*shape),
    ]


@kernels.program(100_000, tiny=70, tolerance=1e-3)
def random_gamma(jax, n):
    """Numbers that are drawn until they are accepted."""
    return lambda number: jax.random.gamma(jax.random.key(number), 2.5, (n,)), [seed()]


@kernels.program(100_000, tiny=70, tolerance=1e-3)
def random_beta(jax, n):
    return lambda number: jax.random.beta(jax.random.key(number), 2.0, 3.0, (n,)), [seed()]


@kernels.program({"few": (4.5, 100_000), "many": (50.0, 100_000)}, tiny=(4.5, 6))
def random_poisson(jax, rate, n):
    return lambda number: jax.random.poisson(jax.random.key(number), rate, (n,)), [seed()]


@kernels.program(100_000, tiny=6)
def random_binomial(jax, n):
    return lambda number: jax.random.binomial(jax.random.key(number), 20, 0.3, (n,)), [seed()]


@kernels.program(100_000, tiny=6)
def random_integers(jax, n):
    return lambda number: jax.random.randint(jax.random.key(number), (n,), 0, 1000), [seed()]
