"""Convolutions by kernels: every layout, stride, padding and dilation, whole tiles and parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.op_cases import cases_of, differences
from support.op_programs import Programs

from axir import lax
from axir.dialect.core.types import ShapedArray
from axir.dialect.program.function import Function
from axir.dialect.program.function_tracing import trace_function
from axir.passes.framework.pipeline import run_passes
from axir.passes.transforms.lower_to_stablehlo import lower_functions

_PASSES = "split-dilated-convolutions{products=1},tile-convolutions{products=1,vector_bits=%d}"
RNG = np.random.default_rng(3)
Case = tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]

_LAST = ("NHWC", "HWIO", "NHWC")
_FIRST = ("NCHW", "OIHW", "NCHW")
CASES: dict[str, Case] = {
    "same": ((2, 9, 20, 5), (3, 3, 5, 37), {"padding": "SAME", "dimension_numbers": _LAST}),
    "strides": (
        (2, 9, 21, 4), (3, 2, 4, 16),
        {"padding": ((2, 1), (0, 3)), "window_strides": (2, 3), "dimension_numbers": _LAST},
    ),
    "features_first": ((2, 4, 8, 17), (8, 4, 3, 3), {"dimension_numbers": _FIRST}),
    "cropped": (
        (1, 9, 20, 3), (2, 2, 3, 8),
        {"padding": ((-1, 2), (1, -2)), "dimension_numbers": _LAST},
    ),
    "dilated_window": (
        (1, 12, 20, 3), (3, 2, 3, 6),
        {"rhs_dilation": (2, 3), "padding": ((1, 1), (2, 2)), "dimension_numbers": _LAST},
    ),
    "dilated_input": (
        (2, 5, 7, 3), (3, 3, 3, 8),
        {"lhs_dilation": (2, 3), "padding": ((2, 1), (1, 4)), "dimension_numbers": _LAST},
    ),
    "dilated_with_gaps": (
        (2, 5, 7, 3), (2, 1, 3, 8),
        {"lhs_dilation": (3, 2), "padding": ((0, 0), (3, 0)), "dimension_numbers": _LAST},
    ),
    "line": (
        (2, 40, 3), (5, 3, 12),
        {"padding": "SAME", "dimension_numbers": ("NWC", "WIO", "NWC")},
    ),
    "volume": (
        (1, 4, 5, 6, 2), (2, 2, 2, 2, 4),
        {"padding": "VALID", "dimension_numbers": ("NDHWC", "DHWIO", "NDHWC")},
    ),
    "few_positions": ((3, 6, 3, 8), (3, 3, 8, 130), {"dimension_numbers": _LAST}),
}  # fmt: skip


def convolution(name: str) -> tuple[Function, list[np.ndarray]]:
    lhs, rhs, options = CASES[name]
    rank = len(lhs) - 2
    settings = {"window_strides": (1,) * rank, "padding": "SAME", **options}
    # Integers, so that every sum is exact.
    arguments = [RNG.integers(-4, 5, shape).astype(np.float32) for shape in (lhs, rhs)]
    types = [ShapedArray(x.shape, x.dtype) for x in arguments]
    function = trace_function(
        lambda x, w: [lax.conv_general_dilated(x, w, **settings)], types, name=name
    )
    return function, arguments


@pytest.fixture(scope="module", params=[256, 512])
def programs(request: pytest.FixtureRequest) -> Programs:
    functions = {name: convolution(name)[0] for name in CASES}
    return Programs(functions, passes=_PASSES % request.param)


@pytest.mark.parametrize("name", CASES)
def test_values(programs: Programs, name: str) -> None:
    assert name not in programs.failures, programs.failures[name]
    function, arguments = convolution(name)
    [expected] = function.evaluate(*arguments)
    [got] = programs(name, *arguments)
    np.testing.assert_array_equal(got, expected.host())


@pytest.mark.parametrize("name", CASES)
def test_each_becomes_kernels(name: str) -> None:
    module = lower_functions({"main": convolution(name)[0]})
    run_passes(module, _PASSES % 512)
    text = str(module)
    assert "stablehlo.convolution" not in text
    assert "flow.dispatch @convolution" in text


def test_small_tiles_are_short_code() -> None:
    texts = []
    for options in ("", ",small=true"):
        module = lower_functions({"main": convolution("same")[0]})
        run_passes(module, f"tile-convolutions{{products=1,vector_bits=512{options}}}")
        texts.append(str(module))
    assert len(texts[1]) < 0.6 * len(texts[0])


def test_samples_of_the_op() -> None:
    cases = {f"sample_{case.index}": case for case in cases_of("conv_general_dilated")}
    cases = {
        name: case for name, case in cases.items() if all(x.dtype.itemsize <= 4 for x in case.args)
    }
    programs = Programs({n: case.function() for n, case in cases.items()}, passes=_PASSES % 512)
    assert not programs.failures
    problems = []
    for name, case in cases.items():
        got = programs(name, *case.args)
        problems += differences(
            str(case), got, case.evaluate(), case.tolerance, is_elementwise=False, zero_signs=False
        )
    assert len(cases) > 10
    assert not problems, "\n".join(problems)
