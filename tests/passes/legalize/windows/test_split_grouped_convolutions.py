"""`split-grouped-convolutions`: the same values, a convolution for each group."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.stablehlo_runner import Example, run_examples, text_after

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.ops.convolution.conv_general_dilated import conv_general_dilated
from axir.dialect.ops.convolution.types import ConvDimensionNumbers

RNG = np.random.default_rng(0)
SPLIT = "split-grouped-convolutions"
NHWC = ConvDimensionNumbers((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))


def example(name: str, lhs: Any, rhs: Any, **params: Any) -> Example:
    rank, axes = len(lhs) - 2, tuple(range(len(lhs)))
    ones = (1,) * rank
    params = {
        "window_strides": ones, "padding": ((1, 0),) * rank, "lhs_dilation": ones,
        "rhs_dilation": ones, "feature_group_count": 1, "batch_group_count": 1,
        "dimension_numbers": ConvDimensionNumbers(axes, axes, axes), "precision": None, **params,
    }  # fmt: skip
    x, k = (RNG.integers(-4, 5, size=shape).astype(np.float32) for shape in (lhs, rhs))
    rule = conv_general_dilated.primitive.evaluate  # type: ignore[attr-defined]
    expected = rule(x, k, preferred_element_type=None, **params)
    return Example(name, (x, k), lambda x, k: hlo.convolution(x, k, **params), expected)


GROUPED = [
    example("channels", (1, 4, 4), (6, 2, 3), feature_group_count=2),
    example("images", (4, 2, 5), (4, 2, 2), batch_group_count=2, lhs_dilation=(2,)),
    example(
        "last", (2, 5, 6, 6), (3, 2, 2, 9), feature_group_count=3, dimension_numbers=NHWC
    ),
]  # fmt: skip
OTHERS = [
    example("single", (1, 4, 4), (6, 4, 3)),
    example("depthwise", (1, 4, 4), (8, 1, 3), feature_group_count=4),
]


def test_values_and_what_is_written() -> None:
    results = run_examples([*GROUPED, *OTHERS], SPLIT)
    for case in (*GROUPED, *OTHERS):
        np.testing.assert_array_equal(results[case.name][0], case.expected)


@pytest.mark.parametrize(("case", "count"), [*zip(GROUPED, (2, 2, 3), strict=True)])
def test_each_group_is_a_convolution(case: Example, count: int) -> None:
    text = text_after(case, SPLIT)
    assert text.count("stablehlo.convolution") == count
    assert text.count("feature_group_count = 1") == text.count("batch_group_count = 1") == count


@pytest.mark.parametrize("case", OTHERS, ids=lambda case: case.name)
def test_others_stay(case: Example) -> None:
    assert text_after(case, SPLIT) == text_after(case, "")
