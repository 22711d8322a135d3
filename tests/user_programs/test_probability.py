"""Inference: exact, by samples of Markov chains, by particles, and by expectation-maximization."""

from __future__ import annotations

import numpy as np
import scipy.linalg
import scipy.stats
from support.program_cases import Program, normal, numerical_gradient, over

import axir as jax
import axir.numpy as jnp
from axir import lax


def normal_logpdf(x, mean=0.0, spread=1.0):
    return -0.5 * ((x - mean) / spread) ** 2 - jnp.log(spread) - 0.5 * jnp.log(2 * jnp.pi)


# --- a Gaussian process: prediction and likelihood by Cholesky's factor


def gaussian_process(parameters, x, y, x_new):
    scale, length, noise = jnp.exp(parameters)

    def kernel(a, b):
        return scale * jnp.exp(-0.5 * ((a[:, None] - b) / length) ** 2)

    factor = jax.scipy.linalg.cho_factor(kernel(x, x) + noise * jnp.eye(x.size), lower=True)
    weights = jax.scipy.linalg.cho_solve(factor, y)
    half = jax.scipy.linalg.solve_triangular(factor[0], kernel(x, x_new), lower=True)
    variance = scale - jnp.sum(half**2, axis=0)
    log_likelihood = -0.5 * y @ weights - jnp.sum(jnp.log(jnp.diag(factor[0])))
    return kernel(x_new, x) @ weights, variance, log_likelihood - x.size / 2 * jnp.log(2 * jnp.pi)


def gaussian_process_numpy(parameters, x, y, x_new):
    scale, length, noise = np.exp(parameters)
    points = np.concatenate([x, x_new])
    joint = scale * np.exp(-0.5 * ((points[:, None] - points) / length) ** 2)
    observed = joint[:6, :6] + noise * np.eye(6)
    gain = np.linalg.inv(observed) @ joint[:6, 6:]
    fit = scipy.stats.multivariate_normal.logpdf(y, np.zeros(6), observed)
    return gain.T @ y, np.diag(joint[6:, 6:] - joint[6:, :6] @ gain), fit


# --- Hamiltonian dynamics


def log_density(q):
    """A banana: x is normal, y is normal around the square of x."""
    return -0.5 * q[0] ** 2 - 2 * (q[1] - q[0] ** 2) ** 2


def hamiltonian_monte_carlo(start, momenta, uniforms):
    slope = jax.grad(log_density)

    def leapfrog(_, state):
        q, p = state
        p = p + 0.05 * slope(q)
        q = q + 0.1 * p
        return q, p + 0.05 * slope(q)

    def step(q, draws):
        p, u = draws
        q_new, p_new = lax.fori_loop(0, 5, leapfrog, (q, p))
        energy_gain = log_density(q_new) - log_density(q) - 0.5 * (p_new @ p_new - p @ p)
        is_accepted = jnp.log(u) < energy_gain
        return jnp.where(is_accepted, q_new, q), is_accepted

    end, accepted = lax.scan(step, start, (momenta, uniforms))
    return end, accepted


def log_density_numpy(q):
    return -(q[0] ** 2) / 2 - 2 * (q[1] - q[0] ** 2) ** 2


def slope_numpy(q):
    apart = 4 * (q[1] - q[0] ** 2)
    return np.array([-q[0] + 2 * q[0] * apart, -apart])


def hamiltonian_monte_carlo_numpy(q, momenta, uniforms):
    accepted = []
    for p, u in zip(momenta, uniforms, strict=True):
        new, velocity = q, p + 0.05 * slope_numpy(q)
        for last in (False, False, False, False, True):
            new = new + 0.1 * velocity
            velocity = velocity + (0.05 if last else 0.1) * slope_numpy(new)
        gain = log_density_numpy(new) - log_density_numpy(q) - (velocity @ velocity - p @ p) / 2
        accepted.append(np.log(u) < gain)
        q = new if accepted[-1] else q
    return q, np.array(accepted)


def no_u_turn(q, p, directions, uniforms):
    """Doubles a trajectory until it turns back, and keeps one of its states at random.

    Each doubling integrates 2^depth steps onwards from an end; a state replaces the kept one with
    the share of its weight. Returns the state, the number of doublings and of steps.
    """
    slope = jax.grad(log_density)

    def energy(q, p):
        return log_density(q) - 0.5 * p @ p

    def leapfrog(q, p, h):
        p = p + 0.5 * h * slope(q)
        q = q + h * p
        return q, p + 0.5 * h * slope(q)

    def goes_on(state):
        depth, (left, left_p), (right, right_p), *_ = state
        span = right - left
        is_straight = (span @ left_p >= 0) & (span @ right_p >= 0)
        return is_straight & (depth < directions.size)

    def double(state):
        depth, left, right, kept, weight, taken = state
        is_forward = directions[depth]
        h = jnp.where(is_forward, 0.2, -0.2)
        start = jax.tree.map(lambda a, b: jnp.where(is_forward, b, a), left, right)

        def extend(_, inner):
            (q, p), kept, weight, taken = inner
            q, p = leapfrog(q, p, h)
            share = jnp.exp(energy(q, p))
            kept = jnp.where(uniforms[taken] * (weight + share) < share, q, kept)
            return (q, p), kept, weight + share, taken + 1

        inner = (start, kept, weight, taken)
        end, kept, weight, taken = lax.fori_loop(0, 2**depth, extend, inner)
        left = jax.tree.map(lambda a, b: jnp.where(is_forward, a, b), left, end)
        right = jax.tree.map(lambda a, b: jnp.where(is_forward, b, a), right, end)
        return depth + 1, left, right, kept, weight, taken

    start = (0, (q, p), (q, p), q, jnp.exp(energy(q, p)), 0)
    depth, _, _, kept, weight, taken = lax.while_loop(goes_on, double, start)
    return kept, depth, weight, taken


def no_u_turn_numpy(q, p, directions, uniforms):
    path, kept, depth, taken = [(q, p)], q, 0, 0
    weight = np.exp(log_density_numpy(q) - p @ p / 2)
    while depth < len(directions):
        span = path[-1][0] - path[0][0]
        if span @ path[0][1] < 0 or span @ path[-1][1] < 0:
            break
        h = 0.2 if directions[depth] else -0.2
        for _ in range(2**depth):
            q, p = path[-1] if h > 0 else path[0]
            half = p + h / 2 * slope_numpy(q)
            q = q + h * half
            p = half + h / 2 * slope_numpy(q)
            path.insert(len(path) if h > 0 else 0, (q, p))
            share = np.exp(log_density_numpy(q) - p @ p / 2)
            weight += share
            kept = q if uniforms[taken] < share / weight else kept
            taken += 1
        depth += 1
    return kept, depth, weight, taken


# --- other samplers


def metropolis_hastings(steps, uniforms):
    """Poisson counts by steps of one up or down."""

    def step(n, draws):
        change, u = draws
        proposed = n + change
        log_ratio = jnp.where(change > 0, jnp.log(3.0) - jnp.log(n + 1.0), jnp.log(n / 3.0))
        n = jnp.where((proposed >= 0) & (jnp.log(u) < log_ratio), proposed, n)
        return n, n

    _, path = lax.scan(step, 2, (steps, uniforms))
    return path, jnp.bincount(path, length=12)


def metropolis_hastings_numpy(steps, uniforms):
    path, n = [], 2
    for change, u in zip(steps, uniforms, strict=True):
        if n + change >= 0:
            ratio = scipy.stats.poisson.pmf(n + change, 3) / scipy.stats.poisson.pmf(n, 3)
            n = n + change if u < ratio else n
        path.append(n)
    return np.array(path), np.bincount(path, minlength=12)


def gibbs_sampler(key):
    """A correlated pair of normals, one coordinate at a time, many chains at once."""

    def chain(key):
        def step(y, key):
            noise = jax.random.normal(key, (2,))
            x = 0.6 * y + 0.8 * noise[0]
            y = 0.6 * x + 0.8 * noise[1]
            return y, jnp.stack([x, y])

        return lax.scan(step, 0.0, jax.random.split(key, 60))[1][10:]

    draws = jax.vmap(chain)(jax.random.split(key, 40)).reshape(-1, 2)
    return draws.mean(axis=0) + 1, jnp.cov(draws.T)


def gibbs_sampler_expected(key):
    return np.ones(2), np.array([[1, 0.6], [0.6, 1]])


def exit_time(key):
    """How long walks of fair steps stay within four of their start; all draw in one loop."""

    def step(state):
        count, places, times = state
        moves = jax.random.rademacher(jax.random.fold_in(key, count), places.shape)
        inside = jnp.abs(places) < 4
        return count + 1, places + jnp.where(inside, moves, 0), times + inside

    start = 0, jnp.zeros(2000, int), jnp.zeros(2000, int)
    _, places, times = lax.while_loop(lambda s: jnp.any(jnp.abs(s[1]) < 4), step, start)
    return times.mean(), jnp.abs(places).min()


def importance_sampling(key):
    """The tail of a normal distribution with samples of a shifted exponential, and its error."""
    x = 3 + jax.random.exponential(key, (4000,)) / 3
    log_weights = normal_logpdf(x) - (jnp.log(3.0) - 3 * (x - 3))
    weights = jnp.exp(log_weights - jnp.max(log_weights))
    return jnp.exp(jnp.max(log_weights)) * weights.mean() * 1e3


def particle_filter(key, observations):
    """A filter with systematic resampling; the model is linear, so its likelihood is known."""

    def step(particles, inputs):
        key, y = inputs
        move, choose = jax.random.split(key)
        particles = 0.9 * particles + 0.5 * jax.random.normal(move, particles.shape)
        scores = normal_logpdf(y, particles, 0.7)
        edges = jnp.cumsum(jax.nn.softmax(scores))
        places = (jnp.arange(particles.size) + jax.random.uniform(choose)) / particles.size
        chosen = jnp.searchsorted(edges, places * edges[-1])
        return particles[chosen], jax.nn.logsumexp(scores) - jnp.log(particles.size)

    first, rest = jax.random.split(key)
    particles = jax.random.normal(first, (1000,))
    keys = jax.random.split(rest, observations.size)
    particles, gains = lax.scan(step, particles, (keys, observations))
    return particles.mean(), gains.sum()


def particle_filter_expected(key, observations):
    n = len(observations)
    times = np.arange(1, n + 1)
    spread = np.zeros(n + 1)
    spread[0] = 1
    for t in times:
        spread[t] = 0.81 * spread[t - 1] + 0.25
    shared = np.minimum(times[:, None], times)
    covariance = 0.9 ** abs(times[:, None] - times) * spread[shared]
    noisy = covariance + 0.49 * np.eye(n)
    mean = covariance[-1] @ np.linalg.solve(noisy, observations)
    return mean, scipy.stats.multivariate_normal.logpdf(observations, np.zeros(n), noisy)


# --- mixtures


def gaussian_mixture(x, means):
    """Expectation and maximization until the likelihood stands still."""

    def log_joint(weights, means, spreads):
        return jnp.log(weights) + normal_logpdf(x[:, None], means, spreads)

    def improve(state):
        weights, means, spreads, value, _ = state
        chances = jax.nn.softmax(log_joint(weights, means, spreads), axis=1)
        counts = chances.sum(axis=0)
        means = (chances * x[:, None]).sum(axis=0) / counts
        spreads = jnp.sqrt((chances * (x[:, None] - means) ** 2).sum(axis=0) / counts)
        weights = counts / x.size
        new_value = jax.nn.logsumexp(log_joint(weights, means, spreads), axis=1).mean()
        return weights, means, spreads, new_value, value

    start = (jnp.full(2, 0.5), means, jnp.ones(2), 0.0, -jnp.inf)
    return lax.while_loop(lambda s: jnp.abs(s[3] - s[4]) > 1e-7, improve, start)[:3]


def gaussian_mixture_numpy(x, means):
    weights, spreads = np.full(2, 0.5), np.ones(2)
    for _ in range(500):
        joint = weights * scipy.stats.norm.pdf(x[:, None], means, spreads)
        chances = joint / joint.sum(axis=1, keepdims=True)
        weights = chances.mean(axis=0)
        means = np.average(np.stack([x, x]), axis=1, weights=chances.T)
        spreads = np.sqrt(np.average((x - means[:, None]) ** 2, axis=1, weights=chances.T))
    return weights, means, spreads


def reparametrized_bound(parameters, noise):
    """Variational inference: the gradient of the bound through its samples."""

    def bound(parameters):
        mean, log_spread = parameters
        samples = mean + jnp.exp(log_spread) * noise
        return jax.vmap(log_density)(samples).mean() + jnp.sum(log_spread)

    return jax.value_and_grad(bound)(parameters)


def reparametrized_bound_numpy(parameters, noise):
    def bound(parameters):
        samples = parameters[0] + np.exp(parameters[1]) * noise
        return np.mean([log_density_numpy(q) for q in samples]) + parameters[1].sum()

    return bound(parameters), numerical_gradient(bound, parameters)


GRID = np.linspace(0, 1, 6, dtype=np.float32)
UNIFORMS = np.random.default_rng(3).uniform(size=64).astype(np.float32)
MIXTURE = np.concatenate([normal(30, seed=1, scale=0.6) - 2, normal(20, seed=2) + 2])

PROGRAMS = [
    Program(
        gaussian_process,
        (np.array([0.1, -1, -2], np.float32), GRID, np.sin(6 * GRID), normal(3)),
        gaussian_process_numpy,
        gradient=(0, 2),
        tolerance=2e-5,
    ),
    Program(
        hamiltonian_monte_carlo,
        (normal(2), normal(8, 2), UNIFORMS[:8]),
        hamiltonian_monte_carlo_numpy,
        tolerance=1e-4,
    ),
    Program(
        no_u_turn,
        (normal(2), normal(2, seed=5), np.array([True, False, False, True, True]), UNIFORMS),
        no_u_turn_numpy,
        tolerance=1e-4,
    ),
    Program(
        metropolis_hastings,
        (np.where(normal(40) > 0, 1, -1).astype(np.int32), UNIFORMS[:40]),
        metropolis_hastings_numpy,
    ),
    Program(gibbs_sampler, (np.array([0, 7], np.uint32),), gibbs_sampler_expected, tolerance=0.06),
    Program(
        exit_time, (np.array([0, 4], np.uint32),), lambda key: (16.0, np.array(4)), tolerance=0.05
    ),
    Program(
        importance_sampling,
        (np.array([0, 1], np.uint32),),
        lambda key: 1e3 * scipy.stats.norm.sf(3),
        tolerance=0.02,
    ),
    Program(
        particle_filter,
        (np.array([0, 2], np.uint32), normal(6, seed=3)),
        particle_filter_expected,
        tolerance=0.1,
    ),
    Program(
        gaussian_mixture,
        (MIXTURE, np.array([-1, 1], np.float32)),
        gaussian_mixture_numpy,
        tolerance=1e-3,
    ),
    Program(
        reparametrized_bound,
        ((normal(2), normal(2, seed=1)), normal(4, 2)),
        reparametrized_bound_numpy,
    ),
]


@over(PROGRAMS)
def test_probability(program: Program) -> None:
    program.check()
