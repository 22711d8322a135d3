"""`bypass-barriers`: an update behind a barrier does not change the value before it."""

from __future__ import annotations

import numpy as np
import pytest
from support.stablehlo_runner import Example, deviations, run_examples, text_after

from axir.dialect.builders import stablehlo as hlo

RNG = np.random.default_rng(0)
X = RNG.uniform(1, 2, size=(4, 300)).astype(np.float32)
ONES = np.ones((2, 300), np.float32)
ROOTS = np.sqrt(X)
UPDATED = np.concatenate([ROOTS[:1], ONES, ROOTS[3:]])


def barrier(x):
    return hlo.optimization_barrier(x)[0]


def updated(x, rows):
    start = hlo.constant(np.int32(1))
    return hlo.dynamic_update_slice(x, rows, [start, hlo.constant(np.int32(0))])


def read(x):
    """A reversal: a use that is computed at its position in the program."""
    return hlo.reverse(x, (0,))


def update_behind(x, rows):
    x = hlo.sqrt(x)
    changed = read(updated(barrier(x), rows))
    return changed, read(x)


def update_before(x, rows):
    x = hlo.sqrt(x)
    hidden = barrier(x)
    changed = read(updated(x, rows))
    return changed, read(hidden)


def update_of_a_reshaped_one(x, rows):
    x = hlo.sqrt(x)
    hidden = hlo.reshape(barrier(hlo.reshape(x, (1200,))), (4, 300))
    changed = read(updated(hidden, rows))
    return changed, read(x)


def update_behind_two(x, rows):
    x = hlo.sqrt(x)
    first = barrier(x)
    changed = read(updated(barrier(first), rows))
    return changed, read(first)


def updates_of_both(x, rows):
    x = hlo.sqrt(x)
    first, second = hlo.optimization_barrier([x, x])
    changed = read(updated(first, rows))
    return changed, read(updated(second, hlo.negate(rows)))


def update_of_what_is_returned(x, rows):
    x = hlo.sqrt(x)
    return read(updated(barrier(x), rows)), x


def update_of_a_constant(x, rows):
    zeros = hlo.constant(np.arange(1200, dtype=np.float32).reshape(4, 300))
    return read(updated(barrier(zeros), rows)), hlo.add(x, zeros)


def update_of_a_sum_with_zero(x, rows):
    x = hlo.sqrt(x)
    changed = read(updated(hlo.subtract(barrier(x), hlo.full_like(x, 0)), rows))
    return changed, read(x)


def several_returned_by_one(x, rows):
    """The operation that returns them changes when the first barrier is removed."""
    arrays = [hlo.sqrt(hlo.add(x, hlo.full_like(x, n))) for n in range(3)]
    return [y for x in arrays for y in (read(updated(x, rows)), barrier(x))]


def _several() -> list[np.ndarray]:
    roots = [np.sqrt(X + n) for n in range(3)]
    changed = [np.concatenate([x[:1], ONES, x[3:]])[::-1] for x in roots]
    return [y for pair in zip(changed, roots, strict=True) for y in pair]


EXPECTED = (UPDATED[::-1], ROOTS[::-1])
ZEROS = np.arange(1200, dtype=np.float32).reshape(4, 300)
EXAMPLES = [
    Example("behind", (X, ONES), update_behind, EXPECTED),
    Example("before", (X, ONES), update_before, EXPECTED),
    Example("reshaped", (X, ONES), update_of_a_reshaped_one, EXPECTED),
    Example("two", (X, ONES), update_behind_two, EXPECTED),
    Example(
        "both",
        (X, ONES),
        updates_of_both,
        (UPDATED[::-1], np.concatenate([ROOTS[:1], -ONES, ROOTS[3:]])[::-1]),
    ),
    Example("returned", (X, ONES), update_of_what_is_returned, (UPDATED[::-1], ROOTS)),
    Example("several_returned", (X, ONES), several_returned_by_one, _several()),
    Example(
        "constant",
        (X, ONES),
        update_of_a_constant,
        (np.concatenate([ZEROS[:1], ONES, ZEROS[3:]])[::-1], X + ZEROS),
    ),
    Example("folded", (X, ONES), update_of_a_sum_with_zero, EXPECTED),
]


@pytest.fixture(scope="module")
def results() -> dict[str, list[np.ndarray]]:
    return run_examples(EXAMPLES, "bypass-barriers,protect-inputs")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.name)
def test_values(results: dict[str, list[np.ndarray]], example: Example) -> None:
    assert deviations(results[example.name], example) == []


def test_the_pass_is_still_needed() -> None:
    results = run_examples(EXAMPLES[:2], "protect-inputs")
    assert all(deviations(results[example.name], example) for example in EXAMPLES[:2])


def test_barriers_between_what_is_read_once_stay() -> None:
    def update_alone(x, rows):
        return updated(barrier(hlo.sqrt(x)), rows)

    def reads_alone(x, rows):
        x = hlo.sqrt(x)
        return hlo.add(barrier(x), x), updated(x, rows)

    for builder in (update_alone, reads_alone):
        example = Example("f", (X, ONES), builder, ())
        assert "optimization_barrier" in text_after(example, "bypass-barriers")
