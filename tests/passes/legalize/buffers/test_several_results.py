"""The row `several-results` of `separate-dispatches`: results that are moved."""

from __future__ import annotations

import numpy as np
from support.stablehlo_runner import Example, deviations, run_examples, text_after

from axir.dialect.builders import stablehlo as hlo

PASS = "separate-dispatches{row=several-results}"
X = np.random.default_rng(5).normal(size=(4, 3, 5)).astype(np.float32)
PLACES = X.argmax(2).astype(np.int32)
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
    return hlo.reduce([x, hlo.iota(X.shape, 2, INT)], inits, (2,), body)


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


EXAMPLES = [
    Example("places", [X], lambda x: turned(largest(x)[1]), PLACES.T),
    Example("numbers", [X], lambda x: turned(largest(x)[0]), X.max(2).T),
    Example("both", [X], lambda x: [turned(y) for y in largest(x)], [X.max(2).T, PLACES.T]),
    Example("behind_arithmetic", [X], lambda x: turned(hlo.negate(largest(x)[1])), -PLACES.T),
    Example("twice", [X], doubled, 2 * PLACES.T),
    Example(
        "windows",
        [PLANE, NUMBERS],
        lambda x, numbers: turned(largest_of_windows(x, numbers)[1]),
        largest_numbers().T,
    ),
]


def test_moved_results_compile_and_are_right() -> None:
    results = run_examples(EXAMPLES, "legalize-for-iree")
    found = [line for e in EXAMPLES for line in deviations(results[e.name], e)]
    assert not found, found


def test_single_results_are_not_stored() -> None:
    def total(x):
        init = hlo.full(0, (), hlo.element_type_of(x))
        return turned(hlo.reduce([x], [init], (2,), hlo.add)[0])

    single = Example("single", [X], total, X.sum(2).T)
    assert "optimization_barrier" not in text_after(single, PASS)
    assert "optimization_barrier" in text_after(EXAMPLES[0], PASS)
