"""`tune-for-cpu`."""

from __future__ import annotations

import numpy as np
import pytest
from support.stablehlo_runner import Example, build, run_examples

from axir.dialect.builders import stablehlo as hlo
from axir.passes.framework.pipeline import run_passes
from axir.passes.tune.tune_for_cpu import STAGES

RNG = np.random.default_rng(0)


def sum_over(operand, axes):
    return hlo.reduce([operand], [hlo.full(0, (), hlo.element_type_of(operand))], axes, hlo.add)[0]


def layer_gradient(x, w, g):
    """The gradients of x @ w with respect to w, to a bias, and to x, multiplied by a vector."""
    product = hlo.dot_general(hlo.transpose(g, (1, 0)), x, ((1,), (0,)))
    by_bias = sum_over(g, (0,))
    by_input = hlo.dot_general(hlo.dot_general(g, w, ((1,), (1,))), by_bias_like(x), ((1,), (0,)))
    return [hlo.transpose(product, (1, 0)), by_bias, by_input]


def by_bias_like(x):
    return hlo.full(2, (x.type.shape[1],), hlo.element_type_of(x))


def layer(name: str, batch: int, inputs: int, outputs: int, dtype: str) -> Example:
    x, w, g = (
        RNG.integers(-3, 4, size=shape).astype(dtype)
        for shape in ((batch, inputs), (inputs, outputs), (batch, outputs))
    )
    expected = [x.T @ g, g.sum(0), (g @ w.T) @ np.full(inputs, 2, dtype)]
    return Example(name, (x, w, g), layer_gradient, expected)


LAYERS = [
    layer("odd", 31, 17, 9, "f4"),
    layer("tiny", 1, 1, 1, "f4"),
    layer("double", 8, 5, 3, "f8"),
    layer("large", 4099, 33, 129, "f4"),
]
PASSES = "legalize-for-iree,tune-for-cpu"


@pytest.fixture(scope="module")
def results():
    return run_examples(LAYERS, PASSES)


@pytest.mark.parametrize("case", LAYERS, ids=lambda case: case.name)
def test_values(results, case: Example) -> None:
    # Integers small enough for every sum to be exact.
    for result, expected in zip(results[case.name], case.expected, strict=True):
        assert result.dtype == expected.dtype
        np.testing.assert_array_equal(result, expected)


def test_every_stage_acts() -> None:
    case = LAYERS[3]
    module = build({case.name: (case.arguments, case.builder)})
    run_passes(module, PASSES)
    text = str(module)
    assert "stablehlo.transpose" not in text
    assert "stablehlo.dot_general" not in text
    assert text.count("flow.dispatch @matrix_product") == 2
    assert "flow.dispatch @rows" in text


def test_small_products_stay() -> None:
    case = LAYERS[0]
    module = build({case.name: (case.arguments, case.builder)})
    run_passes(module, "legalize-for-iree{fuses=false}")
    stages = [name for name in STAGES if name != "fuse-small-sums"]
    run_passes(module, ",".join(stages))
    text = str(module)
    assert text.count("stablehlo.transpose") == 1  # of w, for g wᵀ
    assert text.count("stablehlo.dot_general") == 2
    run_passes(module, "fuse-small-sums")
    assert "stablehlo.dot_general" not in str(module)
    assert "flow.dispatch @program_0" in str(module)


def test_vectors_are_those_of_the_machine() -> None:
    case = LAYERS[3]
    module = build({case.name: (case.arguments, case.builder)})
    run_passes(module, "tune-for-cpu{vector_bits=256}")
    assert "vector<8xf32>" in str(module)


def test_small_elementwise_programs_stay() -> None:
    values = RNG.normal(size=(3, 5)).astype(np.float32)
    module = build({"f": ((values,), lambda x: hlo.add(hlo.tanh(x), x))})
    before = str(module)
    run_passes(module, "tune-for-cpu")
    assert str(module) == before
