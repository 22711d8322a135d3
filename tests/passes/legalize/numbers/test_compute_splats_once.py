"""`compute-splats-once`: sums of arrays that are computed from constants have all their terms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from iree.compiler import ir
from support.stablehlo_runner import Example, deviations, run_examples, text_after

from axir.dialect.builders import stablehlo as hlo

_PASS = "compute-splats-once"
_SHAPE = (2, 3)


def total(x: ir.Value) -> ir.Value:
    return hlo.reduce([x], [hlo.full(0, (), np.float32)], (0, 1), hlo.add)[0]


def example(name: str, computed: Callable[[], ir.Value], number: float) -> Example:
    """A sum of equal numbers, and an argument that it is added to."""
    offset = np.float32(1)
    return Example(
        name, (offset,), lambda x: hlo.add(total(computed()), x), np.float32(6 * number) + offset
    )


def splat(number: Any, dtype: Any = np.float32) -> ir.Value:
    return hlo.full(number, _SHAPE, dtype)


def given(number: ir.Value) -> ir.Value:
    return hlo.broadcast_in_dim(number, _SHAPE, ())


def repeated(number: Any) -> ir.Value:
    return hlo.broadcast_in_dim(hlo.full(number, (), np.float32), _SHAPE, ())


EXAMPLES = [
    Example("given", (np.float32(3),), lambda x: total(hlo.negate(given(x))), np.float32(-18)),
    example("negated", lambda: hlo.negate(splat(2)), -2),
    example("of_a_broadcast", lambda: hlo.negate(repeated(2)), -2),
    example("chain", lambda: hlo.negate(hlo.sqrt(splat(16))), -4),
    example("two", lambda: hlo.maximum(splat(2), repeated(3)), 3),
    example("of_bytes", lambda: hlo.convert(splat(200, np.uint8), np.float32), 200),
    example("of_truths", lambda: hlo.convert(splat(True, bool), np.float32), 1),
    example("of_complex", lambda: hlo.abs(splat(3 + 4j, np.complex64)), 5),
    example("chosen", lambda: hlo.select(hlo.full(False, (), bool), splat(2), splat(5)), 5),
    example("all_chosen", lambda: hlo.select(splat(False, bool), splat(2), hlo.abs(splat(-3))), 3),
]  # fmt: skip


@pytest.fixture(scope="module")
def results() -> dict[str, list[np.ndarray]]:
    return run_examples(EXAMPLES, _PASS)


@pytest.mark.parametrize("case", EXAMPLES, ids=lambda case: case.name)
def test_values(case: Example, results: dict[str, list[np.ndarray]]) -> None:
    assert deviations(results[case.name], case) == []


def test_the_pass_is_still_needed() -> None:
    names = ("of_bytes", "of_truths")
    examples = [case for case in EXAMPLES if case.name in names]
    raw = run_examples(examples)
    assert all(deviations(raw[case.name], case) for case in examples)


def test_other_elements_stay() -> None:
    x = np.ones(_SHAPE, np.float32)
    rows = np.arange(6, dtype=np.float32).reshape(_SHAPE)
    for case in (
        Example("argument", (x,), lambda x: hlo.add(x, splat(2)), x),
        Example("row", (x[0],), lambda x: hlo.negate(hlo.broadcast_in_dim(x, (2, 3), (1,))), x),
        Example("number", (x[0, 0],), hlo.negate, x),
        Example("rows", (x,), lambda x: hlo.negate(hlo.constant(rows)), x),
        Example("numbers", (x,), lambda x: hlo.negate(hlo.full(2, (), np.float32)), x),
    ):
        assert text_after(case, _PASS) == text_after(case, "")
