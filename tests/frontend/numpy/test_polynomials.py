"""Polynomials and window functions against JAX and NumPy."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from support.against_jax import Weak, compare, same_error

import axir
import axir.numpy as jnp
from axir.dialect.core.errors import ParameterError, TracerArrayConversionError


def check(name: str, *args: Any, **kwargs: Any) -> None:
    compare(getattr(jnp, name), getattr(jax.numpy, name), *args, **kwargs)


def fails(name: str, *args: Any, **kwargs: Any) -> str:
    return str(same_error(getattr(jnp, name), getattr(jax.numpy, name), *args, **kwargs))


WHOLE = np.array([1, -2, 3])
REAL = np.array([0.5, 1.5, -2, 4], np.float32)
COMPLEX = np.array([1j, 2, 1 - 1j], np.complex64)


@pytest.mark.parametrize("name", ["polyadd", "polysub", "polymul"])
def test_arithmetic(name: str) -> None:
    check(name, WHOLE, WHOLE[:2])
    check(name, REAL, WHOLE)
    check(name, COMPLEX[1:], REAL)
    check(name, Weak(np.full(2, 3.0)), Weak(np.full(3, 2.0)))
    fails(name, [1], WHOLE)
    assert "vector" in fails(name, np.ones((2, 2)), WHOLE)


def test_trimmed_product() -> None:
    check("polymul", np.array([0, 0, 1, 2]), WHOLE, trim_leading_zeros=True)
    check("polymul", np.zeros(3), WHOLE, trim_leading_zeros=True)


def test_quotient() -> None:
    check("polydiv", np.array([1.0, 5, 7]), np.array([1.0, 2]))
    check("polydiv", REAL, np.array([2.0], np.float32))
    check("polydiv", np.array([3.0], np.float32), REAL)
    check("polydiv", np.array([1, 5, 7]), np.array([1, 2]), trim_leading_zeros=True)
    check("polydiv", COMPLEX, np.array([2, 1], np.complex64))


@pytest.mark.parametrize("order", [0, 1, 2, 3, 5])
def test_calculus(order: int) -> None:
    for p in (WHOLE, REAL, COMPLEX):
        check("polyder", p, order)
        check("polyint", p, order)
    check("polyint", REAL, order, 3) if order else None
    check("polyint", REAL, 2, np.array([3, 4]))
    check("polyint", REAL, 1, np.array([3.0]))


def test_errors_of_calculus() -> None:
    assert "must be positive" in fails("polyder", REAL, -1)
    assert "must be positive" in fails("polyint", REAL, -1)
    assert "1 or m=2" in fails("polyint", REAL, 2, np.ones(3))


def test_values() -> None:
    check("polyval", WHOLE, 2)
    check("polyval", REAL, np.linspace(-1, 1, 6).reshape(2, 3).astype(np.float32))
    check("polyval", COMPLEX, REAL)
    check("polyval", np.zeros(0, np.float32), np.float32(2))
    check("polyval", np.arange(6.0).reshape(2, 3), np.array([1.0, 2, 3]), unroll=4)
    with pytest.raises(ParameterError, match="scalar"):
        jnp.polyval(np.float32(3), REAL)


def test_gradient_of_values() -> None:
    gradient = axir.grad(lambda x: jnp.polyval(REAL, x))(2.0)
    np.testing.assert_allclose(gradient, np.polyval(np.polyder(REAL), 2.0))


def test_polynomial_of_zeros() -> None:
    check("poly", np.array([1.0, 2.0, -0.5], np.float32))
    check("poly", WHOLE)
    check("poly", COMPLEX)
    check("poly", np.zeros(0, np.float32))
    check("poly", np.float32(3))
    check("poly", np.array([[1.0, 2], [3, 4]], np.float32), factor=16)
    assert "(2, 3)" in fails("poly", np.ones((2, 3)))


@pytest.mark.parametrize(
    "p", [[1, -3, 2], [0, 0, 1, -3, 2, 0, 0], [2.0, 1.0], [0, 5, 0], [0, 0], [1, 0, 1]]
)
def test_roots(p: list[float]) -> None:
    p = np.array(p, np.float32)
    result, expected = np.asarray(jnp.roots(p)), jax.numpy.roots(p)
    assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
    order = np.lexsort((np.round(np.roots(p).imag, 3), np.round(np.roots(p).real, 3)))
    ours = result[np.lexsort((np.round(result.imag, 3), np.round(result.real, 3)))]
    np.testing.assert_allclose(ours, np.roots(p)[order], atol=1e-5)


def test_traced_roots() -> None:
    with pytest.raises(TracerArrayConversionError):
        axir.jit(jnp.roots)(REAL)
    result = axir.jit(lambda p: jnp.roots(p, strip_zeros=False))(np.array([1.0, -3.0, 2.0]))
    np.testing.assert_allclose(np.sort(np.asarray(result).real), [1, 2], rtol=1e-6)


# Windows ---------------------------------------------------------------------------------------

WINDOWS = ("bartlett", "blackman", "hamming", "hanning")


@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize("count", [0, 1, 2, 3, 8])
def test_windows(name: str, count: int) -> None:
    result = getattr(jnp, name)(count)
    assert result.dtype == getattr(jax.numpy, name)(count).dtype
    np.testing.assert_allclose(result, getattr(np, name)(count), rtol=2e-7, atol=1e-7)


@pytest.mark.parametrize("beta", [0, 8.6, -3.0, 700.0])
def test_kaiser(beta: float) -> None:
    for count in (1, 7):
        result = jnp.kaiser(count, beta)
        np.testing.assert_allclose(result, np.kaiser(count, beta), rtol=1e-4, atol=1e-7)


def test_traced_beta() -> None:
    result = axir.jit(lambda beta: jnp.kaiser(5, beta))(2.0)
    np.testing.assert_allclose(result, np.kaiser(5, 2.0), rtol=1e-6)


@pytest.mark.parametrize("name", WINDOWS)
def test_errors_of_windows(name: str) -> None:
    assert "negative" in fails(name, -1)
    with pytest.raises(TypeError, match="integer"):
        getattr(jnp, name)(2.5)


def test_empty_polynomials_have_no_quotient() -> None:
    with pytest.raises(ParameterError, match="at least one coefficient"):
        jnp.polydiv(np.zeros(0), np.ones(2))
