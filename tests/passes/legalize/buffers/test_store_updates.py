"""`store-updates`: arrays that are updated in part, and read by another shape."""

from __future__ import annotations

import numpy as np
import pytest
from support.stablehlo_runner import Example, deviations, run_examples, text_after

from axir.dialect.builders import stablehlo as hlo

RNG = np.random.default_rng(0)
MATRIX = RNG.integers(-4, 5, size=(6, 6)).astype(np.float32)
X = RNG.integers(-4, 5, size=(6, 4)).astype(np.float32)
Z = RNG.integers(-4, 5, size=5).astype(np.float32)
T = (MATRIX @ X).reshape(24)
V = np.ones(6, np.float32)
UPDATED = T.copy()
UPDATED[3:4] = Z.sum()


def product(a, b):
    return hlo.dot_general(a, b, ((1,), (0,)))


def updated(array, update):
    start = hlo.full(3, (), np.int32)
    return hlo.dynamic_update_slice(array, update, [start])


def total(z):
    (result,) = hlo.reduce([z], [hlo.full(0, (), np.float32)], [0], hlo.add)
    return hlo.reshape(result, (1,))


def read_by_another_shape(m, x, z, v):
    number = total(z)
    t = hlo.reshape(product(m, x), (24,))
    read = product(hlo.reshape(t, (4, 6)), v)
    return [updated(t, number), read]


def read_before(m, x, z, v):
    number = total(z)
    t = product(m, x)
    read = product(hlo.reshape(t, (4, 6)), v)
    return [updated(hlo.reshape(t, (24,)), number), read]


def read_by_nobody(m, x, z, v):
    number = total(z)
    return [updated(hlo.reshape(product(m, x), (24,)), number)]


ARGUMENTS = (MATRIX, X, Z, V)
READ = T.reshape(4, 6) @ V
EXAMPLES = [
    Example("another_shape", ARGUMENTS, read_by_another_shape, [UPDATED, READ]),
    Example("before", ARGUMENTS, read_before, [UPDATED, READ]),
    Example("nobody", ARGUMENTS, read_by_nobody, [UPDATED]),
]


@pytest.fixture(scope="module")
def results() -> dict[str, list[np.ndarray]]:
    return run_examples(EXAMPLES, "store-updates")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.name)
def test_values(results: dict[str, list[np.ndarray]], example: Example) -> None:
    assert deviations(results[example.name], example) == []


def test_the_pass_is_still_needed() -> None:
    raw = run_examples(EXAMPLES)
    wrong = [example.name for example in EXAMPLES if deviations(raw[example.name], example)]
    assert wrong == ["another_shape", "before"]


def test_an_array_that_nobody_else_reads_needs_no_barrier() -> None:
    assert "optimization_barrier" not in text_after(EXAMPLES[2], "store-updates")
