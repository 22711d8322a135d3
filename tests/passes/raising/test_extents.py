"""Integers in StableHLO modules that are followed as extents, and integers that are not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from axir.dialect.text.parsing import parse_module
from axir.export import load
from axir.passes.raising.module import raise_module


def loaded_from(tmp_path: Path, text: str):
    (tmp_path / "module.mlir").write_text(text)
    return load(tmp_path / "module.mlir")


@pytest.mark.parametrize(
    ("number", "value"), [("1.5", 1.5), ("0x7FC00000", np.nan), ("0x7F800000", np.inf)]
)
def test_floats_are_no_extents(number: str, value: float, tmp_path: Path) -> None:
    loaded = loaded_from(
        tmp_path,
        f"""
        func.func @f(%x: tensor<1xf32>) -> (tensor<2xi1>, tensor<2xf32>, tensor<2xf32>) {{
          %c = stablehlo.constant dense<{number}> : tensor<1xf32>
          %t = stablehlo.constant dense<[2.0, 0.5]> : tensor<2xf32>
          %0 = stablehlo.concatenate %x, %c, dim = 0
            : (tensor<1xf32>, tensor<1xf32>) -> tensor<2xf32>
          %1 = stablehlo.compare GE, %0, %t : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>
          %2 = stablehlo.divide %0, %t : tensor<2xf32>
          %3 = stablehlo.sign %0 : tensor<2xf32>
          return %1, %2, %3 : tensor<2xi1>, tensor<2xf32>, tensor<2xf32>
        }}
        """,
    )
    x = np.array([3, value], np.float32)
    t = np.array([2, 0.5], np.float32)
    for found, wanted in zip(loaded(x[:1]), (x >= t, x / t, np.sign(x)), strict=True):
        np.testing.assert_array_equal(found, wanted)


CALLED = """
func.func @f(%x: tensor<1x{kind}>) -> tensor<2x{kind}> {{
  %c = stablehlo.constant dense<{one}> : tensor<1x{kind}>
  %0 = stablehlo.concatenate {operands}, dim = 0
    : (tensor<1x{kind}>, tensor<1x{kind}>) -> tensor<2x{kind}>
  %1 = call @large(%0) : (tensor<2x{kind}>) -> tensor<2x{kind}>
  return %1 : tensor<2x{kind}>
}}
func.func private @large(%0: tensor<2x{kind}>) -> tensor<2x{kind}> {{
{lines}
  return %12 : tensor<2x{kind}>
}}
"""


@pytest.mark.parametrize(
    ("kind", "one", "operands"),
    [("f32", "1.0", "%x, %c"), ("i32", "1", "%x, %x"), ("i32", "1", "%x, %c")],
)
def test_large_functions_of_static_modules_stay(kind: str, one: str, operands: str) -> None:
    lines = "\n".join(f"  %{n + 1} = stablehlo.add %{n}, %0 : tensor<2x{kind}>" for n in range(12))
    text = CALLED.format(kind=kind, one=one, operands=operands, lines=lines)
    raised = raise_module(parse_module(text)).functions["f"]
    assert "large" in str(raised)


def test_other_numbers_may_stand_beside_extents(tmp_path: Path) -> None:
    text = """
    func.func @f(%x: tensor<?x4xf32>, %i: tensor<1xi32>) -> tensor<?x2xf32> {
      %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x4xf32>) -> tensor<i32>
      %r = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
      %0 = stablehlo.constant dense<0> : tensor<1xi32>
      %1 = stablehlo.constant dense<1> : tensor<2xi32>
      %2 = stablehlo.constant dense<2> : tensor<1xi32>
      %e = stablehlo.add %i, %2 : tensor<1xi32>
      %s = stablehlo.concatenate %0, %i, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
      %t = stablehlo.concatenate %r, %e, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
      %y = stablehlo.real_dynamic_slice %x, %s, %t, %1
        : (tensor<?x4xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x2xf32>
      return %y : tensor<?x2xf32>
    }
    """
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    found = loaded_from(tmp_path, text)(x, np.array([1], np.int32))
    np.testing.assert_array_equal(found, x[:, 1:3])


BOOLEANS = """
func.func @f(%x: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xi32>, tensor<i32>) {
  %c0 = stablehlo.constant dense<0> : tensor<i32>
  %c1 = stablehlo.constant dense<1> : tensor<i32>
  %c4 = stablehlo.constant dense<4> : tensor<i32>
  %c5 = stablehlo.constant dense<5> : tensor<i32>
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
  %true = stablehlo.compare GE, %n, %c1 : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %false = stablehlo.compare LT, %n, %c1 : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %one = stablehlo.convert %true : (tensor<i1>) -> tensor<i32>
  %nothing = stablehlo.convert %false : (tensor<i1>) -> tensor<i32>
  %a = stablehlo.add %one, %one : tensor<i32>
  %b = stablehlo.add %a, %nothing : tensor<i32>
  %s = stablehlo.reshape %b : (tensor<i32>) -> tensor<1xi32>
  %w = stablehlo.constant dense<3.0> : tensor<f32>
  %y = stablehlo.dynamic_broadcast_in_dim %w, %s, dims = [] :
    (tensor<f32>, tensor<1xi32>) -> tensor<?xf32>
  %minus = arith.extsi %true : tensor<i1> to tensor<i32>
  %c = stablehlo.subtract %c1, %minus : tensor<i32>
  %d = stablehlo.reshape %c : (tensor<i32>) -> tensor<1xi32>
  %z = stablehlo.dynamic_iota %d, dim = 0 : (tensor<1xi32>) -> tensor<?xi32>
  %few = stablehlo.compare LT, %n, %c4 : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %e = stablehlo.convert %few : (tensor<i1>) -> tensor<i32>
  %g = stablehlo.add %e, %c5 : tensor<i32>
  return %y, %z, %g : tensor<?xf32>, tensor<?xi32>, tensor<i32>
}
"""


def test_truth_values_that_become_numbers(tmp_path: Path) -> None:
    loaded = loaded_from(tmp_path, BOOLEANS)
    for rows, wanted in ((3, 6), (4, 5)):
        y, z, g = loaded(np.ones(rows, np.float32))
        np.testing.assert_array_equal(y, np.array([3, 3], np.float32))
        np.testing.assert_array_equal(z, np.array([0, 1], np.int32))
        assert g == wanted


def test_a_comparison_that_sizes_decide_is_a_number(tmp_path: Path) -> None:
    text = BOOLEANS.replace("%b = stablehlo.add %a, %nothing", "%b = stablehlo.add %a, %g")
    head, lines = text.split("  %few =")
    lines, end = lines.split("  return")
    text = head.replace("  %a = ", f"  %few ={lines}  %a = ") + "  return" + end
    found = loaded_from(tmp_path, text)
    for rows, wanted in ((3, 8), (4, 7)):
        y, _, g = found.of_sizes(arg0_0=rows).function.evaluate(np.ones(rows, np.float32))
        assert (y.shape, g) == ((wanted,), wanted - 2)


def test_quotients_without_a_sign_are_extents(tmp_path: Path) -> None:
    # As torch-mlir writes ONNX's Reshape to (-1, 12) of an array with an open batch.
    found = loaded_from(
        tmp_path,
        """
        func.func @f(%x: tensor<?x3x4xf32>) -> tensor<?x?xf32> {
          %c12 = arith.constant 12 : i64
          %c5 = arith.constant 5 : i64
          %0 = shape.shape_of %x : tensor<?x3x4xf32> -> tensor<3xindex>
          %1 = shape.num_elements %0 : tensor<3xindex> -> index
          %2 = arith.index_castui %1 : index to i64
          %3 = arith.divui %2, %c12 : i64
          %4 = arith.remui %2, %c12 : i64
          %5 = arith.ceildivui %2, %3 : i64
          %6 = arith.maxui %5, %c5 : i64
          %7 = arith.minui %6, %c12 : i64
          %8 = arith.addi %7, %4 : i64
          %shape = tensor.from_elements %3, %8 : tensor<2xi64>
          %9 = stablehlo.dynamic_reshape %x, %shape
            : (tensor<?x3x4xf32>, tensor<2xi64>) -> tensor<?x?xf32>
          return %9 : tensor<?x?xf32>
        }
        """,
    )
    assert str(found.out_avals[0]) == "float32[arg0_0,12]"
