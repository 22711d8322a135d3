"""Binomial and multinomial counts, correlated normal vectors, orthogonal matrices, as JAX's."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from scipy import stats

import axir
import axir.numpy as jnp

COUNTS = np.array([0, 1, 5, 20, 100, 1e3, 1e6, -1, np.nan, np.inf, 1e3], np.float32)
CHANCES = np.array([0.3, 0.9, 0.5, 0.2, 0.7, 0.001, 0.3, 0.5, 0.5, 0.5, 1.5], np.float32)
COVARIANCE = np.array([[2.0, 0.5], [0.5, 1.0]], np.float32)


@pytest.mark.parametrize("partitionable", [False, True])
def test_counts_are_those_of_jax(partitionable: bool) -> None:
    with jax.threefry_partitionable(partitionable), axir.threefry_partitionable(partitionable):
        ours = axir.random.binomial(axir.random.key(3), COUNTS, CHANCES, (40, 11))
        theirs = jax.random.binomial(jax.random.key(3), COUNTS, CHANCES, (40, 11))
        np.testing.assert_array_equal(ours, theirs)
        p = np.array([[0.2, 0.3, 0.5], [0.0, 1.0, 3.0]], np.float32)
        ours = axir.random.multinomial(axir.random.key(1), 60, p)
        theirs = jax.random.multinomial(jax.random.key(1), 60, p)
        np.testing.assert_array_equal(ours, theirs)
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours.sum(-1), [60, 60])


@pytest.mark.parametrize(("n", "p"), [(7, 0.4), (300, 0.62)])
def test_binomial_frequencies(n: int, p: float) -> None:
    """Compares frequencies with SciPy's probabilities: inversion, and rejection."""
    draws = np.asarray(axir.random.binomial(axir.random.key(5), n, p, (20000,)), int)
    probability = stats.binom(n, p).pmf(np.arange(n + 1))
    observed = np.bincount(draws, minlength=n + 1)
    common = probability * draws.size > 10
    expected = np.append(probability[common], probability[~common].sum()) * draws.size
    counted = np.append(observed[common], observed[~common].sum())
    possible = expected > 0
    assert stats.chisquare(counted[possible], expected[possible]).pvalue > 1e-3


def test_compiled_counts_are_the_eager_ones() -> None:
    def draw(key: Any) -> Any:
        return axir.random.binomial(key, jnp.array([9.0, 500.0]), 0.4, (8, 2))

    key = axir.random.key(0)
    np.testing.assert_array_equal(axir.jit(draw)(key), draw(key))


@pytest.mark.parametrize("method", ["cholesky", "eigh", "svd"])
def test_correlated_vectors(method: str) -> None:
    mean = np.array([1.0, -2.0], np.float32)

    def draw(library: Any) -> Any:
        with library.threefry_partitionable(True):
            key = library.random.key(3)
            return library.random.multivariate_normal(key, mean, COVARIANCE, (5,), method=method)

    np.testing.assert_allclose(draw(axir), draw(jax), atol=4e-6)


def test_the_covariance_of_correlated_vectors() -> None:
    draws = axir.random.multivariate_normal(axir.random.key(0), np.zeros(2), COVARIANCE, (40000,))
    np.testing.assert_allclose(np.cov(np.asarray(draws).T), COVARIANCE, atol=0.05)


@pytest.mark.parametrize(
    "arguments", [(3,), (3, (2,)), (3, (), None, 5), (5, (), None, 3), (3, (), np.complex64), (0,)]
)
def test_orthogonal_matrices(arguments: tuple[Any, ...]) -> None:
    with jax.threefry_partitionable(True), axir.threefry_partitionable(True):
        ours = axir.random.orthogonal(axir.random.key(0), *arguments)
        theirs = jax.random.orthogonal(jax.random.key(0), *arguments)
    assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
    np.testing.assert_allclose(ours, theirs, atol=2e-6)
    q = np.asarray(ours)
    product = q.conj().swapaxes(-1, -2) @ q if q.shape[-2] >= q.shape[-1] else q @ q.T.conj()
    np.testing.assert_allclose(
        product, np.broadcast_to(np.eye(product.shape[-1]), product.shape), atol=1e-6
    )


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda key: axir.random.binomial(key, 3, 0.5, dtype="int32"), "must be a float"),
        (lambda key: axir.random.binomial(key, np.ones(3), 0.5, (2,)), "do not broadcast"),
        (lambda key: axir.random.multinomial(key, 3, 0.5), "needs an axis"),
        (lambda key: axir.random.multivariate_normal(key, np.ones(2), np.eye(3)), r"\(..., n, n\)"),
        (
            lambda key: axir.random.multivariate_normal(key, np.ones(2), np.eye(2), method="lu"),
            "cholesky",
        ),
        (lambda key: axir.random.orthogonal(key, -1), "must not be negative"),
    ],
)
def test_errors(call: Any, text: str) -> None:
    with pytest.raises(axir.errors.AxirError, match=text):
        call(axir.random.key(0))


def test_normal_vectors_need_no_promotion_of_ranks() -> None:
    with axir.numpy_rank_promotion("raise"):
        key, mean = axir.random.key(0), jnp.zeros(2)
        drawn = axir.random.multivariate_normal(key, mean, jnp.eye(2), (0, 3))
    assert drawn.shape == (0, 3, 2)
