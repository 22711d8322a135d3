"""`store-widened`: which values are stored; `tests/gpu` tests the results."""

from __future__ import annotations

import pytest
from support.stablehlo_runner import parse

from axir.passes.framework.pipeline import run_passes

PROGRAM = """
func.func @f(%x: tensor<8x4xf16>, %w: tensor<8x4xf32>, %m: tensor<8x4xi1>, %b: tensor<4xf16>)
    -> (tensor<8x4xf32>, tensor<4xf32>) {{
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  {shared}
  %reduced = {reduced}
  %sum = stablehlo.reduce(%reduced init: %zero) applies stablehlo.add across dimensions = [0]
    : (tensor<8x4xf32>, tensor<f32>) -> tensor<4xf32>
  return {returned}, %sum : tensor<8x4xf32>, tensor<4xf32>
}}
"""
WIDE = "%y = stablehlo.convert %x : (tensor<8x4xf16>) -> tensor<8x4xf32>"
SAME = "%y = stablehlo.sqrt %w : tensor<8x4xf32>"
SCALED = """
  %c = stablehlo.convert %x : (tensor<8x4xf16>) -> tensor<8x4xf32>
  %y = stablehlo.add %c, %c : tensor<8x4xf32>
"""
CHOSEN = """
  %all = stablehlo.broadcast_in_dim %zero, dims = [] : (tensor<f32>) -> tensor<8x4xf32>
  %y = stablehlo.select %m, %all, %all : tensor<8x4xi1>, tensor<8x4xf32>
"""
BIAS = """
  %c = stablehlo.convert %b : (tensor<4xf16>) -> tensor<4xf32>
  %rows = stablehlo.broadcast_in_dim %c, dims = [1] : (tensor<4xf32>) -> tensor<8x4xf32>
  %y = stablehlo.add %w, %rows : tensor<8x4xf32>
"""
DIRECT = "stablehlo.negate %y : tensor<8x4xf32>"
ELSEWHERE = "stablehlo.negate %w : tensor<8x4xf32>"


@pytest.mark.parametrize(
    ("shared", "reduced", "returned", "is_stored"),
    [
        pytest.param(WIDE, DIRECT, "%y", True, id="converted"),
        pytest.param(SCALED, DIRECT, "%y", True, id="computed of what is converted"),
        pytest.param(CHOSEN, DIRECT, "%y", True, id="chosen by truth values"),
        pytest.param(WIDE, DIRECT, "%w", False, id="used once"),
        pytest.param(SCALED, DIRECT, "%w", False, id="used twice by one operation"),
        pytest.param(WIDE, ELSEWHERE, "%y", False, id="not reduced"),
        pytest.param(SAME, DIRECT, "%y", False, id="no wider"),
        pytest.param(BIAS, DIRECT, "%y", False, id="wider than a row only"),
    ],
)
def test_what_is_stored(shared: str, reduced: str, returned: str, is_stored: bool) -> None:
    module = parse(PROGRAM.format(shared=shared, reduced=reduced, returned=returned))
    run_passes(module, "store-widened")
    assert str(module).count("stablehlo.optimization_barrier") == is_stored


PRODUCT = """
func.func @f(%x: tensor<4x4xi8>) -> tensor<4x4xi32> {
  %y = stablehlo.convert %x : (tensor<4x4xi8>) -> tensor<4x4xi32>
  %0 = stablehlo.dot_general %y, %y, contracting_dims = [1] x [1]
    : (tensor<4x4xi32>, tensor<4x4xi32>) -> tensor<4x4xi32>
  return %0 : tensor<4x4xi32>
}
"""


def test_both_operands_of_a_product_are_stored_once() -> None:
    module = parse(PRODUCT)
    run_passes(module, "store-widened")
    assert str(module).count("stablehlo.optimization_barrier") == 1


TWICE = """
func.func @f(%x: tensor<4x4xi8>) -> (tensor<4x4xi32>, tensor<4x4xi32>) {
  %y = stablehlo.convert %x : (tensor<4x4xi8>) -> tensor<4x4xi32>
  %z = stablehlo.convert %x : (tensor<4x4xi8>) -> tensor<4x4xi32>
  %0 = stablehlo.dot_general %y, %z, contracting_dims = [1] x [1]
    : (tensor<4x4xi32>, tensor<4x4xi32>) -> tensor<4x4xi32>
  return %0, %z : tensor<4x4xi32>, tensor<4x4xi32>
}
"""


def test_equal_conversions_are_one() -> None:
    module = parse(TWICE)
    run_passes(module, "store-widened")
    assert str(module).count("stablehlo.convert") == 1
    assert str(module).count("stablehlo.optimization_barrier") == 1
