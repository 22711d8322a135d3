"""`split-reductions`."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from support.stablehlo_runner import Example, build, run_examples

from axir.dialect.builders import stablehlo as hlo
from axir.passes.framework.pipeline import run_passes

RNG = np.random.default_rng(0)
PASS = "split-reductions{elements=256,stop=64}"
NUMPY = {"add": np.add, "multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum}
NUMPY |= {"or_": np.logical_or, "and_": np.logical_and}
NEUTRAL = {"add": 0, "multiply": 1}


def reduction(name, array, axes, kind="add", init=None):
    if init is None:
        init = NEUTRAL[kind] if kind in NEUTRAL else array.flat[0]

    def builder(operand):
        start = hlo.full(init, (), array.dtype)
        return hlo.reduce([operand], [start], axes, getattr(hlo, kind))[0]

    exact = array.astype(np.float64) if array.dtype.kind == "f" else array
    with np.errstate(all="ignore"):
        expected = NUMPY[kind].reduce(exact, axis=tuple(axes))
        expected = NUMPY[kind](expected, np.asarray(init, exact.dtype))
    return Example(name, (array,), builder, np.asarray(expected, array.dtype))


def integers(*shape, dtype=np.float32):
    return RNG.integers(-3, 4, size=shape).astype(dtype)


EDGES = integers(48, 12)
EDGES[5, 3], EDGES[40, 3], EDGES[7, 1], EDGES[0, 2] = np.inf, np.nan, np.nan, -np.inf
LARGE = [
    reduction("columns", integers(160, 12), (0,)),
    reduction("columns_with_rest", integers(149, 7), (0,)),
    reduction("prime_columns", integers(331, 3), (0,)),
    reduction("middle", integers(5, 96, 4), (1,)),
    reduction("image", integers(8, 6, 10, 3), (0, 1, 2)),
    reduction("image_of_odd_size", integers(3, 7, 11, 5), (0, 1, 2)),
    reduction("everything", integers(16, 1024), (0, 1)),
    reduction("one_row", integers(4096), (0,)),
    reduction("one_row_with_rest", integers(5003), (0,)),
    reduction("few_rows", integers(3, 2048), (1,)),
    reduction("few_rows_with_rest", integers(3, 2051), (1,)),
    reduction("initial_value", integers(160, 12), (0,), init=5),
    reduction("initial_value_with_rest", integers(149, 7), (0,), init=5),
    reduction("initial_value_of_everything", integers(5003), (0,), init=5),
    reduction("double", integers(160, 12, dtype=np.float64), (0,)),
    reduction("bfloat16", np.ones((128, 4), ml_dtypes.bfloat16), (0,)),
    reduction("int8", integers(160, 12, dtype=np.int8), (0,)),
    reduction("uint32_maximum", RNG.integers(0, 2**32, (160, 12), np.uint32), (0,), "maximum"),
    reduction("int16_minimum", integers(160, 12, dtype=np.int16), (0,), "minimum"),
    reduction("int64_product", integers(80, 12, dtype=np.int64) | 1, (0,), "multiply"),
    reduction("maximum_of_edges", EDGES, (0,), "maximum", -np.inf),
    reduction("minimum_of_edges", EDGES, (0,), "minimum", np.inf),
    reduction("sum_of_edges", EDGES, (0,)),
    reduction("any_of_none", np.zeros(5003, bool), (0,), "or_", False),
    reduction("any_of_the_last", np.arange(5003) == 5002, (0,), "or_", False),
    reduction("any_beginning_true", np.zeros(4096, bool), (0,), "or_", True),
    reduction("any_of_columns", integers(149, 7) > 2, (0,), "or_", False),
    reduction("all_of_all", np.ones(4096, bool), (0,), "and_", True),
    reduction("all_but_the_last", np.arange(5003) != 5002, (0,), "and_", True),
    reduction("all_beginning_false", np.ones(5003, bool), (0,), "and_", False),
    reduction("all_of_columns", integers(149, 7) < 3, (0,), "and_", True),
]
UNTOUCHED = [
    reduction("small", integers(20, 12), (0,)),
    reduction("many_rows", integers(80, 16), (1,)),
    reduction("separate_axes", integers(8, 10, 8), (0, 2)),
    reduction("one_element", integers(1), (0,)),
    reduction("nothing", integers(0, 300), (0,)),
]


def reduction_count(case: Example) -> int:
    module = build({case.name: (case.arguments, case.builder)})
    run_passes(module, PASS)
    return str(module).count("stablehlo.reduce(")


@pytest.fixture(scope="module")
def results():
    return run_examples([*LARGE, *UNTOUCHED], PASS)


@pytest.mark.parametrize("case", [*LARGE, *UNTOUCHED], ids=lambda case: case.name)
def test_values(results, case: Example) -> None:
    # The numbers are small integers, so that every order of additions gives the same sum.
    result = results[case.name][0]
    assert result.dtype == case.expected.dtype
    np.testing.assert_array_equal(result, case.expected)


@pytest.mark.parametrize("case", LARGE, ids=lambda case: case.name)
def test_large_reductions_have_stages(case: Example) -> None:
    assert reduction_count(case) > 1


@pytest.mark.parametrize("case", UNTOUCHED, ids=lambda case: case.name)
def test_other_reductions_stay(case: Example) -> None:
    assert reduction_count(case) == 1


def test_no_stage_is_long() -> None:
    module = build(
        {
            "f": (
                (np.ones((1 << 10, 1 << 8), np.float32),),
                reduction("f", np.ones((1 << 10, 1 << 8), np.float32), (0,)).builder,
            )
        }
    )
    run_passes(module, "split-reductions{elements=1024,stop=1024}")
    text = str(module)
    assert "tensor<8x128x256xf32>" in text
    assert "tensor<8x16x256xf32>" in text


LONG = [
    reduction("sum_of_tenths", np.full(100_003, 0.1, np.float32), (0,)),
    reduction("columns_of_tenths", np.full((70_000, 2), 0.1, np.float32), (0,)),
    reduction("middle_of_tenths", np.full((3, 20_000, 2), 0.1, np.float32), (1,)),
    reduction("complex_tenths", np.full((50_000, 2), 0.1 + 0.2j, np.complex64), (0,)),
    reduction("tenths_and_five", np.full((30_000, 2), 0.1, np.float32), (0,), init=5),
]


@pytest.fixture(scope="module")
def long_results():
    return run_examples([*LONG, PAIRS], "split-reductions")


def _pairs(operand):
    zero = hlo.full(0, (), np.float32)

    def body(a, b, x, y):
        return [hlo.add(a, x), hlo.maximum(b, y)]

    return hlo.reduce([operand, operand], [zero, zero], [0], body)


TENTHS = np.full((50_001, 2), 0.1, np.float32)
PAIRS = Example("pairs", (TENTHS,), _pairs, (np.full(2, 5000.1), np.full(2, 0.1, np.float32)))


@pytest.mark.parametrize("case", LONG, ids=lambda case: case.name)
def test_long_sums_keep_their_digits(long_results, case: Example) -> None:
    (array,) = case.arguments
    start = 5 if "five" in case.name else 0
    kind = complex if array.dtype.kind == "c" else float
    axes = {1: 0, 2: 0, 3: 1}[array.ndim]
    exact = array.astype(kind).sum(axes) + start
    np.testing.assert_allclose(long_results[case.name][0], exact, rtol=3e-6)


def test_long_sums_of_pairs_keep_their_digits(long_results) -> None:
    total, largest = long_results["pairs"]
    np.testing.assert_allclose(total, TENTHS.astype(float).sum(0), rtol=5e-6)
    np.testing.assert_array_equal(largest, TENTHS.max(0))


def test_a_short_reduction_of_pairs_stays() -> None:
    values = integers(200)

    def builder(operand):
        zero = hlo.full(0, (), np.float32)

        def body(a, b, x, y):
            return [hlo.add(a, x), hlo.maximum(b, y)]

        return hlo.reduce([operand, operand], [zero, zero], [0], body)

    module = build({"f": ((values,), builder)})
    before = str(module)
    run_passes(module, PASS)
    assert str(module) == before


def test_random_sums_are_at_least_as_accurate() -> None:
    array = RNG.normal(size=(4099, 3)).astype(np.float32)
    case = reduction("random", array, (0,))
    exact = array.astype(np.float64).sum(0)
    errors = [
        np.abs(run_examples([case], passes)["random"][0] - exact).max() for passes in ("", PASS)
    ]
    assert errors[1] <= max(errors[0], 64 * np.finfo(np.float32).eps)
