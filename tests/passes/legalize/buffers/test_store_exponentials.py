"""`store-exponentials`: parts of a softmax that are used elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
from support.stablehlo_runner import (
    CompilationError,
    Compiled,
    Example,
    build,
    deviations,
    run_examples,
    text_after,
)

from axir.dialect.builders import stablehlo as hlo

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4, 16, 16)).astype(np.float32)
MASK = np.tril(np.ones((4, 16, 16), bool))


def reduced(value, function, start):
    (result,) = hlo.reduce([value], [hlo.full(start, (), np.float32)], [2], function)
    return result


def spread(value):
    return hlo.broadcast_in_dim(value, (4, 16, 16), (0, 1))


def parts(x, mask):
    """Returns the masked operand, its maximum, the exponentials, their sum and the softmax."""
    masked = hlo.select(mask, hlo.multiply(x, hlo.scalar_like(x, 0.25)), hlo.full_like(x, -1e9))
    top = reduced(masked, hlo.maximum, -np.inf)
    exponentials = hlo.exponential(hlo.subtract(masked, spread(top)))
    total = reduced(exponentials, hlo.add, 0)
    return masked, top, exponentials, total, hlo.divide(exponentials, spread(total))


def expected_parts():
    masked = np.where(MASK, X * np.float32(0.25), np.float32(-1e9))
    top = masked.max(2)
    exponentials = np.exp(masked - top[..., None])
    total = exponentials.sum(2)
    return masked, top, exponentials, total, exponentials / total[..., None]


def choose(*indices):
    def builder(x, mask):
        values = parts(x, mask)
        return [hlo.negate(values[i]) if i == 2 else values[i] for i in indices]

    values = expected_parts()
    expected = [-values[i] if i == 2 else values[i] for i in indices]
    return Example(f"parts_{'_'.join(map(str, indices))}", (X, MASK), builder, expected)


def sum_of_exponentials(x, mask):
    return [reduced(hlo.exponential(hlo.subtract(x, x)), hlo.add, 0)]


SOFTMAX = choose(4)
EXAMPLES = [
    SOFTMAX,
    choose(4, 2),
    choose(4, 3),
    choose(4, 1),
    choose(3, 1),
    Example("no_maximum", (X, MASK), sum_of_exponentials, np.full((4, 16), 16, np.float32)),
]


@pytest.fixture(scope="module")
def results() -> dict[str, list[np.ndarray]]:
    return run_examples(EXAMPLES, "store-exponentials")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.name)
def test_values(results: dict[str, list[np.ndarray]], example: Example) -> None:
    assert deviations(results[example.name], example, ulps=8) == []


@pytest.mark.parametrize("index", [1, 2])
def test_the_pass_is_still_needed(index: int) -> None:
    example = EXAMPLES[index]
    with pytest.raises(CompilationError, match="write affecting operations"):
        Compiled(build({"f": (example.arguments, example.builder)}))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.name)
def test_exponentials_are_stored_if_the_softmax_is_not_all(example: Example) -> None:
    is_stored = "optimization_barrier" in text_after(example, "store-exponentials")
    assert is_stored == (example.name not in ("parts_4", "no_maximum"))
