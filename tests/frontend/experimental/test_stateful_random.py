"""Generators with a state draw the same numbers as their keys, also in traced functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import axir
import axir.numpy as jnp
from axir.errors import ParameterError
from axir.experimental.random import SplitGeneratorError, StatefulPRNG, stateful_rng

random = axir.random


def _keys(seed: int, count: int) -> list[Any]:
    return [random.fold_in(random.key(seed), n) for n in range(count)]


@pytest.mark.parametrize(
    ("draw", "same"),
    [
        (lambda r: r.random(3), lambda k: random.uniform(k, (3,))),
        (
            lambda r: r.uniform(0, jnp.arange(1, 4)),
            lambda k: random.uniform(k, (3,), minval=0, maxval=jnp.arange(1, 4)),
        ),
        (lambda r: r.normal(2, 3, (2, 2)), lambda k: 2 + 3 * random.normal(k, (2, 2))),
        (lambda r: r.integers(10, size=4), lambda k: random.randint(k, (4,), 0, 10)),
        (
            lambda r: random.key_data(r.key((2,))),
            lambda k: random.key_data(random.split(k, 2)),
        ),
    ],
)
def test_draws(draw: Callable[..., Any], same: Callable[..., Any]) -> None:
    generator = stateful_rng(7)
    first, second = _keys(7, 2)
    assert draw(generator).tolist() == same(first).tolist()
    assert draw(generator).tolist() == same(second).tolist()


def test_traced_functions_advance_generators() -> None:
    generator = stateful_rng(7)
    expected = [float(random.uniform(key)) for key in _keys(7, 4)]
    drawn = [generator.uniform(), axir.jit(generator.uniform)()]
    drawn.append(axir.jit(lambda g: g.uniform())(generator))
    drawn.append(generator.uniform())
    assert list(map(float, drawn)) == pytest.approx(expected, rel=1e-6)
    children = stateful_rng(7).split(3)
    keys = random.split(_keys(7, 1)[0], 3)
    first = [float(random.uniform(random.fold_in(key, 0))) for key in keys]
    assert axir.vmap(lambda g: g.uniform())(children).tolist() == pytest.approx(first, rel=1e-6)
    assert children._counter[...].tolist() == [1, 1, 1]
    assert [float(g.uniform()) for g in stateful_rng(7).spawn(3)] == first
    with pytest.raises(SplitGeneratorError, match=r"split into \(3,\) cannot draw"):
        children.key()


def test_seeds() -> None:
    assert isinstance(stateful_rng(), StatefulPRNG)
    assert str(random.key_impl(stateful_rng(0, impl="rbg").key())) == "rbg"
    with pytest.raises(ParameterError, match="draws no seed"):
        axir.jit(lambda: stateful_rng().uniform())()
