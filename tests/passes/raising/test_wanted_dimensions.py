"""Requirements of operations on open dimensions: equality, fitting into others, being arguments."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import axir
from axir.dialect.core.errors import ShapeError
from axir.export import Exported, load
from axir.passes.framework.errors import RaisingError


def loaded(tmp_path: Path, text: str, **shapes: tuple[int | str, ...]) -> Exported:
    (tmp_path / "module.mlir").write_text(text)
    return load(tmp_path / "module.mlir", shapes=shapes)


EQUAL = {
    "a factor": """
      %2 = stablehlo.concatenate %x, %x, dim = 0 : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
      %3 = stablehlo.concatenate %y, %y, dim = 0 : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
      %4 = stablehlo.add %2, %3 : tensor<?xf32>
    """,
    "a broadcast": """
      %0 = stablehlo.get_dimension_size %y, dim = 0 : (tensor<?xf32>) -> tensor<i32>
      %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
      %4 = stablehlo.dynamic_broadcast_in_dim %x, %1, dims = [0]
        : (tensor<?xf32>, tensor<1xi32>) -> tensor<?xf32>
    """,
    "a number of elements": """
      %two = stablehlo.constant dense<2> : tensor<1xi32>
      %0 = stablehlo.get_dimension_size %y, dim = 0 : (tensor<?xf32>) -> tensor<i32>
      %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
      %2 = stablehlo.concatenate %1, %two, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
      %3 = stablehlo.concatenate %x, %x, dim = 0 : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
      %5 = stablehlo.dynamic_reshape %3, %2 : (tensor<?xf32>, tensor<2xi32>) -> tensor<?x2xf32>
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %4 = stablehlo.reduce(%5 init: %zero) applies stablehlo.add across dimensions = [1]
        : (tensor<?x2xf32>, tensor<f32>) -> tensor<?xf32>
    """,
    "operands of a sort": """
      %4, %5 = "stablehlo.sort"(%x, %y) ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<f32>, %d: tensor<f32>):
        %6 = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %6 : tensor<i1>
      }) {dimension = 0 : i64} : (tensor<?xf32>, tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>)
    """,
}


@pytest.mark.parametrize("name", EQUAL)
def test_dimensions_that_must_be_equal_are_one(name: str, tmp_path: Path) -> None:
    text = f"""func.func @f(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {{
      {EQUAL[name]}
      return %4 : tensor<?xf32>
    }}"""
    found = loaded(tmp_path, text)
    assert found.symbols == ("arg0_0",)
    assert loaded(tmp_path, text, arg1=("n",)).symbols == ("n",)
    with pytest.raises(ShapeError, match="with arg0_0 = 3 arg0_0 is 3, not 2"):
        found(np.ones(3, np.float32), np.ones(2, np.float32))


OF_PARTS = """
func.func @f(%x: tensor<?xf32>, %y: tensor<?xf32>, %i: tensor<i32>) -> tensor<?xf32> {
  %0 = stablehlo.dynamic_update_slice %x, %y, %i
    : (tensor<?xf32>, tensor<?xf32>, tensor<i32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
"""


def test_parts_fit_into_the_whole(tmp_path: Path) -> None:
    found = loaded(tmp_path, OF_PARTS)
    assert found.open.constraints == ("arg1_0 <= arg0_0",)
    x, y = np.zeros(4, np.float32), np.ones(2, np.float32)
    np.testing.assert_array_equal(found(x, y, np.int32(1)), [0, 1, 1, 0])
    with pytest.raises(ShapeError, match="the constraint 'arg1_0 <= arg0_0' does not hold"):
        found(y, x, np.int32(0))


def test_scattered_windows_fit_into_the_whole(tmp_path: Path) -> None:
    text = """
    func.func @f(%x: tensor<?x4xf32>, %i: tensor<1xi32>, %y: tensor<?xf32>) -> tensor<?x4xf32> {
      %0 = "stablehlo.scatter"(%x, %i, %y) ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %1 = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %1 : tensor<f32>
      }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0],
          inserted_window_dims = [1], scatter_dims_to_operand_dims = [1]>}
        : (tensor<?x4xf32>, tensor<1xi32>, tensor<?xf32>) -> tensor<?x4xf32>
      return %0 : tensor<?x4xf32>
    }
    """
    found = loaded(tmp_path, text)
    assert found.open.constraints == ("arg2_0 <= arg0_0",)
    x, y = np.zeros((2, 4), np.float32), np.ones(2, np.float32)
    np.testing.assert_array_equal(found(x, np.array([2], np.int32), y)[:, 2], y)


OF_ARGUMENT = """
func.func @main(%n: tensor<i64>, %x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = func.call @counted(%n) : (tensor<i64>) -> tensor<?xf32>
  RESULT
}
func.func private @counted(%n: tensor<i64>) -> tensor<?xf32> {
  %0 = stablehlo.reshape %n : (tensor<i64>) -> tensor<1xi64>
  %1 = stablehlo.dynamic_iota %0, dim = 0 : (tensor<1xi64>) -> tensor<?xf32>
  return %1 : tensor<?xf32>
}
"""


def test_numbers_that_are_dimensions(tmp_path: Path) -> None:
    added = """%1 = stablehlo.add %0, %x : tensor<?xf32>
      return %1 : tensor<?xf32>"""
    found = loaded(tmp_path, OF_ARGUMENT.replace("RESULT", added))
    assert list(map(str, found.in_avals)) == ["int64[]", "float32[arg0]"]
    x = np.ones(3, np.float32)
    np.testing.assert_array_equal(found(np.int64(3), x), [1, 2, 3])
    alone = OF_ARGUMENT.replace("RESULT", "return %0 : tensor<?xf32>")
    with pytest.raises(RaisingError, match=r"'arg0' is a dimension, and nothing says which .*\n.*"
                       r"\n.*load\(path, shapes=\{'x': \('arg0', 3\)\}\)"):  # fmt: skip
        loaded(tmp_path, alone)
    assert str(loaded(tmp_path, alone, arg1=("arg0",)).out_avals[0]) == "float32[arg0]"


def test_places_are_no_dimensions(tmp_path: Path) -> None:
    found = loaded(tmp_path, OF_PARTS)
    assert [str(kind) for kind in found.in_avals][2] == "int32[]"


def test_modules_without_operations_leave_extents_open(tmp_path: Path) -> None:
    found = loaded(
        tmp_path, "func.func @f(%x: tensor<?xf32>) -> tensor<?xf32> {return %x : tensor<?xf32>}"
    )
    assert list(map(str, found.out_avals)) == ["float32[arg0_0]"]


def test_matrices_of_half_precision(tmp_path: Path) -> None:
    text = """
    func.func @f(%a: tensor<2x2xf16>, %b: tensor<2x1xf16>) -> (tensor<2x1xf16>, tensor<2x2xf16>) {
      %0 = "stablehlo.triangular_solve"(%a, %b) {left_side = true, lower = true,
        unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>}
        : (tensor<2x2xf16>, tensor<2x1xf16>) -> tensor<2x1xf16>
      %1 = stablehlo.cholesky %a, lower = true : tensor<2x2xf16>
      return %0, %1 : tensor<2x1xf16>, tensor<2x2xf16>
    }
    """
    a, b = np.array([[4, 0], [0, 9]], np.float16), np.array([[8], [9]], np.float16)
    solution, factor = loaded(tmp_path, text)(a, b)
    np.testing.assert_array_equal(solution, [[2], [1]])
    np.testing.assert_array_equal(factor, [[2, 0], [0, 3]])
    assert (solution.dtype, factor.dtype) == (np.float16, np.float16)


def test_windows_by_a_function_that_is_called(tmp_path: Path) -> None:
    steps = "\n".join(f"%{n + 1} = stablehlo.multiply %{n}, %one : tensor<f32>" for n in range(9))
    text = f"""
    func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {{
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %0 = "stablehlo.reduce_window"(%x, %zero) ({{
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %1 = func.call @sum(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
        stablehlo.return %1 : tensor<f32>
      }}) {{window_dimensions = array<i64: 4>, padding = dense<[[3, 0]]> : tensor<1x2xi64>}}
        : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
      return %0 : tensor<4xf32>
    }}
    func.func private @sum(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {{
      %one = stablehlo.constant dense<1.0> : tensor<f32>
      %0 = stablehlo.add %a, %b : tensor<f32>
      {steps}
      return %9 : tensor<f32>
    }}
    """
    x = np.arange(1, 5, dtype=np.float32)
    np.testing.assert_array_equal(loaded(tmp_path, text)(x), np.cumsum(x))


def test_parts_that_must_fit_are_constraints(tmp_path: Path) -> None:
    text = """func.func @f(%x: tensor<?x3xf32>, %i: tensor<i32>) -> tensor<4x3xf32> {
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %0 = stablehlo.dynamic_slice %x, %i, %zero, sizes = [4, 3]
        : (tensor<?x3xf32>, tensor<i32>, tensor<i32>) -> tensor<4x3xf32>
      return %0 : tensor<4x3xf32>
    }"""
    found = loaded(tmp_path, text, arg0=("b", 3))
    assert found.open is not None
    assert found.open.constraints == ("4 <= b",)
    x = np.arange(15, dtype=np.float32).reshape(5, 3)
    at = axir.numpy.asarray(1, "int32")
    np.testing.assert_array_equal(found.of_sizes(b=5).function.evaluate(x, at)[0], x[1:])
    with pytest.raises(ShapeError, match="the constraint '4 <= b' does not hold with b = 3"):
        found(x[:3], at)


def test_parts_that_must_fit_in_branches_are_constraints(tmp_path: Path) -> None:
    text = """func.func @f(%x: tensor<?xf32>, %p: tensor<i1>) -> tensor<4xf32> {
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %none = stablehlo.constant dense<0.0> : tensor<4xf32>
      %0 = "stablehlo.if"(%p) ({
        %1 = stablehlo.dynamic_slice %x, %zero, sizes = [4]
          : (tensor<?xf32>, tensor<i32>) -> tensor<4xf32>
        stablehlo.return %1 : tensor<4xf32>
      }, {
        stablehlo.return %none : tensor<4xf32>
      }) : (tensor<i1>) -> tensor<4xf32>
      return %0 : tensor<4xf32>
    }"""
    found = loaded(tmp_path, text, arg0=("b",))
    assert found.open is not None
    assert found.open.constraints == ("4 <= b",)
