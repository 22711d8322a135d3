"""Special functions against JAX and mpmath."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
import scipy.special
from jax.scipy import special as jax_special
from support.against_jax import assert_close, compare

import axir
import axir.numpy as jnp
from axir.dialect.core.array import from_numpy
from axir.scipy import special

UNARY = {
    "erf": np.array([-4, -1, -0.1, 0, 0.5, 3, np.inf, np.nan], np.float32),
    "erfc": np.array([-4, -1, -0.1, 0, 0.5, 3, 8, np.inf, np.nan], np.float32),
    "erfinv": np.array([-1, -0.99, -0.3, 0, 0.5, 0.999, 1], np.float32),
    "expit": np.array([-100, -1, 0, 2, 90, np.nan], np.float32),
    "logit": np.array([0, 1e-6, 0.3, 0.5, 0.9, 1], np.float32),
    "ndtr": np.array([-10, -4, -0.3, 0, 1, 5], np.float32),
    "entr": np.array([-1, 0, 0.3, 1, 7, np.inf], np.float32),
}
BINARY = ("xlogy", "xlog1py", "rel_entr", "kl_div")


def both(name: str) -> tuple[Any, Any]:
    return getattr(special, name), getattr(jax_special, name)


@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str) -> None:
    compare(*both(name), UNARY[name], factor=64.0)
    compare(*both(name), 0.3, factor=64.0)
    if name != "ndtr":  # which in JAX takes single and double precision only
        compare(*both(name), UNARY[name][1:3].astype(np.float16), factor=4.0)
        compare(*both(name), np.array([1], np.int32), factor=64.0)


@pytest.mark.parametrize("name", UNARY)
def test_unary_gradients(name: str) -> None:
    inside = UNARY[name][(np.abs(UNARY[name]) < 0.99) & (UNARY[name] > 0)]
    ours = axir.vmap(axir.grad(getattr(special, name)))(from_numpy(inside))
    assert_close(np.asarray(ours), np.asarray(jax.vmap(jax.grad(both(name)[1]))(inside)), 64.0)


@pytest.mark.parametrize("name", BINARY)
def test_binary(name: str) -> None:
    points = np.array([-1, 0, 0.3, 1, 5, np.inf, np.nan], np.float32)
    x, y = (grid.ravel() for grid in np.meshgrid(points, points))
    if name in ("rel_entr", "kl_div"):  # for infinite arguments JAX differs from SciPy
        is_finite = np.isfinite(x) & np.isfinite(y)
        x, y = x[is_finite], y[is_finite]
    compare(*both(name), x, y, factor=16.0)
    compare(*both(name), 0.5, y[:3], factor=16.0)
    compare(*both(name), x[:3], 2, factor=16.0)


@pytest.mark.parametrize("name", BINARY)
def test_binary_gradients(name: str) -> None:
    x, y = np.array([0.2, 3.0, 1.0], np.float32), np.array([0.7, 2.0, 1.5], np.float32)
    mine, theirs = both(name)
    ours = axir.vmap(axir.grad(mine, argnums=(0, 1)))(from_numpy(x), from_numpy(y))
    theirs = jax.vmap(jax.grad(theirs, argnums=(0, 1)))(x, y)
    for mine, expected in zip(ours, theirs, strict=True):
        assert_close(np.asarray(mine), np.asarray(expected), 32.0)


def test_products_of_logarithms_have_gradients_at_zero() -> None:
    for name in ("xlogy", "xlog1py"):
        slopes = axir.grad(getattr(special, name), argnums=(0, 1))(0.0, 2.0)
        expected = jax.grad(getattr(jax_special, name), argnums=(0, 1))(0.0, 2.0)
        assert [float(s) for s in slopes] == pytest.approx([float(s) for s in expected])
        assert float(axir.grad(special.xlogy, 1)(0.0, 0.0)) == 0


X = np.array([[1000, 0, -1], [-np.inf, -np.inf, -np.inf], [1, np.inf, 2]], np.float32)
B = np.array([[1, -2, 3], [1, 1, 0], [1, 1, 1]], np.float32)
MASK = np.array([[True, False, True], [True, True, True], [False, False, False]])


def test_logsumexp() -> None:
    functions = both("logsumexp")
    compare(*functions, X)
    compare(*functions, X, axis=1, keepdims=True)
    compare(*functions, X, axis=1, b=B)
    compare(*functions, X, axis=1, b=-B, return_sign=True)
    compare(*functions, X, axis=0, where=MASK)
    compare(*functions, np.array([1, 2, 3], np.int8))
    compare(*functions, X, axis=1, b=2.0)
    compare(*functions, 1.0, b=B)
    compare(*functions, np.array([1 + 2j, 3 - 1j], np.complex64))
    compare(*functions, np.array([1 + 2j, 3 - 1j], np.complex64), return_sign=True)
    compare(*functions, np.zeros((0,), np.float32))


def test_what_logsumexp_does_not_count_has_no_gradient() -> None:
    for left_out in (1e5, np.inf, np.nan):
        x = np.array([1, left_out, 2], np.float32)
        mask = np.array([True, False, True])
        slopes = axir.grad(lambda x, mask=mask: special.logsumexp(x, where=mask))(x)
        expected = [1 / (1 + np.e), 0, np.e / (1 + np.e)]
        np.testing.assert_allclose(np.asarray(slopes), expected, rtol=1e-6)


def test_gradient_of_logsumexp_is_softmax() -> None:
    x = np.array([3.0, -1.0, 700.0, 699.0], np.float32)
    ours = axir.grad(special.logsumexp)(from_numpy(x))
    assert_close(np.asarray(ours), np.asarray(jax.nn.softmax(x)), 64.0)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax(name: str) -> None:
    x = np.array([[1, 2, 3], [0, -5, 900]], np.float32)
    compare(*both(name), x)
    compare(*both(name), x, axis=0)


def test_complex_numbers_are_refused() -> None:
    with pytest.raises(axir.errors.DTypeError, match="complex"):
        special.erf(jnp.array(1j))


def test_compiled_as_evaluated() -> None:
    def everything(x: Any, y: Any) -> list[Any]:
        results = [getattr(special, name)(x) for name in UNARY]
        results += [getattr(special, name)(x, y) for name in BINARY]
        return [*results, special.logsumexp(x, b=y, return_sign=True)[0]]

    x, y = (from_numpy(np.array(v, np.float32)) for v in ([0.2, 0.5, 0.9], [0.3, 2.0, 0.1]))
    compiled = axir.jit(everything)(x, y)
    for ours, expected in zip(compiled, everything(x, y), strict=True):
        assert ours.type is expected.type
        assert_close(np.asarray(ours), np.asarray(expected), 64.0)


def test_gradients_of_products_with_logarithms_at_the_edge() -> None:
    points = np.array([[0, 0], [0, 1], [1, 0], [-1, 1], [0, -1]], np.float32).T
    for name in ("xlogy", "xlog1py"):
        ours, theirs = getattr(special, name), getattr(jax.scipy.special, name)
        by_x = [
            package.vmap(package.grad(f))(*points) for package, f in ((axir, ours), (jax, theirs))
        ]
        np.testing.assert_allclose(*by_x, rtol=1e-6)
        # Where x is 0 the function is 0 for all y; JAX has nan for some.
        by_y, expected = (
            np.asarray(package.vmap(package.grad(f, 1))(*points))
            for package, f in ((axir, ours), (jax, theirs))
        )
        np.testing.assert_allclose(by_y, np.where(points[0] == 0, 0, expected), rtol=1e-6)
    x = np.array([0.0, 0.5, np.inf, -1.0, np.nan], np.float32)
    expected = jax.vmap(jax.grad(jax.scipy.special.entr))(x)
    for transform in (lambda f: f, axir.jit):
        found = transform(axir.vmap(axir.grad(special.entr)))(x)
        np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize(("name", "mixed"), [("xlogy", 1 / 0.3), ("xlog1py", 1 / 1.3)])
def test_mixed_derivatives_of_products_with_logarithms_at_zero(name: str, mixed: float) -> None:
    curvature = axir.hessian(getattr(special, name), (0, 1))(0.0, 0.3)
    np.testing.assert_allclose(np.array(curvature), [[0, mixed], [mixed, 0]], rtol=1e-6)
    assert float(axir.grad(getattr(special, name), 1)(0.0, 0.0)) == 0


def test_values_at_infinities_zeros_and_nan() -> None:
    """As in SciPy, where JAX gives nan or infinity: evaluated, and compiled in one program."""
    inf, nan = np.inf, np.nan
    cases: dict[str, tuple[list[list[float]], list[float]]] = {
        "beta": ([[inf, 2, inf, inf, 0.5], [2, inf, 0, -0.5, inf]], [0, 0, inf, -inf, 0]),
        "betaln": ([[inf, 2, inf, nan], [2, inf, 0, inf]], [-inf, -inf, inf, nan]),
        "digamma": ([[0.0, -0.0, -1.0, nan]], [-inf, inf, nan, nan]),
        "rel_entr": ([[1, nan, 0, nan, 1], [nan, 1, nan, 0, inf]], [nan, nan, nan, nan, -inf]),
        "kl_div": ([[1, nan, 0], [nan, 1, inf]], [nan, nan, inf]),
        "zeta": ([[1e3, 1e15, 1e30, 1e3, 1e15, 1e3], [1, 1, 1, 2, 2, 0.5]], [1, 1, 1, 0, 0, inf]),
        "betainc": ([[30, 1000, 300, 25], [1000, 30, 300, 38], [0.25, 0.25, 0.5, 0.4]], []),
    }
    arguments = {name: [np.array(x, np.float32) for x in rows] for name, (rows, _) in cases.items()}
    functions = {name: getattr(special, name) for name in cases}
    compiled = axir.jit(lambda given: {n: functions[n](*xs) for n, xs in given.items()})(arguments)
    for name, (_, expected) in cases.items():
        values = arguments[name]
        right = expected or scipy.special.betainc(*(x.astype(np.float64) for x in values))
        np.testing.assert_allclose(functions[name](*values), right, rtol=1e-5, err_msg=name)
        np.testing.assert_allclose(compiled[name], right, rtol=1e-5, err_msg=name)


def test_bessel_functions_just_below_overflow() -> None:
    with axir.enable_x64(True):
        x = np.array([713.0, 100.0, -5.0, 0.0])
        for function in (special.i0, special.i1, axir.numpy.i0):
            right = getattr(scipy.special, function.__name__)(x)  # which overflows at 713
            right[0] = 6.700424559186402e307 if function is special.i1 else 6.705128263670996e307
            np.testing.assert_allclose(function(x), right, rtol=1e-14)
            np.testing.assert_allclose(axir.jit(function)(x), right, rtol=1e-14)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sums_of_exponentials_exceed_the_range_of_halves(dtype: str) -> None:
    zeros = axir.numpy.zeros(131072, dtype)
    for run in (lambda f: f, axir.jit):
        found = run(
            lambda x: (special.logsumexp(x), special.softmax(x)[0], special.log_softmax(x)[0])
        )(zeros)
        assert all(x.dtype == dtype for x in found)
        right = [np.log(131072), 1 / 131072, -np.log(131072)]
        np.testing.assert_allclose([float(x) for x in found], right, rtol=1e-2)
    x = axir.numpy.array([60000, 0, 0, 0], dtype)
    ct = axir.numpy.array([-30000, -30000, -30000, 0], dtype)
    (gradient,) = axir.vjp(special.log_softmax, x)[1](ct)
    right = [60000, -30000, -30000, 0]
    np.testing.assert_allclose(gradient.astype("float32"), right, rtol=1e-2)
