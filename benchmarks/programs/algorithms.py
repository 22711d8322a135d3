"""Algorithms that are loops: filters, dynamic programming, solvers, clustering."""

from __future__ import annotations

import numpy as np

from benchmarks.harness.program import floats, integers, seed, uniform
from benchmarks.programs.groups import loops


def _kalman_args(n, states, outputs):
    dynamics = (np.eye(states) * 0.95 + np.eye(states, k=1) * 0.1).astype(np.float32)
    return [dynamics, floats(outputs, states), floats(n, outputs)]


def _kalman(jax):
    jnp = jax.numpy

    def run(a, h, ys):
        identity = jnp.eye(a.shape[0])

        def step(state, y):
            mean, cov = a @ state[0], a @ state[1] @ a.T + 0.1 * identity
            spread = h @ cov @ h.T + 0.5 * jnp.eye(h.shape[0])
            gain = jnp.linalg.solve(spread, h @ cov).T
            mean = mean + gain @ (y - h @ mean)
            return (mean, (identity - gain @ h) @ cov), mean

        return jax.lax.scan(step, (jnp.zeros(a.shape[0]), identity), ys)[1]

    return run


@loops.program({"200x4x2": (200, 4, 2), "100x16x8": (100, 16, 8)}, tiny=(3, 2, 1), cold=True)
def kalman_filter(jax, n, states, outputs):
    return _kalman(jax), _kalman_args(n, states, outputs)


@loops.program((100, 4, 2), tiny=(3, 2, 1))
def kalman_gradient(jax, n, states, outputs):
    run = _kalman(jax)
    return jax.grad(lambda *args: (run(*args) ** 2).mean()), _kalman_args(n, states, outputs)


@loops.program((500, 16, 8), tiny=(3, 3, 2))
def hmm_forward(jax, n, states, symbols):
    jnp = jax.numpy

    def run(transition, emission, seen):
        def step(alpha, symbol):
            alpha = jax.nn.logsumexp(alpha[:, None] + transition, axis=0) + emission[:, symbol]
            return alpha, None

        return jax.nn.logsumexp(jax.lax.scan(step, jnp.zeros(states), seen)[0])

    logs = [np.log(uniform(states, k) + 0.1) for k in (states, symbols)]
    return run, [*logs, integers(symbols, n)]


@loops.program((500, 16, 8), tiny=(3, 3, 2))
def viterbi(jax, n, states, symbols):
    jnp = jax.numpy

    def run(transition, emission, seen):
        def forward(score, symbol):
            paths = score[:, None] + transition
            return paths.max(0) + emission[:, symbol], jnp.argmax(paths, 0)

        score, back = jax.lax.scan(forward, jnp.zeros(states), seen)
        last = jnp.argmax(score)
        return jax.lax.scan(lambda s, b: (b[s], s), last, back, reverse=True)[1]

    logs = [np.log(uniform(states, k) + 0.1) for k in (states, symbols)]
    return run, [*logs, integers(symbols, n)]


def _levenshtein(jax):
    jnp = jax.numpy

    def distance(s, t):
        def row(previous, inputs):
            index, letter = inputs
            swapped = jnp.minimum(previous[:-1] + (t != letter), previous[1:] + 1)
            full = jnp.concatenate([index[None], swapped])
            # Insertions run along the row: a running minimum of what each cell costs from the left.
            column = jnp.arange(full.shape[0])
            return jax.lax.cummin(full - column) + column, None

        first = jnp.arange(t.shape[0] + 1)
        return jax.lax.scan(row, first, (jnp.arange(1, s.shape[0] + 1), s))[0][-1]

    return distance


@loops.program((300, 300), tiny=(4, 3))
def levenshtein(jax, m, n):
    return _levenshtein(jax), [integers(4, m), integers(4, n + 1)[:n]]


@loops.program((32, 60, 60), tiny=(2, 4, 3))
def levenshtein_batched(jax, batch, m, n):
    return jax.vmap(_levenshtein(jax)), [
        integers(4, batch, m),
        integers(4, batch, n)[:, ::-1].copy(),
    ]


@loops.program((100, 100), tiny=(4, 3))
def dynamic_time_warping(jax, m, n):
    jnp = jax.numpy

    def distance(x, y):
        costs = (x[:, None] - y[None]) ** 2

        def row(previous, cost):
            def cell(left, inputs):
                value = inputs[0] + jnp.minimum(left, inputs[1])
                return value, value

            over = jnp.minimum(previous, jnp.concatenate([jnp.full(1, jnp.inf), previous[:-1]]))
            return jax.lax.scan(cell, jnp.inf, (cost, over))[1], None

        return jax.lax.scan(row, jnp.cumsum(costs[0]), costs[1:])[0][-1]

    return distance, [floats(m), floats(n + 1)[:n]]


@loops.program((60, 500), tiny=(3, 9))
def knapsack(jax, items, capacity):
    jnp = jax.numpy

    def run(sizes, values):
        room = jnp.arange(capacity + 1)

        def take(best, item):
            size, value = item
            taken = jnp.where(room >= size, best[room - size] + value, 0)
            return jnp.maximum(best, taken), None

        return jax.lax.scan(take, jnp.zeros(capacity + 1), (sizes, values))[0]

    return run, [integers(40, items) + 1, uniform(items)]


@loops.program(128, tiny=4)
def floyd_warshall(jax, n):
    jnp = jax.numpy

    def run(d):
        step = lambda k, d: jnp.minimum(d, d[:, k, None] + d[None, k, :])  # noqa: E731
        return jax.lax.fori_loop(0, n, step, d)

    return run, [uniform(n, n)]


@loops.program({"100x64": (100, 64), "30x512": (30, 512)}, tiny=(2, 3))
def conjugate_gradients(jax, steps, n):
    def run(a, b):
        def step(_, state):
            x, r, p, rr = state
            ap = a @ p
            alpha = rr / (p @ ap)
            x, r = x + alpha * p, r - alpha * ap
            new = r @ r + 1e-20
            return x, r, r + (new / rr) * p, new

        return jax.lax.fori_loop(0, steps, step, (0 * b, b, b, b @ b))[0]

    half = floats(n, n)
    return run, [half @ half.T / n + np.eye(n, dtype=np.float32), floats(n)]


@loops.program((300, 200), tiny=(3, 4))
def power_iteration(jax, steps, n):
    def run(a, v):
        def step(_, v):
            v = a @ v
            return v / jax.numpy.linalg.norm(v)

        return jax.lax.fori_loop(0, steps, step, v)

    return run, [uniform(n, n), uniform(n)]


@loops.program((100, 1000, 5000), tiny=(3, 6, 9))
def page_rank(jax, steps, nodes, edges):
    def run(source, target):
        ones = jax.numpy.ones(edges)
        degree = jax.ops.segment_sum(ones, source, nodes) + 1e-6

        def step(_, rank):
            flow = jax.ops.segment_sum((rank / degree)[source], target, nodes)
            return 0.15 / nodes + 0.85 * flow

        return jax.lax.fori_loop(0, steps, step, jax.numpy.ones(nodes) / nodes)

    return run, [integers(nodes, edges), integers(nodes, edges + 1)[:edges]]


@loops.program((20, 2000, 8, 10), tiny=(2, 6, 2, 3), tolerance=1e-3)
def k_means(jax, steps, points, width, clusters):
    jnp = jax.numpy

    def run(x, centers):
        def step(_, centers):
            nearest = jnp.argmin(((x[:, None] - centers) ** 2).sum(-1), 1)
            member = jax.nn.one_hot(nearest, clusters)
            return (member.T @ x) / (member.sum(0)[:, None] + 1e-6)

        return jax.lax.fori_loop(0, steps, step, centers)

    x = floats(points, width)
    x += 5 * integers(clusters, points)[:, None]
    return run, [x, x[:clusters].copy()]


@loops.program((100, 128, 128), tiny=(2, 5, 6))
def game_of_life(jax, steps, *shape):
    jnp = jax.numpy

    def step(_, board):
        shifts = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)]
        around = sum(jnp.roll(board, shift, (0, 1)) for shift in shifts)
        return ((around == 3) | ((board == 1) & (around == 2))).astype(board.dtype)

    return lambda board: jax.lax.fori_loop(0, steps, step, board), [integers(2, *shape)]


@loops.program(5000, tiny=20)
def sieve(jax, n):
    """Eratosthenes: crosses out by a mask."""
    jnp = jax.numpy

    def run(limit):
        numbers = jnp.arange(n)

        def cross(i, prime):
            return prime & ~(prime[i] & (numbers % i == 0) & (numbers > i))

        return jax.lax.fori_loop(2, limit, cross, numbers >= 2)

    return run, [np.int32(np.sqrt(n) + 1).reshape(())]


# A particle that the last bit of a sum puts elsewhere moves the mean by a thirtieth at most.
@loops.program((20, 1000), tiny=(3, 5), tolerance=5e-2)
def particle_filter(jax, steps, particles):
    jnp = jax.numpy

    def run(number, ys):
        def step(state, y):
            key, x = state
            key, move, draw = jax.random.split(key, 3)
            x = 0.9 * x + jax.random.normal(move, (particles,))
            cumulative = jnp.cumsum(jax.nn.softmax(-0.5 * (y - x) ** 2))
            places = (jnp.arange(particles) + jax.random.uniform(draw)) / particles
            x = x[jnp.searchsorted(cumulative, places).clip(0, particles - 1)]
            return (key, x), x.mean()

        return jax.lax.scan(step, (jax.random.key(number), jnp.zeros(particles)), ys)[1]

    return run, [seed(), floats(steps)]


@loops.program((2000, 4), tiny=(6, 2))
def digital_filter(jax, n, order):
    """A filter with feedback; its past is a window that is shifted."""

    def run(coefficients, xs):
        def step(past, x):
            y = x - past @ coefficients
            return jax.numpy.concatenate([y[None], past[:-1]]), y

        return jax.lax.scan(step, jax.numpy.zeros(order), xs)[1]

    return run, [uniform(order) / (2 * order), floats(n)]
