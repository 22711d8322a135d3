"""`sort-by-digits`: sorts of any keys, dtypes and shapes, by kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
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
SPECIAL = [1.0, np.nan, -0.0, 0.0, -np.inf, 2.0, 0.0, -0.0, np.inf, np.nan, -1.0, -2.5, 1e-3]
FLOATS = (ml_dtypes.bfloat16, np.float16, np.float32, np.float64)
INTEGERS = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)


def by_first(direction: str, is_total: bool = False) -> Callable[..., Any]:
    return lambda a, b, *_: hlo.compare(a, b, direction, is_total_order=is_total)


def positions_like(x: np.ndarray, dimension: int) -> np.ndarray:
    shape = [-1 if axis == dimension else 1 for axis in range(x.ndim)]
    counted = np.arange(x.shape[dimension], dtype=np.int32).reshape(shape)
    return np.ascontiguousarray(np.broadcast_to(counted, x.shape))


def with_positions(
    name: str, x: np.ndarray, order: np.ndarray, comparator: Any, dimension: int = 0
) -> Example:
    """Sorts an array together with its positions, so that the second result is the order."""
    return Example(
        name,
        (x, positions_like(x, dimension)),
        lambda x, y: hlo.sort([x, y], dimension, comparator),
        [np.take_along_axis(x, order, dimension), order.astype(np.int32)],
    )


def integers_of(dtype: Any) -> Example:
    """Digits from the first bit to the last one, ties, and the ends of the range."""
    info = np.iinfo(dtype)
    drawn = RNG.integers(info.min, info.max, 40, dtype, endpoint=True)
    x = np.concatenate([drawn, drawn[:9], np.array([info.min, info.max, 0, 1, 0], dtype)])
    return with_positions(
        f"integers_{np.dtype(dtype)}", x, np.argsort(x, kind="stable"), by_first("LT")
    )


def floats_of(dtype: Any) -> Example:
    """NaN last, zeros equal."""
    x = np.array(SPECIAL * 3, dtype)
    order = np.argsort(x.astype(np.float64), kind="stable")
    return with_positions(f"floats_{np.dtype(dtype)}", x, order, by_first("LT"))


def total_order_of(dtype: Any) -> Example:
    """NaNs at both ends, zeros of both signs apart: the order of bits behind the sign."""
    x = np.array([*SPECIAL, -np.nan, -np.nan], dtype)
    integer = np.dtype(f"int{8 * x.itemsize}")
    bits = x.view(integer)
    order = np.argsort(np.where(bits < 0, bits ^ np.iinfo(integer).max, bits), kind="stable")
    return with_positions(f"total_{np.dtype(dtype)}", x, order, by_first("LT", is_total=True))


X = RNG.integers(-9, 9, 50).astype(np.int32)
Y = RNG.normal(size=50).astype(np.float32)
TRUTHS = RNG.integers(0, 2, 50).astype(bool)


def ordered(name: str, comparator: Any, keys: Any, arrays: tuple[np.ndarray, ...]) -> Example:
    """Sorts several arrays, in the order of `np.lexsort(keys)`."""
    order = np.lexsort(keys)
    return Example(name, arrays, lambda *x: hlo.sort(x, 0, comparator), [x[order] for x in arrays])


def two_keys(first: str, second: str, is_turned: bool = False) -> Callable[..., Any]:
    def precedes(a: Any, b: Any, c: Any, d: Any, *_: Any) -> Any:
        ties = [hlo.compare(a, b, "EQ"), hlo.compare(c, d, second)]
        either = [hlo.compare(a, b, first), hlo.and_(*(ties[::-1] if is_turned else ties))]
        return hlo.or_(*(either[::-1] if is_turned else either))

    return precedes


def by_selection(a: Any, b: Any, c: Any, d: Any) -> Any:
    return hlo.select(hlo.compare(a, b, "EQ"), hlo.compare(c, d, "LT"), hlo.compare(a, b, "LT"))


def by_magnitude(a: Any, b: Any, *_: Any) -> Any:
    return hlo.compare(hlo.abs(b), hlo.abs(a), "GT")


def by_parts(a: Any, b: Any, *_: Any) -> Any:
    return two_keys("LT", "LT")(hlo.real(a), hlo.real(b), hlo.imag(a), hlo.imag(b))


def by_all(*pairs: Any) -> Any:
    before = hlo.compare(pairs[-2], pairs[-1], "LT")
    for a, b in zip(pairs[-4::-2], pairs[-3::-2], strict=True):
        ties = hlo.and_(hlo.compare(a, b, "EQ"), before)
        before = hlo.or_(hlo.compare(a, b, "LT"), ties)
    return before


def below(bound: int, dtype: Any) -> np.ndarray:
    return RNG.integers(0, bound, 50).astype(dtype)


PARTS = (X[:, None] + 1j * RNG.integers(0, 3, 50)[:, None]).astype(np.complex64)[:, 0]
WORDS = tuple(below(2, np.int32) for _ in range(6))
NARROW = (TRUTHS, below(3, np.int8), below(9, np.uint16), TRUTHS[::-1].copy(), Y)
MIXED = (below(3, np.int8), below(3, np.int64), TRUTHS, Y.astype(np.float64), Y)
LONG = np.arange(50, dtype=np.int32)
COMPARATORS = [
    ordered("descending", by_first("GT"), (-X,), (X, LONG)),
    ordered("at_most", by_first("LE"), (X,), (X, LONG)),
    ordered("truths", by_first("LT"), (TRUTHS,), (TRUTHS, LONG)),
    ordered("truths_descending", by_first("GE"), (~TRUTHS,), (TRUTHS, LONG)),
    ordered("two_keys", two_keys("LT", "GT"), (-Y, X), (X, Y, LONG)),
    ordered("two_keys_turned", two_keys("GT", "LT", True), (Y, -X), (X, Y)),
    ordered("selection", by_selection, (Y, X), (X, Y)),
    ordered("magnitude", by_magnitude, (np.abs(X),), (X, LONG)),
    ordered("complex_numbers", by_parts, (PARTS.imag, PARTS.real), (PARTS, LONG)),
    ordered("one_complex_array", by_parts, (PARTS.imag, PARTS.real), (PARTS,)),
    ordered("six_words", by_all, WORDS[::-1], WORDS),
    ordered("narrow_keys", by_all, NARROW[::-1], NARROW),
    ordered("mixed_keys", by_all, MIXED[::-1], MIXED),
]


def rows(name: str, shape: tuple[int, ...], dimension: int, bound: int = 2**31) -> Example:
    """Sorts an array and its positions along a dimension."""
    x = RNG.integers(-bound, bound, shape).astype(np.int32)
    order = np.argsort(x, axis=dimension, kind="stable")
    return with_positions(f"rows_{name}", x, order, by_first("LT"), dimension)


def alone(name: str, x: np.ndarray, dimension: int = 0) -> Example:
    return Example(
        f"alone_{name}",
        (x,),
        lambda x: hlo.sort([x], dimension, by_first("LT")),
        np.take_along_axis(x, np.argsort(x, axis=dimension, kind="stable"), dimension),
    )


# Around the limits of kernels and digits, with more and with fewer rows than workgroups.
SHAPES = [
    rows("two", (2,), 0),
    rows("one_of_many", (40_000, 1), 1),
    rows("counted", (5, 32), 1),
    rows("short", (33,), 0),
    rows("middle", (3, 129, 2), 1),
    rows("large_digits", (4097,), 0),
    rows("even_workgroups", (4, 4097), 1),
    rows("uneven_workgroups", (4099, 9), 1),
    rows("first_of_many", (9, 3000), 0, bound=3),
    rows("one_value", (5000,), 0, bound=1),
    rows("units", (1, 40, 1, 1), 1),
    Example(
        "rows_empty",
        (np.zeros((0, 3), np.int32),),
        lambda x: hlo.sort([x], 1, by_first("LT")),
        np.zeros((0, 3), np.int32),
    ),
]
ALONE = [
    alone("floats", np.array(SPECIAL, np.float32)),
    alone("halves", np.array(SPECIAL * 4, np.float16).reshape(2, 26), 1),
    alone("doubles", np.array(SPECIAL)),
    alone("truths", TRUTHS),
    alone("bytes", below(200, np.uint8)),
    Example(
        "alone_positions",
        (X,),
        lambda x: hlo.sort([x, hlo.iota((50,), 0, np.int64)], 0, by_first("LT"))[1],
        np.argsort(X, kind="stable"),
    ),
]


def front(name: str, x: np.ndarray, limits: tuple[int, int], dimension: int = 0) -> Example:
    """Only slices of the two results are read."""
    order = np.argsort(x, axis=dimension, kind="stable").astype(np.int32)

    def first(y: Any, number: int) -> Any:
        limit = [number if d == dimension else size for d, size in enumerate(x.shape)]
        return hlo.slice(y, [0] * x.ndim, limit)

    def builder(x: Any, y: Any) -> list[Any]:
        results = hlo.sort([x, y], dimension, by_first("LT"))
        return [first(y, number) for y, number in zip(results, limits, strict=True)]

    wanted = [np.take_along_axis(x, order, dimension), order]
    return Example(
        f"front_{name}",
        (x, positions_like(x, dimension)),
        builder,
        [y.take(range(limit), dimension) for y, limit in zip(wanted, limits, strict=True)],
    )


FEW = front("of_few", np.sort(Y.repeat(20))[::-1].copy(), (7, 7))
FRONTS = [
    FEW,
    front("of_short_row", X[:20], (3, 5)),
    *(front(f"of_{n}", RNG.integers(0, 9, n).astype(np.uint8), (1, 1)) for n in (8, 16, 17, 18)),
    front("of_some", np.sort(Y.repeat(20))[::-1].copy(), (40, 7)),
    front("of_most_of_few", RNG.normal(size=(2, 129)).astype(np.float32), (16, 1), 1),
    front("of_descending", np.arange(300, 0, -1, dtype=np.int32), (16, 3)),
    front("of_ties", below(3, np.int32).repeat(30), (9, 2)),
    front("of_one_value", np.ones(500, np.uint8), (9, 2)),
    front("of_most", Y.repeat(5), (200, 3)),
    front("of_two_words", RNG.integers(-(2**60), 2**60, (3, 400)), (5, 11), 1),
    front("of_columns", RNG.normal(size=(400, 3)).astype(np.float32), (5, 11)),
    front("of_rows", RNG.integers(0, 2**16, (40, 400)).astype(np.int32), (5, 11), 1),
]
EXAMPLES = [
    *FRONTS,
    *map(integers_of, INTEGERS),
    *map(floats_of, FLOATS),
    *map(total_order_of, FLOATS),
    *COMPARATORS,
    *SHAPES,
    *ALONE,
]


@pytest.fixture(scope="module")
def results() -> dict[str, list[np.ndarray]]:
    return run_examples(EXAMPLES, "sort-by-digits,legalize-for-iree")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.name)
def test_values(results: dict[str, list[np.ndarray]], example: Example) -> None:
    assert deviations(results[example.name], example) == []


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.name)
def test_no_sort_is_left(example: Example) -> None:
    assert "stablehlo.sort" not in text_after(example, "sort-by-digits")


def test_what_is_not_read_is_not_made() -> None:
    text = text_after(FEW, "sort-by-digits")
    assert "(tensor<1x1000xf32>, tensor<1x7x1xi32>) -> tensor<1x7xf32>" in text


UNREADABLE = {
    "both_sides": lambda a, b, *_: hlo.compare(hlo.subtract(a, b), hlo.full_like(a, 0), "LT"),
    "different_functions": lambda a, b, *_: hlo.compare(hlo.abs(a), b, "LT"),
    "different_arrays": lambda a, b, c, d: hlo.compare(a, d, "LT"),
    "one_side": lambda a, b, *_: hlo.compare(a, a, "LT"),
    "constant": lambda *_: hlo.constant(True),
    "unequal": lambda a, b, *_: hlo.compare(a, b, "NE"),
    "other_ties": lambda a, b, c, d: hlo.or_(
        hlo.compare(a, b, "LT"),
        hlo.and_(hlo.compare(hlo.abs(a), hlo.abs(b), "EQ"), hlo.compare(c, d, "LT")),
    ),
    "no_ties": lambda a, b, c, d: hlo.or_(hlo.compare(a, b, "LT"), hlo.compare(c, d, "LT")),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_comparator_of_another_kind_stays(name: str) -> None:
    comparator = UNREADABLE[name]
    example = Example(name, (X, X), lambda x, y: hlo.sort([x, y], 0, comparator), [X, X])
    assert text_after(example, "sort-by-digits") == text_after(example, "")


def test_a_comparator_may_know_values_around_it() -> None:
    def builder(x: Any, y: Any) -> Any:
        bound = hlo.reshape(hlo.slice(y, (0,), (1,)), ())
        return hlo.sort(
            [x], 0, lambda a, b: hlo.compare(hlo.minimum(a, bound), hlo.minimum(b, bound), "LT")
        )

    example = Example("around", (X, X), builder, X)
    assert "stablehlo.sort" in text_after(example, "sort-by-digits")


def test_the_pass_is_still_needed() -> None:
    x = np.zeros(10_000, np.float32)

    def argsort(x: Any) -> Any:
        return hlo.sort([x, hlo.iota(hlo.shape_of(x), 0, np.int32)], 0, by_first("LT"))[1]

    with pytest.raises(CompilationError, match="stack allocation limit"):
        Compiled(build({"f": ((x,), argsort)}))
