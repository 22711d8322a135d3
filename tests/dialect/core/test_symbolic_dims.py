"""Symbolic dimensions: arithmetic, bounds and comparisons, against numbers."""

from __future__ import annotations

import math
import operator
import pickle
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from axir.dialect.core.errors import ParameterError
from axir.dialect.core.symbolic.terms import OPERATIONS, SymbolicDimError
from axir.dialect.core.symbolic.texts import read_extent, write_extent
from axir.dialect.core.symbolic_dims import (
    SymbolicDim,
    are_same,
    operation,
    symbolic_dim_bounds,
    value_of,
)
from axir.dialect.core.types import ShapedArray, type_of_mlir

SIZES = [(1, 1), (1, 2), (2, 1), (3, 7), (7, 3), (5, 5), (64, 3), (3, 64)]


def drawn(choose: random.Random, depth: int) -> Any:
    """Returns a random extent of b and t."""
    if not depth or choose.random() < 0.25:
        return choose.choice([SymbolicDim("b"), SymbolicDim("t"), choose.randint(-3, 6)])
    x, y = drawn(choose, depth - 1), drawn(choose, depth - 1)
    name = choose.choice(["+", "-", "*", *OPERATIONS])
    if name in "+-*":
        return {"+": operator.add, "-": operator.sub, "*": operator.mul}[name](x, y)
    if name in ("floordiv", "mod"):
        y = choose.choice([choose.randint(1, 5), SymbolicDim("b"), 2 * SymbolicDim("t")])
    return operation(name, x, y)


def by_sizes(x: Any) -> list[int]:
    return [value_of(x, {"b": b, "t": t}) for b, t in SIZES]


@pytest.mark.parametrize("seed", range(20))
def test_what_is_simplified_and_bounded_is_so_for_all_sizes(seed: int) -> None:
    choose = random.Random(seed)
    for _ in range(40):
        x, y = drawn(choose, 2), drawn(choose, 2)
        low, high = symbolic_dim_bounds(x)
        values, others = by_sizes(x), by_sizes(y)
        assert all(low <= value <= high for value in values), (x, low, high)
        for name, function in OPERATIONS.items():
            if name in ("floordiv", "mod") and 0 in others:
                continue
            wanted = [function(a, b) for a, b in zip(values, others, strict=True)]
            assert by_sizes(operation(name, x, y)) == wanted, (name, x, y)
        text = write_extent(x)
        assert by_sizes(read_extent(text)) == values, text


@pytest.mark.parametrize("seed", range(10))
def test_comparisons_are_right_or_refused(seed: int) -> None:
    choose = random.Random(100 + seed)
    decided = 0
    compare: Callable[[Any, Any], bool]
    for _ in range(100):
        x, y = drawn(choose, 1), drawn(choose, 1)
        for compare in (operator.lt, operator.le, operator.gt, operator.ge, operator.eq):
            try:
                found = compare(x, y)
            except SymbolicDimError:
                continue
            decided += 1
            pairs = zip(by_sizes(x), by_sizes(y), strict=True)
            assert {compare(a, b) for a, b in pairs} == {found}, (compare, x, y)
        try:
            is_true = bool(x)
        except SymbolicDimError:
            continue
        assert {bool(value) for value in by_sizes(x)} == {is_true}, x
    assert decided > 100


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("b*b - b", 0, np.inf),
        ("b - 2*floordiv(b, 2)", 0, 1),
        ("max(b, 3) - b", 0, 2),
        ("s - t | t <= s", 0, np.inf),
        ("mod(k, 4) | mod(k, 2) == 0", 0, 3),
        ("2*floordiv(k, 2) - k | mod(k, 2) == 0", 0, 0),
        ("m - n | m == 2*n, n >= 3", 3, np.inf),
        ("t | t >= 2, t < 10", 2, 9),
    ],
)
def test_bounds(text: str, low: float, high: float) -> None:
    assert symbolic_dim_bounds(read_extent(text)) == (low, high)


@pytest.mark.parametrize("seed", range(10))
def test_bounds_hold_for_all_sizes_that_constraints_allow(seed: int) -> None:
    choose = random.Random(200 + seed)
    tried = 0
    for _ in range(60):
        x, left, right = drawn(choose, 1), drawn(choose, 1), drawn(choose, 1)
        sign = choose.choice([">=", "=="])
        bounded = read_extent(f"{x} | {left} {sign} {right}")
        low, high = symbolic_dim_bounds(bounded)
        values = zip(by_sizes(x), by_sizes(left), by_sizes(right), strict=True)
        compare = operator.ge if sign == ">=" else operator.eq
        allowed = [value for value, a, b in values if compare(a, b)]
        assert all(low <= value <= high for value in allowed), bounded
        tried += bool(allowed)
    assert tried > 20


def test_bounds_of_halves_of_halves_are_found_at_once() -> None:
    text = "t"
    for _ in range(30):
        text = f"floordiv({text} - 1, 2) + 1"
    assert symbolic_dim_bounds(read_extent(text)) == (1, np.inf)


@pytest.mark.parametrize(
    "constraint", ["min(b, t) >= t", "mod(b, t) <= t", "floordiv(b, t) >= t", "max(b, t) == b"]
)
def test_constraints_may_lead_back_to_what_is_asked(constraint: str) -> None:
    assert symbolic_dim_bounds(read_extent(f"b | {constraint}"))[0] >= 1
    symbolic_dim_bounds(read_extent(f"b - t | {constraint}"))


def test_types_are_kept_apart_by_constraints() -> None:
    free, bound = (ShapedArray((read_extent(x), 3), "float32") for x in ("b", "b | b >= 8"))
    assert free is not bound
    assert free.shape == bound.shape
    assert type_of_mlir(bound.mlir) is bound
    assert bound.shape[0] >= 8
    with pytest.raises(SymbolicDimError, match="Whether b >= 8 holds depends on the size of b"):
        bool(free.shape[0] >= 8)
    (copied,) = pickle.loads(pickle.dumps((bound.shape[0],)))
    assert write_extent(copied) == "b | b >= 8"
    assert are_same((copied, 1), (bound.shape[0], 1))


@pytest.mark.parametrize(
    "text",
    [
        *("b^999999999", "9^9^9^9", "(" * 900 + "b", "b + " * 900, "b | b", "b, t", "", "b.x"),
        *(
            "((((9**16)**16)**16)**16)**16",
            "((b + 1)**16)**16",
            "(b + t + s)**16",
            "-" * 1900 + "b",
        ),
    ],
)
def test_hostile_texts_are_refused(text: str) -> None:
    with pytest.raises(ParameterError, match="is no extent|is no comparison"):
        read_extent(text)


def test_dimensions_under_different_constraints_do_not_mix() -> None:
    with pytest.raises(SymbolicDimError, match="b and t stand under different constraints"):
        read_extent("b | b >= 8") + read_extent("t | t >= 2")
    with pytest.raises(SymbolicDimError, match=r"floordiv\(b, 0\): a division by zero"):
        SymbolicDim("b") // 0
    with pytest.raises(SymbolicDimError, match="The extent b is not known"):
        range(SymbolicDim("b"))
    with pytest.raises(TypeError, match="are no operands of one operation"):
        SymbolicDim("b") + "x"


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("2*b - 2*floordiv(b, 2) + 1", 3, math.inf),
        ("b - 2*floordiv(b, 2)", 0, 1),
        ("b*t - 3*floordiv(b*t + 1, 3)", -1, 1),
        ("mod(b, 3) - mod(b, 2)", -1, 2),
        ("floordiv(mod(b, 4), 2) - b", -math.inf, -1),
        ("floordiv(b, 4) + floordiv(3 - b, 4)", 0, 0),
    ],
)
def test_bounds_of_quotients_of_one_number(text: str, least: float, most: float) -> None:
    extent = read_extent(text)
    assert symbolic_dim_bounds(extent) == (least, most)
    names = {"floordiv": lambda a, b: a // b, "mod": lambda a, b: a % b}
    values = [eval(text, {**names, "b": b, "t": 1}) for b in range(1, 50)]
    assert min(values) >= least
    assert max(values) <= most
    assert min(values) == least or math.isinf(least)
    assert max(values) == most or math.isinf(most)
