"""`convolve-bytes`: sums of products of bytes are exact, also long ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.stablehlo_runner import Example, run_examples, text_after

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.ops.convolution.conv_general_dilated import conv_general_dilated
from axir.dialect.ops.convolution.types import ConvDimensionNumbers

RNG = np.random.default_rng(0)
ALWAYS = "convolve-bytes{products=1}"
LAST = ConvDimensionNumbers((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
FIRST = ConvDimensionNumbers((0, 1, 2, 3), (0, 1, 2, 3), (0, 1, 2, 3))


def example(
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
    example("first", (2, 3, 6, 7), (4, 3, 2, 3)),
    example("last", (2, 6, 7, 3), (2, 3, 3, 4), LAST),
    example("groups", (2, 4, 6, 7), (6, 2, 2, 3), feature_group_count=2),
    example("batches", (4, 3, 6, 7), (6, 3, 2, 3), batch_group_count=2),
    example("dilated", (2, 3, 6, 7), (4, 3, 2, 3), lhs_dilation=(2, 1), rhs_dilation=(1, 2)),
    example("many", (1, 400, 4, 5), (3, 400, 3, 3)),
    example("many_last", (1, 4, 5, 400), (3, 3, 400, 3), LAST),
    largest(),
]
KEPT = [
    example("words", (2, 3, 6, 7), (4, 3, 2, 3), dtype=np.int16),
    example("unsigned", (2, 3, 6, 7), (4, 3, 2, 3), dtype=np.uint8),
    example("many_of_groups", (1, 800, 4, 5), (4, 400, 3, 3), feature_group_count=2),
    example("wide_windows", (1, 1, 40, 40), (2, 1, 33, 33)),
]


@pytest.fixture(scope="module")
def results() -> dict[str, list[np.ndarray]]:
    return run_examples(TAKEN, ALWAYS)


@pytest.mark.parametrize("case", TAKEN, ids=lambda case: case.name)
def test_sums_are_exact(results: Any, case: Example) -> None:
    (result,) = results[case.name]
    assert result.dtype == np.int32
    np.testing.assert_array_equal(result, case.expected)
    lines = text_after(case, ALWAYS).splitlines()
    convolutions = [line for line in lines if "stablehlo.convolution" in line]
    assert convolutions
    assert not any("xi8>" in line for line in convolutions)


@pytest.mark.parametrize("case", KEPT, ids=lambda case: case.name)
def test_other_convolutions_stay(case: Example) -> None:
    assert text_after(case, ALWAYS) == text_after(case, "")


def test_small_convolutions_stay() -> None:
    assert "f32" not in text_after(TAKEN[0], "convolve-bytes")
    assert "f32" in text_after(TAKEN[5], "convolve-bytes")
