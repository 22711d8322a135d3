"""Computations of parts of arrays, as JAX's `shard_map` writes them, beside NumPy."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import axir
import axir.numpy as jnp
from axir.cli import cli
from axir.dialect.core.errors import ParseError
from axir.dialect.text.bytecode_shardings import without_foreign_attributes
from axir.export import Exported, load
from axir.passes.framework.errors import RaisingError

CORPUS = Path(__file__).parent / "corpus"


def loaded(folder: Path, text: str) -> Exported:
    (folder / "m.mlir").write_text(text)
    return load(folder / "m.mlir")


@pytest.mark.parametrize("name", ["parts.mlir", "parts.mlirbc", "parts_gspmd.mlir"])
def test_parts_in_each_form_of_jax(name: str) -> None:
    # On a mesh of x=2, y=2: one map over x, with another one over y in it, and a map over ("y",
    # "x") that calls functions, of a sort, of relu and of erf.
    found = load(CORPUS / name)
    a = np.arange(32, dtype=np.float32).reshape(8, 4)
    v = np.array([3, -1, -2, 4, 0.5, 0.25, -8, 7], np.float32)
    halves = a[:, :2] + a[:, 2:]
    sums = a[:4] + a[4:]
    wanted = [
        np.concatenate([0 * halves, halves], 1) + np.concatenate([sums, sums]),
        np.maximum(np.sort(v.reshape(4, 2), 1), 0).reshape(8)
        + [math.erf(x) for x in v]
        + np.repeat(range(4), 2),
    ]
    results = found(a, v)
    for result, each in zip(results, wanted, strict=True):
        np.testing.assert_allclose(result, each, rtol=1e-5)
    gradient = axir.grad(lambda a, v: sum((x**2).sum() for x in found(a, v)))(a, v)
    columns = wanted[0].reshape(2, 4, 4).sum(0)
    right = wanted[0][:, 2:]
    expected = 2 * (np.concatenate([right, right], 1) + np.concatenate([columns, columns]))
    np.testing.assert_allclose(gradient, expected, rtol=1e-5)


def test_bytecode_with_shardings_may_be_damaged() -> None:
    data = (CORPUS / "parts.mlirbc").read_bytes()
    for length in range(4, len(data), 61):
        assert isinstance(without_foreign_attributes(data[:length]), bytes)
    whole = without_foreign_attributes(data)
    assert whole != data
    assert without_foreign_attributes(whole) == whole


GSPMD = """
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
    %0 = stablehlo.custom_call @Sharding(%x) {mhlo.sharding = "CUT"}
      : (tensor<8xf32>) -> tensor<8xf32>
    %1 = stablehlo.custom_call @SPMDFullToShardShape(%0) {mhlo.sharding = "{manual}"}
      : (tensor<8xf32>) -> tensor<2xf32>
    %one = stablehlo.constant dense<1.0> : tensor<2xf32>
    %2 = call @part(%1) : (tensor<2xf32>) -> tensor<2xf32>
    %3 = stablehlo.custom_call @SPMDShardToFullShape(%2) {mhlo.sharding = "{devices=[4]<=[4]}"}
      : (tensor<2xf32>) -> tensor<8xf32>
    return %3 : tensor<8xf32>
  }
  func.func private @part(%x: tensor<2xf32>) -> tensor<2xf32> {
    %0 = stablehlo.reverse %x, dims = [0] : tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}"""


def test_orders_of_devices_of_gspmd(tmp_path: Path) -> None:
    x = jnp.arange(8.0)
    for cut, wanted in (
        ("{devices=[4]<=[4]}", [1, 0, 3, 2, 5, 4, 7, 6]),
        ("{devices=[4]0,1,2,3}", [1, 0, 3, 2, 5, 4, 7, 6]),
        ("{devices=[4]<=[2,2]T(1,0)}", [1, 0, 5, 4, 3, 2, 7, 6]),
        ("{devices=[4]0,2,1,3}", [1, 0, 5, 4, 3, 2, 7, 6]),
    ):
        found = loaded(tmp_path, GSPMD.replace("CUT", cut))
        np.testing.assert_array_equal(found.function.evaluate(x)[0], wanted)
    for old, new, message in (
        ("CUT", "{devices=[4]0,3,1,2}", "are no grid"),
        ("call @part(%1) :", "stablehlo.custom_call @Sharding(%one) :", "stands beside other"),
        ("@SPMDFullToShardShape", "@Other", "calls 'Other'"),
        ("call @part(%1) :", "stablehlo.negate %1 :", "stands beside other operations"),
    ):
        with pytest.raises(RaisingError, match=message):
            loaded(tmp_path, GSPMD.replace(old, new))


def test_a_shard_map_of_jax() -> None:
    # psum of products, its all_gather, ppermute, psum_scatter, all_to_all and pmax on a mesh of
    # x=2, y=2.
    found = load(Path(__file__).parent / "corpus" / "shard_map.mlir")
    a, b = np.arange(32, dtype=np.float32).reshape(4, 8), np.arange(24.0).reshape(8, 3)
    product = a @ b.astype(np.float32)
    blocks = a.reshape(2, 2, 2, 4).transpose(0, 2, 1, 3)  # x, y, and what a device has
    wanted = [
        product,
        np.array([[0, 0], [1, 1]]) * product.sum(),
        product[[2, 3, 0, 1]],
        blocks.sum(1).reshape(2, 8),
        blocks.transpose(0, 2, 1, 3).reshape(2, 16),
        blocks.max((0, 1)),
    ]
    results = found.function.evaluate(jnp.asarray(a), jnp.asarray(b, "float32"))
    for result, each in zip(results, wanted, strict=True):
        np.testing.assert_allclose(result, each, rtol=1e-5)


MANUAL = """
sdy.mesh @mesh = <["x"=2, "y"=1]>
func.func @main(%x: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<4xf32> {
  %0 = sdy.sharding_constraint %x <@mesh, [{"x"}]> : tensor<4xf32>
  %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%a: tensor<2xf32>) {
    %2 = stablehlo.reverse %a, dims = [0] : tensor<2xf32>
    sdy.return %2 : tensor<2xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}"""  # noqa: E501


def test_what_shardy_says_is_read(tmp_path: Path) -> None:
    for text in (MANUAL, MANUAL.replace('"y"=1', '"y"=2')):  # y computes the same
        (tmp_path / "m.mlir").write_text(text)
        result = CliRunner().invoke(cli, ["run", str(tmp_path / "m.mlir"), "0,1,2,3"])
        assert result.exit_code == 0, result.output
        assert "[1., 0., 3., 2.]" in result.output
    for old, new, message in (
        ("sdy.mesh @mesh", "sdy.mesh @other", "The module has no mesh @mesh"),
        ('"y"=1]', '"y"=1], device_ids=[1, 0]', "The module has no mesh @mesh"),
        ('[{"x"}]>] manual', '[{"x"}]>] in_manual', "not valid MLIR"),
        ('[{"x"}]>] out', '[{"x":(1)2}]>] out', "cut arrays along parts of an axis"),
        ('[{"x"}]>] out', '[{"x"}]>, <@n, []>] out', "names several meshes"),
    ):
        with pytest.raises((RaisingError, ParseError)) as caught:
            loaded(tmp_path, MANUAL.replace(old, new))
        assert message in str(caught.value)
