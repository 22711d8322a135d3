"""Modules of StableHLO with open shapes: shapes of JAX and torch-mlir become symbolic."""

from __future__ import annotations

from pathlib import Path

import jax
import numpy as np
import pytest
from jax import export
from support.open_functions import CASES, arguments, sizes_of

import axir
import axir.lax
import axir.nn
import axir.numpy
from axir._trees import tree
from axir.dialect.core.errors import ShapeError
from axir.export import load, symbolic_shape
from axir.passes.framework.errors import RaisingError

OF_JAX = (
    "batch_norm", "bounded", "concatenated", "contractions", "cumulative", "extent_as_number",
    "gathers", "gradient_of_loss", "heads", "loop_over_rows", "masked_attention", "one_hots",
    "recurrent_network", "relative_slices", "reshape_flat", "sorting", "while_loop",
)  # fmt: skip


@pytest.mark.parametrize("name", OF_JAX)
def test_what_jax_exports_with_symbols(name: str, tmp_path: Path) -> None:
    found = CASES[name]
    scope = export.SymbolicScope(found.constraints)
    specs = [
        jax.ShapeDtypeStruct(export.symbolic_shape(text, scope=scope), found.dtype(number))
        for number, text in enumerate(found.shapes)
    ]
    exported = export.export(jax.jit(lambda *args: found.function(jax, *args)))(*specs)
    (tmp_path / "module.mlir").write_text(exported.mlir_module())
    loaded = load(tmp_path / "module.mlir")
    assert loaded.open is not None
    names = sorted({letter for text in found.shapes for letter in text if letter.isalpha()})
    for pair in ((2, 3), (7, 4), (64, 5)):
        values = arguments(found, sizes_of(found, names, pair))
        ran = loaded.function_of(loaded.key_of(values)).evaluate(*values)
        wanted = tree.leaves(found.function(axir, *map(axir.numpy.asarray, values)))
        for x, y in zip(ran, wanted, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-4)


def loaded_from(tmp_path: Path, text: str, **shapes: tuple[int | str, ...]):
    (tmp_path / "module.mlir").write_text(text)
    return load(tmp_path / "module.mlir", shapes=shapes)


def test_names_and_constraints_are_those_of_jax(tmp_path: Path) -> None:
    specs = jax.ShapeDtypeStruct(export.symbolic_shape("b, 4*h", constraints=["b >= 3"]), "float32")
    function = jax.jit(lambda x: x.reshape(x.shape[0], 4, -1)[2:])
    loaded = loaded_from(tmp_path, export.export(function)(specs).mlir_module())
    assert "b" in loaded.symbols
    assert str(loaded.in_avals[0].shape[0]) == "b"
    assert loaded(np.ones((3, 8), np.float32)).shape == (1, 4, 2)
    with pytest.raises(ShapeError, match="the constraint 'b - 3 >= 0' does not hold"):
        loaded(np.ones((2, 8), np.float32))
    with pytest.raises(ShapeError, match=r"the constraint 'mod\(arg0_1, 4\) == 0' does not hold"):
        loaded(np.ones((3, 7), np.float32))


OF_TORCH = """
func.func @f(%x: tensor<?x2xf32>, %y: tensor<?x2xf32>, %z: tensor<?xf32>) -> tensor<?x2xf32> {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant dense<2> : tensor<1xi64>
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %0 = stablehlo.add %x, %y : tensor<?x2xf32>
  %n = tensor.dim %0, %c0 : tensor<?x2xf32>
  %i = arith.index_cast %n : index to i64
  %t = tensor.from_elements %i : tensor<1xi64>
  %s = stablehlo.concatenate %t, %c2, dim = 0 : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
  %1 = stablehlo.dynamic_broadcast_in_dim %one, %s, dims = []
    : (tensor<f32>, tensor<2xi64>) -> tensor<?x2xf32>
  %shape = shape.shape_of %0 : tensor<?x2xf32> -> tensor<2xindex>
  %2 = stablehlo.dynamic_broadcast_in_dim %1, %shape, dims = [0, 1]
    : (tensor<?x2xf32>, tensor<2xindex>) -> tensor<?x2xf32>
  %3 = stablehlo.multiply %0, %2 : tensor<?x2xf32>
  return %3 : tensor<?x2xf32>
}
"""


def test_what_must_be_equal_is_one_dimension(tmp_path: Path) -> None:
    found = loaded_from(tmp_path, OF_TORCH)
    assert found.in_avals[0] is found.in_avals[1]
    assert len(found.symbols) == 2
    x, z = np.ones((3, 2), np.float32), np.ones(5, np.float32)
    np.testing.assert_array_equal(found(x, x, z), x + x)
    filled = loaded_from(tmp_path, OF_TORCH, arg0=("n", 2), arg2=(5,))
    assert str(filled.in_avals[1]) == "float32[n,2]"
    assert filled.symbols == ("n",)


def test_extents_that_no_symbol_can_express_are_refused(tmp_path: Path) -> None:
    text = """
    func.func @f(%x: tensor<?xf32>, %n: tensor<1xi32>) -> tensor<?xf32> {
      %0 = stablehlo.dynamic_iota %n, dim = 0 : (tensor<1xi32>) -> tensor<?xf32>
      return %0 : tensor<?xf32>
    }
    """
    with pytest.raises(RaisingError, match="Operand 0 of stablehlo.dynamic_iota is computed when"):
        loaded_from(tmp_path, text)


OF_TWO = """
func.func @f(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  %0 = stablehlo.negate %x : tensor<?xf32>
  %1 = stablehlo.add %0, %y : tensor<?xf32>
  return %1 : tensor<?xf32>
}
"""


@pytest.mark.parametrize(
    ("first", "second", "name"),
    [
        ("b | b >= 8, mod(b, 4) == 0", "b", "b"),
        ("b | b >= 8, mod(b, 4) == 0", "c", "c"),
        ("b", "c | c >= 8, mod(c, 4) == 0", "c"),
        ("b | b >= 8", "c | mod(c, 4) == 0", "c"),
    ],
)
def test_constraints_that_a_user_gives(first: str, second: str, name: str, tmp_path: Path) -> None:
    loaded = loaded_from(tmp_path, OF_TWO, arg0=(first,), arg1=(second,))
    assert loaded.symbols == (name,)
    x = np.ones(12, np.float32)
    np.testing.assert_array_equal(loaded(x, x), 0 * x)
    for size, broken in ((4, f"{name} >= 8"), (9, rf"mod\({name}, 4\) == 0")):
        x = np.ones(size, np.float32)
        with pytest.raises(ShapeError, match=f"the constraint '{broken}' does not hold"):
            loaded(x, x)


def test_constraints_of_symbolic_shapes(tmp_path: Path) -> None:
    (tmp_path / "module.mlir").write_text(OF_TWO)
    shape = symbolic_shape("b", constraints=["b >= 8"])
    loaded = load(tmp_path / "module.mlir", shapes={"arg0": shape, "arg1": shape})
    with pytest.raises(ShapeError, match="the constraint 'b >= 8' does not hold"):
        loaded(np.ones(4, np.float32), np.ones(4, np.float32))


def test_constraints_that_the_module_decides(tmp_path: Path) -> None:
    loaded = loaded_from(tmp_path, OF_TWO, arg0=("b | b >= 8",), arg1=(9,))
    assert loaded.in_avals[0].shape == (9,)
    with pytest.raises(ShapeError) as refused:
        loaded_from(tmp_path, OF_TWO, arg0=("b | b >= 8",), arg1=(4,))
    assert "The constraint 'b >= 8' does not hold: the module makes 'b' 4." in str(refused.value)
    assert "Give its arguments shapes, and constraints, that fit each other." in str(refused.value)


def test_no_constraint_names_what_is_gone(tmp_path: Path) -> None:
    text = """
    func.func @f(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
      %three = stablehlo.constant dense<3> : tensor<i32>
      %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
      %c = stablehlo.compare GE, %n, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.custom_call @shape_assertion(%c) {api_version = 2 : i32, has_side_effect = true}
        : (tensor<i1>) -> ()
      %big = stablehlo.constant dense<[-3]> : tensor<1xi32>
      %r = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
      %m = stablehlo.add %r, %big : tensor<1xi32>
      %i = stablehlo.dynamic_iota %m, dim = 0 : (tensor<1xi32>) -> tensor<?xf32>
      %1 = stablehlo.add %x, %y : tensor<?xf32>
      return %1 : tensor<?xf32>
    }
    """
    loaded = loaded_from(tmp_path, text)
    assert loaded.symbols == ("arg0_0",)
    assert loaded.in_avals[1].shape[0].constraints == ("arg0_0 >= 3",)
    named = loaded_from(tmp_path, text, arg1=("t",))
    assert named.in_avals[0].shape[0].constraints == ("t >= 3",)
