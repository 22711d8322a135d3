"""Special functions: the compiled formulas against SciPy over wide domains, and edges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import mpmath
import numpy as np
import pytest
import scipy.special

import axir
from axir.dialect.core.config import config
from axir.dialect.core.errors import ParameterError, UnsupportedRuleError
from axir.dialect.ops.special import (
    bessel_formulas,
    gamma_formulas,
    incomplete_beta,
    incomplete_gamma,
)

_EPSILON = float(np.finfo(np.float64).eps)


def _points(seed: int, *ranges: tuple[float, float]) -> list[np.ndarray]:
    """Numbers of all magnitudes within ranges given by exponents of ten."""
    generator = np.random.default_rng(seed)
    return [10 ** generator.uniform(low, high, 400) for low, high in ranges]


def _assert_near(got: np.ndarray, want: np.ndarray, units: float) -> None:
    kept = np.abs(want) > 1e-280
    np.testing.assert_allclose(got[kept], want[kept], rtol=units * _EPSILON)


@pytest.mark.parametrize(
    ("formula", "reference", "exponents"),
    [
        (bessel_formulas.bessel_i0e, scipy.special.i0e, (-4, 6)),
        (bessel_formulas.bessel_i1e, scipy.special.i1e, (-4, 6)),
        (gamma_formulas.log_gamma, scipy.special.gammaln, (-6, 15)),
        (gamma_formulas.digamma, scipy.special.digamma, (-6, 15)),
    ],
)
def test_formulas_of_positive_numbers(
    formula: Callable[..., Any], reference: Callable[..., Any], exponents: tuple[float, float]
) -> None:
    (x,) = _points(0, exponents)
    x = x[np.abs(x - 1.5) > 0.6]  # between the zeros of log gamma relative errors mean nothing
    _assert_near(formula(x), reference(x), 30)


def test_reflected_formulas() -> None:
    x = -np.random.default_rng(0).uniform(0, 30, 400)
    for formula, reference in [
        (gamma_formulas.log_gamma, scipy.special.gammaln),
        (gamma_formulas.digamma, scipy.special.digamma),
    ]:
        want = reference(x)
        np.testing.assert_allclose(formula(x), want, rtol=1e-12, atol=1e-12)


def test_incomplete_gamma_on_all_its_methods() -> None:
    a, x = _points(1, (-3, 4), (-3, 4))
    near = a * np.random.default_rng(2).uniform(0.5, 2, a.size)
    for point in (x, near):
        lower, upper = incomplete_gamma.incomplete_gamma(a, point)
        # SciPy itself is thousands of units off where one of them is tiny and a is large.
        for got, want in [
            (lower, scipy.special.gammainc(a, point)),
            (upper, scipy.special.gammaincc(a, point)),
        ]:
            kept = want > 1e-100
            np.testing.assert_allclose(got[kept], want[kept], rtol=2e-12)
        np.testing.assert_allclose(lower + upper, 1, rtol=1e-13)


def test_gamma_slopes_are_limits_of_differences() -> None:
    a, x = _points(3, (-1, 3.5), (-1, 1))
    x = a * np.random.default_rng(4).uniform(0.7, 1.4, a.size)
    step = 1e-5 * a
    difference = (scipy.special.gammainc(a + step, x) - scipy.special.gammainc(a - step, x)) / (
        2 * step
    )
    got = incomplete_gamma.igamma_grad_a(a, x)
    np.testing.assert_allclose(a * got, a * difference, rtol=1e-5, atol=1e-8)
    density = np.exp((a - 1) * np.log(x) - x - scipy.special.gammaln(a))
    slope = incomplete_gamma.gamma_sample_slope(a, x)
    np.testing.assert_allclose(slope * density, -got, rtol=1e-9, atol=1e-13)


def test_gamma_slopes_neither_overflow_nor_vanish() -> None:
    a, x = np.array([300.0, 300.0, 1e-3, 1e8]), np.array([900.0, 20.0, 1e-30, 1.0001e8])
    slope = incomplete_gamma.gamma_sample_slope(a, x)
    # From 60 digits; the third is the sample's own derivative in a, -log(x) x / a.
    np.testing.assert_allclose(slope, [1.64879906, 0.19351885, 6.850198e-26, 1.00005], rtol=1e-6)


def test_incomplete_beta() -> None:
    a, b = _points(5, (-2, 3), (-2, 3))
    generator = np.random.default_rng(6)
    for x in (generator.uniform(0, 1, a.size), generator.beta(a, b)):
        inner = (x > 0) & (x < 1)
        got = incomplete_beta.betainc(a[inner], b[inner], x[inner])
        want = scipy.special.betainc(a[inner], b[inner], x[inner])
        kept = want > 1e-100
        np.testing.assert_allclose(got[kept], want[kept], rtol=1e-12)


def test_zeta_and_polygamma() -> None:
    s, q = _points(7, (0.01, 1.5), (-2, 3))
    np.testing.assert_allclose(gamma_formulas.zeta(s, q), scipy.special.zeta(s, q), rtol=1e-13)
    order = np.floor(s) % 12
    want = scipy.special.polygamma(order.astype(int), q)
    np.testing.assert_allclose(gamma_formulas.polygamma(order, q), want, rtol=1e-13)


@pytest.mark.parametrize("name", ["igamma", "igammac", "bessel_i0e", "bessel_i1e", "lgamma"])
def test_second_derivatives_are_those_of_jax(name: str) -> None:
    ours, theirs = getattr(axir.lax, name), getattr(jax.lax, name)
    first = (np.float32(2.5),) if "gamma" in name and name != "lgamma" else ()
    x = np.float32(1.7)
    got = axir.grad(axir.grad(lambda x: ours(*first, x)))(x)
    want = jax.grad(jax.grad(lambda x: theirs(*first, x)))(x)
    np.testing.assert_allclose(float(got), float(want), rtol=1e-4)


@pytest.mark.parametrize(("s", "q"), [(1.01, 2.0), (1.5, 100.0), (3.0, 1.0), (20.0, 0.3)])
def test_derivatives_of_zeta_in_its_exponent(s: float, q: float) -> None:
    with axir.enable_x64():
        slope = axir.grad(axir.lax.zeta)
        assert float(slope(s, q)) == pytest.approx(float(mpmath.zeta(s, q, 1)), rel=1e-14)
        second = float(mpmath.diff(lambda s: mpmath.zeta(s, q), s, 2))
        assert float(axir.grad(slope)(s, q)) == pytest.approx(second, rel=1e-14)


def test_derivatives_in_parameters_are_refused() -> None:
    lax = axir.lax
    with pytest.raises(UnsupportedRuleError, match="no derivative in its parameter a"):
        axir.grad(lax.betainc)(1.0, 2.0, 0.5)
    with pytest.raises(UnsupportedRuleError, match="no derivative in its order m"):
        axir.grad(lax.polygamma)(1.0, 2.0)
    with pytest.raises(UnsupportedRuleError, match="not differentiated again"):
        axir.grad(lax.random_gamma_grad)(2.0, 2.0)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("bits", [(5, 10), (8, 7), (4, 3), (2, 1), (11, 52), (8, 0)])
def test_reduce_precision_is_that_of_jax(dtype: str, bits: tuple[int, int]) -> None:
    generator = np.random.default_rng(0)
    x = generator.standard_normal(200) * 10.0 ** generator.integers(-6, 5, 200)
    with config(jax_enable_x64=True), jax.enable_x64(True):
        values = np.asarray(jax.numpy.asarray(x).astype(dtype))
        ours = np.asarray(axir.lax.reduce_precision(values, *bits))
        theirs = np.asarray(jax.lax.reduce_precision(values, *bits))
    np.testing.assert_array_equal(ours, theirs)


def test_reduce_precision_refuses_impossible_formats() -> None:
    with pytest.raises(ParameterError, match="at least 1 exponent bit"):
        axir.lax.reduce_precision(1.0, 0, 3)


def test_barrier_stays_in_the_program_and_is_differentiated() -> None:
    def doubled(x: Any) -> Any:
        return axir.lax.optimization_barrier({"y": x * 2})["y"]

    assert float(axir.grad(doubled)(3.0)) == 2
    assert "optimization_barrier" in axir.jit(doubled).lower(3.0).as_text()
    np.testing.assert_array_equal(axir.vmap(doubled)(np.arange(3.0)), [0, 2, 4])


def test_index_take_wraps_indices() -> None:
    x = np.arange(24).reshape(2, 3, 4)
    rows, columns = np.array([0, -1, 1]), np.array([3, 4, -1])
    got = axir.lax.index_take(x, (rows, columns), (0, 2))
    np.testing.assert_array_equal(got, x[rows % 2, :, columns % 4])
    with pytest.raises(ParameterError, match="one vector of indices for each axis"):
        axir.lax.index_take(x, (rows,), (0, 1))
