"""Convolutions: windows of a single step, and groups on SPIR-V."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.stablehlo_runner import (
    CompilationError,
    Example,
    build,
    compile_module,
    run_examples,
    text_after,
)

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.ops.convolution.conv_general_dilated import conv_general_dilated
from axir.dialect.ops.convolution.types import ConvDimensionNumbers

RNG = np.random.default_rng(0)
FIT, SPLIT = "fit-conv-windows", "split-complex-conv"


def integers(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    values = RNG.integers(-4, 5, size=shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * RNG.integers(-4, 5, size=shape)
    return values.astype(dtype)


def example(name: str, lhs: Any, rhs: Any, dtype: Any = np.float32, **params: Any) -> Example:
    rank = len(lhs) - 2
    axes = tuple(range(rank + 2))
    ones = (1,) * rank
    params = {
        "window_strides": ones, "padding": ((0, 0),) * rank, "lhs_dilation": ones,
        "rhs_dilation": ones, "feature_group_count": 1, "batch_group_count": 1,
        "dimension_numbers": ConvDimensionNumbers(axes, axes, axes), "precision": None, **params,
    }  # fmt: skip
    x, k = integers(*lhs, dtype=dtype), integers(*rhs, dtype=dtype)
    rule = conv_general_dilated.primitive.evaluate  # type: ignore[attr-defined]
    expected = rule(x, k, preferred_element_type=None, **params)
    return Example(name, (x, k), lambda x, k: hlo.convolution(x, k, **params), expected)


NHWC = ConvDimensionNumbers((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
SINGLE = [
    example("one_axis", (1, 2, 3), (2, 2, 2), window_strides=(2,)),
    example("far_stride", (2, 2, 7), (3, 2, 2), window_strides=(6,)),
    example("padded", (1, 2, 3), (2, 2, 2), window_strides=(4,), padding=((1, 1),)),
    example("cut", (1, 2, 6), (2, 2, 2), window_strides=(3,), padding=((-1, -1),)),
    example("dilated", (1, 2, 4), (2, 2, 2), window_strides=(6,), lhs_dilation=(2,)),
    example("wide_kernel", (1, 2, 6), (2, 2, 2), window_strides=(3,), rhs_dilation=(3,)),
    example("of_two_axes", (1, 2, 5, 3), (2, 2, 2, 2), window_strides=(1, 2)),
    example("both_axes", (2, 2, 3, 3), (2, 2, 2, 2), window_strides=(2, 2)),
    example(
        "features_last", (1, 3, 3, 2), (2, 2, 2, 4), window_strides=(1, 3), dimension_numbers=NHWC
    ),
    example("groups", (1, 4, 3), (4, 2, 2), window_strides=(2,), feature_group_count=2),
    example("batch_groups", (4, 2, 3), (4, 2, 2), window_strides=(2,), batch_group_count=2),
]
FITTING = [
    example("stride_of_one", (1, 2, 2), (2, 2, 2)),
    example("several_positions", (1, 2, 4), (2, 2, 2), window_strides=(2,)),
    example("no_axes", (2, 3), (4, 3)),
]
COMPLEX = [
    example("c64", (2, 3, 5), (4, 3, 2), np.complex64, padding=((1, 2),)),
    example("c128", (1, 2, 5), (2, 2, 2), np.complex128, window_strides=(2,), padding=((1, 0),)),
    example(
        "everything", (2, 5, 4, 4), (2, 2, 2, 6), np.complex64, window_strides=(2, 1),
        padding=((0, 1), (1, -1)), rhs_dilation=(2, 1), lhs_dilation=(1, 2),
        feature_group_count=2, dimension_numbers=NHWC,
    ),
    example("without_padding", (1, 2, 5), (2, 2, 2), np.complex64),
]  # fmt: skip


@pytest.fixture(scope="module")
def results() -> dict[str, list[np.ndarray]]:
    # Sums of products of small integers are exact.
    return run_examples([*SINGLE, *FITTING, *COMPLEX], f"{SPLIT},{FIT}")


@pytest.mark.parametrize("case", [*SINGLE, *FITTING, *COMPLEX], ids=lambda case: case.name)
def test_values(results: Any, case: Example) -> None:
    (result,) = results[case.name]
    assert result.dtype == case.expected.dtype
    np.testing.assert_array_equal(result, case.expected)


@pytest.mark.parametrize("case", SINGLE, ids=lambda case: case.name)
def test_a_single_position_has_no_stride(case: Example) -> None:
    after = text_after(case, FIT)
    assert after != text_after(case, "")
    assert text_after(case, f"{FIT},{FIT}") == after


@pytest.mark.parametrize("case", FITTING, ids=lambda case: case.name)
def test_other_convolutions_stay(case: Example) -> None:
    assert text_after(case, f"{SPLIT},{FIT}") == text_after(case, "")


@pytest.mark.parametrize("case", COMPLEX, ids=lambda case: case.name)
def test_complex_convolutions_become_four(case: Example) -> None:
    lines = [
        line for line in text_after(case, SPLIT).splitlines() if "stablehlo.convolution" in line
    ]
    assert len(lines) == 4
    assert not any("complex" in line for line in lines)


@pytest.mark.parametrize("case", [SINGLE[0], SINGLE[6], COMPLEX[0]], ids=lambda case: case.name)
def test_without_the_passes_the_compiler_fails(case: Example) -> None:
    with pytest.raises(CompilationError):
        compile_module(build({"f": (case.arguments, case.builder)}))


SPLIT_GROUPS = "split-grouped-convolutions"


def example_groups(name: str, lhs: Any, rhs: Any, **params: Any) -> Example:
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
    example_groups("channels", (1, 4, 4), (6, 2, 3), feature_group_count=2),
    example_groups("images", (4, 2, 5), (4, 2, 2), batch_group_count=2, lhs_dilation=(2,)),
    example_groups(
        "last", (2, 5, 6, 6), (3, 2, 2, 9), feature_group_count=3, dimension_numbers=NHWC
    ),
]  # fmt: skip
OTHERS = [
    example_groups("single", (1, 4, 4), (6, 4, 3)),
    example_groups("depthwise", (1, 4, 4), (8, 1, 3), feature_group_count=4),
]


def test_values_and_what_is_written() -> None:
    results = run_examples([*GROUPED, *OTHERS], SPLIT_GROUPS)
    for case in (*GROUPED, *OTHERS):
        np.testing.assert_array_equal(results[case.name][0], case.expected)


@pytest.mark.parametrize(("case", "count"), [*zip(GROUPED, (2, 2, 3), strict=True)])
def test_each_group_is_a_convolution(case: Example, count: int) -> None:
    text = text_after(case, SPLIT_GROUPS)
    assert text.count("stablehlo.convolution") == count
    assert text.count("feature_group_count = 1") == text.count("batch_group_count = 1") == count


@pytest.mark.parametrize("case", OTHERS, ids=lambda case: case.name)
def test_others_stay(case: Example) -> None:
    assert text_after(case, SPLIT_GROUPS) == text_after(case, "")
