"""Gamma, Poisson and their kin: the numbers that JAX draws from the same keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
import pytest

import axir
from axir import random
from axir.dialect.core.errors import ShapeError

_RATES = np.array([0.1, 0.5, 1.0, 2.0, 10.0, 100.0], np.float32)


@pytest.fixture(autouse=True)
def original_stream() -> Iterator[None]:
    """Has JAX draw from its original stream, which is axir's by default."""
    before = jax.config.jax_threefry_partitionable
    jax.config.update("jax_threefry_partitionable", False)
    yield
    jax.config.update("jax_threefry_partitionable", before)


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("gamma", (_RATES,)), ("gamma", (2.0, (3, 4))), ("loggamma", (_RATES,)),
        ("loggamma", (0.01, (9,))), ("beta", (_RATES, 2.0)), ("dirichlet", (_RATES, (3,))),
        ("chisquare", (_RATES,)), ("t", (_RATES,)), ("f", (_RATES[1:], 3.0)),
        ("generalized_normal", (1.5, (4,))), ("ball", (3, 2.0, (4,))),
        ("poisson", (np.array([0.0, 0.3, 9.0, 20.0, 1e4, np.nan], np.float32),)),
        ("poisson", (25.0, (3, 50))),
    ],
)  # fmt: skip
def test_numbers_are_those_of_jax(name: str, args: tuple[Any, ...]) -> None:
    ours = np.asarray(getattr(random, name)(random.PRNGKey(3), *args))
    theirs = np.asarray(getattr(jax.random, name)(jax.random.PRNGKey(3), *args))
    assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)


@pytest.mark.parametrize("name", ["gamma", "loggamma"])
def test_derivatives_are_those_of_jax(name: str) -> None:
    ours = axir.grad(lambda a: getattr(random, name)(random.PRNGKey(1), a).sum())(_RATES)
    theirs = jax.grad(lambda a: getattr(jax.random, name)(jax.random.PRNGKey(1), a).sum())(_RATES)
    np.testing.assert_allclose(ours, theirs, rtol=1e-4)


def test_many_compiled_numbers_are_those_of_jax() -> None:
    def draw(jax: Any) -> Any:
        def many(key: Any, a: Any) -> Any:
            each = jax.random.split(key, 2)
            in_rows = jax.vmap(lambda key: jax.random.gamma(key, a[:70]))(each)
            slopes = jax.grad(lambda a: jax.random.gamma(key, a).sum())(a[:65])
            return jax.random.gamma(key, a), jax.random.loggamma(key, a[:64]), in_rows, slopes

        return jax.jit(many)(jax.random.key(7), np.linspace(0.1, 9, 203, dtype=np.float32))

    for ours, theirs in zip(draw(axir), draw(jax), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4)


def test_compiled_numbers_are_the_eager_ones() -> None:
    rates = np.array([0.5, 5.0, 50.0], np.float32)

    def draw(key: Any) -> Any:
        return random.gamma(key, rates), random.poisson(key, rates)

    for eager, compiled in zip(
        draw(random.PRNGKey(5)), axir.jit(draw)(random.PRNGKey(5)), strict=True
    ):
        np.testing.assert_allclose(np.asarray(compiled), np.asarray(eager), rtol=1e-5)


def test_keys_that_draw_for_a_batch_draw_the_same_numbers_compiled() -> None:
    def draw(key: Any) -> Any:
        return random.gamma(key, 2.0, (70,))

    key = random.key(3, impl="rbg")
    np.testing.assert_allclose(axir.jit(draw)(key), draw(key), rtol=1e-5)


def test_numbers_of_symbolic_extents() -> None:
    (a,) = axir.export.symbolic_args_specs((np.ones(4, np.float32),), ("n",))
    exported = axir.export.export(axir.jit(lambda a: random.gamma(random.key(1), a)))(a)
    given = np.linspace(1, 3, 80, dtype=np.float32)
    np.testing.assert_allclose(exported.call(given), random.gamma(random.key(1), given), rtol=1e-5)


def test_moments() -> None:
    x = np.asarray(random.gamma(random.PRNGKey(0), 3.0, (4000,)))
    assert abs(x.mean() - 3) < 0.15
    assert abs(x.var() - 3) < 0.4


def test_scalar_concentrations_are_refused() -> None:
    with pytest.raises(ShapeError, match="at least one axis"):
        random.dirichlet(random.PRNGKey(0), 1.0)
