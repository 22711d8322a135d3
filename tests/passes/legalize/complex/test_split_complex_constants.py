"""`split-complex-constants`: complex constants can be results, and be written to."""

from __future__ import annotations

import numpy as np
import pytest
from support.stablehlo_runner import (
    CompilationError,
    Compiled,
    Example,
    build,
    deviations,
    run_examples,
)

from axir.dialect.builders import stablehlo as hlo
from axir.passes.framework.pipeline import run_passes

X = np.array([1 - 1j, 2j], np.complex128)
CONSTANTS = {
    "uniform": np.full((2, 3), 1 + 2j),
    "scalar": np.array(complex(-0.0, np.inf)),
    "mixed": np.array([[1, 2j, np.nan]]),
    "empty": np.zeros((0, 2), np.complex128),
    "narrow": np.full((2,), 1 + 2j, np.complex64),
}
EXAMPLES = [
    Example(name, (X,), lambda x, value=value: hlo.constant(value), value)
    for name, value in CONSTANTS.items()
]


@pytest.fixture(scope="module")
def results() -> dict[str, list[np.ndarray]]:
    return run_examples(EXAMPLES, "split-complex-constants")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.name)
def test_values(results: dict[str, list[np.ndarray]], example: Example) -> None:
    assert deviations(results[example.name], example) == []


def test_the_pass_is_still_needed() -> None:
    uniform = EXAMPLES[0]
    with pytest.raises(CompilationError, match="i128"):
        Compiled(build({"f": (uniform.arguments, uniform.builder)}))


def _updated(row):
    zeros, start = hlo.constant(np.zeros((3, 2), np.complex64)), hlo.constant(np.int32(1))
    return hlo.dynamic_update_slice(zeros, row, [start, hlo.constant(np.int32(0))])


ROW = np.array([[1 - 1j, 2j]], np.complex64)


def test_a_slice_of_zeros_is_updated() -> None:
    module = build({"f": ((ROW,), _updated)})
    with pytest.raises(CompilationError, match="TypedAttr"):
        Compiled(build({"f": ((ROW,), _updated)}))
    run_passes(module, "split-complex-constants")
    expected = np.concatenate([np.zeros((1, 2)), ROW, np.zeros((1, 2))])
    np.testing.assert_array_equal(Compiled(module)("f", ROW)[0], expected)


def test_bodies_of_reductions_keep_their_constants() -> None:
    def builder(x):
        return hlo.reduce([x], [hlo.constant(np.complex128(0))], (0,), _add_one)[0]

    def _add_one(a, b):
        return hlo.add(hlo.add(a, b), hlo.constant(np.complex128(1)))

    module = build({"f": ((X,), builder)})
    run_passes(module, "split-complex-constants")
    assert str(module).count("stablehlo.constant") == 3
    compiled = Compiled(module)
    np.testing.assert_allclose(compiled("f", X)[0], X.sum() + 2)
