"""`fuse-windows`: sliding windows and convolutions as kernels of several workgroups."""

from __future__ import annotations

import numpy as np
import pytest
from support.stablehlo_runner import Example, build, run_examples

import axir
import axir.numpy as jnp
from axir import lax
from axir.dialect.builders import stablehlo as hlo
from axir.passes.framework.pipeline import run_passes

RNG = np.random.default_rng(0)


def numbers(*shape: int, dtype=np.float32):
    return RNG.integers(-3, 4, shape).astype(dtype)


def pooled(name, x, window, strides=None, kind="add", padding=None, init=None):
    start = {"add": 0, "maximum": -np.inf, "minimum": np.inf}[kind] if init is None else init
    strides = strides or [1] * x.ndim
    padding = padding or [(0, 0)] * x.ndim
    wide = np.pad(x.astype(np.float64), padding, constant_values=start)
    windows = np.lib.stride_tricks.sliding_window_view(wide, window)
    windows = windows[tuple(slice(None, None, n) for n in strides)]
    axes = tuple(range(x.ndim, 2 * x.ndim))
    expected = {"add": np.sum, "maximum": np.max, "minimum": np.min}[kind](windows, axes)
    expected = expected + start if kind == "add" else expected

    def builder(operand):
        begin = hlo.full(start, (), x.dtype)
        return hlo.reduce_window(
            [operand],
            [begin],
            window,
            getattr(hlo, kind),
            window_strides=strides,
            padding=padding,
        )[0]

    return Example(name, (x,), builder, expected.astype(x.dtype))


IMAGE = numbers(3, 17, 19, 20)
POOLS = [
    pooled("largest", IMAGE, (1, 2, 2, 1), (1, 2, 2, 1), "maximum"),
    pooled(
        "smallest_padded",
        IMAGE,
        (1, 3, 3, 1),
        (1, 2, 2, 1),
        "minimum",
        [(0, 0), (1, 1), (1, 0), (0, 0)],
    ),
    pooled("sums", IMAGE, (1, 4, 4, 1), (1, 4, 4, 1)),
    pooled("from_two", IMAGE, (1, 2, 2, 1), init=2),
    pooled("along_rows", numbers(4, 5, 33, 37), (1, 1, 3, 3), (1, 1, 2, 2)),
    pooled("plane", numbers(50, 61), (5, 5)),
    pooled("line", numbers(401), (7,)),
    pooled("whole_numbers", numbers(30, 40, dtype=np.int32), (3, 3)),
    pooled("double", numbers(30, 40, dtype=np.float64), (3, 3)),
]


@pytest.fixture(scope="module")
def results():
    return run_examples(POOLS, "fuse-windows")


@pytest.mark.parametrize("case", POOLS, ids=lambda case: case.name)
def test_windows(results, case: Example) -> None:
    np.testing.assert_array_equal(results[case.name][0], case.expected)


@pytest.mark.parametrize("case", POOLS, ids=lambda case: case.name)
def test_windows_become_kernels(case: Example) -> None:
    module = build({case.name: (case.arguments, case.builder)})
    run_passes(module, "fuse-windows")
    text = str(module)
    assert "flow.dispatch @windows_0" in text
    assert "stablehlo.reduce_window" not in text


def test_running_sums_stay() -> None:
    def running(x):
        zero = hlo.full(0, (), np.float32)
        return hlo.reduce_window([x], [zero], [40], hlo.add, padding=[(39, 0)])[0]

    module = build({"running": ((numbers(40),), running)})
    run_passes(module, "fuse-windows")
    assert "stablehlo.reduce_window" in str(module)


CONVOLUTIONS = {
    "depthwise": (
        (2, 9, 11, 20),
        (3, 3, 1, 20),
        ("NHWC", "HWIO", "NHWC"),
        {"feature_group_count": 20},
    ),
    "groups": ((2, 9, 11, 12), (3, 3, 4, 9), ("NHWC", "HWIO", "NHWC"), {"feature_group_count": 3}),
    "channels_first": (
        (2, 12, 9, 11),
        (12, 1, 3, 3),
        ("NCHW", "OIHW", "NCHW"),
        {"feature_group_count": 12},
    ),
    "line": ((1, 1, 500), (1, 1, 21), ("NCW", "OIW", "NCW"), {"padding": [(20, 20)]}),
    "dilated": (
        (2, 9, 11, 3),
        (3, 3, 3, 2),
        ("NHWC", "HWIO", "NHWC"),
        {"lhs_dilation": (2, 2), "padding": [(1, 1), (2, 2)]},
    ),
}


def test_convolutions_that_no_tile_takes() -> None:
    given = {
        name: (numbers(*lhs), numbers(*rhs)) for name, (lhs, rhs, _, _) in CONVOLUTIONS.items()
    }

    def convolve(arrays):
        return {
            name: lax.conv_general_dilated(
                *arrays[name],
                (1,) * (arrays[name][0].ndim - 2),
                **{"padding": "SAME", "dimension_numbers": numbers_, **options},
            )
            for name, (_, _, numbers_, options) in CONVOLUTIONS.items()
        }

    compiled = axir.jit(convolve)(given)
    with axir.disable_jit():
        expected = convolve({name: tuple(map(jnp.asarray, pair)) for name, pair in given.items()})
    for name in CONVOLUTIONS:
        np.testing.assert_array_equal(compiled[name], expected[name], err_msg=name)
