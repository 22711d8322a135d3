"""Convolutions of few positions as products: layouts, strides, paddings, dilated windows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.op_programs import Programs

from axir import lax
from axir.dialect.core.types import ShapedArray
from axir.dialect.program.function import Function
from axir.dialect.program.function_tracing import trace_function
from axir.passes.framework.pipeline import run_passes
from axir.passes.transforms.lower_to_stablehlo import lower_functions

_PASSES = "unfold-convolutions{products=1}"
RNG = np.random.default_rng(3)
_FIRST = ("NCHW", "OIHW", "NCHW")
Case = tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]

CASES: dict[str, Case] = {
    "one_image": ((1, 5, 3, 4), (20, 5, 3, 3), {"padding": "SAME"}),
    "batch": ((3, 4, 4, 3), (36, 4, 3, 2), {"padding": ((1, 1), (2, -1))}),
    "strides": ((2, 3, 7, 8), (32, 3, 3, 3), {"padding": "SAME", "window_strides": (2, 3)}),
    "dilated_window": ((1, 3, 7, 6), (16, 3, 3, 2), {"padding": "VALID", "rhs_dilation": (2, 3)}),
    "points": ((2, 8, 3, 3), (20, 8, 1, 1), {}),
    "patches": ((1, 3, 8, 8), (16, 3, 4, 4), {"padding": "VALID", "window_strides": (4, 4)}),
    "features_last": ((2, 3, 3, 4), (20, 4, 3, 3), {"dimension_numbers": ("NHWC", "OIHW", "NHWC")}),
    "batch_last": ((4, 3, 3, 2), (20, 4, 3, 3), {"dimension_numbers": ("CHWN", "OIHW", "HWNC")}),
    "line": ((2, 3, 9), (24, 3, 5), {"dimension_numbers": ("NCH", "OIH", "NCH")}),
}
OTHERS: dict[str, Case] = {
    "many_positions": ((2, 3, 8, 8), (16, 3, 3, 3), {}),
    "features_beside_each_other": (
        (1, 3, 3, 4), (3, 3, 4, 20), {"dimension_numbers": ("NHWC", "HWIO", "NHWC")}
    ),
    "large_window": ((1, 2, 6, 6), (40, 2, 5, 5), {}),
    "groups": ((1, 4, 3, 3), (20, 2, 3, 3), {"feature_group_count": 2}),
    "dilated_input": (
        (1, 4, 3, 3), (40, 4, 3, 3), {"lhs_dilation": (2, 2), "padding": ((0, 0), (0, 0))}
    ),
}  # fmt: skip


def convolution(case: Case, dtype: type = np.float32) -> tuple[Function, list[np.ndarray]]:
    lhs, rhs, options = case
    settings = {
        "window_strides": (1,) * (len(lhs) - 2),
        "padding": "SAME",
        "dimension_numbers": _FIRST,
        **options,
    }
    # Integers, so that every sum is exact.
    arguments = [RNG.integers(-4, 5, shape).astype(dtype) for shape in (lhs, rhs)]
    types = [ShapedArray(x.shape, x.dtype) for x in arguments]
    made = trace_function(lambda x, w: [lax.conv_general_dilated(x, w, **settings)], types)
    return made, arguments


def text_of(case: Case, passes: str = _PASSES, dtype: type = np.float32) -> str:
    module = lower_functions({"main": convolution(case, dtype)[0]})
    run_passes(module, passes)
    return str(module)


@pytest.fixture(scope="module")
def programs() -> Programs:
    return Programs({name: convolution(case)[0] for name, case in CASES.items()}, passes=_PASSES)


@pytest.mark.parametrize("name", CASES)
def test_values(programs: Programs, name: str) -> None:
    assert name not in programs.failures, programs.failures[name]
    function, arguments = convolution(CASES[name])
    [expected] = function.evaluate(*arguments)
    [got] = programs(name, *arguments)
    np.testing.assert_array_equal(got, expected.host())


@pytest.mark.parametrize("name", CASES)
def test_each_becomes_a_product(name: str) -> None:
    text = text_of(CASES[name])
    assert "stablehlo.convolution" not in text
    assert text.count("stablehlo.dot_general") == 1


@pytest.mark.parametrize("name", OTHERS)
def test_others_stay(name: str) -> None:
    assert "stablehlo.convolution" in text_of(OTHERS[name])


def test_small_and_narrow_ones_stay() -> None:
    assert "stablehlo.convolution" in text_of(CASES["one_image"], "unfold-convolutions")
    assert "stablehlo.convolution" in text_of(CASES["one_image"], dtype=np.float16)
