"""Whole programs as users write them: values and derivatives are JAX's, eagerly and under jit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.scipy
import numpy as np
import pytest

import axir
import axir.lax
import axir.numpy
import axir.scipy.linalg
import axir.scipy.special

GRID = np.linspace(-1, 1, 12).reshape(3, 4).astype(np.float32)


def gaussian_process(lib: Any) -> Callable:
    """The negative log likelihood of hyperparameters, by Cholesky's factor."""
    jnp = lib.numpy
    xs = jnp.linspace(0.0, 1.0, 6)
    ys = jnp.sin(6 * xs)

    def likelihood(parameters: Any) -> Any:
        scale, length, noise = jnp.exp(parameters)
        distances = (xs[:, None] - xs) ** 2
        covariance = scale * jnp.exp(-0.5 * distances / length**2) + noise * jnp.eye(6)
        factor = jnp.linalg.cholesky(covariance)
        weights = lib.scipy.linalg.cho_solve((factor, True), ys)
        return 0.5 * ys @ weights + jnp.log(jnp.diag(factor)).sum()

    return likelihood


def kalman_filter(lib: Any) -> Callable:
    """The log likelihood of observations as a function of the process noise."""
    jnp = lib.numpy
    transition, observe = jnp.array([[1.0, 0.1], [0.0, 1.0]]), jnp.array([[1.0, 0.0]])

    def step(carry: Any, y: Any, noise: Any) -> Any:
        mean, spread, total = carry
        mean = transition @ mean
        spread = transition @ spread @ transition.T + noise * jnp.eye(2)
        innovation = observe @ spread @ observe.T + 0.1 * jnp.eye(1)
        gain = jnp.linalg.solve(innovation, observe @ spread).T
        residual = y - observe @ mean
        fit = residual @ jnp.linalg.solve(innovation, residual)
        total = total - 0.5 * (fit + jnp.linalg.slogdet(innovation)[1])
        return (mean + gain @ residual, spread - gain @ innovation @ gain.T, total), mean

    def likelihood(noise: Any) -> Any:
        start = (jnp.zeros(2), jnp.eye(2), 0.0)
        observations = jnp.sin(jnp.arange(8.0))[:, None]
        return lib.lax.scan(lambda c, y: step(c, y, noise[0]), start, observations)[0][2]

    return likelihood


def recurrent_network(lib: Any) -> Callable:
    """A small LSTM with a cell that is recomputed in the backward pass."""
    jnp = lib.numpy

    def loss(weights: Any) -> Any:
        @lib.checkpoint
        def cell(state: Any, x: Any) -> Any:
            hidden, memory = state
            gates = jnp.concatenate([x, hidden]) @ weights
            enter, forget, new, leave = jnp.split(gates, 4)
            memory = lib.nn.sigmoid(forget + 1) * memory + lib.nn.sigmoid(enter) * jnp.tanh(new)
            hidden = lib.nn.sigmoid(leave) * jnp.tanh(memory)
            return (hidden, memory), hidden

        start = (jnp.zeros(2), jnp.zeros(2))
        return (lib.lax.scan(cell, start, jnp.asarray(GRID))[1] ** 2).mean()

    return loss


def runge_kutta(lib: Any) -> Callable:
    """A pendulum with friction, integrated by the classical method of fourth order."""
    jnp = lib.numpy

    def energy(start: Any) -> Any:
        def field(y: Any) -> Any:
            return jnp.array([y[1], -jnp.sin(y[0]) - 0.1 * y[1]])

        def step(y: Any, _: Any) -> Any:
            k1 = field(y)
            k2 = field(y + 0.05 * k1)
            k3 = field(y + 0.05 * k2)
            k4 = field(y + 0.1 * k3)
            y = y + 0.1 / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
            return y, y

        return (lib.lax.scan(step, start, None, length=10)[1] ** 2).sum()

    return energy


def branches_in_a_loop(lib: Any) -> Callable:
    """A loop with steps that branch by the index and by the carry."""

    def run(x: Any) -> Any:
        def step(carry: Any, index: Any) -> Any:
            carry = lib.lax.cond(
                index % 2 == 0, lambda c: c * x[1], lambda c: lib.numpy.sin(c) + x[1] ** 2, carry
            )
            carry = lib.lax.cond(carry > 0.5, lambda c: c - 0.1 * x[1], lambda c: c, carry)
            branches = [lambda: carry, lambda: x[1], lambda: carry * x[1]]
            return carry, lib.lax.switch(index % 3, branches)

        end, steps = lib.lax.scan(step, x[0], lib.numpy.arange(6))
        return end + steps.sum()

    return run


def sinkhorn(lib: Any) -> Callable:
    """The regularized cost of transport between uniform distributions."""
    jnp = lib.numpy

    def cost(costs: Any) -> Any:
        total = lib.scipy.special.logsumexp

        def step(potentials: Any, _: Any) -> Any:
            _, g = potentials
            f = -0.1 * total((g[None] - costs) / 0.1, axis=1, b=1 / 4)
            g = -0.1 * total((f[:, None] - costs) / 0.1, axis=0, b=1 / 3)
            return (f, g), None

        start = (jnp.zeros(3), jnp.zeros(4))
        (f, g), _ = lib.lax.scan(step, start, None, length=20)
        return f.mean() + g.mean()

    return cost


def soft_time_warping(lib: Any) -> Callable:
    """The smooth cost of aligning two series: a loop in a loop."""
    jnp = lib.numpy

    def cost(distances: Any) -> Any:
        def along_row(left: Any, entry: Any) -> Any:
            above, diagonal, distance = entry
            nearest = jnp.stack([left, above, diagonal])
            value = distance - 0.1 * lib.nn.logsumexp(-nearest / 0.1)
            return value, value

        def down(previous: Any, row: Any) -> Any:
            _, values = lib.lax.scan(along_row, 1e5, (previous[1:], previous[:-1], row))
            return jnp.concatenate([jnp.array([1e5]), values]), None

        first = jnp.array([0.0, 1e5, 1e5, 1e5, 1e5])
        return lib.lax.scan(down, first, distances)[0][-1]

    return cost


def fixed_point(lib: Any) -> Callable:
    """Square roots by iteration, with the derivative of the implicit function theorem."""

    def iterate(step: Callable, x: Any) -> Any:
        return lib.lax.fori_loop(0, 20, lambda _, value: step(value), x)

    @lib.custom_vjp
    def root(a: Any) -> Any:
        return iterate(lambda x: 0.5 * (x + a / x), a)

    def forward(a: Any) -> Any:
        x = root(a)
        return x, (a, x)

    def backward(residuals: Any, ct: Any) -> Any:
        a, x = residuals
        _, by_x = lib.vjp(lambda x: 0.5 * (x + a / x), x)
        total = iterate(lambda u: ct + by_x(u)[0], ct)
        _, by_a = lib.vjp(lambda a: 0.5 * (x + a / x), a)
        return by_a(total)

    root.defvjp(forward, backward)
    return lambda x: (root(x) ** 3).sum()


PARAMETERS = np.array([0.1, -1.0, -2.0], np.float32)
PROGRAMS: dict[Callable, np.ndarray] = {
    gaussian_process: PARAMETERS,
    kalman_filter: np.array([0.1], np.float32),
    recurrent_network: np.sin(np.arange(48, dtype=np.float32)).reshape(6, 8),
    runge_kutta: np.array([1.0, 0.0], np.float32),
    branches_in_a_loop: np.array([0.3, 0.7], np.float32),
    sinkhorn: GRID**2 + 1,
    soft_time_warping: GRID**2,
    fixed_point: np.array([2.0, 3.0], np.float32),
}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_values_and_gradients(program: Callable) -> None:
    argument = PROGRAMS[program]
    with jax.default_matmul_precision("highest"):
        expected = jax.value_and_grad(program(jax))(argument)
    differentiated = axir.value_and_grad(program(axir))
    for run in (differentiated, axir.jit(differentiated)):
        value, gradient = run(argument)
        np.testing.assert_allclose(value, expected[0], rtol=1e-4)
        scale = np.abs(np.asarray(expected[1])).max()
        np.testing.assert_allclose(gradient, expected[1], rtol=1e-3, atol=1e-4 * scale)


def test_stop_gradient_takes_a_tree() -> None:
    def f(x: Any) -> Any:
        held = axir.lax.stop_gradient({"factor": x, "none": None})
        return x * held["factor"]

    assert float(axir.grad(f)(3.0)) == 3.0


def test_wrong_cotangents_and_tangents_are_value_errors() -> None:
    with pytest.raises(ValueError, match="Cotangent of type"):
        axir.vjp(axir.numpy.sin, 1.0)[1](axir.numpy.ones(3))
    with pytest.raises(ValueError, match="Tangent of type"):
        axir.jvp(axir.numpy.sin, (1.0,), (axir.numpy.ones(3),))


def test_second_derivatives_of_a_loop_with_many_carries() -> None:
    def lorenz(lib: Any) -> Callable:
        jnp = lib.numpy

        def field(p: Any, y: Any) -> Any:
            change = y[0] * (p[1] - y[2]) - y[1]
            return jnp.array([p[0] * (y[1] - y[0]), change, y[0] * y[1] - p[2] * y[2]])

        def step(p: Any, y: Any) -> Any:
            k1 = field(p, y)
            k2 = field(p, y + 0.005 * k1)
            k3 = field(p, y + 0.005 * k2)
            y = y + 0.01 / 6 * (k1 + 2 * k2 + 2 * k3 + field(p, y + 0.01 * k3))
            return y, y

        return lambda p: (
            lib.lax.scan(lambda y, _: step(p, y), jnp.ones(3), None, length=4)[1] ** 2
        ).sum()

    argument = np.array([10.0, 28.0, 8 / 3], np.float32)
    expected = np.asarray(jax.hessian(lorenz(jax))(argument))
    result = axir.jit(axir.hessian(lorenz(axir)))(argument)
    np.testing.assert_allclose(result, expected, rtol=1e-3, atol=1e-4 * np.abs(expected).max())
