"""Gamma, Bessel and normal functions of `axir.scipy.special` against SciPy's and JAX's."""

from __future__ import annotations

from collections.abc import Iterator

import jax
import numpy as np
import pytest
import scipy.special

import axir
from axir.dialect.core.config import config
from axir.scipy import special

_EDGES = [0.0, -0.0, -1.0, -2.0, np.inf, np.nan, 0.5, 20.0]
_GENERATOR = np.random.default_rng(0)
_REAL = np.concatenate([_GENERATOR.uniform(-6, 20, 100), _EDGES])
_POSITIVE = 10 ** _GENERATOR.uniform(-2, 3, 100)
_OTHER = 10 ** _GENERATOR.uniform(-2, 3, 100)
_INTEGERS = _GENERATOR.integers(-2, 12, (2, 60))


@pytest.fixture(autouse=True)
def wide_dtypes() -> Iterator[None]:
    """Lets both sides keep 64-bit dtypes."""
    with config(jax_enable_x64=True), jax.enable_x64(True):
        yield


@pytest.mark.parametrize(
    ("name", "args"),
    [
        *((name, (_REAL,)) for name in ("i0", "i0e", "i1", "i1e", "gamma", "gammaln", "gammasgn")),
        *((name, (_REAL,)) for name in ("factorial", "loggamma")),
        ("digamma", (_REAL[_REAL != 0],)),
        ("beta", (_POSITIVE[_POSITIVE < 50], _OTHER[_POSITIVE < 50])),
        ("betaln", (_POSITIVE, _OTHER)),
        ("gammainc", (_POSITIVE, _OTHER)),
        ("gammaincc", (_POSITIVE, _OTHER)),
        ("betainc", (_POSITIVE, _OTHER, _GENERATOR.uniform(0, 1, 100))),
        ("zeta", (1 + _POSITIVE / 50, _OTHER)),
        ("poch", (_REAL[:60], _GENERATOR.uniform(-2, 5, 60))),
        ("comb", tuple(_INTEGERS)),
        ("boxcox", (_POSITIVE, np.round(_GENERATOR.uniform(-1, 2, 100)))),
        ("boxcox1p", (_POSITIVE, np.round(_GENERATOR.uniform(-1, 2, 100)))),
        ("ndtri", (np.concatenate([_GENERATOR.uniform(0, 1, 50), 10 ** -_POSITIVE[:50], [0, 1]]),)),
        ("log_ndtr", (np.linspace(-60, 60, 101),)),
    ],
)
def test_function_is_that_of_scipy(name: str, args: tuple[np.ndarray, ...]) -> None:
    want = getattr(scipy.special, name)(*args)
    got = np.asarray(getattr(special, name)(*args))
    kept = ~np.isfinite(want) | (np.abs(want) > 1e-100)
    np.testing.assert_allclose(got[kept], want[kept], rtol=5e-11)


def test_integers_become_floats() -> None:
    assert special.gammaln(np.arange(1, 3, dtype=np.int32)).dtype == np.float32
    assert special.polygamma(1, np.float32(2)).dtype == np.float32


def test_polygamma_and_multigammaln() -> None:
    x = np.linspace(0.5, 8, 9)
    for order in range(4):
        want = scipy.special.polygamma(order, x)
        np.testing.assert_allclose(special.polygamma(order, x), want, rtol=1e-12)
    want = scipy.special.multigammaln(5.5, 3)
    np.testing.assert_allclose(special.multigammaln(5.5, 3), want, rtol=1e-14)


def test_combinations_with_repetition_and_bernoulli_numbers() -> None:
    got = special.comb(np.arange(1, 6), 3, repetition=True)
    want = [scipy.special.comb(n, 3, repetition=True) for n in range(1, 6)]
    np.testing.assert_allclose(got, want, rtol=1e-12)
    np.testing.assert_allclose(special.bernoulli(12), scipy.special.bernoulli(12), rtol=1e-12)
    with pytest.raises(NotImplementedError, match="exact=True"):
        special.factorial(3, exact=True)


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("ndtri", (0.3,)), ("ndtri", (1e-9,)), ("log_ndtr", (-50.0,)), ("log_ndtr", (3.0,)),
        ("gamma", (-1.5,)), ("i0", (1.3,)), ("i1", (-2.0,)), ("betaln", (20.0, 30.0)),
        ("betaln", (2.0, 30.0)), ("gammainc", (3.0, 2.0)), ("gammaincc", (300.0, 310.0)),
        ("poch", (2.0, 1.5)),
    ],
)  # fmt: skip
def test_derivatives_are_those_of_jax(name: str, args: tuple[float, ...]) -> None:
    positions = tuple(range(len(args)))
    got = axir.grad(getattr(special, name), positions)(*args)
    want = jax.grad(getattr(jax.scipy.special, name), positions)(*args)
    np.testing.assert_allclose(
        [float(x) for x in got], [float(x) for x in want], rtol=2e-5, err_msg=name
    )


def test_quantiles_have_second_derivatives() -> None:
    for p in (0.3, 0.01, 1e-20):
        x = scipy.special.ndtri(p)
        slope = np.sqrt(2 * np.pi) * np.exp(x * x / 2)
        got = float(axir.grad(axir.grad(special.ndtri))(p))
        np.testing.assert_allclose(got, x * slope**2, rtol=1e-10)
