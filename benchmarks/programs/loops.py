"""Loops of every kind of state: scalars, vectors, matrices; nested, batched, differentiated."""

from __future__ import annotations

import numpy as np

from benchmarks.harness.program import floats, integers, seed, uniform, weights
from benchmarks.programs.groups import loops


@loops.program({"1000": 1000, "1e5": 100_000, "1": 1, "0": 0}, tiny=5, cold=True)
def scan_scalar(jax, n):
    def run(start, xs):
        return jax.lax.scan(lambda carry, x: (carry * 0.9 + x, carry), start, xs)

    return run, [floats(), floats(n)]


@loops.program(1000, tiny=5)
def scan_scalar_gradient(jax, n):
    def run(start, xs):
        step = lambda carry, x: (jax.numpy.sin(carry) * 0.9 + x, carry)  # noqa: E731
        return jax.lax.scan(step, start, xs)[0]

    return jax.grad(run, argnums=(0, 1)), [floats(), floats(n)]


@loops.program({"1000x64": (1000, 64), "100x10000": (100, 10_000)}, tiny=(4, 3))
def scan_vector(jax, n, width):
    def run(start, xs):
        return jax.lax.scan(lambda carry, x: (carry * 0.9 + x, carry.sum()), start, xs)

    return run, [floats(width), floats(n, width)]


@loops.program((200, 32), tiny=(4, 3))
def scan_matrix(jax, n, width):
    def run(start, xs):
        return jax.lax.scan(lambda carry, x: (carry @ x, carry[0]), start, xs)

    return run, [floats(width, width), weights(n, width, width) * 15]


@loops.program((300, 8), tiny=(3, 2))
def scan_reversed_outputs(jax, n, width):
    def run(xs):
        return jax.lax.scan(lambda carry, x: (carry + x, carry * x), xs[0], xs, reverse=True)

    return run, [floats(n, width)]


@loops.program((16, 500), tiny=(2, 4))
def scan_batched(jax, batch, n):
    def run(start, xs):
        return jax.lax.scan(lambda carry, x: (jax.numpy.tanh(carry + x), carry), start, xs)

    return jax.vmap(run), [floats(batch), floats(batch, n)]


@loops.program((30, 40), tiny=(2, 3))
def scan_in_scan(jax, outer, inner):
    def inner_step(carry, x):
        return carry * 0.5 + x, carry

    def run(xs):
        return jax.lax.scan(lambda c, row: jax.lax.scan(inner_step, c, row), 0.0, xs)

    return run, [floats(outer, inner)]


@loops.program((1000,), tiny=(6,))
def scan_with_branch(jax, n):
    def step(carry, x):
        carry = jax.lax.cond(x > 0, lambda: carry + x, lambda: carry * 0.5)
        return carry, carry

    return lambda xs: jax.lax.scan(step, 0.0, xs), [floats(n)]


@loops.program(1000, tiny=6)
def scan_with_switch(jax, n):
    """A machine with four instructions."""
    instructions = [lambda v: v + 1, lambda v: v * 0.5, lambda v: -v, lambda v: v * v % 7]

    def run(start, program):
        step = lambda carry, op: (jax.lax.switch(op, instructions, carry), carry)  # noqa: E731
        return jax.lax.scan(step, start, program)

    return run, [floats(), integers(4, n)]


@loops.program(10_000, tiny=5)
def fori_scalar(jax, n):
    def run(start, count):
        return jax.lax.fori_loop(0, count, lambda i, x: x * 0.999 + i, start)

    return run, [floats(), np.int32(n).reshape(())]


@loops.program((200, 1000), tiny=(3, 4))
def fori_update(jax, n, width):
    """Writes one row of a matrix in every step."""

    def run(table):
        return jax.lax.fori_loop(1, n, lambda i, t: t.at[i].set(t[i - 1] * 0.5 + t[i]), table)

    return run, [floats(n, width)]


@loops.program((50, 20), tiny=(2, 3))
def fori_nested(jax, outer, inner):
    def run(x):
        body = lambda i, v: jax.lax.fori_loop(0, inner, lambda j, u: u * 0.9 + j, v + i)  # noqa: E731
        return jax.lax.fori_loop(0, outer, body, x)

    return run, [floats()]


@loops.program({"": ()}, tiny=())
def newton_while(jax):
    def run(a):
        def step(state):
            x, _ = state
            new = 0.5 * (x + a / x)
            return new, jax.numpy.abs(new - x)

        return jax.lax.while_loop(lambda s: s[1] > 1e-6 * s[0], step, (a, a))[0]

    return run, [np.float32(12345.0).reshape(())]


@loops.program(10_000, tiny=5)
def newton_batched(jax, n):
    """Every lane stops on its own."""

    def root(a):
        def step(state):
            x, _, count = state
            new = x - (x**3 - a) / (3 * x * x)
            return new, jax.numpy.abs(new - x), count + 1

        start = (a, a, 0)
        return jax.lax.while_loop(lambda s: (s[1] > 1e-3) & (s[2] < 50), step, start)[0]

    return jax.vmap(root), [uniform(n) * 100 + 1]


@loops.program({"": (), "batch": (1000,)}, tiny=(2,))
def bisection(jax, *batch):
    def root(target):
        def step(_, bounds):
            low, high = bounds
            middle = (low + high) / 2
            below = middle**3 + middle < target
            return jax.numpy.where(below, middle, low), jax.numpy.where(below, high, middle)

        return jax.lax.fori_loop(0, 50, step, (0.0 * target, 0.0 * target + 10))[0]

    return (jax.vmap(root) if batch else root), [uniform(*batch) * 50]


@loops.program(5_000, tiny=6)
def collatz_batched(jax, n):
    def steps(start):
        def step(state):
            value, count = state
            return jax.numpy.where(value % 2 == 0, value // 2, 3 * value + 1), count + 1

        return jax.lax.while_loop(lambda s: s[0] > 1, step, (start, 0))[1]

    return jax.vmap(steps), [integers(10_000, n) + 1]


@loops.program((100, 200), tiny=(3, 4), tolerance=1e-2)
def mandelbrot(jax, height, width):
    jnp = jax.numpy

    def count(c):
        def step(state):
            z, steps = state
            return z * z + c, steps + 1

        def goes_on(state):
            z, steps = state
            return (z.real**2 + z.imag**2 < 4) & (steps < 50)

        return jax.lax.while_loop(goes_on, step, (0 * c, 0))[1]

    rows, columns = np.linspace(-1, 1, height), np.linspace(-2, 1, width)
    plane = (columns[None] + 1j * rows[:, None]).astype(np.complex64)
    # Whether a point on the edge escapes is a matter of the last bit.
    return lambda c: jnp.mean(jax.vmap(jax.vmap(count))(c).astype(np.float32)), [plane]


@loops.program((48, 20), tiny=(4, 3))
def greatest_common_divisors(jax, *shape):
    def gcd(a, b):
        return jax.lax.while_loop(lambda s: s[1] != 0, lambda s: (s[1], s[0] % s[1]), (a, b))[0]

    batched = jax.vmap(jax.vmap(gcd))
    return batched, [integers(10_000, *shape) + 1, integers(9999, *shape) + 1]


@loops.program(1000, tiny=10)
def linear_shift_register(jax, n):
    def step(state, _):
        bit = (state ^ (state >> 2) ^ (state >> 3) ^ (state >> 5)) & 1
        state = (state >> 1) | (bit << 15)
        return state, state

    return lambda start: jax.lax.scan(step, start, None, length=n), [np.uint32(0xACE1).reshape(())]


@loops.program((10_000, 16), tiny=(6, 2))
def associative_scan(jax, n, width):
    """A linear recurrence in parallel."""

    def combine(left, right):
        return left[0] * right[0], right[0] * left[1] + right[1]

    def run(decay, xs):
        return jax.lax.associative_scan(combine, (decay, xs))[1]

    return run, [uniform(n, width), floats(n, width)]


@loops.program((200, 64, 64), tiny=(2, 5, 6))
def heat_equation(jax, steps, *shape):
    jnp = jax.numpy

    def step(_, u):
        around = jnp.roll(u, 1, 0) + jnp.roll(u, -1, 0) + jnp.roll(u, 1, 1) + jnp.roll(u, -1, 1)
        return u + 0.1 * (around - 4 * u)

    return lambda u: jax.lax.fori_loop(0, steps, step, u), [floats(*shape)]


@loops.program((1000, 100), tiny=(5, 3))
def random_walks(jax, steps, walkers):
    """Keys that are split in every step."""

    def step(state, _):
        key, position = state
        key, part = jax.random.split(key)
        position = position + jax.random.normal(part, (walkers,))
        return (key, position), position.mean()

    def run(number):
        start = (jax.random.key(number), jax.numpy.zeros(walkers))
        return jax.lax.scan(step, start, None, length=steps)[1]

    return run, [seed()]


@loops.program((200, 500, 20), tiny=(2, 5, 3))
def gradient_descent_loop(jax, steps, rows, width):
    """A whole training in one call: logistic regression, its gradient in a fori_loop."""
    jnp = jax.numpy

    def loss(w, x, y):
        return jnp.mean(jnp.logaddexp(0, -y * (x @ w)))

    def train(w, x, y):
        return jax.lax.fori_loop(0, steps, lambda _, v: v - 0.1 * jax.grad(loss)(v, x, y), w)

    return train, [weights(width), floats(rows, width), np.sign(floats(rows))]


@loops.program(
    {"": (100, 32, 16, 1), "8-layers": (100, 32, 16, 8)}, tiny=(2, 3, 2, 5), tolerance=1e-3
)
def adam_loop(jax, steps, rows, width, layers):
    jnp = jax.numpy

    def loss(params, x, y):
        for layer in params:
            x = jnp.tanh(x @ layer["w"] + layer["b"])
        return jnp.mean((x.sum(1) - y) ** 2)

    def train(params, x, y):
        def step(state, i):
            params, mean, square = state
            gradient = jax.grad(loss)(params, x, y)
            mean = jax.tree_util.tree_map(lambda m, g: 0.9 * m + 0.1 * g, mean, gradient)
            square = jax.tree_util.tree_map(lambda s, g: 0.99 * s + 0.01 * g * g, square, gradient)
            params = jax.tree_util.tree_map(
                lambda p, m, s: p - 0.01 * m / (jnp.sqrt(s) + 1e-3), params, mean, square
            )
            return (params, mean, square), loss(params, x, y)

        zeros = jax.tree_util.tree_map(jnp.zeros_like, params)
        return jax.lax.scan(step, (params, zeros, zeros), jnp.arange(steps))

    params = [{"w": weights(width, width), "b": weights(width)} for _ in range(layers)]
    return train, [params, floats(rows, width), floats(rows)]
