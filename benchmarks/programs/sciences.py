"""Simulations: differential equations, bodies, chains."""

from __future__ import annotations

import numpy as np

from benchmarks.harness.program import floats, integers, seed, uniform
from benchmarks.programs.groups import loops, models


def _rk4(field, state, dt):
    k1 = field(state)
    k2 = field(state + dt / 2 * k1)
    k3 = field(state + dt / 2 * k2)
    k4 = field(state + dt * k3)
    return state + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def _lorenz(jax, steps):
    def field(s):
        x, y, z = s[0], s[1], s[2]
        return jax.numpy.stack([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z])

    def run(state):
        def step(s, _):
            s = _rk4(field, s, 0.005)
            return s, s

        return jax.lax.scan(step, state, None, length=steps)[1]

    return run


@loops.program(400, tiny=3, tolerance=1e-3)
def lorenz_rk4(jax, steps):
    return _lorenz(jax, steps), [floats(3)]


@loops.program((400, 256), tiny=(3, 2), tolerance=1e-3)
def lorenz_rk4_batched(jax, steps, batch):
    return jax.vmap(_lorenz(jax, steps)), [floats(batch, 3)]


@loops.program(200, tiny=3, tolerance=1e-3)
def lorenz_rk4_gradient(jax, steps):
    run = _lorenz(jax, steps)
    return jax.grad(lambda s: run(s)[-1].sum()), [floats(3)]


@loops.program((100, 8, 32), tiny=(2, 2, 3))
def neural_ode_gradient(jax, steps, width, hidden):
    """A field that is a network, integrated, and the gradient of its parameters."""

    def loss(w1, w2, y):
        field = lambda s: jax.numpy.tanh(s @ w1) @ w2  # noqa: E731
        return (jax.lax.fori_loop(0, steps, lambda _, s: _rk4(field, s, 0.02), y) ** 2).sum()

    return jax.grad(loss, argnums=(0, 1)), [
        floats(width, hidden) / 5,
        floats(hidden, width) / 5,
        floats(width),
    ]


@loops.program({"": ()}, tiny=(), tolerance=1e-2)
def adaptive_ode(jax):
    """Steps that shrink and grow with the error, until the end of time."""
    jnp = jax.numpy

    def field(s):
        return jnp.stack([s[1], 2.0 * (1 - s[0] ** 2) * s[1] - s[0]])

    def step(state):
        t, s, dt = state
        k1 = field(s)
        k2 = field(s + dt * k1)
        new, error = s + dt / 2 * (k1 + k2), jnp.max(jnp.abs(dt / 2 * (k2 - k1)))
        fine = error < 1e-3
        dt_new = dt * jnp.clip(0.9 * jnp.sqrt(1e-3 / (error + 1e-10)), 0.3, 2.0)
        return jnp.where(fine, t + dt, t), jnp.where(fine, new, s), dt_new

    def run(s):
        return jax.lax.while_loop(lambda v: v[0] < 5.0, step, (0.0, s, 0.01))[1]

    return run, [np.float32([2.0, 0.1])]


@loops.program((50, 32), tiny=(2, 3), tolerance=1e-3)
def spring_chain(jax, steps, links):
    """Links of a rope that are pulled to their length, several times in every step."""
    jnp = jax.numpy

    def relax(_, x):
        delta = x[1:] - x[:-1]
        length = jnp.sqrt((delta**2).sum(1, keepdims=True) + 1e-9)
        push = 0.25 * delta * (1 - 0.1 / length)
        return x.at[:-1].add(push).at[1:].add(-push)

    def step(_, state):
        x, v = state
        moved = x + 0.01 * (v - 0.1)
        moved = jax.lax.fori_loop(0, 8, relax, moved)
        return moved, (moved - x) / 0.01

    return lambda x, v: jax.lax.fori_loop(0, steps, step, (x, v)), [
        uniform(links, 2),
        floats(links, 2),
    ]


@loops.program((500, 10), tiny=(4, 2), tolerance=1e-2)
def metropolis(jax, steps, width):
    def run(number, x):
        def step(state, _):
            key, x = state
            key, move, accept = jax.random.split(key, 3)
            new = x + 0.3 * jax.random.normal(move, (width,))
            gain = 0.5 * ((x**2).sum() - (new**2).sum())
            x = jax.numpy.where(jax.numpy.log(jax.random.uniform(accept)) < gain, new, x)
            return (key, x), x[0]

        return jax.lax.scan(step, (jax.random.key(number), x), None, length=steps)[1]

    return run, [seed(), floats(width)]


def _accelerations(jax):
    def accelerations(x, mass):
        delta = x[None] - x[:, None]
        distance = (delta**2).sum(-1) + 0.01
        return (delta * (mass[None] / distance**1.5)[..., None]).sum(1)

    return accelerations


@models.program({"step-1000": (1, 1000), "100-of-100": (100, 100)}, tiny=(2, 3), tolerance=1e-3)
def n_body(jax, steps, bodies):
    accelerations = _accelerations(jax)

    def run(x, v, mass):
        def step(_, state):
            x, v = state
            v = v + 0.001 * accelerations(x, mass)
            return x + 0.001 * v, v

        return jax.lax.fori_loop(0, steps, step, (x, v))

    return run, [floats(bodies, 3), floats(bodies, 3), uniform(bodies)]


@models.program((10, 100), tiny=(2, 3), tolerance=1e-2)
def hmc_step(jax, leaps, width):
    """A leap of Hamiltonian Monte Carlo through a density with correlations."""
    jnp = jax.numpy

    def energy(x, precision):
        return 0.5 * x @ precision @ x + jnp.sum(jnp.cosh(0.1 * x))

    def run(number, x, precision):
        key, draw = jax.random.split(jax.random.key(number))
        p = jax.random.normal(key, (width,))
        slope = jax.grad(energy)

        def leap(_, state):
            x, p = state
            p = p - 0.05 * slope(x, precision)
            x = x + 0.1 * p
            return x, p - 0.05 * slope(x, precision)

        new, q = jax.lax.fori_loop(0, leaps, leap, (x, p))
        gain = energy(x, precision) + p @ p / 2 - energy(new, precision) - q @ q / 2
        return jnp.where(jnp.log(jax.random.uniform(draw)) < gain, new, x), gain

    precision = np.eye(width, dtype=np.float32) + 0.5 * np.eye(width, k=1, dtype=np.float32)
    return run, [seed(), floats(width), (precision + precision.T) / 2]


@models.program((50, 256, 256), tiny=(2, 3, 4))
def sinkhorn(jax, steps, rows, columns):
    lse = jax.nn.logsumexp

    def run(cost):
        def step(_, potentials):
            f, g = potentials
            f = -lse(g[None] - cost, axis=1)
            return f, -lse(f[:, None] - cost, axis=0)

        f, g = jax.lax.fori_loop(0, steps, step, (cost[:, 0] * 0, cost[0] * 0))
        return jax.numpy.exp(f[:, None] + g[None] - cost)

    return run, [10 * uniform(rows, columns)]


def _kernel(jax, x, y, scale):
    distance = (x**2).sum(1)[:, None] + (y**2).sum(1)[None] - 2 * x @ y.T
    return jax.numpy.exp(-0.5 * distance / scale**2)


@models.program((300, 4), tiny=(4, 2), tolerance=1e-3)
def gaussian_process_gradient(jax, n, width):
    """The gradient of the marginal likelihood, through a Cholesky factor and its solutions."""
    jnp, linalg = jax.numpy, jax.scipy.linalg

    def loss(scale, noise, x, y):
        k = _kernel(jax, x, x, scale) + (noise + 0.1) * jnp.eye(n)
        factor = jnp.linalg.cholesky(k)
        residual = linalg.solve_triangular(factor, y, lower=True)
        return 0.5 * residual @ residual + jnp.log(jnp.diag(factor)).sum()

    args = [np.float32(1.5).reshape(()), np.float32(0.3).reshape(()), floats(n, width), floats(n)]
    return jax.value_and_grad(loss, argnums=(0, 1)), args


@models.program((200, 500, 4), tiny=(4, 3, 2), tolerance=1e-3)
def gaussian_process_prediction(jax, n, points, width):
    jnp = jax.numpy

    def predict(x, y, new):
        k = _kernel(jax, x, x, 1.0) + 0.3 * jnp.eye(n)
        across = _kernel(jax, new, x, 1.0)
        solved = jnp.linalg.solve(k, jnp.concatenate([y[:, None], across.T], 1))
        return across @ solved[:, 0], 1 - (across * solved[:, 1:].T).sum(1)

    return predict, [floats(n, width), floats(n), floats(points, width)]


@models.program((1000, 5), tiny=(6, 2))
def mixture_of_gaussians_step(jax, n, clusters):
    jnp = jax.numpy

    def step(x, mean, spread, share):
        logs = -0.5 * ((x[:, None] - mean) / spread) ** 2 - jnp.log(spread) + jnp.log(share)
        member = jax.nn.softmax(logs, axis=1)
        count = member.sum(0)
        mean = (member * x[:, None]).sum(0) / count
        spread = jnp.sqrt((member * (x[:, None] - mean) ** 2).sum(0) / count + 1e-4)
        return mean, spread, count / n

    x = floats(n) + 4 * integers(clusters, n)
    means = 4 * np.arange(clusters, dtype=np.float32)
    return step, [x, means, np.ones(clusters, "f4"), np.full(clusters, 1 / clusters, "f4")]


@models.program(7, tiny=2)
def robot_arm(jax, links):
    """Torques of an arm in a plane: the derivatives of its energy by positions and velocities."""
    jnp = jax.numpy

    def energy(q, velocity):
        angle, rate = jnp.cumsum(q), jnp.cumsum(velocity)
        vx, vy = jnp.cumsum(-jnp.sin(angle) * rate), jnp.cumsum(jnp.cos(angle) * rate)
        return 0.5 * (vx**2 + vy**2).sum() - 9.81 * jnp.cumsum(jnp.sin(angle)).sum()

    def acceleration(q, velocity, torque):
        mass = jax.hessian(energy, 1)(q, velocity)
        mixed = jax.jacfwd(jax.grad(energy, 1), 0)(q, velocity)
        force = jax.grad(energy, 0)(q, velocity)
        return jnp.linalg.solve(mass + 0.1 * jnp.eye(links), torque + force - mixed @ velocity)

    return acceleration, [floats(links), floats(links), floats(links)]


@models.program((100, 1000), tiny=(3, 4))
def option_pricing(jax, steps, paths):
    """Monte Carlo: paths of a stock, and the gradient of the price by its parameters."""
    jnp = jax.numpy

    def price(params, number):
        noise = jax.random.normal(jax.random.key(number), (steps, paths))
        drift, volatility = params
        growth = (drift - volatility**2 / 2) / steps + volatility * noise / steps**0.5
        return jnp.maximum(jnp.exp(jnp.cumsum(growth, 0)).mean(0) - 1, 0).mean()

    return jax.value_and_grad(price), [np.float32([0.05, 0.2]), seed()]
