"""`pad-windows`: complex windows, cut windows, and windows that do not reach to the end."""

from __future__ import annotations

import numpy as np
import pytest
from support.stablehlo_runner import (
    CompilationError,
    Example,
    build,
    compile_module,
    deviations,
    run_examples,
)

from axir.dialect.builders import stablehlo as hlo
from axir.passes.framework.pipeline import run_passes

REAL = np.arange(15, dtype=np.float32).reshape(5, 3)
COMPLEX = (REAL + 1j * REAL[::-1]).astype(np.complex64)


def total(window, **options):
    def builder(x):
        init = hlo.constant(0, hlo.element_type_of(x))
        return hlo.reduce_window([x], [init], window, hlo.add, **options)

    return builder


def summed(x: np.ndarray, window: tuple[int, int], padding: list) -> np.ndarray:
    padded = np.pad(x, [[max(p, 0) for p in pair] for pair in padding])
    cut = [slice(-min(low, 0), len(padded) + min(high, 0)) for (low, high) in padding[:1]]
    view = np.lib.stride_tricks.sliding_window_view(padded[tuple(cut)], window)
    return view.sum((-1, -2)).astype(x.dtype)


PADS = [[1, 0], [2, 1]]
CUT = [[0, -2], [1, 0]]
LOOSE = {"window_strides": (1, 4)}
EXAMPLES = [
    Example("complex", (COMPLEX,), total((2, 2), padding=PADS), summed(COMPLEX, (2, 2), PADS)),
    Example("cut", (REAL,), total((2, 2), padding=CUT), summed(REAL, (2, 2), CUT)),
    Example(
        "loose",
        (REAL,),
        total((2, 2), **LOOSE),
        summed(REAL, (2, 2), [[0, 0], [0, 0]])[:, :1],
    ),
    Example(
        "cut_between_holes",
        (REAL,),
        total((2, 1), base_dilations=(2, 1), padding=[[0, -1], [0, 0]]),
        np.repeat(REAL, 2, 0)[1:8],
    ),
]


def test_values() -> None:
    results = run_examples(EXAMPLES, "pad-windows,split-complex-pad")
    problems = [text for e in EXAMPLES for text in deviations(results[e.name], e)]
    assert problems == []


def test_a_single_window_does_not_compile_without_the_pass() -> None:
    example = EXAMPLES[2]
    with pytest.raises(CompilationError):
        compile_module(build({"f": (example.arguments, example.builder)}))


@pytest.mark.parametrize(
    "builder", [total((2, 2)), total((5, 1), padding=[(4, 0), (0, 0)])], ids=["whole", "running"]
)
def test_windows_without_padding_and_running_ones_stay(builder) -> None:
    module = build({"f": ((REAL,), builder)})
    before = str(module)
    run_passes(module, "pad-windows")
    assert str(module) == before
