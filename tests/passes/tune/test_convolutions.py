"""Convolutions in other forms: features last, dilated inputs, bytes."""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.stablehlo_runner import Example, run_examples, text_after

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.ops.convolution.conv_general_dilated import conv_general_dilated
from axir.dialect.ops.convolution.types import ConvDimensionNumbers

RNG = np.random.default_rng(0)
ALWAYS = "put-features-last{products=1}"


def example(name: str, lhs: Any, rhs: Any, *, dtype: Any = np.float32, **params: Any) -> Example:
    """A convolution of small integers, with exact sums."""
    rank = len(lhs) - 2
    axes, ones = tuple(range(rank + 2)), (1,) * rank
    params = {
        "window_strides": ones, "padding": ((1, 0),) * rank, "lhs_dilation": ones,
        "rhs_dilation": ones, "feature_group_count": 1, "batch_group_count": 1,
        "dimension_numbers": ConvDimensionNumbers(axes, axes, axes), "precision": None, **params,
    }  # fmt: skip
    x, k = (RNG.integers(-4, 5, size=shape).astype(dtype) for shape in (lhs, rhs))
    rule = conv_general_dilated.primitive.evaluate  # type: ignore[attr-defined]
    expected = rule(x, k, preferred_element_type=None, **params)
    return Example(name, (x, k), lambda x, k: hlo.convolution(x, k, **params), expected)


def permuted(seed: int) -> Example:
    """Two spatial dimensions in a random order of all dimensions, with random parameters."""
    rng = np.random.default_rng(seed)
    numbers = ConvDimensionNumbers(*(tuple(map(int, rng.permutation(4))) for _ in range(3)))
    groups = [(1, 1), (2, 1), (1, 2)][seed % 3]
    operand, kernel = [2 * groups[1], 2 * groups[0], 7, 6], [4, 2, 3, 2]
    return example(
        f"permuted_{seed}",
        tuple(operand[numbers.lhs_spec.index(axis)] for axis in range(4)),
        tuple(kernel[numbers.rhs_spec.index(axis)] for axis in range(4)),
        dimension_numbers=numbers,
        padding=tuple(tuple(map(int, rng.integers(-1, 3, 2))) for _ in range(2)),
        window_strides=tuple(map(int, rng.integers(1, 3, 2))),
        lhs_dilation=tuple(map(int, rng.integers(1, 3, 2))),
        rhs_dilation=tuple(map(int, rng.integers(1, 3, 2))),
        feature_group_count=groups[0],
        batch_group_count=groups[1],
    )


def reversed_windows() -> Example:
    """A kernel that is flipped along the second spatial dimension."""
    plain = example("reversed", (2, 3, 6, 5), (4, 3, 2, 3))
    x, k = plain.arguments
    flipped = np.ascontiguousarray(k[..., ::-1])
    axes = (0, 1, 2, 3)

    def builder(x: Any, k: Any) -> Any:
        return hlo.convolution(
            x, k, dimension_numbers=(axes, axes, axes), window_strides=(1, 1),
            padding=((1, 0), (1, 0)), window_reversal=(False, True),
        )  # fmt: skip

    return Example("reversed", (x, flipped), builder, plain.expected)


LAST = ConvDimensionNumbers((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
MOVED = [
    example("images", (2, 3, 6, 5), (4, 3, 3, 2)),
    example("line", (2, 3, 9), (4, 3, 2), window_strides=(2,)),
    example("volume", (1, 2, 4, 3, 5), (3, 2, 2, 2, 2)),
    example("depthwise", (2, 3, 6, 5), (6, 1, 2, 2), feature_group_count=3),
    example("double", (2, 3, 6, 5), (4, 3, 2, 2), dtype=np.float64),
    example("half", (2, 3, 6, 5), (4, 3, 2, 2), dtype=np.float16),
    example("bfloat16", (2, 3, 6, 5), (4, 3, 2, 2), dtype=ml_dtypes.bfloat16),
    example(
        "result_only",
        (2, 6, 5, 3),
        (3, 2, 3, 4),
        dimension_numbers=ConvDimensionNumbers((0, 3, 1, 2), (3, 2, 0, 1), (0, 1, 2, 3)),
    ),
    reversed_windows(),
    *[permuted(seed) for seed in range(12)],
]
KEPT = [
    example("last", (2, 6, 5, 3), (3, 2, 3, 4), dimension_numbers=LAST),
    example(
        "kernel_in_another_order",
        (2, 6, 5, 3),
        (4, 3, 3, 2),
        dimension_numbers=(ConvDimensionNumbers(LAST.lhs_spec, (0, 1, 2, 3), LAST.out_spec)),
    ),
    example("one_feature", (1, 1, 6, 5), (1, 1, 2, 2)),
    example("no_spatial_dimensions", (2, 3), (4, 3)),
    example("integers", (2, 3, 6, 5), (4, 3, 3, 2), dtype=np.int32),
    example("complex", (2, 3, 6, 5), (4, 3, 3, 2), dtype=np.complex64, padding=((0, 0),) * 2),
]


@pytest.fixture(scope="module")
def results() -> dict[str, list[np.ndarray]]:
    return run_examples([*MOVED, *KEPT], ALWAYS)


@pytest.mark.parametrize("case", [*MOVED, *KEPT], ids=lambda case: case.name)
def test_values(results: Any, case: Example) -> None:
    (result,) = results[case.name]
    assert result.dtype == case.expected.dtype
    np.testing.assert_array_equal(result, case.expected)


@pytest.mark.parametrize("case", MOVED, ids=lambda case: case.name)
def test_features_come_last(case: Example) -> None:
    text = text_after(case, ALWAYS)
    spatial = ", ".join(map(str, range(case.arguments[0].ndim - 2)))
    assert f"[b, {spatial}, f]x[{spatial}, i, o]->[b, {spatial}, f]" in text
    assert text.count("stablehlo.convolution") == 1
    assert text_after(case, f"{ALWAYS},{ALWAYS}") == text


@pytest.mark.parametrize("case", KEPT, ids=lambda case: case.name)
def test_other_convolutions_stay(case: Example) -> None:
    assert text_after(case, ALWAYS) == text_after(case, "")


def test_small_convolutions_stay() -> None:
    small, large = (
        example(name, (1, size, 16, 16), (size, size, 3, 3))
        for name, size in (("small", 4), ("large", 8))
    )
    assert "transpose" not in text_after(small, "put-features-last")
    assert "transpose" in text_after(large, "put-features-last")


def test_infinities_and_nans_stay_where_they_are() -> None:
    values = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0]
    x = np.array(list(itertools.islice(itertools.cycle(values), 2 * 3 * 6)), np.float32)
    case = example("edges", (1, 2, 3, 6), (2, 2, 1, 1), padding=((0, 0),) * 2)
    kernel = np.array([[1, 0.5], [2, 0.25]], np.float32).reshape(2, 2, 1, 1)
    x = x.reshape(1, 2, 3, 6)
    with np.errstate(invalid="ignore"):
        expected = np.einsum("nchw,oc->nohw", x, kernel[..., 0, 0])
    case = Example("edges", (x, kernel), case.builder, expected)
    tuned = run_examples([case], ALWAYS)["edges"][0]
    np.testing.assert_array_equal(tuned, run_examples([case])["edges"][0])
    np.testing.assert_array_equal(tuned, expected)


ALWAYS_BYTES = "convolve-bytes{products=1}"
FIRST = ConvDimensionNumbers((0, 1, 2, 3), (0, 1, 2, 3), (0, 1, 2, 3))


def example_bytes(
    name: str, lhs: Any, rhs: Any, numbers: Any = FIRST, dtype: Any = np.int8, **params: Any
) -> Example:
    """A convolution of any bytes; the oracle computes in integers of 32 bits."""
    info = np.iinfo(dtype)
    params = {
        "window_strides": (1, 2), "padding": ((1, 0), (2, 1)), "lhs_dilation": (1, 1),
        "rhs_dilation": (1, 1), "feature_group_count": 1, "batch_group_count": 1,
        "dimension_numbers": numbers, "precision": None, **params,
    }  # fmt: skip
    x, k = (RNG.integers(info.min, info.max + 1, shape).astype(dtype) for shape in (lhs, rhs))
    rule = conv_general_dilated.primitive.evaluate  # type: ignore[attr-defined]
    wide = (x.astype(np.int32), k.astype(np.int32))
    expected = rule(*wide, preferred_element_type=None, **params)
    return Example(
        name, (x, k), lambda x, k: hlo.convolution(x, k, **params, element=np.dtype("i4")), expected
    )


def largest() -> Example:
    x, k = np.full((1, 300, 2, 3), -128, np.int8), np.full((4, 300, 2, 3), -128, np.int8)
    params = {"dimension_numbers": FIRST, "window_strides": (1, 1), "padding": ((0, 0), (0, 0))}
    return Example(
        "largest", (x, k), lambda x, k: hlo.convolution(x, k, **params, element=np.dtype("i4")),
        np.full((1, 4, 1, 1), 1800 << 14, np.int32),
    )  # fmt: skip


TAKEN = [
    example_bytes("first", (2, 3, 6, 7), (4, 3, 2, 3)),
    example_bytes("last", (2, 6, 7, 3), (2, 3, 3, 4), LAST),
    example_bytes("groups", (2, 4, 6, 7), (6, 2, 2, 3), feature_group_count=2),
    example_bytes("batches", (4, 3, 6, 7), (6, 3, 2, 3), batch_group_count=2),
    example_bytes("dilated", (2, 3, 6, 7), (4, 3, 2, 3), lhs_dilation=(2, 1), rhs_dilation=(1, 2)),
    example_bytes("many", (1, 400, 4, 5), (3, 400, 3, 3)),
    example_bytes("many_last", (1, 4, 5, 400), (3, 3, 400, 3), LAST),
    largest(),
]
KEPT_BYTES = [
    example_bytes("words", (2, 3, 6, 7), (4, 3, 2, 3), dtype=np.int16),
    example_bytes("unsigned", (2, 3, 6, 7), (4, 3, 2, 3), dtype=np.uint8),
    example_bytes("many_of_groups", (1, 800, 4, 5), (4, 400, 3, 3), feature_group_count=2),
    example_bytes("wide_windows", (1, 1, 40, 40), (2, 1, 33, 33)),
]


@pytest.fixture(scope="module")
def results_bytes() -> dict[str, list[np.ndarray]]:
    return run_examples(TAKEN, ALWAYS_BYTES)


@pytest.mark.parametrize("case", TAKEN, ids=lambda case: case.name)
def test_sums_are_exact(results_bytes: Any, case: Example) -> None:
    (result,) = results_bytes[case.name]
    assert result.dtype == np.int32
    np.testing.assert_array_equal(result, case.expected)
    lines = text_after(case, ALWAYS_BYTES).splitlines()
    convolutions = [line for line in lines if "stablehlo.convolution" in line]
    assert convolutions
    assert not any("xi8>" in line for line in convolutions)


@pytest.mark.parametrize("case", KEPT_BYTES, ids=lambda case: case.name)
def test_other_convolutions_stay_bytes(case: Example) -> None:
    assert text_after(case, ALWAYS_BYTES) == text_after(case, "")


def test_small_convolutions_stay_bytes() -> None:
    assert "f32" not in text_after(TAKEN[0], "convolve-bytes")
    assert "f32" in text_after(TAKEN[5], "convolve-bytes")
