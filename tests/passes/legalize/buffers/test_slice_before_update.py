"""The row `slice-before-update` of `separate-dispatches`: overlapping parts of an array."""

from __future__ import annotations

import numpy as np
import pytest
from support.stablehlo_runner import Example, deviations, run_examples, text_after

from axir.dialect.builders import stablehlo as hlo
from axir.runtime import Target, compile_module

X = np.arange(35, dtype=np.float64).reshape(7, 5)
ZERO, ONE = np.int32(0), np.int32(1)
PASS = "protect-inputs,separate-dispatches{row=slice-before-update}"
MOVED = X.copy()
MOVED[1:] = X[:6]


def number(value):
    return hlo.constant(np.int32(value))


def to_computed_place(x, i, j):
    part = hlo.dynamic_slice(x, [i, number(0)], (6, 5))
    return [hlo.dynamic_update_slice(x, part, [j, number(0)])]


def to_known_place(x, i, j):
    return [hlo.dynamic_update_slice(x, hlo.slice(x, [0, 0], [6, 5]), [number(1), number(0)])]


def of_computed(x, i, j):
    return to_computed_place(hlo.add(x, x), i, j)


def of_part(x, i, j):
    """Moves a part of an array that is itself part of another array."""
    row = hlo.reshape(hlo.add(x, x), (35,))
    longer = hlo.dynamic_update_slice(hlo.full(0, (36,), np.float64), row, [number(0)])
    return to_computed_place(hlo.reshape(hlo.slice(longer, [0], [35]), (7, 5)), i, j)


def of_what_is_put_over_all(x, i, j):
    """Updates an array that was replaced as a whole by the array of the part."""
    y = hlo.add(x, x)
    replaced = hlo.dynamic_update_slice(x, y, [number(0), number(0)])
    part = hlo.dynamic_slice(y, [i, number(0)], (6, 5))
    return [hlo.dynamic_update_slice(replaced, part, [j, number(0)])]


def from_another(x, i, j):
    part = hlo.slice(hlo.add(x, x), [0, 0], [6, 5])
    return [hlo.dynamic_update_slice(x, part, [j, number(0)])]


DOUBLED = X.copy()
DOUBLED[1:] = 2 * X[:6]
ARGUMENTS = (X, ZERO, ONE)
EXAMPLES = [
    Example("computed_place", ARGUMENTS, to_computed_place, [MOVED]),
    Example("known_place", ARGUMENTS, to_known_place, [MOVED]),
    Example("of_computed", ARGUMENTS, of_computed, [2 * MOVED]),
    Example("of_part", ARGUMENTS, of_part, [2 * MOVED]),
    Example("of_what_is_put_over_all", ARGUMENTS, of_what_is_put_over_all, [2 * MOVED]),
    Example("from_another", ARGUMENTS, from_another, [DOUBLED]),
]


@pytest.fixture(scope="module")
def results() -> dict[str, list[np.ndarray]]:
    return run_examples(EXAMPLES, PASS, compiler=lambda module: compile_module(module, Target()))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_values(results: dict[str, list[np.ndarray]], example: Example) -> None:
    assert deviations(results[example.name], example) == []


def test_the_pass_is_still_needed() -> None:
    raw = run_examples(EXAMPLES[:1], "protect-inputs")
    assert deviations(raw["computed_place"], EXAMPLES[0])


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_parts_of_other_arrays_need_no_barrier(example: Example) -> None:
    is_stored = "optimization_barrier" in text_after(example, PASS)
    assert is_stored == (example.name != "from_another")
