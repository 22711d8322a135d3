"""Random numbers: samples of fixed seeds have their distributions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.stats

import axir
from axir import random

PROBABILITIES = np.float32([0.1, 0.2, 0.3, 0.4])


def host(x: Any) -> np.ndarray:
    return np.asarray(x)


CONTINUOUS: tuple[tuple[Callable[[Any], Any], Any], ...] = (
    (lambda key: random.uniform(key, (4000,), minval=-1.0, maxval=2.0), scipy.stats.uniform(-1, 3)),
    (lambda key: random.normal(key, (4000,)), scipy.stats.norm()),
    (lambda key: random.truncated_normal(key, -0.5, 2.0, (4000,)), scipy.stats.truncnorm(-0.5, 2)),
    (lambda key: random.lognormal(key, 0.7, (4000,)), scipy.stats.lognorm(0.7)),
    (lambda key: random.maxwell(key, (4000,)), scipy.stats.maxwell()),
    (lambda key: random.wald(key, 1.5, (4000,)), scipy.stats.invgauss(1.5)),
    (lambda key: random.exponential(key, (4000,)), scipy.stats.expon()),
    (lambda key: random.laplace(key, (4000,)), scipy.stats.laplace()),
    (lambda key: random.logistic(key, (4000,)), scipy.stats.logistic()),
    (lambda key: random.cauchy(key, (4000,)), scipy.stats.cauchy()),
    (lambda key: random.rayleigh(key, 2.0, (4000,)), scipy.stats.rayleigh(scale=2)),
    (lambda key: random.pareto(key, 2.5, (4000,)), scipy.stats.pareto(2.5)),
    (lambda key: random.weibull_min(key, 2.0, 1.5, (4000,)), scipy.stats.weibull_min(1.5, scale=2)),
    (lambda key: random.triangular(key, -1.0, 0.0, 3.0, (4000,)), scipy.stats.triang(0.25, -1, 4)),
    (lambda key: random.gumbel(key, (4000,)), scipy.stats.gumbel_r()),
    (lambda key: random.gumbel(key, (4000,), mode="high"), scipy.stats.gumbel_r()),
    (lambda key: random.gumbel(key, (4000,), mode="highest"), scipy.stats.gumbel_r()),
)


@pytest.mark.parametrize("index", range(len(CONTINUOUS)))
def test_continuous_sample_has_its_distribution(index: int) -> None:
    draw, distribution = CONTINUOUS[index]
    sample = host(draw(random.PRNGKey(index))).astype(np.float64)
    assert scipy.stats.kstest(sample, distribution.cdf).pvalue > 1e-3


def test_double_sided_maxwell_is_symmetric_about_its_center() -> None:
    sample = host(random.double_sided_maxwell(random.PRNGKey(5), 3.0, 2.0, (4000,))) - 3
    assert abs(np.mean(sample > 0) - 0.5) < 4 * 0.5 / np.sqrt(4000)
    magnitude = scipy.stats.maxwell(scale=2)
    assert scipy.stats.kstest(np.abs(sample), magnitude.cdf).pvalue > 1e-3


def test_complex_normal_has_unit_variance() -> None:
    sample = host(random.normal(random.PRNGKey(2), (4000,), np.complex64))
    half = scipy.stats.norm(scale=np.sqrt(0.5))
    assert scipy.stats.kstest(sample.real, half.cdf).pvalue > 1e-3
    assert scipy.stats.kstest(sample.imag, half.cdf).pvalue > 1e-3
    assert abs(np.corrcoef(sample.real, sample.imag)[0, 1]) < 0.06


DISCRETE: tuple[tuple[Callable[[Any], Any], list[float]], ...] = (
    (lambda key: random.bernoulli(key, 0.3, (6000,)), [0.7, 0.3]),
    (lambda key: random.bernoulli(key, 0.3, (6000,), mode="high"), [0.7, 0.3]),
    (lambda key: random.randint(key, (6000,), 0, 5), [0.2] * 5),
    (lambda key: random.rademacher(key, (6000,)), [0.5, 0.0, 0.5]),
    (lambda key: random.choice(key, 4, (6000,), p=PROBABILITIES), [0.1, 0.2, 0.3, 0.4]),
    (lambda key: random.categorical(key, np.log(PROBABILITIES), shape=(6000,)),
     [0.1, 0.2, 0.3, 0.4]),
    (lambda key: axir.vmap(lambda k: random.choice(k, 4, (1,), False, PROBABILITIES))(
        random.split(key, 6000)), [0.1, 0.2, 0.3, 0.4]),
    (lambda key: axir.vmap(lambda k: random.permutation(k, 4)[0])(random.split(key, 6000)),
     [0.25] * 4),
)  # fmt: skip


@pytest.mark.parametrize("index", range(len(DISCRETE)))
def test_discrete_sample_has_its_frequencies(index: int) -> None:
    draw, expected = DISCRETE[index]
    sample = host(draw(random.PRNGKey(index))).astype(np.int64).reshape(-1)
    counts = np.bincount(sample - min(sample.min(), 0), minlength=len(expected))
    possible = np.array(expected) > 0
    assert counts[~possible].sum() == 0
    frequencies = np.array(expected)[possible] / np.sum(expected)
    result = scipy.stats.chisquare(counts[possible], frequencies * sample.size)
    assert result.pvalue > 1e-3


def test_geometric_sample_has_its_frequencies() -> None:
    sample = host(random.geometric(random.PRNGKey(1), 0.4, (6000,)))
    values = np.arange(1, 8)
    counts = [*(np.sum(sample == value) for value in values), np.sum(sample > 7)]
    geometric = scipy.stats.geom(0.4)
    expected = 6000 * np.array([*geometric.pmf(values), geometric.sf(7)])
    assert scipy.stats.chisquare(counts, expected).pvalue > 1e-3


def test_children_of_a_key_are_uncorrelated() -> None:
    keys = random.split(random.PRNGKey(0), 8)
    samples = host(axir.vmap(lambda key: random.normal(key, (2000,)))(keys))
    correlations = np.corrcoef(samples) - np.eye(8)
    assert np.abs(correlations).max() < 5 / np.sqrt(2000)


def test_permutations_keep_the_elements() -> None:
    key = random.PRNGKey(3)
    assert sorted(host(random.permutation(key, 1000))) == list(range(1000))
    grid = np.arange(12, dtype=np.float32).reshape(3, 4)
    alike = host(random.permutation(key, grid, axis=1))
    assert {tuple(column) for column in alike.T} == {tuple(column) for column in grid.T}
    apart = host(random.permutation(key, np.tile(np.arange(50), (20, 1)), 1, independent=True))
    np.testing.assert_array_equal(np.sort(apart, axis=1), np.tile(np.arange(50), (20, 1)))
    assert len({tuple(row) for row in apart}) == 20
