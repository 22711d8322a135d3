"""Special functions that are integrals, hypergeometric ones, harmonics: against SciPy, mpmath."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import jax.scipy.special
import mpmath
import numpy as np
import pytest
import scipy.special

import axir
import axir.numpy as jnp
from axir.dialect.core.config import config
from axir.dialect.core.errors import DTypeError, ParameterError, ShapeError, UnsupportedRuleError
from axir.dialect.ops.special import (
    error_formulas,
    hypergeometric_formulas,
    integral_formulas,
)
from axir.scipy import special
from axir.scipy.special._harmonics import DegreeError

_GENERATOR = np.random.default_rng(0)
_EDGES = np.array([0, -0.0, 1, -1, 0.5, 5, 12, 24, 1e-300, 1e8, np.inf, -np.inf, np.nan])
_SIZES = np.concatenate([10 ** _GENERATOR.uniform(-8, 4, 600), _EDGES])
_REAL = np.concatenate([_SIZES, -_SIZES, _GENERATOR.uniform(-30, 30, 600)])


@pytest.fixture(autouse=True)
def wide_dtypes() -> Iterator[None]:
    with config(jax_enable_x64=True):
        yield


def assert_near(got: Any, want: Any, units: float = 40, least: float = 1e-290) -> None:
    got, want = np.asarray(got), np.asarray(want)
    kept = ~(abs(want) < least) | (want == 0)
    np.testing.assert_allclose(got[kept], want[kept], rtol=units * 2.0**-52)


def test_names_and_signatures_are_those_of_jax() -> None:
    for name in dir(jax.scipy.special):
        theirs = getattr(jax.scipy.special, name)
        if name.startswith("_") or not callable(theirs):
            continue
        mine = inspect.signature(getattr(special, name)).parameters.values()
        expected = inspect.signature(theirs).parameters.values()
        assert [(p.name, p.default, p.kind) for p in mine] == [
            (p.name, p.default, p.kind) for p in expected
        ], name


@pytest.mark.parametrize("name", ["erfcx", "dawsn", "exp1", "expi", "spence", "sici", "fresnel"])
def test_function_is_that_of_scipy(name: str) -> None:
    x = _REAL[abs(_REAL) < 1e10] if name == "fresnel" else _REAL
    got, want = getattr(special, name)(x), getattr(scipy.special, name)(x)
    for mine, theirs in zip(np.atleast_2d(got), np.atleast_2d(want), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert axir.tree.leaves(getattr(special, name)(np.int32(2)))[0].dtype == np.float32


@pytest.mark.parametrize(
    ("formula", "reference"),
    [
        (error_formulas.erfcx, scipy.special.erfcx),
        (error_formulas.dawson, scipy.special.dawsn),
        (integral_formulas.exponential_integral, scipy.special.exp1),
        (integral_formulas.principal_integral, scipy.special.expi),
        (integral_formulas.sine_integral, lambda x: scipy.special.sici(x)[0]),
        (integral_formulas.fresnel_sine, lambda x: scipy.special.fresnel(x)[0]),
        (integral_formulas.fresnel_cosine, lambda x: scipy.special.fresnel(x)[1]),
        (integral_formulas.spence, scipy.special.spence),
    ],
)
def test_compiled_formula_is_the_function(
    formula: Callable[..., Any], reference: Callable[..., Any]
) -> None:
    x = _REAL[~((700 < _REAL) & (_REAL < 800))]  # where SciPy's expi overflows early
    with np.errstate(all="ignore"):
        assert_near(formula(x), reference(x), 100)


def test_cosine_integral_has_zeros() -> None:
    with np.errstate(all="ignore"):
        got, want = integral_formulas.cosine_integral(_REAL), scipy.special.sici(_REAL)[1]
    np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-15)


def test_normal_quantiles() -> None:
    p = np.concatenate([10 ** _GENERATOR.uniform(-307, 0, 400), _GENERATOR.uniform(0, 1, 400)])
    p = np.concatenate([p, [0, 1, 0.5, -1, 2, np.nan, 5e-324, 1 - 1e-15]])
    assert_near(error_formulas.normal_quantile(p), scipy.special.ndtri(p), 8)
    np.testing.assert_array_equal(special.ndtri(p), scipy.special.ndtri(p))


def test_faddeevas_function() -> None:
    z = _GENERATOR.uniform(-12, 12, 500) + 1j * _GENERATOR.choice([-1, 1], 500) * (
        10 ** _GENERATOR.uniform(-12, 1, 500)
    )
    z = np.concatenate([z, [0, 1j, -1j, np.inf, complex(0, np.inf), 1e200]])
    with np.errstate(all="ignore"):
        real, imag = error_formulas.faddeeva(z.real, z.imag)
    want = scipy.special.wofz(z)
    finite = np.isfinite(want)
    np.testing.assert_allclose((real + 1j * imag)[finite], want[finite], rtol=1e-13)
    np.testing.assert_array_equal(special.wofz(z), want)
    assert special.wofz(np.float32(1)).dtype == np.complex64
    slope = axir.jvp(special.wofz, (1 + 2j,), (1.0 + 0j,))[1]
    step = (scipy.special.wofz(1 + 2j + 1e-6) - scipy.special.wofz(1 + 2j - 1e-6)) / 2e-6
    np.testing.assert_allclose(slope, step, rtol=1e-8)


def test_generalized_exponential_integrals() -> None:
    x = np.append(10 ** _GENERATOR.uniform(-5, 2.5, 400), [0, np.inf, np.nan, -1, 1])
    n = np.append(_GENERATOR.integers(0, 60, 400), [2, 1, 3, 1, 0])
    want = scipy.special.expn(n, x)
    with np.errstate(all="ignore"):
        assert_near(integral_formulas.generalized_integral(n.astype(float), x), want, 200)
    np.testing.assert_array_equal(special.expn(n, x), want)
    assert np.isnan(special.expn(1.5, 1.0))
    assert np.isnan(special.expn(-1, 1.0))


def test_owens_t() -> None:
    h, a = 10 ** _GENERATOR.uniform(-3, 1.4, (2, 200))
    a = a * _GENERATOR.choice([-1, 1], 200)
    got = integral_formulas.owens_t(h, a)
    want = scipy.special.owens_t(h, a)
    np.testing.assert_allclose(got, want, rtol=3e-13, atol=1e-17)
    # Where SciPy subtracts: mpmath's integral.
    mpmath.mp.dps = 25
    exact = mpmath.quad(lambda t: mpmath.exp(-12.5 * (1 + t * t)) / (1 + t * t), [0, 1e-8])
    got = integral_formulas.owens_t(np.array(5.0), np.array(1e-8))
    np.testing.assert_allclose(got, float(exact / 2 / mpmath.pi))
    edges = [(np.inf, 1, 0), (1, 0, 0), (0, -np.inf, -0.25), (np.nan, 1, np.nan)]
    for h, a, value in edges:
        np.testing.assert_array_equal(special.owens_t(h, a), value)


@pytest.mark.parametrize("name", ["hyp1f1", "hyp2f1"])
def test_hypergeometric_functions(name: str) -> None:
    count = 40
    a, b = _GENERATOR.uniform(-3, 4, count), _GENERATOR.uniform(0.2, 5, count)
    c = _GENERATOR.uniform(0.3, 7, count)
    if name == "hyp1f1":
        x = _GENERATOR.choice([-1, 1], count) * 10 ** _GENERATOR.uniform(-2, 2.7, count)
        args, formula = (a, c, x), hypergeometric_formulas.confluent
    else:
        below, near = -(10 ** _GENERATOR.uniform(-2, 5, count)), _GENERATOR.uniform(-6, 0, count)
        x = np.where(_GENERATOR.uniform(size=count) < 0.5, 1 - 10**near, below)
        b[:10], c[:10], a[:10] = 1.5, 3.5, 1  # c - a - b is an integer
        args, formula = (a, b, c, x), hypergeometric_formulas.gauss
    want = [float(getattr(mpmath, name)(*map(float, row))) for row in zip(*args, strict=True)]
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(formula(*args), want, rtol=2e-11)
    np.testing.assert_allclose(getattr(special, name)(*args), want, rtol=2e-11)


def test_edges_of_hypergeometric_functions() -> None:
    a, b = np.array([1.0, -1, -2, 0]), np.array([-1.0, -2, -1, -1])
    with np.errstate(all="ignore"):
        got = hypergeometric_formulas.confluent(a, b, np.full(4, 0.5))
        np.testing.assert_allclose(got, [np.inf, 1.25, np.inf, 1], rtol=1e-15)
        np.testing.assert_allclose(special.hyp1f1(a, b, 0.5), got, rtol=1e-15)
        for first, x in ((0.5, 1.0), (-2.0, 2.5)):
            c = np.array([2.0, 1, 0.5, 3, -1, -3])
            args = [np.full(6, first), np.full(6, 0.5), c, np.full(6, x)]
            got = hypergeometric_formulas.gauss(*args)
            np.testing.assert_allclose(got, scipy.special.hyp2f1(first, 0.5, c, x), rtol=1e-13)


@pytest.mark.parametrize(
    ("name", "args"), [("hyp1f1", (1.3, 2.4, -1.7)), ("hyp2f1", (0.7, 1.2, 2.3, -0.8))]
)
def test_derivatives_of_hypergeometric_functions(name: str, args: tuple[float, ...]) -> None:
    function = getattr(special, name)
    slopes = axir.grad(function, tuple(range(len(args))))(*args)
    for i, slope in enumerate(slopes):
        exact = mpmath.diff(
            lambda v, i=i: getattr(mpmath, name)(*args[:i], v, *args[i + 1 :]), args[i]
        )
        np.testing.assert_allclose(float(slope), float(exact), rtol=1e-12)
        # Twice: in the argument, then in a parameter.
        if i < len(args) - 1:
            mixed = axir.grad(axir.grad(function, i), len(args) - 1)(*args)
            step = 1e-5
            up, down = (axir.grad(function, i)(*args[:-1], args[-1] + s) for s in (step, -step))
            np.testing.assert_allclose(float(mixed), float(up - down) / 2 / step, rtol=1e-7)
    with pytest.raises(UnsupportedRuleError, match="no derivative in its parameter a"):
        axir.grad(axir.grad(function, 0), 0)(*args)


def test_order_of_exponential_integrals_has_no_derivative() -> None:
    with pytest.raises(UnsupportedRuleError, match="expn has no derivative in its order n"):
        axir.grad(special.expn)(2.0, 1.0)


def test_bessel_functions() -> None:
    x = np.array([-300, -30, -3, -1e-3, 0, 0.5, 2.404825557695773, 5, 10, 24.9, 25, 100])
    for greatest in (0, 1, 5, 40):
        want = np.stack([scipy.special.jv(k, x) for k in range(greatest + 1)])
        np.testing.assert_allclose(special.bessel_jn(x, v=greatest), want, rtol=1e-11, atol=1e-14)
    slopes = axir.jvp(lambda x: special.bessel_jn(x, v=2), (x[:8],), (np.ones(8),))[1]
    want = [scipy.special.jvp(k, x[:8]) for k in range(3)]
    np.testing.assert_allclose(slopes, want, rtol=1e-12, atol=1e-15)
    assert special.bessel_jn(np.inf, v=0) == 0
    assert special.bessel_jn(np.zeros((2, 3), np.float32), v=1).dtype == np.float32
    with pytest.raises(ParameterError, match="must be at least 0, but is -1"):
        special.bessel_jn(1.0, v=-1)


def test_spherical_harmonics() -> None:
    n = _GENERATOR.integers(0, 12, 100)
    m = np.array([_GENERATOR.integers(-k, k + 1) for k in n])
    theta, phi = _GENERATOR.uniform(0, 3, 100), _GENERATOR.uniform(0, 6, 100)
    want = scipy.special.sph_harm_y(n, m, theta, phi)
    np.testing.assert_allclose(special.sph_harm_y(n, m, theta, phi), want, atol=1e-14)
    compiled = axir.jit(lambda n, m: special.sph_harm_y(n, m, theta, phi, n_max=12))
    np.testing.assert_allclose(compiled(n, m), want, atol=1e-13)
    assert special.sph_harm_y(1, 2, 0.5, 0.0) == 0
    slope = axir.grad(lambda t: special.sph_harm_y(1, 1, t, 0.0, n_max=1).real)(0.0)
    np.testing.assert_allclose(slope, -np.sqrt(3 / 8 / np.pi), rtol=1e-14)  # also at the pole
    with pytest.raises(DegreeError, match="the greatest degree must be static"):
        axir.jit(special.sph_harm_y)(n, m, theta, phi)


def test_legendre_functions() -> None:
    z = np.array([-1, -0.5, 0, 0.3, 1])
    values, slopes = special.lpmn(5, 5, z)
    want, derivatives = scipy.special.assoc_legendre_p_all(5, 5, z, diff_n=1)[:, :, :6]
    np.testing.assert_allclose(values, want.swapaxes(0, 1), rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(slopes, derivatives.swapaxes(0, 1), rtol=1e-12, atol=1e-12)
    normalized = special.lpmn_values(5, 5, z, True)
    harmonics = scipy.special.sph_harm_y(4, 3, np.arccos(z), 0.0).real
    np.testing.assert_allclose(normalized[3, 4], harmonics, atol=1e-14)
    with pytest.raises(NotImplementedError, match="m and n must be equal"):
        special.lpmn(2, 3, z)
    with pytest.raises(ShapeError, match="must be a vector"):
        special.lpmn_values(2, 2, z[None], True)
    with pytest.raises(DTypeError, match="takes float32 and float64"):
        special.lpmn(2, 2, jnp.arange(3))


def test_logarithm_of_the_normal_distribution_function() -> None:
    x = np.concatenate([np.linspace(-40, 40, 201), [-1e3, -1e8, -np.inf, np.inf, np.nan]])
    assert_near(special.log_ndtr(x), scipy.special.log_ndtr(x), 16)
    slope = axir.grad(axir.grad(special.log_ndtr))(-50.0)
    np.testing.assert_allclose(slope, -1 + 50.0**-2 - 6 * 50.0**-4, rtol=1e-5)
