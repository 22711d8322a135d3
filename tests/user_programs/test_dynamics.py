"""Motion: integrators with fixed and chosen steps, mechanics, partial differential equations."""

from __future__ import annotations

import functools

import numpy as np
import scipy.integrate
import scipy.linalg
from support.program_cases import Program, normal, over

import axir as jax
import axir.numpy as jnp
from axir import lax


def solution(field, start, end):
    """The end of a trajectory to twelve digits."""
    found = scipy.integrate.solve_ivp(field, (0, end), start, "DOP853", rtol=1e-12, atol=1e-13)
    return found.y[:, -1]


# --- Runge and Kutta's method with fixed steps, and with steps that follow from the error


def lorenz_field(y, p=(10.0, 28.0, 8 / 3)):
    return jnp.stack([p[0] * (y[1] - y[0]), y[0] * (p[1] - y[2]) - y[1], y[0] * y[1] - p[2] * y[2]])


def lorenz(y, p):
    h = 0.01

    def step(y, _):
        k1 = lorenz_field(y, p)
        k2 = lorenz_field(y + h / 2 * k1, p)
        k3 = lorenz_field(y + h / 2 * k2, p)
        k4 = lorenz_field(y + h * k3, p)
        return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4), None

    return lax.scan(step, y, None, length=50)[0]


def lorenz_numpy(y, p):
    def field(_, y):
        return [p[0] * (y[1] - y[0]), y[0] * (p[1] - y[2]) - y[1], y[0] * y[1] - p[2] * y[2]]

    return solution(field, y, 0.5)


# Fehlberg's pair of orders 4 and 5.
STAGES = np.zeros((6, 6))
STAGES[1, :1] = 1 / 4
STAGES[2, :2] = 3 / 32, 9 / 32
STAGES[3, :3] = np.array([1932, -7200, 7296]) / 2197
STAGES[4, :4] = 439 / 216, -8, 3680 / 513, -845 / 4104
STAGES[5, :5] = -8 / 27, 2, -3544 / 2565, 1859 / 4104, -11 / 40
FIFTH = np.array([16 / 135, 0, 6656 / 12825, 28561 / 56430, -9 / 50, 2 / 55])
FOURTH = np.array([25 / 216, 0, 1408 / 2565, 2197 / 4104, -1 / 5, 0])


def integrate(field, y, end, tolerance):
    """Steps that are taken again, shorter, when the two orders differ too much."""

    def stages(y, h):
        slopes = []
        for row in range(6):
            moved = sum((STAGES[row, i] * k for i, k in enumerate(slopes)), jnp.zeros_like(y))
            slopes.append(field(y + h * moved))
        return jnp.stack(slopes)

    def step(state):
        t, y, h = state
        h = jnp.minimum(h, end - t)
        slopes = stages(y, h)
        error = h * jnp.linalg.norm((FIFTH - FOURTH) @ slopes) / tolerance
        is_good = error <= 1
        t, y = lax.cond(is_good, lambda: (t + h, y + h * (FIFTH @ slopes)), lambda: (t, y))
        factor = jnp.clip(0.9 * jnp.maximum(error, 1e-10) ** -0.2, 0.2, 5.0)
        return t, y, h * factor

    return lax.while_loop(lambda state: state[0] < end, step, (0.0 * end, y, 0.1 * end))[1]


def van_der_pol(y, stiffness):
    def field(y):
        return jnp.stack([y[1], stiffness * (1 - y[0] ** 2) * y[1] - y[0]])

    return integrate(field, y, 4.0, 1e-5)


def van_der_pol_numpy(y, stiffness):
    return solution(lambda _, y: [y[1], stiffness * (1 - y[0] ** 2) * y[1] - y[0]], y, 4)


# --- the adjoint method: the gradient of an adaptive integration is another one, backwards


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def odeint(field, y, p):
    return integrate(lambda y: field(y, p), y, 1.0, 1e-6)


def odeint_forward(field, y, p):
    end = odeint(field, y, p)
    return end, (end, p)


def odeint_backward(field, residuals, cotangent):
    end, p = residuals
    size = end.size

    def backwards(state):
        y, a = state[:size], state[size : 2 * size]
        slope, pull = jax.vjp(field, y, p)
        return -jnp.concatenate([slope, *(-x for x in pull(a))])

    state = jnp.concatenate([end, cotangent, jnp.zeros_like(p)])
    state = integrate(backwards, state, 1.0, 1e-6)
    return state[size : 2 * size], state[2 * size :]


odeint.defvjp(odeint_forward, odeint_backward)


def predators_and_prey(y, p):
    def field(y, p):
        return y * jnp.stack([p[0] - p[1] * y[1], p[2] * y[0] - p[3]])

    return odeint(field, y, p)


def predators_and_prey_numpy(y, p):
    return solution(lambda _, y: y * np.array([p[0] - p[1] * y[1], p[2] * y[0] - p[3]]), y, 1)


# --- mechanics from energies


def double_pendulum(q, v):
    """Accelerations by Euler and Lagrange from nothing but the Lagrangian."""

    def lagrangian(q, v):
        kinetic = v[0] ** 2 + 0.5 * v[1] ** 2 + v[0] * v[1] * jnp.cos(q[0] - q[1])
        return kinetic + 9.8 * (2 * jnp.cos(q[0]) + jnp.cos(q[1]))

    by_v = jax.grad(lagrangian, 1)
    mass = jax.jacfwd(by_v, 1)(q, v)
    coriolis = jax.jacfwd(by_v, 0)(q, v) @ v
    return jnp.linalg.solve(mass, jax.grad(lagrangian)(q, v) - coriolis)


def double_pendulum_numpy(q, v):
    """The textbook's formula for equal masses and lengths."""
    g, apart = 9.8, q[0] - q[1]
    below = 3 - np.cos(2 * apart)
    swing = v[1] ** 2 + v[0] ** 2 * np.cos(apart)
    first = -3 * g * np.sin(q[0]) - g * np.sin(q[0] - 2 * q[1]) - 2 * np.sin(apart) * swing
    pull = 2 * v[0] ** 2 + 2 * g * np.cos(q[0]) + v[1] ** 2 * np.cos(apart)
    return np.array([first, 2 * np.sin(apart) * pull]) / below


def planets(positions, velocities, masses):
    """Leapfrog steps with forces that are the gradient of the potential."""

    def potential(x):
        apart = x[:, None] - x + jnp.eye(3)[..., None] * 1e6
        distances = jnp.sqrt(jnp.sum(apart**2, axis=-1))
        return -jnp.sum(jnp.triu(masses[:, None] * masses / distances, 1))

    def step(state, _):
        x, v = state
        v = v - 0.005 * jax.grad(potential)(x) / masses[:, None]
        x = x + 0.01 * v
        return (x, v - 0.005 * jax.grad(potential)(x) / masses[:, None]), None

    (x, v), _ = lax.scan(step, (positions, velocities), None, length=20)
    return x, v, masses @ v


def planets_numpy(x, v, masses):
    def acceleration(x):
        apart = x[None] - x[:, None]
        cubes = np.linalg.norm(apart, axis=-1) ** 3 + np.eye(3)
        return np.einsum("ijd,ij,j->id", apart, 1 / cubes, masses)

    for _ in range(20):
        half = v + 0.005 * acceleration(x)
        x = x + 0.01 * half
        v = half + 0.005 * acceleration(x)
    return x, v, masses @ v


def oscillators(phases, frequencies):
    """Kuramoto's model and its order, in double precision."""

    def step(phases, _):
        pull = jnp.mean(jnp.sin(phases - phases[:, None]), axis=1)
        phases = phases + 0.05 * (frequencies + 1.5 * pull)
        return phases, jnp.abs(jnp.mean(jnp.exp(1j * phases)))

    return lax.scan(step, phases, None, length=30)


def oscillators_numpy(phases, frequencies):
    orders = []
    for _ in range(30):
        mean = np.exp(1j * phases).mean()
        pull = abs(mean) * np.sin(np.angle(mean) - phases)
        phases = phases + 0.05 * (frequencies + 1.5 * pull)
        orders.append(abs(np.exp(1j * phases).mean()))
    return phases, np.array(orders)


# --- partial differential equations


def heat_equation(u, diffusivity):
    """Crank and Nicolson's steps; the tridiagonal systems are solved by Thomas's algorithm."""
    r = diffusivity / 2

    def tridiagonal_solve(b):
        def eliminate(carry, entry):
            c, d = carry
            pivot = 1 + 2 * r + r * c
            new = -r / pivot, (entry + r * d) / pivot
            return new, new

        _, (cs, ds) = lax.scan(eliminate, (0 * r, 0 * r), b)

        def substitute(x, entry):
            c, d = entry
            x = d - c * x
            return x, x

        return lax.scan(substitute, 0 * r, (cs, ds), reverse=True)[1]

    def step(_, u):
        padded = jnp.pad(u, 1)
        return tridiagonal_solve(u + r * (padded[2:] - 2 * u + padded[:-2]))

    return lax.fori_loop(0, 5, step, u)


def heat_equation_numpy(u, diffusivity):
    n = len(u)
    laplacian = np.eye(n, k=1) + np.eye(n, k=-1) - 2 * np.eye(n)
    half = diffusivity / 2 * laplacian
    step = np.linalg.solve(np.eye(n) - half, np.eye(n) + half)
    return np.linalg.matrix_power(step, 5) @ u


def wave_equation(u):
    """Leapfrog on a ring; what it conserves, and its end."""

    def step(state, _):
        before, now = state
        after = 2 * now - before + 0.25 * (jnp.roll(now, 1) - 2 * now + jnp.roll(now, -1))
        energy = jnp.sum((after - now) ** 2)
        energy += 0.25 * jnp.sum((jnp.roll(after, 1) - after) * (jnp.roll(now, 1) - now))
        return (now, after), energy

    (_, end), energies = lax.scan(step, (u, u), None, length=15)
    return end, energies


def wave_equation_numpy(u):
    """Each Fourier mode swings with a frequency of its own."""
    waves = np.fft.fft(u)
    angle = np.arccos(1 - 0.25 * (1 - np.cos(2 * np.pi * np.fft.fftfreq(len(u)))))
    start = np.cos(angle * 15.5) / np.cos(angle / 2)
    end = np.fft.ifft(waves * start).real
    first = np.fft.ifft(waves * np.cos(1.5 * angle) / np.cos(angle / 2)).real
    energy = ((first - u) ** 2).sum()
    energy += 0.25 * ((np.roll(first, 1) - first) * (np.roll(u, 1) - u)).sum()
    return end, np.full(15, energy)


def linear_system(matrix, y):
    """The solution of a linear equation at several times by the matrix exponential."""
    return jax.vmap(lambda t: jax.scipy.linalg.expm(t * matrix) @ y)(jnp.array([0.5, 1.0, 2.0]))


def linear_system_numpy(matrix, y):
    return np.array([solution(lambda _, y: matrix @ y, y, t) for t in (0.5, 1, 2)])


PARAMETERS = np.array([10, 28, 8 / 3], np.float32)
RATES = np.array([1.5, 1.0, 0.8, 3.0], np.float32)

PROGRAMS = [
    Program(lorenz, (normal(3), PARAMETERS), lorenz_numpy, gradient=(0, 1), tolerance=5e-5),
    Program(
        van_der_pol, (np.array([2, 0], np.float32), np.float32(2)), van_der_pol_numpy,
        tolerance=1e-4,
    ),
    Program(
        predators_and_prey, (np.array([1, 2], np.float32), RATES), predators_and_prey_numpy,
        gradient=(0, 1), tolerance=1e-4,
    ),
    Program(double_pendulum, (normal(2), normal(2, seed=1)), double_pendulum_numpy),
    Program(
        planets, (3 * normal(3, 2), normal(3, 2, seed=1), np.array([1, 2, 3], np.float32)),
        planets_numpy, gradient=(0,),
    ),
    Program(
        oscillators, (normal(6).astype(np.float64), normal(6, seed=1).astype(np.float64)),
        oscillators_numpy, x64=True, tolerance=1e-12,
    ),
    Program(heat_equation, (normal(8), np.float32(0.7)), heat_equation_numpy, gradient=(0, 1)),
    Program(wave_equation, (normal(10),), wave_equation_numpy, gradient=(0,)),
    Program(linear_system, (normal(3, 3), normal(3)), linear_system_numpy),
]  # fmt: skip


@over(PROGRAMS)
def test_dynamics(program: Program) -> None:
    program.check()
