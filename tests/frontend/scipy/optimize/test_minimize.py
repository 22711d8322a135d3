"""`axir.scipy.optimize.minimize` against the minima that SciPy finds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.optimize

import axir
import axir.numpy as jnp
from axir.scipy.optimize import OptimizeResults, minimize

METHODS = ("BFGS", "L-BFGS")


def rosenbrock(x: Any) -> Any:
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def himmelblau(x: Any) -> Any:
    return (x[0] ** 2 + x[1] - 11) ** 2 + (x[0] + x[1] ** 2 - 7) ** 2


def zakharov(x: Any) -> Any:
    tilted = (0.5 * np.arange(x.size, dtype=x.dtype) * x).sum()
    return (x**2).sum() + tilted**2 + tilted**4


def matyas(x: Any) -> Any:
    return 0.26 * (x[0] ** 2 + x[1] ** 2) - 0.48 * x[0] * x[1]


@axir.custom_jvp
def misled(x: Any) -> Any:
    """Computes a sum of squares with derivatives of the wrong sign."""
    return (x**2).sum()


misled.defjvp(lambda primals, tangents: (misled(*primals), -(primals[0] * tangents[0]).sum()))

PROBLEMS = [
    (rosenbrock, np.zeros(2)),
    (rosenbrock, np.full(6, 0.5)),
    (himmelblau, np.zeros(2)),
    (zakharov, np.full(6, 2.0)),
    (matyas, np.full(2, 3.0)),
]


@pytest.mark.parametrize("method", METHODS)
def test_minima_are_scipys(method: str) -> None:
    for bits in (32, 64):
        with axir.enable_x64(bits == 64):
            for function, start in PROBLEMS:
                x0 = start.astype(f"float{bits}")
                result = minimize(function, x0, method=method)
                expected = scipy.optimize.minimize(function, start, method="BFGS")
                assert result.success, (function.__name__, result.status)
                assert result.x.dtype == x0.dtype
                np.testing.assert_allclose(result.x, expected.x, atol=1e-2 if bits == 32 else 1e-3)
                assert np.abs(result.jac).max() < 1e-3
                assert result.nfev <= 3 * expected.nfev
                assert result.nit <= 2 * expected.nit + 4


def test_compiled_and_batched() -> None:
    @axir.jit
    def find(starts: Any) -> list[Any]:
        return [
            axir.vmap(lambda x, m=method: minimize(himmelblau, x, method=m).fun)(starts)
            for method in METHODS
        ]

    starts = np.random.default_rng(0).uniform(-4, 4, (5, 2)).astype(np.float32)
    for values in find(starts):
        np.testing.assert_allclose(values, 0, atol=1e-6)


def test_the_inverse_of_the_hessian_is_estimated() -> None:
    matrix = jnp.array([[3.0, 1.0], [1.0, 2.0]])
    result = minimize(lambda x: x @ matrix @ x / 2 - x.sum(), jnp.zeros(2), method="bfgs")
    np.testing.assert_allclose(result.x, np.linalg.solve(matrix, [1, 1]), rtol=1e-4)
    np.testing.assert_allclose(result.hess_inv, np.linalg.inv(matrix), rtol=0.1, atol=0.05)
    other = minimize(matyas, jnp.ones(2), method="l-bfgs-experimental-do-not-rely-on-this")
    assert other.hess_inv is None
    assert isinstance(other, OptimizeResults)


def test_forward_derivatives_are_those_of_the_passes() -> None:
    with axir.enable_x64(True):

        def minimum(a: Any) -> Any:
            start = jnp.zeros(2)
            return minimize(
                lambda x, a: ((x - a) ** 2).sum(), start, (a,), method="BFGS", tol=1e-9
            ).x

        _, tangent = axir.jvp(minimum, (2.0,), (1.0,))
        np.testing.assert_allclose(tangent, 1, rtol=1e-6)


def test_complex_numbers_are_two_variables_each() -> None:
    target = np.array([1 + 2j, -3j], np.complex64)
    result = minimize(lambda z: (jnp.abs(z - target) ** 2).sum(), jnp.ones(2) + 0j, method="L-BFGS")
    np.testing.assert_allclose(result.x, target, atol=1e-4)
    first = minimize(
        lambda z: (jnp.abs(z - target) ** 2).sum(), target * 0, method="L-BFGS",
        options={"maxiter": 0},
    )  # fmt: skip
    gradient = axir.grad(lambda z: (jnp.abs(z - target) ** 2).sum())(jnp.array(target * 0))
    np.testing.assert_allclose(first.jac, gradient)


@pytest.mark.parametrize(
    ("method", "function", "options", "status"),
    [
        ("BFGS", rosenbrock, {"maxiter": 2}, 1),
        ("BFGS", misled, {}, 2),
        ("BFGS", lambda x: x.sum() * jnp.nan, {}, 3),
        ("L-BFGS", rosenbrock, {"maxiter": 2}, 1),
        ("L-BFGS", rosenbrock, {"maxfun": 3}, 2),
        ("L-BFGS", rosenbrock, {"maxgrad": 3}, 3),
        ("L-BFGS", rosenbrock, {"ftol": 0.5, "gtol": 0}, 4),
        ("L-BFGS", misled, {}, 5),
        ("L-BFGS", lambda x: x.sum() * jnp.inf, {}, 6),
    ],
)
def test_the_state_tells_why_it_ended(
    method: str, function: Callable[[Any], Any], options: dict[str, Any], status: int
) -> None:
    result = minimize(function, jnp.array([-1.0, 2.0]), method=method, options=options)
    assert result.status == status
    assert result.success == (status in (0, 4))


def test_a_function_without_a_minimum_is_no_success() -> None:
    result = minimize(lambda x: -(x**3).sum(), jnp.ones(1), method="BFGS")
    assert not result.success


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: minimize(abs, jnp.ones(1), method="Powell"), "ParameterError", "'L-BFGS'"),
        (
            lambda: minimize(abs, jnp.ones(1), method="BFGS", options={"maxcor": 3}),
            "ParameterError",
            "no option 'maxcor'",
        ),
        (lambda: minimize(abs, jnp.ones(1), 3.0, method="BFGS"), "TreeError", "args=(a,)"),
        (lambda: minimize(abs, jnp.ones((1, 2)), method="BFGS"), "ShapeError", "(1, 2)"),
        (lambda: minimize(abs, jnp.ones(2) + 1j, method="BFGS"), "DTypeError", "L-BFGS"),
        (lambda: minimize(jnp.sin, jnp.ones(2), method="BFGS"), "GradientError", "scalar"),
    ],
)
def test_errors(call: Callable[[], Any], error: str, text: str) -> None:
    with pytest.raises(axir.errors.AxirError) as caught:
        call()
    assert type(caught.value).__name__ == error
    assert text in str(caught.value)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_minima_of_steep_functions(dtype: Any) -> None:
    with axir.enable_x64(dtype is jnp.float64):
        scales = jnp.asarray([[s, s] for s in 10.0 ** np.arange(7)] + [[1, 1e4], [1e5, 1e3]], dtype)

        def least(scale: Any) -> Any:
            found = minimize(
                lambda x: jnp.mean((jnp.diag(scale) @ x) ** 2), jnp.ones(2, dtype), method="BFGS"
            )
            return found.x, found.success, found.nit

        x, success, passes = axir.jit(axir.vmap(least))(scales)
        np.testing.assert_allclose(x, np.zeros((9, 2)), atol=1e-6)
        assert success.all()
        assert passes.max() <= 20
