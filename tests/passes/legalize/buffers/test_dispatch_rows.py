"""Rows of `separate-dispatches`: pads, several results, slices that are updated or widened."""

from __future__ import annotations

import numpy as np
import pytest
from iree.compiler import ir
from support.stablehlo_runner import Compiled, Example, build, deviations, run_examples, text_after

from axir.dialect.builders import stablehlo as hlo
from axir.passes.framework.pipeline import run_passes
from axir.runtime import Target, compile_module

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


PASS_SEVERAL = "separate-dispatches{row=several-results}"
X_SEVERAL = np.random.default_rng(5).normal(size=(4, 3, 5)).astype(np.float32)
PLACES = X_SEVERAL.argmax(2).astype(np.int32)
PLANE = np.random.default_rng(6).normal(size=(33, 31)).astype(np.float32)
NUMBERS = np.arange(PLANE.size, dtype=np.int32).reshape(PLANE.shape)
WINDOW = (20, 25)
FIRST, INT = np.float32(-np.inf), np.dtype(np.int32)


def preferred(a, b, i, j):
    wins = hlo.compare(a, b, "GE")
    return [hlo.select(wins, a, b), hlo.select(wins, i, j)]


def largest(x):
    """The largest numbers of the rows of `X`, and where they are."""
    inits = [hlo.full(FIRST, (), hlo.element_type_of(x)), hlo.full(0, (), INT)]
    body = lambda a, i, b, j: preferred(a, b, i, j)  # noqa: E731
    return hlo.reduce([x, hlo.iota(X_SEVERAL.shape, 2, INT)], inits, (2,), body)


def largest_of_windows(x, numbers):
    """The largest numbers of windows of `PLANE`, and their numbers."""
    inits = [hlo.full(FIRST, (), hlo.element_type_of(x)), hlo.full(0, (), INT)]
    body = lambda a, i, b, j: preferred(a, b, i, j)  # noqa: E731
    return hlo.reduce_window([x, numbers], inits, WINDOW, body)


def turned(x):
    return hlo.transpose(x, (1, 0))


def largest_numbers() -> np.ndarray:
    windows = np.lib.stride_tricks.sliding_window_view(PLANE, WINDOW)
    flat = windows.reshape(*windows.shape[:2], -1).argmax(-1)
    rows, columns = (np.arange(n) for n in windows.shape[:2])
    inside = flat // WINDOW[1] * PLANE.shape[1] + flat % WINDOW[1]
    return (inside + rows[:, None] * PLANE.shape[1] + columns).astype(np.int32)


def doubled(x):
    places = turned(largest(x)[1])
    return hlo.add(places, places)


EXAMPLES_SEVERAL = [
    Example("places", [X_SEVERAL], lambda x: turned(largest(x)[1]), PLACES.T),
    Example("numbers", [X_SEVERAL], lambda x: turned(largest(x)[0]), X_SEVERAL.max(2).T),
    Example(
        "both",
        [X_SEVERAL],
        lambda x: [turned(y) for y in largest(x)],
        [X_SEVERAL.max(2).T, PLACES.T],
    ),
    Example(
        "behind_arithmetic", [X_SEVERAL], lambda x: turned(hlo.negate(largest(x)[1])), -PLACES.T
    ),
    Example("twice", [X_SEVERAL], doubled, 2 * PLACES.T),
    Example(
        "windows",
        [PLANE, NUMBERS],
        lambda x, numbers: turned(largest_of_windows(x, numbers)[1]),
        largest_numbers().T,
    ),
]


def test_moved_results_compile_and_are_right() -> None:
    results = run_examples(EXAMPLES_SEVERAL, "legalize-for-iree")
    found = [line for e in EXAMPLES_SEVERAL for line in deviations(results[e.name], e)]
    assert not found, found


def test_single_results_are_not_stored() -> None:
    def total(x):
        init = hlo.full(0, (), hlo.element_type_of(x))
        return turned(hlo.reduce([x], [init], (2,), hlo.add)[0])

    single = Example("single", [X_SEVERAL], total, X_SEVERAL.sum(2).T)
    assert "optimization_barrier" not in text_after(single, PASS_SEVERAL)
    assert "optimization_barrier" in text_after(EXAMPLES_SEVERAL[0], PASS_SEVERAL)


X_UPDATE = np.arange(35, dtype=np.float64).reshape(7, 5)
ZERO, ONE = np.int32(0), np.int32(1)
PASS_UPDATE = "protect-inputs,separate-dispatches{row=slice-before-update}"
MOVED = X_UPDATE.copy()
MOVED[1:] = X_UPDATE[:6]


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


DOUBLED = X_UPDATE.copy()
DOUBLED[1:] = 2 * X_UPDATE[:6]
ARGUMENTS = (X_UPDATE, ZERO, ONE)
EXAMPLES_UPDATE = [
    Example("computed_place", ARGUMENTS, to_computed_place, [MOVED]),
    Example("known_place", ARGUMENTS, to_known_place, [MOVED]),
    Example("of_computed", ARGUMENTS, of_computed, [2 * MOVED]),
    Example("of_part", ARGUMENTS, of_part, [2 * MOVED]),
    Example("of_what_is_put_over_all", ARGUMENTS, of_what_is_put_over_all, [2 * MOVED]),
    Example("from_another", ARGUMENTS, from_another, [DOUBLED]),
]


@pytest.fixture(scope="module")
def results_update() -> dict[str, list[np.ndarray]]:
    return run_examples(
        EXAMPLES_UPDATE, PASS_UPDATE, compiler=lambda module: compile_module(module, Target())
    )


@pytest.mark.parametrize("example", EXAMPLES_UPDATE, ids=lambda example: example.name)
def test_values_update(results_update: dict[str, list[np.ndarray]], example: Example) -> None:
    assert deviations(results_update[example.name], example) == []


def test_the_pass_is_still_needed_update() -> None:
    raw = run_examples(EXAMPLES_UPDATE[:1], "protect-inputs")
    assert deviations(raw["computed_place"], EXAMPLES_UPDATE[0])


@pytest.mark.parametrize("example", EXAMPLES_UPDATE, ids=lambda example: example.name)
def test_parts_of_other_arrays_need_no_barrier(example: Example) -> None:
    is_stored = "optimization_barrier" in text_after(example, PASS_UPDATE)
    assert is_stored == (example.name != "from_another")


X_WIDENING = np.arange(5, dtype=np.int32)
Y = np.arange(5, dtype=np.float64) / 4
Z = np.float64([0.5, 2, 3])
PASS_WIDENING = "separate-dispatches{row=widening-before-slice}"


def widened(x):
    wide = hlo.convert(x, ir.F64Type.get())
    return hlo.divide(wide, hlo.full_like(wide, 4))


def put_into_longer(y, z):
    """Every other element times `z`, between sevens."""
    part = hlo.multiply(hlo.slice(y, [0], [5], [2]), z)
    return [hlo.pad(part, hlo.constant(np.float64(7)), [2], [5], [0])]


def of_widened(x, z):
    return put_into_longer(widened(x), z)


def of_wide(y, z):
    return put_into_longer(hlo.add(y, y), z)


def element_of_widened(x, z):
    """An element of a matrix as a row, times `z`: a compilation without end."""
    matrix = widened(hlo.reshape(hlo.pad(x, hlo.constant(np.int32(1)), [0], [1], [0]), (2, 3)))
    element = hlo.slice(hlo.reshape(matrix, (6,)), [3], [4])
    return [hlo.multiply(hlo.broadcast_in_dim(element, (3,), (0,)), z)]


def expected(y):
    result = np.full(10, 7.0)
    result[2:5] = y[::2] * Z
    return [result]


WIDENED = Example("widened", (X_WIDENING, Z), of_widened, expected(X_WIDENING / 4))
ELEMENT = Example("element", (X_WIDENING, Z), element_of_widened, [X_WIDENING[3] / 4 * Z])
WIDE = Example("wide", (Y, Z), of_wide, expected(2 * Y))


@pytest.fixture(scope="module")
def results_widening() -> dict[str, list[np.ndarray]]:
    return run_examples([WIDENED, ELEMENT, WIDE], PASS_WIDENING)


@pytest.mark.parametrize("example", [WIDENED, ELEMENT, WIDE], ids=lambda example: example.name)
def test_values_widening(results_widening: dict[str, list[np.ndarray]], example: Example) -> None:
    assert deviations(results_widening[example.name], example) == []


def test_the_pass_is_still_needed_widening() -> None:
    assert deviations(run_examples([WIDENED])["widened"], WIDENED)


def test_only_what_is_widened_is_stored() -> None:
    assert text_after(WIDENED, PASS_WIDENING).count("optimization_barrier") == 1
    assert text_after(WIDE, PASS_WIDENING) == text_after(WIDE, "")
