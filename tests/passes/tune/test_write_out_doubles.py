"""`write-out-doubles`, and the same functions in kernels."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, softmax
from support.stablehlo_runner import Example, deviations, run_examples, text_after

import axir
from axir.dialect.builders import stablehlo as hlo

RNG = np.random.default_rng(0)
PASS = "write-out-doubles"
FUNCTIONS = {"exponential": np.exp, "log": np.log, "logistic": expit, "tanh": np.tanh}
EDGES = [0, 1, 0.5, 1e-3, 1e-8, 1e-20, 3, 20, 36, 100, 700, 709.7, 710, 720, 1e5, 1e300, np.inf]
VALUES = np.concatenate(
    [[np.nan], EDGES, np.negative(EDGES), RNG.uniform(-5, 5, 500), 10.0 ** RNG.uniform(-9, 3, 300)]
)


def example(name: str, x: np.ndarray) -> Example:
    with np.errstate(all="ignore"):
        expected = FUNCTIONS[name](x)
    expected = np.where(np.abs(expected) < np.finfo(x.dtype).tiny, 0, expected)
    return Example(name, (x,), getattr(hlo, name), expected)


EXAMPLES = [example(name, VALUES) for name in FUNCTIONS]


@pytest.fixture(scope="module")
def results() -> dict[str, list[np.ndarray]]:
    return run_examples(EXAMPLES, PASS)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.name)
def test_values(results: dict[str, list[np.ndarray]], example: Example) -> None:
    assert deviations(results[example.name], example, 3, zero_signs=False) == []


def test_what_is_left_alone() -> None:
    for x in (VALUES[:7], VALUES[:0], np.float64(2), np.ones(9, np.float32)):
        assert "linalg.generic" not in text_after(example("exponential", np.asarray(x)), PASS)
    assert "linalg.generic" in text_after(example("exponential", VALUES[:8]), PASS)


def test_kernels_of_rows() -> None:
    x = RNG.uniform(-30, 30, (331, 101))
    x[5, 3], x[6, 100], x[7] = np.nan, -np.inf, 3
    with axir.enable_x64(True):
        got = axir.jit(axir.nn.softmax)(x)
    np.testing.assert_allclose(got, softmax(x, axis=1), rtol=1e-14)
