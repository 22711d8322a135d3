"""`run-by-kernel` and `reduce-long-windows`: running sums and sums of long windows."""

import numpy as np
import pytest
from support.stablehlo_runner import Example, build, run_examples

from axir.dialect.builders import stablehlo as hlo
from axir.passes.framework.pipeline import run_passes

RNG = np.random.default_rng(4)


def integers(*shape, dtype=np.float32):
    return RNG.integers(-3, 4, size=shape).astype(dtype)


def running(name, array, axis, *, reverse=False, kind="add", init=0) -> Example:
    extent = array.shape[axis]
    window = [extent if d == axis else 1 for d in range(array.ndim)]
    edge = [0, extent - 1] if reverse else [extent - 1, 0]
    padding = [edge if d == axis else [0, 0] for d in range(array.ndim)]
    ufunc = {"add": np.add, "maximum": np.maximum}[kind]
    turned = np.flip(array, axis) if reverse else array
    expected = ufunc.accumulate(turned, axis)
    return Example(
        name,
        (array,),
        lambda x: hlo.reduce_window(
            [x], [hlo.full(init, (), array.dtype)], window, getattr(hlo, kind), padding=padding
        )[0],
        np.flip(expected, axis) if reverse else expected,
    )


COMPLEX = (integers(300) + 1j * integers(300)).astype(np.complex64)
RUNNING = [
    running("line", integers(5_003), 0),
    running("line_from_the_end", integers(5_003), 0, reverse=True),
    running("columns", integers(300, 37), 0),
    running("rows", integers(5, 700), 1, reverse=True),
    running("middle", integers(3, 300, 5), 1),
    running("integers", integers(1_000, dtype=np.int32), 0),
    running("largest", integers(1_000), 0, kind="maximum", init=-np.inf),
    running("complex", COMPLEX, 0),
    running("wide", integers(70, 70_000), 0),
]


def windows(name, array, window, strides, expected) -> Example:
    return Example(
        name,
        (array,),
        lambda x: hlo.reduce_window(
            [x], [hlo.full(0, (), array.dtype)], window, hlo.add, window_strides=strides
        )[0],
        expected,
    )


LINE, IMAGE = integers(5_100), integers(2, 100, 60, 3)
LONG = [
    windows("side_by_side", LINE, [1000], [1000], LINE[:5000].reshape(5, 1000).sum(1)),
    windows(
        "image",
        IMAGE,
        [1, 50, 20, 1],
        [1, 50, 20, 1],
        IMAGE.reshape(2, 2, 50, 3, 20, 3).sum((2, 4)),
    ),
    windows("whole", IMAGE, [1, 100, 60, 1], [1, 1, 1, 1], IMAGE.sum((1, 2), keepdims=True)),
]
OVERLAPPING = windows("overlapping", LINE, [1000], [500], np.zeros(9, np.float32))
SHORT = windows("short", LINE, [100], [100], np.zeros(51, np.float32))


def test_running_reductions_are_kernels_with_the_right_values() -> None:
    results = run_examples(RUNNING, "run-by-kernel")
    for case in RUNNING:
        np.testing.assert_array_equal(results[case.name][0], case.expected, case.name)
        module = build({case.name: (case.arguments, case.builder)})
        run_passes(module, "run-by-kernel")
        assert "stablehlo.reduce_window" not in str(module)


def test_short_running_sums_stay() -> None:
    case = running("short", integers(20), 0)
    module = build({case.name: (case.arguments, case.builder)})
    run_passes(module, "run-by-kernel")
    assert "flow.dispatch" not in str(module)


def test_long_windows_side_by_side_are_reductions() -> None:
    results = run_examples(LONG, "reduce-long-windows")
    for case in LONG:
        np.testing.assert_array_equal(results[case.name][0], case.expected, case.name)
        module = build({case.name: (case.arguments, case.builder)})
        run_passes(module, "reduce-long-windows")
        assert "reduce_window" not in str(module)


@pytest.mark.parametrize("case", [OVERLAPPING, SHORT], ids=lambda case: case.name)
def test_other_windows_stay(case: Example) -> None:
    module = build({case.name: (case.arguments, case.builder)})
    run_passes(module, "reduce-long-windows")
    assert "reduce_window" in str(module)
