"""`slice-reshaped`: elements of arrays that become arrays of more axes."""

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

X = np.arange(24, dtype=np.int32) * 3 - 7


def plus(x, number):
    return hlo.add(x, hlo.full_like(x, number))


def both(element, shape):
    """The element by another shape, and a number of it."""
    reshaped = hlo.reshape(element, shape)
    return [reshaped, plus(reshaped, 1)]


def reshaped_to(shape):
    return lambda x: both(hlo.slice(x, [5], [6]), shape)


def broadcast(x):
    widened = hlo.broadcast_in_dim(hlo.slice(x, [5], [6]), (1, 1), (0,))
    return [widened, plus(widened, 1)]


def by_steps(x):
    return both(hlo.slice(x, [5], [24], [19]), (1, 1))


def behind_nothing_added(x):
    return both(plus(hlo.slice(x, [5], [6]), 0), (1, 1))


def of_a_matrix(x):
    return both(hlo.slice(hlo.reshape(x, (4, 6)), [0, 5], [1, 6]), (1, 1, 1))


def of_as_many_axes(x):
    return both(hlo.slice(hlo.reshape(x, (4, 6)), [0, 5], [1, 6]), (1, 1))


def in_rows(x):
    row = hlo.slice(hlo.reshape(x, (4, 6)), [0, 4], [1, 6])
    return both(row, (1, 1, 1, 2))


def expected(shape, values=X[5:6]):
    return [values.reshape(shape), values.reshape(shape) + 1]


TOO_MANY_AXES = [
    Example("matrix", (X,), reshaped_to((1, 1)), expected((1, 1))),
    Example("three_axes", (X,), reshaped_to((1, 1, 1)), expected((1, 1, 1))),
    Example("broadcast", (X,), broadcast, expected((1, 1))),
    Example("steps", (X,), by_steps, expected((1, 1))),
    Example("nothing_added", (X,), behind_nothing_added, expected((1, 1))),
    Example("of_a_matrix", (X,), of_a_matrix, expected((1, 1, 1))),
]
OTHERS = [
    Example("as_many_axes", (X,), of_as_many_axes, expected((1, 1))),
    Example("rows", (X,), in_rows, expected((1, 1, 1, 2), X[4:6])),
]
EXAMPLES = TOO_MANY_AXES + OTHERS


@pytest.fixture(scope="module")
def results() -> dict[str, list[np.ndarray]]:
    return run_examples(EXAMPLES, "slice-reshaped")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.name)
def test_values(results: dict[str, list[np.ndarray]], example: Example) -> None:
    assert deviations(results[example.name], example) == []


@pytest.mark.parametrize("example", TOO_MANY_AXES, ids=lambda e: e.name)
def test_the_pass_is_still_needed(example: Example) -> None:
    """Compiles with inspection of each pass's output, as axir does where it edits it."""
    with pytest.raises(CompilationError, match="equal to the other rank"):
        Compiled(build({example.name: (example.arguments, example.builder)}))


@pytest.mark.parametrize("example", OTHERS, ids=lambda e: e.name)
def test_other_slices_stay(example: Example) -> None:
    assert text_after(example, "slice-reshaped") == text_after(example, "")
