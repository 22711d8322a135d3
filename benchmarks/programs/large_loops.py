"""Loops with steps too large for one kernel."""

from __future__ import annotations

from benchmarks.harness.program import floats, weights
from benchmarks.programs.groups import loops


def _products(jax, steps):
    """All states of a chain of products: the stacked array is much larger than a step's result."""

    def run(x, w):
        def step(x, _):
            x = jax.numpy.tanh(x @ w)
            return x, x

        return jax.lax.scan(step, x, None, length=steps)[1]

    return run


@loops.program((100, 512), tiny=(3, 4), tolerance=1e-3)
def scan_products(jax, steps, n):
    return _products(jax, steps), [floats(n, n), weights(n, n)]


@loops.program((100, 512), tiny=(3, 4), tolerance=1e-3)
def scan_products_gradient(jax, steps, n):
    run = _products(jax, steps)
    return jax.grad(lambda x, w: (run(x, w) ** 2).mean(), argnums=(0, 1)), [
        floats(n, n),
        weights(n, n),
    ]


@loops.program((60, 1000), tiny=(3, 5))
def heat_trajectory(jax, steps, n):
    roll = jax.numpy.roll

    def step(x, _):
        around = roll(x, 1, 0) + roll(x, -1, 0) + roll(x, 1, 1) + roll(x, -1, 1)
        x = x + 0.1 * (around - 4 * x)
        return x, x

    return lambda x: jax.lax.scan(step, x, None, length=steps)[1], [floats(n, n)]


@loops.program((12, 64, 256), tiny=(2, 3, 4))
def layers_gradient(jax, layers, batch, width):
    """The gradient of a network with scanned layers."""

    def loss(w, x):
        x, _ = jax.lax.scan(lambda x, w: (x + jax.numpy.tanh(x @ w), None), x, w)
        return (x**2).mean()

    return jax.grad(loss), [weights(layers, width, width), floats(batch, width)]


@loops.program((400, 2000), tiny=(3, 4), tolerance=1e-3)
def filled_rows(jax, rows, width):
    """Each row of a table from the one before."""

    def fill(table, w):
        def step(i, table):
            return table.at[i].set(jax.numpy.tanh(table[i - 1] @ w))

        return jax.lax.fori_loop(1, rows, step, table)

    return fill, [floats(rows, width), weights(width, width)]


@loops.program((50, 1200), tiny=(2, 3), tolerance=1e-3)
def vector_steps(jax, steps, n):
    """A vector times a matrix that no cache of a core holds, again and again."""

    def run(x, w):
        return jax.lax.fori_loop(0, steps, lambda _, x: jax.numpy.tanh(x @ w), x)

    return run, [floats(n), weights(n, n)]


@loops.program(600, tiny=4, tolerance=1e-3)
def dominant_vector(jax, n):
    """Ends when the vector stands still: the condition is an array's."""
    jnp = jax.numpy

    def run(a, x):
        def step(state):
            x, _, count = state
            y = a @ (a.T @ x)
            y = y / jnp.linalg.norm(y)
            return y, jnp.abs(y - x).max(), count + 1

        def goes_on(state):
            return (state[1] > 1e-4) & (state[2] < 100)

        return jax.lax.while_loop(goes_on, step, (x, jnp.inf, 0))[0]

    return run, [weights(n, n), floats(n)]
