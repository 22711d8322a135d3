"""Models of PyTorch and ONNX: what becomes of torch-mlir's text, and what is missing."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import axir
from axir._foreign.importing import ModelImportError, imported, told, with_trees
from axir.cli import cli
from axir.dialect.core.errors import ParameterError
from axir.export import from_onnx, from_torch, load

HAS_TORCH = importlib.util.find_spec("torch") is not None
HAS_ONNX = importlib.util.find_spec("onnx") is not None
HAS_TORCH_MLIR = importlib.util.find_spec("torch_mlir") is not None
needs_torch = pytest.mark.skipif(not (HAS_TORCH and HAS_TORCH_MLIR), reason="needs axir[torch]")
needs_onnx = pytest.mark.skipif(not (HAS_ONNX and HAS_TORCH_MLIR), reason="needs axir[onnx]")

# As torch-mlir writes it: resources without content, and open extents.
TEXT = """
func.func @main(%a: tensor<?x2xf32>, %b: tensor<2xf32>) -> (tensor<?x2xf32>, tensor<2xf32>) {
  %w = stablehlo.constant dense_resource<layer.w> : tensor<2xf32>
  %shape = shape.shape_of %a : tensor<?x2xf32> -> tensor<2xindex>
  %0 = stablehlo.dynamic_broadcast_in_dim %w, %shape, dims = [1]
    : (tensor<2xf32>, tensor<2xindex>) -> tensor<?x2xf32>
  %1 = stablehlo.multiply %a, %0 : tensor<?x2xf32>
  return %1, %b : tensor<?x2xf32>, tensor<2xf32>
}
"""
W = np.array([2.0, 3.0], np.float32)


def read(**shapes: tuple[int, ...]) -> Any:
    return imported(TEXT, "a model", {"layer.w": W}, "forward", ["x", "scale"], shapes)


def test_names_survive() -> None:
    found = read(x=(4, 2))
    assert (found.fun_name, found.argument_names) == ("forward", ["x", "scale"])
    assert list(found.parameters) == ["layer.w"]
    rows = read()
    assert str(rows.in_avals[0]) == "float32[x_0,2]"
    np.testing.assert_array_equal(rows(np.ones((3, 2), np.float32), W)[0], [W] * 3)
    assert str(read(x=("n", 2)).in_avals[0]) == "float32[n,2]"
    with pytest.raises(ParameterError, match="There is no argument 'z'"):
        read(z=(1,))


def test_trees_of_other_orders() -> None:
    flat = read(x=(1, 2))
    # PyTorch's dictionaries keep their order, axir's are sorted.
    found = with_trees(flat, ((0,), {"scale": 1}), {"scaled": 0, "given": 1})
    x, scale = np.ones((1, 2), np.float32), np.array([5.0, 6.0], np.float32)
    results = found(x, scale=scale)
    np.testing.assert_array_equal(results["scaled"], [W])
    np.testing.assert_array_equal(results["given"], scale)
    assert found.result_names == ["result['given']", "result['scaled']"]
    # What is none of axir's trees stays flat.
    assert with_trees(flat, object(), object())(x, scale)[0].shape == (1, 2)


def test_constants_get_the_names_of_weights() -> None:
    text = """
func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %a = stablehlo.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %b = stablehlo.constant dense<0.0> : tensor<3xf32>
  %c = stablehlo.constant dense<0.0> : tensor<3xf32>
  %0 = stablehlo.multiply %x, %a : tensor<3xf32>
  %1 = stablehlo.add %0, %b : tensor<3xf32>
  %2 = stablehlo.add %1, %c : tensor<3xf32>
  return %2 : tensor<3xf32>
}
"""
    zeros = np.zeros(3, np.float32)
    weights = {"W": np.array([1, 2, 3], np.float32), "B1": zeros, "B2": zeros.copy()}
    found = imported(text, "a model", weights, "main", ["x"], {}, forgets_names=True)
    assert list(found.parameters) == ["W", "B1", "B2"]


def test_failures_of_other_packages_are_told() -> None:
    def fail() -> None:
        raise ValueError("first line\nerror: failed to legalize operation 'torch.operator'")

    with pytest.raises(ModelImportError, match=r"cannot read it: ValueError: error: failed to leg"):
        told("torch-mlir cannot read it", "Export it without.", fail)


@pytest.mark.skipif(HAS_TORCH, reason="PyTorch is installed")
def test_packages_that_are_missing_are_named(tmp_path: Path) -> None:
    for suffix, extra in ((".pt2", "torch"), (".onnx", "onnx")):
        (tmp_path / f"m{suffix}").write_bytes(b"?")
        result = CliRunner().invoke(cli, ["import", str(tmp_path / f"m{suffix}")])
        assert result.exit_code == 1
        assert "which cannot be imported" in result.stderr
        assert f"pip install 'axir[{extra}]'" in result.stderr
    with pytest.raises(ModelImportError, match="Models of PyTorch are read by torch-mlir"):
        from_torch(None)


def test_stablehlo_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exported = axir.export.export(lambda x: x * 2)(1.0)
    Path("m.mlir").write_text(exported.stablehlo())
    result = CliRunner().invoke(cli, ["import", "m.mlir", "--name", "double"])
    assert result.exit_code == 0, result.output
    assert load("m.axir").double(np.float32(4)) == 8
    refused = CliRunner().invoke(cli, ["import", "m.mlir", "-o", "m.vmfb"])
    assert "what is imported is a bundle" in refused.stderr


@needs_torch
def test_a_module_of_pytorch(tmp_path: Path) -> None:
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.norm = nn.Linear(8, 16), nn.BatchNorm1d(16)
            self.register_buffer("mask", torch.arange(16) % 2 == 0)

        def forward(self, x: Any, *, scale: Any) -> Any:
            y = self.norm(torch.relu(self.layer(x))) * scale
            return {"out": torch.where(self.mask, y, 0.0), "hidden": (y,)}

    net, x, scale = Net().eval(), torch.randn(3, 8), torch.tensor(2.0)
    program = torch.export.export(net, (x,), {"scale": scale})
    found = from_torch(program)
    results = found(x.numpy(), scale=np.float32(2))
    expected = net(x, scale=scale)
    np.testing.assert_allclose(results["out"], expected["out"].detach(), 1e-5, 1e-6)
    np.testing.assert_allclose(results["hidden"][0], expected["hidden"][0].detach(), 1e-5, 1e-6)
    assert {"layer.weight", "norm.running_mean"} <= set(found.parameters)
    torch.export.save(program, tmp_path / "net.pt2")
    arguments = ["import", str(tmp_path / "net.pt2"), "-o", str(tmp_path / "net.axir")]
    assert CliRunner().invoke(cli, arguments).exit_code == 0
    assert load(tmp_path / "net.axir").argument_names == ["x", "scale"]


@needs_onnx
def test_a_model_of_onnx(tmp_path: Path) -> None:
    import onnx
    from onnx import TensorProto, helper

    w = np.random.default_rng(0).standard_normal((8, 4)).astype(np.float32)
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "W"], ["m"]),
            helper.make_node("Softmax", ["m"], ["p"], axis=-1),
        ],
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", 8])],
        [
            helper.make_tensor_value_info("p", TensorProto.FLOAT, ["rows", 4]),
            helper.make_tensor_value_info("m", TensorProto.FLOAT, ["rows", 4]),
        ],
        [helper.make_tensor("W", TensorProto.FLOAT, w.shape, w.tobytes(), raw=True)],
    )
    path = tmp_path / "net.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    found = from_onnx(path, shapes={"x": (3, 8)})
    assert (found.argument_names, found.result_names) == (["x"], ["p", "m"])
    assert list(found.parameters) == ["W"]
    x = np.random.default_rng(1).standard_normal((3, 8)).astype(np.float32)
    np.testing.assert_allclose(found(x)[1], x @ w, 1e-5, 1e-5)
    np.testing.assert_allclose(np.sum(found(x)[0], 1), np.ones(3), 1e-5)
    path.write_bytes(b"no model")
    with pytest.raises(ModelImportError, match="cannot be read: DecodeError"):
        from_onnx(path)
