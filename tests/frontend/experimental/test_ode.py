"""`odeint` against SciPy, and its derivatives against solutions in closed form."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import axir
import axir.numpy as jnp
from axir.errors import DTypeError, ForwardModeError, ParameterError, ShapeError
from axir.experimental.ode import odeint
from axir.test_util import check_grads

TIMES = np.linspace(0.0, 1.0, 4)


def pendulum(state: Any, t: Any, friction: Any, gravity: Any) -> Any:
    angle, speed = state["angle"], state["speed"]
    return {"angle": speed, "speed": -friction * speed - gravity * jnp.sin(angle) + jnp.cos(t)}


def test_a_pendulum() -> None:
    with axir.enable_x64(True):
        start = {"angle": 3.0, "speed": jnp.array(0.0)}
        found = odeint(pendulum, start, TIMES, 0.25, 9.8, rtol=1e-9, atol=1e-9)
        expected = solve_ivp(
            lambda t, y: [y[1], -0.25 * y[1] - 9.8 * np.sin(y[0]) + np.cos(t)],
            (0, 1), [3.0, 0.0], t_eval=TIMES, rtol=1e-10, atol=1e-10,
        )  # fmt: skip
        np.testing.assert_allclose(found["angle"], expected.y[0], atol=1e-7)
        np.testing.assert_allclose(found["speed"], expected.y[1], atol=1e-7)


def test_derivatives() -> None:
    with axir.enable_x64(True):

        def solve(start: Any, times: Any, friction: Any, gravity: Any) -> Any:
            return odeint(pendulum, start, times, friction, gravity, rtol=1e-8, atol=1e-8)

        start = {"angle": jnp.array(3.0), "speed": jnp.array(0.1)}
        arguments = (start, jnp.asarray(TIMES[:3]), 0.25, 9.8)
        check_grads(solve, arguments, order=1, modes=["rev"], rtol=1e-4, atol=1e-4)


def test_second_derivatives_and_closures() -> None:
    """exp(a t) has the derivatives t^n exp(a t) in a."""
    with axir.enable_x64(True):

        def end(a: Any) -> Any:
            return odeint(lambda y, t: a * y, 1.0, jnp.array([0.0, 1.5]), rtol=1e-9, atol=1e-9)[1]

        value, slope = axir.value_and_grad(end)(0.5)
        second = axir.grad(axir.grad(end))(0.5)
        expected = np.exp(0.75) * 1.5 ** np.arange(3)
        np.testing.assert_allclose([value, slope, second], expected, rtol=1e-6)


def test_vmap_and_jit() -> None:
    rates = jnp.array([-1.0, 0.5])

    @axir.jit
    def ends(rates: Any) -> Any:
        def end(a: Any) -> Any:
            times = jnp.array([0.0, 1.0])
            return odeint(lambda y, t, a: a * y, 1.0, times, a, rtol=1e-5, atol=1e-5)[1]

        return axir.vmap(axir.value_and_grad(end))(rates)

    values, slopes = ends(rates)
    np.testing.assert_allclose(values, np.exp(rates), rtol=1e-4)
    np.testing.assert_allclose(slopes, np.exp(rates), rtol=1e-4)


def test_backwards_in_time_and_complex_states() -> None:
    times = jnp.array([1.0, 0.5, 0.5, 0.0])
    found = odeint(lambda y, t: 1j * y, jnp.complex64(1.0), times, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(found, np.exp(1j * (np.asarray(times) - 1)), atol=1e-5)
    assert odeint(lambda y, t: y, 2.0, jnp.array([3.0])).tolist() == [2.0]


def test_what_cannot_be_reached_is_nan() -> None:
    """1 / (1 - t) has no value at 1, and a small number of steps does not lead far."""
    times = jnp.array([0.0, 0.5, 2.0])
    found = odeint(lambda y, t: y * y, 1.0, times, rtol=1e-5, atol=1e-5, mxstep=200)
    np.testing.assert_allclose(found, [1.0, 2.0, np.nan], rtol=1e-3)
    found = odeint(lambda y, t: -y, 1.0, times, mxstep=2)
    np.testing.assert_array_equal(found, [1.0, np.nan, np.nan])
    found = odeint(lambda y, t: -y, 1.0, times, rtol=1e-5, atol=1e-5, hmax=0.1)
    np.testing.assert_allclose(found, np.exp(-np.asarray(times)), rtol=1e-4)


@pytest.mark.parametrize(
    ("times", "options", "error", "expected"),
    [
        (jnp.arange(3), {}, DTypeError, "t must be an array of floats, but got int32"),
        (jnp.ones((2, 2)), {}, ShapeError, "t must be a vector of at least one time"),
        (jnp.zeros(0), {}, ShapeError, "t must be a vector of at least one time"),
        (jnp.array([0.0, 1.0, 0.5]), {}, ParameterError, "the times in t go to and fro"),
        (jnp.ones(2), {"rtol": -1}, ParameterError, "rtol=-1 is not a positive number"),
    ],
)
def test_bad_arguments(times: Any, options: Any, error: type[Exception], expected: str) -> None:
    with pytest.raises(error, match=expected):
        odeint(lambda y, t: y, 1.0, times, **options)


def test_bad_functions() -> None:
    times = jnp.array([0.0, 1.0])
    with pytest.raises(ShapeError, match="func must return arrays like those of the state"):
        odeint(lambda y, t: jnp.ones(3), 1.0, times)
    with pytest.raises(TypeError, match="of type 'str', which is not an array"):
        odeint(lambda y, t, a: y, 1.0, times, "a")
    with pytest.raises(ForwardModeError):
        axir.jvp(lambda y: odeint(lambda y, t: y, y, times), (1.0,), (1.0,))
