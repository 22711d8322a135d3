"""`expand-rounding`: halves go to even numbers, zeros keep their sign."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from support.stablehlo_runner import Example, deviations, run_examples

from axir.dialect.builders import stablehlo as hlo

TIES = np.arange(-4000.5, 4001) / np.array([[1], [2], [4]])
EDGES = np.array([0.0, -0.0, 0.49999997, -0.49999997, np.inf, -np.inf, np.nan, 1e30, -1e30])


def example(dtype: type) -> Example:
    digits = {2: 11, 4: 24, 8: 53}[np.dtype(dtype).itemsize]
    powers = np.outer([1, -1], 2.0 ** np.arange(-3, digits + 3)).ravel()
    powers = powers[np.abs(powers) < 60000] if dtype == np.float16 else powers
    near = np.concatenate([powers + step for step in (-1, -0.75, -0.5, 0, 0.5, 1.5)])
    with np.errstate(over="ignore"):
        values = np.concatenate([TIES.ravel(), near, EDGES]).astype(dtype)
    expected = np.round(values.astype(np.float64)).astype(dtype)
    return Example(np.dtype(dtype).name, (values,), hlo.round_nearest_even, expected)


EXAMPLES = [example(x) for x in (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)]


@pytest.fixture(scope="module")
def results() -> dict[str, list[np.ndarray]]:
    return run_examples(EXAMPLES, "expand-rounding")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.name)
def test_values(results: dict[str, list[np.ndarray]], example: Example) -> None:
    assert deviations(results[example.name], example) == []
