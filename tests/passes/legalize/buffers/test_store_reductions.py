"""`store-reductions` and `store-positions`, for Vulkan; `tests/gpu` tests the values."""

from __future__ import annotations

import pytest
from support.stablehlo_runner import parse

from axir.passes.framework.pipeline import run_passes
from axir.runtime import CompileError, Target, compile_module

SUM = """
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %sum = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [{axis}]
    : (tensor<16x16xf32>, tensor<f32>) -> tensor<16xf32>
  %root = stablehlo.sqrt %sum : tensor<16xf32>
"""
PRODUCT = """
  %sum = stablehlo.dot_general %v, %x, contracting_dims = [0] x [{axis}]
    : (tensor<16xf32>, tensor<16x16xf32>) -> tensor<16xf32>
  %root = stablehlo.sqrt %sum : tensor<16xf32>
"""
CALL = "%root = func.call @g(%v) : (tensor<16xf32>) -> tensor<16xf32>"
ALONE = "%root = stablehlo.sqrt %v : tensor<16xf32>"
PROGRAM = """
func.func @f(%x: tensor<16x16xf32>, %v: tensor<16xf32>) -> tensor<16x16xf32> {{
  {root}
  %spread = stablehlo.broadcast_in_dim %root, dims = [{place}]
    : (tensor<16xf32>) -> tensor<16x16xf32>
  %result = stablehlo.subtract %x, %spread : tensor<16x16xf32>
  return %result : tensor<16x16xf32>
}}
func.func private @g(%v: tensor<16xf32>) -> tensor<16xf32> {{ return %v : tensor<16xf32> }}
"""


def program(root: str, axis: int, place: int) -> str:
    return PROGRAM.format(root=root.format(axis=axis), place=place)


@pytest.mark.parametrize(
    ("root", "axis", "place", "is_stored"),
    [
        (SUM, 0, 1, True),
        (SUM, 1, 0, False),
        (PRODUCT, 0, 1, True),
        (CALL, 0, 1, True),
        (ALONE, 0, 1, False),
    ],
)
def test_what_is_broadcast_to_rows_is_stored(
    root: str, axis: int, place: int, is_stored: bool
) -> None:
    module = parse(program(root, axis, place))
    run_passes(module, "store-reductions")
    assert ("optimization_barrier" in str(module)) == is_stored


MASK = """
func.func @f(%x: tensor<8x64xf32>, %v: tensor<8xi32>) -> (tensor<8xf32>, tensor<4xi32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %zeros = stablehlo.constant dense<0.0> : tensor<8x64xf32>
  %places = stablehlo.iota dim = 1 : tensor<8x64xi32>
  %labels = stablehlo.broadcast_in_dim %v, dims = [0] : (tensor<8xi32>) -> tensor<8x64xi32>
  %is_label = stablehlo.compare EQ, %places, %labels
    : (tensor<8x64xi32>, tensor<8x64xi32>) -> tensor<8x64xi1>
  %chosen = stablehlo.select %is_label, %x, %zeros : tensor<8x64xi1>, tensor<8x64xf32>
  %sum = stablehlo.reduce(%chosen init: %zero) applies stablehlo.add across dimensions = [1]
    : (tensor<8x64xf32>, tensor<f32>) -> tensor<8xf32>
  %others = stablehlo.iota dim = 0 : tensor<4xi32>
  %twice = stablehlo.add %others, %others : tensor<4xi32>
  return %sum, %twice : tensor<8xf32>, tensor<4xi32>
}
"""


def test_positions_beside_a_reduction_are_stored() -> None:
    module = parse(MASK)
    run_passes(module, "store-positions")
    text = str(module)
    assert text.count("optimization_barrier") == 1
    assert "stablehlo.iota dim = 0 : tensor<64xi32>" in text
    assert "stablehlo.iota dim = 0 : tensor<4xi32>" in text
    assert compile_module(module, Target("vulkan"), "positions")


def test_positions_are_still_to_be_stored() -> None:
    with pytest.raises(CompileError, match="failed to legalize operation 'memref.alloc'"):
        compile_module(parse(MASK), Target("vulkan"), "positions")
