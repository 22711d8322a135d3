"""Roots, minima and fixed points, with loops that stop by themselves and implicit derivatives."""

from __future__ import annotations

import functools

import numpy as np
import scipy.optimize
from support.program_cases import Program, normal, over

import axir as jax
import axir.numpy as jnp
from axir import lax

# --- roots of functions of one variable


def newton(a):
    """Solves x exp(x) = a, which defines Lambert's function."""

    def unfinished(state):
        _, change, steps = state
        return (jnp.abs(change) > 1e-6) & (steps < 50)

    def improve(state):
        x, _, steps = state
        value, slope = jax.value_and_grad(lambda x: x * jnp.exp(x) - a)(x)
        return x - value / slope, value / slope, steps + 1

    return lax.while_loop(unfinished, improve, (jnp.log1p(a), 1.0, 0))[0]


def bisection(a):
    """The same root by halving, in as many steps as the width asks for."""

    def halve(interval):
        low, high = interval
        middle = 0.5 * (low + high)
        is_below = middle * jnp.exp(middle) < a
        return jnp.where(is_below, middle, low), jnp.where(is_below, high, middle)

    low, high = lax.while_loop(lambda i: i[1] - i[0] > 1e-6, halve, (0.0, 2.0))
    return (low + high) / 2


def secant(a):
    def step(state):
        x, before, value, value_before = state
        after = x - value * (x - before) / (value - value_before)
        return after, x, after * jnp.exp(after) - a, value

    state = (1.0, 0.5, jnp.exp(1.0) - a, 0.5 * jnp.exp(0.5) - a)
    return lax.while_loop(lambda s: jnp.abs(s[2]) > 1e-5, step, state)[0]


def many_roots(values):
    """The lanes of a vectorized loop end after different numbers of steps."""
    return jax.vmap(newton)(values), jax.vmap(bisection)(values), jax.vmap(secant)(values)


def many_roots_numpy(values):
    root = scipy.special.lambertw(values).real
    return root, root, root


# --- implicit derivatives


def kepler(mean_anomaly, eccentricity):
    """The eccentric anomaly, differentiated by the implicit function theorem."""

    def solve(f, guess):
        step = lambda _, e: e - f(e) / jax.grad(f)(e)  # noqa: E731
        return lax.fori_loop(0, 8, step, guess)

    def residual(e):
        return e - eccentricity * jnp.sin(e) - mean_anomaly

    return lax.custom_root(residual, mean_anomaly, solve, lambda g, y: y / g(1.0))


def kepler_numpy(mean_anomaly, eccentricity):
    def residual(e):
        return e - eccentricity * np.sin(e) - mean_anomaly

    return scipy.optimize.brentq(residual, 0, np.pi, xtol=1e-15)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def fixed_point(f, a, guess):
    def unfinished(state):
        before, now = state
        return jnp.max(jnp.abs(now - before)) > 1e-7

    return lax.while_loop(unfinished, lambda s: (s[1], f(a, s[1])), (guess, f(a, guess)))[1]


def fixed_point_forward(f, a, guess):
    x = fixed_point(f, a, guess)
    return x, (a, x)


def fixed_point_backward(f, residuals, cotangent):
    a, x = residuals
    _, pull_x = jax.vjp(lambda x: f(a, x), x)
    _, pull_a = jax.vjp(lambda a: f(a, x), a)
    total = fixed_point(lambda ct, u: ct + pull_x(u)[0], cotangent, cotangent)
    return pull_a(total)[0], jnp.zeros_like(x)


fixed_point.defvjp(fixed_point_forward, fixed_point_backward)


def equilibrium(weights, x):
    """A network of infinite depth: its output is the fixed point of its layer."""
    return fixed_point(lambda p, z: jnp.tanh(p[0] @ z + p[1]), (weights, x), jnp.zeros(3))


def equilibrium_numpy(weights, x):
    return scipy.optimize.fsolve(lambda z: z - np.tanh(weights @ z + x), np.zeros(3), xtol=1e-12)


# --- minima


def rosenbrock(x):
    return jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def gradient_descent_with_line_search(x):
    """Descent with Armijo's rule: a loop inside of a loop."""

    def quartic(x):
        return jnp.sum((x - jnp.arange(3.0)) ** 4 + 2 * (x - jnp.arange(3.0)) ** 2) / 4

    def descend(state):
        x, _ = state
        value, slope = jax.value_and_grad(quartic)(x)
        decrease = slope @ slope
        rate = lax.while_loop(
            lambda t: quartic(x - t * slope) > value - 0.5 * t * decrease, lambda t: 0.5 * t, 4.0
        )
        return x - rate * slope, decrease

    return lax.while_loop(lambda s: s[1] > 1e-10, descend, (x, 1.0))[0]


def lbfgs(x):
    """Two loops over the last five steps, under a backtracking line search."""
    value_and_grad = jax.value_and_grad(rosenbrock)

    def direction(grad, steps, changes):
        curvatures = jnp.sum(steps * changes, axis=1)
        inverse = jnp.where(curvatures > 1e-12, 1 / jnp.maximum(curvatures, 1e-12), 0.0)

        def newest_first(q, pair):
            s, y, rho = pair
            alpha = rho * (s @ q)
            return q - alpha * y, alpha

        q, alphas = lax.scan(newest_first, grad, (steps, changes, inverse), reverse=True)
        norm = changes[-1] @ changes[-1]
        r = q * jnp.where(norm > 1e-12, curvatures[-1] / jnp.maximum(norm, 1e-12), 1e-3)

        def oldest_first(r, pair):
            s, y, rho, alpha = pair
            return r + s * (alpha - rho * (y @ r)), None

        return -lax.scan(oldest_first, r, (steps, changes, inverse, alphas))[0]

    def iterate(_, state):
        x, value, grad, steps, changes = state
        d = direction(grad, steps, changes)
        rate = lax.while_loop(
            lambda t: (rosenbrock(x + t * d) > value + 1e-4 * t * (grad @ d)) & (t > 1e-4),
            lambda t: 0.5 * t,
            1.0,
        )
        new_value, new_grad = value_and_grad(x + rate * d)
        steps = jnp.roll(steps, -1, axis=0).at[-1].set(rate * d)
        changes = jnp.roll(changes, -1, axis=0).at[-1].set(new_grad - grad)
        return x + rate * d, new_value, new_grad, steps, changes

    start = (x, *value_and_grad(x), jnp.zeros((5, 3)), jnp.zeros((5, 3)))
    return lax.fori_loop(0, 60, iterate, start)[0]


def levenberg_marquardt(start, times, values):
    """Fits an exponential; the damping falls when a step helps and grows when it does not."""

    def residuals(p):
        return p[0] * jnp.exp(-p[1] * times) + p[2] - values

    def step(state, _):
        p, damping = state
        jacobian, r = jax.jacfwd(residuals)(p), residuals(p)
        normal_matrix = jacobian.T @ jacobian
        damped = normal_matrix + damping * jnp.diag(jnp.diag(normal_matrix))
        trial = p - jnp.linalg.solve(damped, jacobian.T @ r)
        is_better = jnp.sum(residuals(trial) ** 2) < jnp.sum(r**2)
        return lax.cond(
            is_better, lambda: (trial, damping / 5), lambda: (p, jnp.minimum(damping * 3, 1e3))
        ), None

    return lax.scan(step, (start, 1.0), None, length=15)[0][0]


def levenberg_marquardt_numpy(start, times, values):
    def model(t, a, b, c):
        return a * np.exp(-b * t) + c

    return scipy.optimize.curve_fit(model, times, values, p0=start)[0]


def lasso(matrix, target):
    """Accelerated proximal gradients: sparse least squares."""
    rate = 1 / jnp.linalg.norm(matrix, 2) ** 2

    def step(_, state):
        x, y, t = state
        moved = y - rate * (matrix.T @ (matrix @ y - target))
        new = jnp.sign(moved) * jnp.maximum(jnp.abs(moved) - 0.5 * rate, 0)
        after = (1 + jnp.sqrt(1 + 4 * t**2)) / 2
        return new, new + (t - 1) / after * (new - x), after

    return lax.fori_loop(0, 300, step, (jnp.zeros(4), jnp.zeros(4), 1.0))[0]


def lasso_numpy(matrix, target):
    """Positive and negative parts make it a smooth problem with bounds."""
    both = np.hstack([matrix, -matrix])

    def loss(p):
        residual = both @ p - target
        return residual @ residual / 2 + 0.5 * p.sum(), both.T @ residual + 0.5

    found = scipy.optimize.minimize(loss, np.ones(8), jac=True, bounds=[(0, None)] * 8, tol=1e-15)
    return found.x[:4] - found.x[4:]


def projected_newton_portfolio(covariance, returns):
    """The portfolio of least variance for its return: equations of Karush, Kuhn and Tucker."""

    def lagrangian(z):
        x, multipliers = z[:3], z[3:]
        limits = jnp.array([jnp.sum(x) - 1, returns @ x - 0.5])
        return 0.5 * x @ covariance @ x + multipliers @ limits

    z = jnp.zeros(5)
    z = z - jnp.linalg.solve(jax.hessian(lagrangian)(z), jax.grad(lagrangian)(z))
    return z[:3]


def projected_newton_portfolio_numpy(covariance, returns):
    limits = np.stack([np.ones(3), returns])
    inverse = np.linalg.inv(covariance)
    middle = np.linalg.inv(limits @ inverse @ limits.T)
    return inverse @ limits.T @ middle @ np.array([1, 0.5])


TIMES = np.linspace(0, 4, 12, dtype=np.float32)
ROOT = np.float32(2.5)
COVARIANCE = normal(3, 3) @ normal(3, 3).T + np.eye(3, dtype=np.float32)

PROGRAMS = [
    Program(newton, (ROOT,), lambda a: scipy.special.lambertw(a).real),
    Program(many_roots, (np.array([0.3, 1, 5, 10], np.float32),), many_roots_numpy),
    Program(kepler, (np.float32(1.0), np.float32(0.6)), kepler_numpy, gradient=(0, 1)),
    Program(equilibrium, (normal(3, 3, scale=0.3), normal(3)), equilibrium_numpy, gradient=(0, 1)),
    Program(gradient_descent_with_line_search, (normal(3),), lambda x: np.arange(3.0)),
    Program(lbfgs, (np.array([-1.2, 1, 0.5], np.float32),), lambda x: np.ones(3), tolerance=1e-3),
    Program(
        levenberg_marquardt,
        (np.ones(3, np.float32), TIMES, 2 * np.exp(-0.7 * TIMES) + 0.3 + normal(12, scale=0.02)),
        levenberg_marquardt_numpy,
        tolerance=1e-4,
    ),
    Program(lasso, (normal(8, 4), normal(8)), lasso_numpy, tolerance=1e-4),
    Program(
        projected_newton_portfolio,
        (COVARIANCE, normal(3)),
        projected_newton_portfolio_numpy,
        tolerance=1e-4,
    ),
]


@over(PROGRAMS)
def test_optimization(program: Program) -> None:
    program.check()
