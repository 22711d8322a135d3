"""`collapse-single-elements`: scalars from arrays of one element."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from iree.compiler import ir

import axir
import axir.numpy as jnp
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
