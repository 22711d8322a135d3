"""Solvers of the libraries: differential equations, minima, sparse systems, Markov chains."""

from __future__ import annotations

import importlib
from types import ModuleType

import numpy as np

from benchmarks.harness.program import floats, seed, uniform
from benchmarks.programs.groups import loops


def _module(jax: ModuleType, name: str) -> ModuleType:
    """Returns a module of the library that `import` of the library does not load."""
    return importlib.import_module(f"{jax.__name__}.{name}")


def _van_der_pol(jax, stiffness):
    def field(y, t):
        return jax.numpy.stack([y[1], stiffness * (1 - y[0] ** 2) * y[1] - y[0]])

    return field


@loops.program({"": (50, 2.0)}, tiny=(3, 1.0), tolerance=1e-3, cold=True)
def odeint(jax, points, stiffness):
    solve = _module(jax, "experimental.ode").odeint
    field = _van_der_pol(jax, stiffness)
    return lambda y, t: solve(field, y, t), [
        np.float32([2.0, 0.1]),
        np.linspace(0, 10, points, dtype=np.float32),
    ]


@loops.program((20, 8, 32), tiny=(3, 2, 3), tolerance=1e-2, cold=True)
def odeint_gradient(jax, points, width, hidden):
    """A field that is a network, and the gradient of its parameters by the adjoint equation."""
    solve = _module(jax, "experimental.ode").odeint

    def loss(weights, y, t):
        def field(y, t, first, second):
            return jax.numpy.tanh(y @ first) @ second - y

        return (solve(field, y, t, *weights) ** 2).sum()

    weights = [floats(width, hidden) / 5, floats(hidden, width) / 5]
    return jax.grad(loss), [weights, floats(width), np.linspace(0, 2, points, dtype=np.float32)]


@loops.program({"batched": (64, 2.0)}, tiny=(2, 1.0), tolerance=1e-3)
def odeint_of_many(jax, batch, stiffness):
    solve = _module(jax, "experimental.ode").odeint
    field = _van_der_pol(jax, stiffness)
    run = jax.vmap(lambda y, t: solve(field, y, t)[-1], in_axes=(0, None))
    return run, [floats(batch, 2), np.linspace(0, 5, 10, dtype=np.float32)]


@loops.program(
    {"bfgs": (20, "BFGS"), "lbfgs": (100, "l-bfgs-experimental-do-not-rely-on-this")},
    tiny=(3, "BFGS"),
    tolerance=1e-2,
    cold=True,
)
def minimize(jax, width, method):
    find = _module(jax, "scipy.optimize").minimize

    def run(a, y):
        def loss(w):
            return jax.numpy.logaddexp(0, -y * (a @ w)).mean() + 0.01 * (w**2).sum()

        return find(loss, a[0] * 0, method=method).x

    return run, [floats(300, width), np.sign(floats(300))]


def _system(size):
    half = floats(size, size)
    return [half @ half.T / size + np.eye(size, dtype=np.float32), floats(size)]


@loops.program({"64": (64, "cg"), "512": (512, "cg")}, tiny=(4, "cg"), tolerance=1e-3, cold=True)
def sparse_cg(jax, size, name):
    solve = getattr(_module(jax, "scipy.sparse.linalg"), name)
    return lambda a, b: solve(lambda x: a @ x, b)[0], _system(size)


@loops.program(64, tiny=4, tolerance=1e-2)
def sparse_cg_gradient(jax, size):
    solve = _module(jax, "scipy.sparse.linalg").cg
    return jax.grad(lambda a, b: solve(lambda x: a @ x, b)[0].sum(), (0, 1)), _system(size)


@loops.program(64, tiny=4, tolerance=1e-3)
def sparse_gmres(jax, size):
    solve = _module(jax, "scipy.sparse.linalg").gmres
    return lambda a, b: solve(lambda x: a @ x, b)[0], _system(size)


@loops.program(64, tiny=4, tolerance=1e-3)
def sparse_bicgstab(jax, size):
    solve = _module(jax, "scipy.sparse.linalg").bicgstab
    return lambda a, b: solve(lambda x: a @ x, b)[0], _system(size)


def _logistic_density(jax):
    def density(x, inputs, labels):
        scores = labels * (inputs @ x)
        return -jax.numpy.logaddexp(0, -scores).sum() - 0.5 * (x**2).sum()

    return density


@loops.program({"": (50, 100, 8, 6)}, tiny=(2, 4, 2, 3), tolerance=5e-2, cold=True)
def nuts(jax, draws, rows, width, depth):
    """No-U-Turn sampling; trees grow in a loop, as in Phan et al., 2019 (arXiv:1912.11554)."""
    jnp, lax, random = jax.numpy, jax.lax, jax.random
    density, size = _logistic_density(jax), 0.1

    def is_turning(left, right, total):
        middle = total - (left + right) / 2
        return (left @ middle <= 0) | (right @ middle <= 0)

    def draw(start, key, slope, height):
        def leap(state, direction):
            x, p, g = state
            p = p + direction * size / 2 * g
            x = x + direction * size * p
            g = slope(x)
            return x, p + direction * size / 2 * g, g

        def subtree(key, edge, direction, level):
            """Doubles the path at one end, and looks for turns in each of the smaller trees."""

            def body(state):
                number, key, edge, total, weight, best, kept_p, kept_total, _ = state
                key, choose = random.split(key)
                edge = leap(edge, direction)
                total = total + edge[1]
                new = height(edge[0]) - edge[1] @ edge[1] / 2 - energy
                weight = jnp.logaddexp(weight, new)
                best = jnp.where(jnp.log(random.uniform(choose)) < new - weight, edge[0], best)
                last = lax.population_count(number >> 1)
                is_even = number % 2 == 0
                kept_p = jnp.where(is_even, kept_p.at[last].set(edge[1]), kept_p)
                kept_total = jnp.where(is_even, kept_total.at[last].set(total), kept_total)
                first = last - lax.population_count(number & ~(number + 1)) + 1

                def look(state):
                    at, _ = state
                    inner = total - kept_total[at] + kept_p[at]
                    return at - 1, is_turning(kept_p[at], edge[1], inner)

                turns = lax.while_loop(
                    lambda s: (s[0] >= first) & ~s[1], look, (last, is_even & False)
                )[1]
                turns = ~is_even & turns | (new < -1000)
                return number + 1, key, edge, total, weight, best, kept_p, kept_total, turns

            none = jnp.zeros((depth, width))
            begin = (0, key, edge, none[0], -jnp.inf, edge[0], none, none, False)
            return lax.while_loop(lambda s: (s[0] < 1 << level) & ~s[-1], body, begin)[2:]

        def grow(state):
            level, key, left, right, total, weight, best, _ = state
            key, where, inside, choose = random.split(key, 4)
            goes_right = random.bernoulli(where)
            direction = jnp.where(goes_right, 1.0, -1.0)
            edge = jax.tree.map(lambda a, b: jnp.where(goes_right, b, a), left, right)
            edge, added, gained, found, *_, turns = subtree(inside, edge, direction, level)
            left = jax.tree.map(lambda a, b: jnp.where(goes_right, a, b), left, edge)
            right = jax.tree.map(lambda a, b: jnp.where(goes_right, b, a), right, edge)
            is_taken = ~turns & (jnp.log(random.uniform(choose)) < gained - weight)
            best, total = jnp.where(is_taken, found, best), total + added
            turns = turns | is_turning(left[1], right[1], total)
            return level + 1, key, left, right, total, jnp.logaddexp(weight, gained), best, turns

        key, fling = random.split(key)
        p = random.normal(fling, (width,))
        edge = (start, p, slope(start))
        energy = height(start) - p @ p / 2
        begin = (0, key, edge, edge, p, 0.0, start, False)
        found = lax.while_loop(lambda s: (s[0] < depth) & ~s[-1], grow, begin)[-2]
        return found, found

    def run(number, x, inputs, labels):
        height = lambda x: density(x, inputs, labels)  # noqa: E731
        keys = random.split(random.key(number), draws)
        return lax.scan(lambda x, key: draw(x, key, jax.grad(height), height), x, keys)[1]

    return run, [seed(), floats(width), uniform(rows, width), np.sign(floats(rows))]
