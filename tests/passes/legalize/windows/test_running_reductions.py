"""`scan-by-doubling`: running reductions of complex numbers, and reductions that do not change."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from support.stablehlo_runner import Example, run_examples, text_after

from axir.dialect.builders import stablehlo as hlo

RNG = np.random.default_rng(0)
SCAN = "scan-by-doubling,pad-windows,split-complex-pad,split-complex-constants"
Accumulate = Callable[..., np.ndarray]


def numbers(shape: Sequence[int], dtype: type = np.complex64) -> np.ndarray:
    drawn = RNG.normal(size=(2, *shape))
    is_complex = np.issubdtype(dtype, np.complexfloating)
    return (drawn[0] + 1j * drawn[1] if is_complex else drawn[0]).astype(dtype)


def example(
    name: str, x: np.ndarray, axis: int, accumulate: Accumulate, reverse: bool = False
) -> Example:
    is_sum = accumulate is np.cumsum
    build = hlo.add if is_sum else hlo.multiply
    extent = x.shape[axis]
    window = [extent if d == axis else 1 for d in range(x.ndim)]
    edge = [0, extent - 1] if reverse else [extent - 1, 0]
    padding = [edge if d == axis else [0, 0] for d in range(x.ndim)]

    def builder(value):
        init = hlo.full(0 if is_sum else 1, (), x.dtype)
        return hlo.reduce_window([value], [init], window, build, padding=padding)[0]

    expected = np.flip(accumulate(np.flip(x, axis), axis), axis) if reverse else accumulate(x, axis)
    return Example(name, (x,), builder, expected)


COMPLEX = [
    example("sums", numbers((7,)), 0, np.cumsum),
    example("sums_to_the_end", numbers((3, 6)), 1, np.cumsum, reverse=True),
    example("products", numbers((5, 2)), 0, np.cumprod),
    example("products_to_the_end", numbers((2, 8, 3)), 1, np.cumprod, reverse=True),
    example("wide_sums", numbers((4,), np.complex128), 0, np.cumsum),
    example("infinite", np.array([np.inf, 1j, 2, 3], np.complex64), 0, np.cumsum),
]
REAL = example("real", numbers((7,), np.float32), 0, np.cumsum)
ALONE = example("alone", numbers((1, 1)), 0, np.cumsum)


def test_values() -> None:
    results = run_examples(COMPLEX, SCAN)
    for case in COMPLEX:
        np.testing.assert_allclose(results[case.name][0], case.expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("case", "steps"), [*zip(COMPLEX[:4], (3, 3, 3, 3), strict=True)])
def test_windows_double(case: Example, steps: int) -> None:
    text = text_after(case, "scan-by-doubling")
    assert "reduce_window" not in text
    assert text.count("stablehlo.concatenate") == steps


@pytest.mark.parametrize("case", [REAL, ALONE], ids=lambda case: case.name)
def test_others_stay(case: Example) -> None:
    assert text_after(case, "scan-by-doubling") == text_after(case, "")
