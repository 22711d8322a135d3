"""`stabilize-sort`: equal elements keep their order."""

from __future__ import annotations

import numpy as np
import pytest
from support.stablehlo_runner import Example, build, deviations, run_examples

from axir.dialect.builders import stablehlo as hlo
from axir.passes.framework.pipeline import run_passes

RNG = np.random.default_rng(0)
KEYS = RNG.integers(0, 10, size=200).astype(np.int32)
FLOATS = RNG.integers(0, 5, size=(40, 6)).astype(np.float32)
FLOATS[3, 2] = FLOATS[30, 2] = np.nan
POSITIONS = np.arange(200, dtype=np.int32)


def argsort(direction):
    def builder(keys, positions):
        return hlo.sort([keys, positions], 0, lambda a, b, c, d: hlo.compare(a, b, direction))

    return builder


def by_two_keys(first, second, positions):
    def precedes(a, b, c, d, e, f):
        is_less = hlo.compare(a, b, "LT")
        is_equal = hlo.compare(a, b, "EQ")
        return hlo.or_(is_less, hlo.and_(is_equal, hlo.compare(c, d, "GT")))

    return hlo.sort([first, second, positions], 0, precedes)


def along_rows(x):
    order = hlo.iota((40, 6), 0, np.int32)
    total = lambda a, b, c, d: hlo.compare(a, b, "LT", is_total_order=True)  # noqa: E731
    return hlo.sort([x, order], 0, total)


ASCENDING = np.argsort(KEYS, kind="stable").astype(np.int32)
DESCENDING = np.argsort(-KEYS, kind="stable").astype(np.int32)
SECOND = RNG.integers(0, 4, size=200).astype(np.int32)
LEXICAL = np.lexsort((-SECOND, KEYS)).astype(np.int32)
COLUMNWISE = np.argsort(FLOATS, axis=0, kind="stable").astype(np.int32)
EXAMPLES = [
    Example("ascending", (KEYS, POSITIONS), argsort("LT"), [KEYS[ASCENDING], ASCENDING]),
    Example("descending", (KEYS, POSITIONS), argsort("GT"), [KEYS[DESCENDING], DESCENDING]),
    Example(
        "two_keys",
        (KEYS, SECOND, POSITIONS),
        by_two_keys,
        [KEYS[LEXICAL], SECOND[LEXICAL], LEXICAL],
    ),
    Example(
        "columns",
        (FLOATS,),
        along_rows,
        [np.take_along_axis(FLOATS, COLUMNWISE, 0), COLUMNWISE],
    ),
]


@pytest.fixture(scope="module")
def results() -> dict[str, list[np.ndarray]]:
    return run_examples(EXAMPLES, "stabilize-sort")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.name)
def test_values(results: dict[str, list[np.ndarray]], example: Example) -> None:
    assert deviations(results[example.name], example) == []


def test_running_twice_changes_nothing() -> None:
    once = build({"f": (EXAMPLES[0].arguments, EXAMPLES[0].builder)})
    run_passes(once, "stabilize-sort")
    text = str(once)
    run_passes(once, "stabilize-sort")
    assert str(once) == text


def test_without_the_pass_ties_change_their_order() -> None:
    raw = run_examples(EXAMPLES)
    assert deviations(raw["ascending"], EXAMPLES[0]) != []
