"""Programs of several devices: of replicas and partitions that communicate, beside NumPy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import axir
import axir.numpy as jnp
from axir.cli import cli
from axir.export import Exported, load
from axir.passes.framework.errors import RaisingError

X = np.arange(1, 49, dtype=np.float32).reshape(4, 2, 6)
ADD = """({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    })"""
REPLICAS = "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>"
PARTITIONS = f"{REPLICAS}, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>"
GLOBAL = PARTITIONS.replace("[[0, 1]]> : tensor<1x2", "[[0, 3], [1, 2]]> : tensor<2x2")
GLOBAL += ", use_global_device_ids"


def module(operation: str, result: str = "tensor<2x6xf32>", replicas: int = 2) -> str:
    return f"""
module @m attributes {{mhlo.num_replicas = {replicas} : i32, mhlo.num_partitions = 2 : i32}} {{
  func.func @main(%x: tensor<2x6xf32>) -> {result} {{
    %r = {operation}
    return %r : {result}
  }}
}}"""


def exchange(name: str, attributes: str, shape: tuple[int, int] = (2, 6), region: str = "") -> str:
    result = f"tensor<{shape[0]}x{shape[1]}xf32>"
    text = f'"stablehlo.{name}"(%x) {region} {{{attributes}}} : (tensor<2x6xf32>) -> {result}'
    return module(text, result)


def summed(groups: list[list[int]]) -> np.ndarray:
    made = np.empty_like(X)
    for group in groups:
        made[group] = X[group].sum(0)
    return made


def halves(x: np.ndarray, axis: int) -> list[np.ndarray]:
    return np.split(x, 2, axis)


SWAP = "source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>"
CASES = {
    "sums over replicas": (exchange("all_reduce", REPLICAS, region=ADD), summed([[0, 2], [1, 3]])),
    "sums over both": (exchange("all_reduce", PARTITIONS, region=ADD), summed([[0, 1, 2, 3]])),
    "sums by number": (exchange("all_reduce", GLOBAL, region=ADD), summed([[0, 3], [1, 2]])),
    "all of a group": (
        exchange("all_gather", f"{GLOBAL}, all_gather_dim = 1 : i64", (2, 12)),
        np.stack([np.concatenate([X[a], X[b]], 1) for a, b in ((0, 3), (1, 2), (1, 2), (0, 3))]),
    ),
    "parts of sums": (
        exchange("reduce_scatter", f"{REPLICAS}, scatter_dimension = 1 : i64", (2, 3), ADD),
        np.stack([halves(X[0::2].sum(0), 1)[0], halves(X[1::2].sum(0), 1)[0],
                  halves(X[0::2].sum(0), 1)[1], halves(X[1::2].sum(0), 1)[1]]),
    ),
    "parts for all": (
        exchange("all_to_all", f"{PARTITIONS}, split_dimension = 1 : i64, "
                 "concat_dimension = 0 : i64, split_count = 2 : i64", (4, 3)),
        np.stack([np.concatenate([halves(X[d], 1)[n] for d in pair])
                  for pair in ((0, 1), (2, 3)) for n in (0, 1)]),
    ),
    "from the first": (
        exchange("collective_broadcast", PARTITIONS.replace("[[0, 1]]", "[[1, 0]]")),
        X[[1, 1, 3, 3]],
    ),
    "to the first": (
        exchange("collective_reduce", REPLICAS, region=ADD),
        np.stack([X[0] + X[2], X[1] + X[3], 0 * X[0], 0 * X[0]]),
    ),
    "along replicas": (exchange("collective_permute", SWAP), np.stack([0 * X[0]] * 2 + [*X[:2]])),
    "where it is": (module("stablehlo.replica_id : tensor<ui32>", "tensor<ui32>"), [0, 0, 1, 1]),
    "which part": (module("stablehlo.partition_id : tensor<ui32>", "tensor<ui32>"), [0, 1, 0, 1]),
}  # fmt: skip


def loaded(tmp_path: Path, text: str) -> Exported:
    (tmp_path / "module.mlir").write_text(text)
    return load(tmp_path / "module.mlir")


@pytest.mark.parametrize("name", CASES)
def test_devices_are_computed_together(name: str, tmp_path: Path) -> None:
    text, wanted = CASES[name]
    found = loaded(tmp_path, text)
    assert found.in_avals[0].shape == (4, 2, 6)
    (result,) = found.function.evaluate(jnp.asarray(X))
    np.testing.assert_allclose(result, wanted, rtol=1e-6)


def test_it_is_differentiated_and_compiled(tmp_path: Path) -> None:
    found = loaded(tmp_path, CASES["sums by number"][0])
    np.testing.assert_allclose(found(X), CASES["sums by number"][1], rtol=1e-6)
    weights = jnp.arange(4.0)[:, None, None]
    slope = axir.grad(lambda x: (found(x) * weights).sum())(jnp.asarray(X))
    np.testing.assert_array_equal(slope[:, 0, 0], [3, 3, 3, 3])


def test_the_command_line_runs_it(tmp_path: Path) -> None:
    path = tmp_path / "module.mlir"
    path.write_text(CASES["which part"][0])
    result = CliRunner().invoke(cli, ["run", str(path), "zeros:"])
    assert result.exit_code == 0, result.output
    assert "[0, 1, 0, 1]" in result.output


def test_what_does_not_communicate_is_of_one_device(tmp_path: Path) -> None:
    found = loaded(tmp_path, module("stablehlo.negate %x : tensor<2x6xf32>"))
    assert found.in_avals[0].shape == (2, 6)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (CASES["sums by number"][0].replace("num_replicas = 2", "num_replicas = 1"),
         "name the device 3, which is none: there are 1 replicas of 2 partitions"),
        (exchange("all_reduce", f"{PARTITIONS}, use_global_device_ids", region=ADD),
         "leave out the device 2"),
        (CASES["sums by number"][0].replace("mhlo.num_", "other."),
         "The module does not say that there are several: mhlo.num_replicas or"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(RaisingError) as caught:
        loaded(tmp_path, text)
    assert message in str(caught.value)


PARALLEL = """
module {
  func.func @part(%x: tensor<2xf32>, %root: tensor<1xi32>) -> tensor<2xf32> {
    %r = "stablehlo.collective_broadcast"(%x, %root) {
      replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, has_dynamic_root
    } : (tensor<2xf32>, tensor<1xi32>) -> tensor<2xf32>
    return %r : tensor<2xf32>
  }
  func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>, %n: tensor<1xi32>) -> tensor<2xf32> {
    %r:2 = "interpreter.run_parallel"(%x, %n, %y, %n) {programs = [[@part], [@part]]}
      : (tensor<2xf32>, tensor<1xi32>, tensor<2xf32>, tensor<1xi32>)
      -> (tensor<2xf32>, tensor<2xf32>)
    return %r#0 : tensor<2xf32>
  }
}"""


def test_functions_that_devices_run(tmp_path: Path) -> None:
    found = loaded(tmp_path, PARALLEL)
    x, y = jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0])
    for root, wanted in ((0, x), (1, y)):
        (result,) = found.function.evaluate(x, y, jnp.array([root], "int32"))
        np.testing.assert_array_equal(result, wanted)
    other = "func.func private @other(tensor<2xf32>, tensor<1xi32>) -> tensor<2xf32>\n}"
    text = PARALLEL.replace("[[@part], [@part]]", "[[@part], [@other]]")
    with pytest.raises(RaisingError, match="runs different functions at once: other, part"):
        loaded(tmp_path, text.rstrip().removesuffix("}") + other)


LOOP = """
module attributes {mhlo.num_replicas = 2 : i32} {
  func.func @main(%x: tensor<f32>) -> tensor<f32> {
    %id = stablehlo.replica_id : tensor<ui32>
    %zero = stablehlo.constant dense<0> : tensor<ui32>
    %one = stablehlo.constant dense<1> : tensor<ui32>
    %limit = stablehlo.add %id, %one : tensor<ui32>
    %w:2 = stablehlo.while(%i = %zero, %c = %x) : tensor<ui32>, tensor<f32>
      cond {
        %p = stablehlo.compare LT, %i, %limit : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
        stablehlo.return %p : tensor<i1>
      } do {
        %next = stablehlo.add %i, %one : tensor<ui32>
        %twice = stablehlo.add %c, %c : tensor<f32>
        stablehlo.return %next, %twice : tensor<ui32>, tensor<f32>
      }
    return %w#1 : tensor<f32>
  }
}
"""
CALLED = """
module attributes {mhlo.num_replicas = 2 : i32} {
  func.func @main(%x: tensor<f32>) -> tensor<f32> {
    %r = call @h(%x) : (tensor<f32>) -> tensor<f32>
    return %r : tensor<f32>
  }
  func.func @h(%x: tensor<f32>) -> tensor<f32> {
    %v0 = "stablehlo.collective_permute"(%x)
      {source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<f32>) -> tensor<f32>
    SUMS
    return %v9 : tensor<f32>
  }
}
"""
SUMS = "\n".join(f"%v{n} = stablehlo.add %v{n - 1}, %x : tensor<f32>" for n in range(1, 10))
OPEN = """
module attributes {mhlo.num_replicas = 2 : i32} {
  func.func @main(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
    %r = "stablehlo.collective_permute"(%x)
      {source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}
      : (tensor<?x3xf32>) -> tensor<?x3xf32>
    return %r : tensor<?x3xf32>
  }
}
"""
NUMBERS = np.array([3.0, 5.0], np.float32)
ROWS = np.arange(12, dtype=np.float32).reshape(2, 2, 3)


@pytest.mark.parametrize(
    ("text", "x", "wanted"),
    [
        (LOOP, NUMBERS, np.array([6.0, 20.0])),  # as often as the number of the device says
        (CALLED.replace("SUMS", SUMS), NUMBERS, np.array([27.0, 48.0])),
        (OPEN, ROWS, np.stack([np.zeros((2, 3)), ROWS[0]])),
    ],
)
def test_numbers_of_devices_calls_and_open_shapes(
    text: str, x: np.ndarray, wanted: np.ndarray, tmp_path: Path
) -> None:
    np.testing.assert_array_equal(loaded(tmp_path, text)(x), wanted)
