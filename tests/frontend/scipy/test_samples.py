"""`axir.scipy.stats` of samples, vectors and multivariate distributions, against SciPy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.stats

import axir
import axir.numpy as jnp
from axir.dialect.core.config import config
from axir.dialect.core.errors import DTypeError, ParameterError
from axir.scipy import stats
from axir.scipy.stats._kernel_density import DensityShapeError
from axir.scipy.stats._vectors import CountsError, CovarianceError, SharesError

_GENERATOR = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def wide_dtypes() -> Iterator[None]:
    with config(jax_enable_x64=True):
        yield


# Statistics ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.int32, np.float64])
@pytest.mark.parametrize("axis", [None, 0, -1, 1])
def test_mode_and_ranks(dtype: type, axis: int | None) -> None:
    x = _GENERATOR.integers(0, 5, (3, 7, 4)).astype(dtype)
    for keepdims in (False, True):
        got, want = (m.mode(x, axis=axis, keepdims=keepdims) for m in (stats, scipy.stats))
        for mine, theirs in zip(got, want, strict=True):
            np.testing.assert_array_equal(mine, theirs)
            assert mine.shape == np.shape(theirs)
    for method in ("average", "min", "max", "dense", "ordinal"):
        want = scipy.stats.rankdata(x, method, axis=axis)
        np.testing.assert_array_equal(stats.rankdata(x, method, axis=axis), want)


def test_mode_and_ranks_of_nan_and_of_nothing() -> None:
    x = np.array([[1, np.nan, np.nan], [1, 1, 2]])
    np.testing.assert_array_equal(stats.mode(x, axis=1).mode, [np.nan, 1])
    np.testing.assert_array_equal(stats.mode(x, axis=1).count, [2, 2])
    want = scipy.stats.rankdata(x, axis=1)
    np.testing.assert_array_equal(stats.rankdata(x, axis=1), want)
    value, count = stats.mode(np.zeros((0, 2)))
    assert np.isnan(value).all()
    np.testing.assert_array_equal(count, [0, 0])
    assert stats.rankdata(np.zeros(0)).shape == (0,)
    assert stats.mode(3).mode == 3


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_standard_error_of_the_mean(axis: int | None) -> None:
    x = _GENERATOR.normal(size=(4, 6))
    for ddof in (0, 1):
        np.testing.assert_allclose(stats.sem(x, axis, ddof), scipy.stats.sem(x, axis, ddof))
    x[1, 2] = np.nan
    want = scipy.stats.sem(x, axis, nan_policy="omit")
    np.testing.assert_allclose(stats.sem(x, axis, nan_policy="omit"), np.asarray(want))
    np.testing.assert_allclose(stats.sem(x, axis), scipy.stats.sem(x, axis))
    assert stats.sem(x, axis, keepdims=True).ndim == 2


def test_statistics_refuse_what_they_do_not_know() -> None:
    with pytest.raises(ParameterError, match="nan_policy 'ignore' is not one of"):
        stats.mode(np.ones(3), nan_policy="ignore")
    with pytest.raises(NotImplementedError, match="nan_policy='omit' asks for depends"):
        stats.rankdata(np.ones(3), nan_policy="omit")
    with pytest.raises(ParameterError, match="method 'mean' is not one of"):
        stats.rankdata(np.ones(3), "mean")


# Multivariate distributions --------------------------------------------------------------------


def test_multivariate_normal() -> None:
    root = _GENERATOR.normal(size=(3, 3))
    covariance, mean = root @ root.T + np.eye(3), _GENERATOR.normal(size=3)
    x = _GENERATOR.normal(size=(4, 2, 3))
    for name in ("pdf", "logpdf"):
        mine, theirs = (getattr(m.multivariate_normal, name) for m in (stats, scipy.stats))
        np.testing.assert_allclose(mine(x, mean, covariance), theirs(x, mean, covariance))
        np.testing.assert_allclose(mine(x, mean, 2.0), theirs(x, mean, 2 * np.eye(3)))
    got = stats.multivariate_normal.pdf(x, 0.5, 2.0)
    np.testing.assert_allclose(got, scipy.stats.norm(0.5, np.sqrt(2)).pdf(x))
    stacks = np.stack([covariance, 2 * covariance])
    got = stats.multivariate_normal.logpdf(x, mean, stacks)
    for i in range(2):
        want = scipy.stats.multivariate_normal.logpdf(x[:, i], mean, stacks[i])
        np.testing.assert_allclose(got[:, i], want)
    assert np.isnan(stats.multivariate_normal.logpdf(x[0, 0], mean, -covariance))
    slope = axir.grad(lambda m: stats.multivariate_normal.logpdf(x[0, 0], m, covariance))(mean)
    np.testing.assert_allclose(slope, np.linalg.solve(covariance, x[0, 0] - mean))
    with pytest.raises(CovarianceError, match="need covariances of shape"):
        stats.multivariate_normal.logpdf(x, mean, np.eye(2))
    with pytest.raises(NotImplementedError, match="full rank"):
        stats.multivariate_normal.logpdf(x, mean, covariance, allow_singular=True)


def test_dirichlet() -> None:
    alpha = np.array([0.5, 1, 3])
    x = _GENERATOR.dirichlet(alpha, 5).T
    for name in ("pdf", "logpdf"):
        mine, theirs = (getattr(m.dirichlet, name) for m in (stats, scipy.stats))
        np.testing.assert_allclose(mine(x, alpha), theirs(x, alpha))
        np.testing.assert_allclose(mine(x[:2], alpha), theirs(x[:2], alpha))
        np.testing.assert_allclose(mine(x[:, 0], alpha), theirs(x[:, 0], alpha))
    assert stats.dirichlet.pdf(np.array([0.5, 0.6, -0.1]), alpha) == 0
    assert np.isnan(stats.dirichlet.pdf(x[:, 0], -alpha))
    with pytest.raises(SharesError, match="alpha must be a vector"):
        stats.dirichlet.pdf(x.T, alpha)


def test_multinomial() -> None:
    p = np.array([0.2, 0.3, 0.5])
    x = _GENERATOR.multinomial(6, p, 4)
    for name in ("pmf", "logpmf"):
        mine, theirs = (getattr(m.multinomial, name) for m in (stats, scipy.stats))
        np.testing.assert_allclose(mine(x, 6, p), theirs(x, 6, p))
        np.testing.assert_allclose(mine(x, np.array([6, 5, 6, 7]), p), theirs(x, [6, 5, 6, 7], p))
    assert stats.multinomial.pmf(np.array([7, -1, 0]), 6, p) == 0
    assert np.isnan(stats.multinomial.pmf(x[0], 6, -p))
    with pytest.raises(CountsError, match="must be integers, but together have dtype float64"):
        stats.multinomial.pmf(x.astype(float), 6, p)


# Kernel densities ------------------------------------------------------------------------------


def densities(**options: Any) -> tuple[Any, Any]:
    samples = np.random.default_rng(1).normal(size=(2, 30))
    return stats.gaussian_kde(samples, **options), scipy.stats.gaussian_kde(samples, **options)


@pytest.mark.parametrize(
    "options",
    [
        {}, {"bw_method": "silverman"}, {"bw_method": 0.3}, {"bw_method": lambda k: k.d / 4},
        {"weights": np.arange(1.0, 31)},
    ],
)  # fmt: skip
def test_kernel_density(options: dict[str, Any]) -> None:
    mine, theirs = densities(**options)
    points = _GENERATOR.normal(size=(2, 5))
    np.testing.assert_allclose(mine(points), theirs(points))
    np.testing.assert_allclose(mine.logpdf(points * 9), theirs.logpdf(points * 9))
    np.testing.assert_allclose(mine.covariance, theirs.covariance)
    np.testing.assert_allclose(mine.inv_cov, theirs.inv_cov)
    np.testing.assert_allclose(mine.neff, theirs.neff)
    mean, spread = np.array([0.3, -1]), np.array([[1, 0.2], [0.2, 2]])
    got, want = (k.integrate_gaussian(mean, spread) for k in (mine, theirs))
    np.testing.assert_allclose(got, want)
    (other, reference) = densities()
    np.testing.assert_allclose(mine.integrate_kde(other), theirs.integrate_kde(reference))


def test_kernel_density_of_numbers() -> None:
    samples = _GENERATOR.normal(size=20)
    mine, theirs = stats.gaussian_kde(samples), scipy.stats.gaussian_kde(samples)
    want = theirs.integrate_box_1d(-1, 0.5)
    np.testing.assert_allclose(mine.integrate_box_1d(-1, 0.5), want)
    np.testing.assert_allclose(axir.jit(lambda k, x: k.pdf(x))(mine, 0.3), theirs.pdf(0.3))
    slope = axir.grad(lambda x: mine.pdf(x)[0])(0.3)
    step = (theirs.pdf(0.3 + 1e-6) - theirs.pdf(0.3 - 1e-6)) / 2e-6
    np.testing.assert_allclose(slope, step[0], rtol=1e-6)


def test_draws_from_a_kernel_density() -> None:
    mine, _ = densities()
    draws = np.asarray(mine.resample(axir.random.key(0), (2000,)))
    assert draws.shape == (2, 2000)
    want = np.cov(mine.dataset, bias=True) + np.asarray(mine.covariance)
    np.testing.assert_allclose(np.cov(draws), want, atol=0.15)
    assert mine.resample(axir.random.key(0)).shape == (2,)


def test_kernel_densities_refuse_what_does_not_fit() -> None:
    mine, _ = densities()
    with pytest.raises(DensityShapeError, match="more than one element"):
        stats.gaussian_kde(np.ones(1))
    with pytest.raises(DensityShapeError, match="need as many weights in a vector"):
        stats.gaussian_kde(np.arange(4.0), weights=np.ones(3))
    with pytest.raises(ParameterError, match="neither 'scott' nor 'silverman'"):
        stats.gaussian_kde(np.arange(4.0), "other")
    with pytest.raises(DTypeError, match="complex samples"):
        stats.gaussian_kde(np.arange(4) * 1j)
    with pytest.raises(DensityShapeError, match="Points are columns"):
        mine(jnp.ones((3, 5)))
    with pytest.raises(DensityShapeError, match="takes two numbers"):
        mine.integrate_box_1d(0, 1)
    with pytest.raises(DensityShapeError, match="a mean and a covariance of shapes"):
        mine.integrate_gaussian(np.ones(2), np.eye(3))
    with pytest.raises(DensityShapeError, match="have 2 and 1 dimensions"):
        mine.integrate_kde(stats.gaussian_kde(np.arange(4.0)))
    with pytest.raises(AttributeError, match="immutable"):
        mine.neff = 3
    for method in (mine.set_bandwidth, lambda: mine.integrate_box(0, 1)):
        with pytest.raises(NotImplementedError, match="gaussian_kde"):
            method()
