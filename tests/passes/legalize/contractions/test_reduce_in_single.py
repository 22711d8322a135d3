"""`reduce-in-single`: which reductions run in f32; `tests/gpu` runs them on Vulkan."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from support.stablehlo_runner import Example, run_examples, text_after

from axir.dialect.builders import stablehlo as hlo

RNG = np.random.default_rng(0)
IN_SINGLE = "reduce-in-single"
X = RNG.normal(size=(4, 8)).astype(ml_dtypes.bfloat16)


def example(name: str, x: np.ndarray, build, init: float, expected: np.ndarray) -> Example:
    def builder(value):
        return hlo.reduce([value], [hlo.full(init, (), x.dtype)], [1], build)[0]

    return Example(name, (x,), builder, expected)


WIDE = X.astype(np.float32)
BRAIN = [
    example("largest", X, hlo.maximum, -np.inf, WIDE.max(1)),
    example("smallest", X, hlo.minimum, np.inf, WIDE.min(1)),
    example("sums", X, hlo.add, 0, WIDE.sum(1)),
]
OTHERS = [
    example("half", X.astype(np.float16), hlo.maximum, -np.inf, WIDE.max(1)),
    example("differences", X, lambda x, y: hlo.negate(hlo.maximum(x, y)), 0, WIDE.max(1)),
]


def test_values() -> None:
    results = run_examples(BRAIN, IN_SINGLE)
    for case in BRAIN:
        expected = case.expected.astype(ml_dtypes.bfloat16).astype(np.float32)
        found = results[case.name][0].astype(np.float32)
        np.testing.assert_allclose(found, expected, rtol=0.01)


@pytest.mark.parametrize("case", BRAIN, ids=lambda case: case.name)
def test_reductions_are_of_singles(case: Example) -> None:
    text = text_after(case, IN_SINGLE)
    assert "(tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>" in text


@pytest.mark.parametrize("case", OTHERS, ids=lambda case: case.name)
def test_others_stay(case: Example) -> None:
    assert text_after(case, IN_SINGLE) == text_after(case, "")
