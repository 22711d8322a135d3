"""The row `dilation-beside-pad` of `separate-dispatches`: arrays with padding between elements."""

from __future__ import annotations

import numpy as np
import pytest
from support.stablehlo_runner import Compiled, Example, build, deviations, run_examples

from axir.dialect.builders import stablehlo as hlo
from axir.passes.framework.pipeline import run_passes

PASS = "separate-dispatches{row=dilation-beside-pad}"
X = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
SPREAD = np.zeros((3, 7), np.float32)
SPREAD[::2, ::2][:, :3] = X


def padded(x, low, high, interior=(0, 0)):
    return hlo.pad(x, hlo.full(0, (), np.float32), low, high, interior)


def spread(x):
    return padded(x, (0, 0), (0, 2), (1, 1))


def padded_again(x):
    return [padded(spread(x), (1, 0), (0, 2))]


def spread_again(x):
    return [padded(spread(x), (0, 0), (0, 0), (0, 2))]


def padded_before(x):
    return [padded(padded(x, (0, 1), (0, 0)), (0, 1), (1, 1), (0, 1))]


def padded_and_reshaped_before(x):
    before = hlo.reshape(padded(x, (0, 1), (0, 0)), (1, 2, 4))
    return [padded(hlo.reshape(before, (2, 4)), (0, 1), (1, 1), (0, 1))]


def reshaped(x):
    return [padded(hlo.reshape(spread(x), (7, 3)), (0, 1), (0, 0))]


def used_twice(x):
    value = spread(x)
    return [value, padded(hlo.negate(value), (0, 1), (0, 0)), hlo.concatenate([value, value], 0)]


def expected_again() -> np.ndarray:
    result = np.zeros((3, 19), np.float32)
    result[:, ::3] = SPREAD
    return result


BEFORE = np.zeros((3, 9), np.float32)
BEFORE[:2, 3:8:2] = X

EXAMPLES = [
    Example("padded_again", (X,), padded_again, [np.pad(SPREAD, ((1, 0), (0, 2)))]),
    Example("spread_again", (X,), spread_again, [expected_again()]),
    Example("padded_before", (X,), padded_before, [BEFORE]),
    Example("reshaped_before", (X,), padded_and_reshaped_before, [BEFORE]),
    Example("reshaped", (X,), reshaped, [np.pad(SPREAD.reshape(7, 3), ((0, 0), (1, 0)))]),
    Example(
        "used_twice",
        (X,),
        used_twice,
        [SPREAD, np.pad(-SPREAD, ((0, 0), (1, 0))), np.concatenate([SPREAD, SPREAD])],
    ),
]


@pytest.fixture(scope="module")
def results() -> dict[str, list[np.ndarray]]:
    return run_examples(EXAMPLES, PASS)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.name)
def test_values(results: dict[str, list[np.ndarray]], example: Example) -> None:
    assert deviations(results[example.name], example) == []


@pytest.mark.parametrize("name", ["padded_again", "padded_before", "reshaped_before"])
def test_the_pass_is_still_needed(name: str) -> None:
    (example,) = (example for example in EXAMPLES if example.name == name)
    compiled = Compiled(build({"f": (example.arguments, example.builder)}))
    assert not np.array_equal(compiled("f", X)[0], example.expected[0])


def test_pads_at_edges_stay() -> None:
    module = build({"f": ((X,), lambda x: [padded(padded(x, (1, 0), (0, 0)), (0, 0), (2, 1))])})
    before = str(module)
    run_passes(module, PASS)
    assert str(module) == before
