"""Reshapes of single elements: `collapse-single-elements`, `slice-reshaped`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from iree.compiler import ir
from support.stablehlo_runner import (
    CompilationError,
    Compiled,
    Example,
    build,
    deviations,
    run_examples,
    text_after,
)

import axir
import axir.numpy as jnp
from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core.config import config
from axir.passes.framework.pipeline import run_passes

MODULE = """
func.func @main(%a: tensor<1x1xKIND>, %b: tensor<KIND>) -> (tensor<4xKIND>, tensor<KIND>) {
  %0 = stablehlo.reshape %a : (tensor<1x1xKIND>) -> tensor<KIND>
  %1 = stablehlo.negate %0 : tensor<KIND>
  %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<KIND>) -> tensor<4xKIND>
  %3 = stablehlo.add %1, %b : tensor<KIND>
  %4 = stablehlo.reshape %a : (tensor<1x1xKIND>) -> tensor<1xKIND>
  return %2, %3 : tensor<4xKIND>, tensor<KIND>
}
"""
CONVERSION = "--iree-stablehlo-to-iree-input"


def converted(text: str) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).parent / "iree-opt"
    return subprocess.run([program, CONVERSION], input=text, capture_output=True, text=True)


@pytest.mark.parametrize("kind", ["f32", "f64", "i8", "ui16", "i32"])
def test_the_conversion_knows_the_scalar(kind: str) -> None:
    text = MODULE.replace("KIND", kind)
    assert "explicitly marked illegal" in converted(text).stderr  # the fact
    with ir.Context():
        module = ir.Module.parse(text)
        run_passes(module, "collapse-single-elements")
    changed = str(module)
    assert changed.count("tensor.collapse_shape") == 1
    assert changed.count("stablehlo.reshape") == 1
    done = converted(changed)
    assert done.returncode == 0, done.stderr


def test_values() -> None:
    def program(x, y):
        scalar = jnp.abs(x.reshape(()))
        flag = (scalar > 1).astype(jnp.int32)
        return jnp.transpose(jnp.full((4, 4), scalar)) > y, flag, -(y[0, :1].reshape(()))

    arguments = np.float32([-2.0]), np.arange(16, dtype=np.float32).reshape(4, 4)
    with config(axir_compiler="iree"):
        found = axir.jit(program)(*arguments)
    with axir.disable_jit():
        wanted = program(*map(jnp.asarray, arguments))
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)


X = np.arange(24, dtype=np.int32) * 3 - 7


def plus(x, number):
    return hlo.add(x, hlo.full_like(x, number))


def both(element, shape):
    """The element by another shape, and a number of it."""
    reshaped = hlo.reshape(element, shape)
    return [reshaped, plus(reshaped, 1)]


def reshaped_to(shape):
    return lambda x: both(hlo.slice(x, [5], [6]), shape)


def broadcast(x):
    widened = hlo.broadcast_in_dim(hlo.slice(x, [5], [6]), (1, 1), (0,))
    return [widened, plus(widened, 1)]


def by_steps(x):
    return both(hlo.slice(x, [5], [24], [19]), (1, 1))


def behind_nothing_added(x):
    return both(plus(hlo.slice(x, [5], [6]), 0), (1, 1))


def of_a_matrix(x):
    return both(hlo.slice(hlo.reshape(x, (4, 6)), [0, 5], [1, 6]), (1, 1, 1))


def of_as_many_axes(x):
    return both(hlo.slice(hlo.reshape(x, (4, 6)), [0, 5], [1, 6]), (1, 1))


def in_rows(x):
    row = hlo.slice(hlo.reshape(x, (4, 6)), [0, 4], [1, 6])
    return both(row, (1, 1, 1, 2))


def expected(shape, values=X[5:6]):
    return [values.reshape(shape), values.reshape(shape) + 1]


TOO_MANY_AXES = [
    Example("matrix", (X,), reshaped_to((1, 1)), expected((1, 1))),
    Example("three_axes", (X,), reshaped_to((1, 1, 1)), expected((1, 1, 1))),
    Example("broadcast", (X,), broadcast, expected((1, 1))),
    Example("steps", (X,), by_steps, expected((1, 1))),
    Example("nothing_added", (X,), behind_nothing_added, expected((1, 1))),
    Example("of_a_matrix", (X,), of_a_matrix, expected((1, 1, 1))),
]
OTHERS = [
    Example("as_many_axes", (X,), of_as_many_axes, expected((1, 1))),
    Example("rows", (X,), in_rows, expected((1, 1, 1, 2), X[4:6])),
]
EXAMPLES = TOO_MANY_AXES + OTHERS


@pytest.fixture(scope="module")
def results() -> dict[str, list[np.ndarray]]:
    return run_examples(EXAMPLES, "slice-reshaped")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.name)
def test_values_slice(results: dict[str, list[np.ndarray]], example: Example) -> None:
    assert deviations(results[example.name], example) == []


@pytest.mark.parametrize("example", TOO_MANY_AXES, ids=lambda e: e.name)
def test_the_pass_is_still_needed(example: Example) -> None:
    """Compiles with inspection of each pass's output, as axir does where it edits it."""
    with pytest.raises(CompilationError, match="equal to the other rank"):
        Compiled(build({example.name: (example.arguments, example.builder)}))


@pytest.mark.parametrize("example", OTHERS, ids=lambda e: e.name)
def test_other_slices_stay(example: Example) -> None:
    assert text_after(example, "slice-reshaped") == text_after(example, "")
