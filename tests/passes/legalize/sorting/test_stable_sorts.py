"""Sorts without kernels: by ranks on GPUs, and with equal elements in their order."""

from __future__ import annotations

import numpy as np
import pytest
from support.stablehlo_runner import Example, build, deviations, run_examples

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core.errors import UnsupportedByDeviceError
from axir.passes.framework.pipeline import run_passes

RNG = np.random.default_rng(0)


def rising(*operands):
    return hlo.sort(list(operands), 0, lambda a, b, *_: hlo.compare(a, b, "LT"), is_stable=True)


def example(length: int) -> Example:
    """Few different keys, some of them nan and zeros of both signs, with their positions."""
    keys = RNG.integers(-9, 9, length).astype(np.float32)
    keys[::7] = -0.0
    positions = np.arange(length, dtype=np.int32)
    order = np.argsort(keys + 0.0, kind="stable")
    return Example(f"of_{length}", (keys, positions), rising, [keys[order], positions[order]])


def test_rows_of_all_lengths() -> None:
    # One element, few elements, the longest row without runs, and merged rows with full and partial
    # runs.
    examples = [example(n) for n in (1, 5, 512, 513, 1024, 3000)]
    results = run_examples(examples, "sort-by-rank,legalize-for-iree{fuses=false}")
    assert [d for e in examples for d in deviations(results[e.name], e)] == []


def test_several_keys_and_dimensions() -> None:
    first = RNG.integers(0, 3, (2, 700, 2)).astype(np.int64) - 2**40
    second = RNG.integers(0, 200, (2, 700, 2)).astype(np.uint8)

    def sort(x, y):
        def before(a, b, c, d):
            return hlo.or_(
                hlo.compare(a, b, "GT"),
                hlo.and_(hlo.compare(a, b, "EQ"), hlo.compare(c, d, "LT")),
            )

        return hlo.sort([x, y], 1, before, is_stable=True)

    order = np.lexsort((second, -first), axis=1)
    expected = [np.take_along_axis(x, order, 1) for x in (first, second)]
    two_keys = Example("two_keys", (first, second), sort, expected)
    results = run_examples([two_keys], "sort-by-rank,legalize-for-iree{fuses=false}")
    assert list(deviations(results["two_keys"], two_keys)) == []


def test_a_comparator_without_keys_is_refused() -> None:
    def sort(x):
        return hlo.sort([x], 0, lambda a, b: hlo.compare(hlo.add(a, b), a, "LT"))

    module = build({"f": ((np.ones(4, np.float32),), sort)})
    with pytest.raises(UnsupportedByDeviceError, match="is no comparison of keys") as caught:
        run_passes(module, "sort-by-rank")
    assert "devices('cpu')" in str(caught.value)


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
