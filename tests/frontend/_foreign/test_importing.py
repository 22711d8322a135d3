"""Models of PyTorch and ONNX: the import of torch-mlir's text, and missing packages."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import axir
from axir._foreign.importing import ModelImportError, Names, imported, told
from axir.cli import cli
from axir.dialect.core.errors import ShapeError, TreeError
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


NAMES = Names("forward", ["x", "scale"])


def read(trees: Any = None, **shapes: tuple[int, ...]) -> Any:
    return imported(TEXT, "a model", {"layer.w": W}, NAMES, shapes, trees=trees)


def test_names_survive() -> None:
    found = read(x=(4, 2))
    assert (found.fun_name, found.argument_names) == ("forward", ["x", "scale"])
    assert list(found.parameters) == ["layer.w"]
    rows = read()
    assert str(rows.in_avals[0]) == "float32[x_0,2]"
    np.testing.assert_array_equal(rows(np.ones((3, 2), np.float32), W)[0], [W] * 3)
    assert str(read(x=("n", 2)).in_avals[0]) == "float32[n,2]"
    with pytest.raises(ShapeError, match=r"There is no argument 'z', .*\n.*\n.* are x, scale"):
        read(z=(1,))
    named = imported(TEXT, "a model", {"layer.w": W}, NAMES._replace(results=["y", "same"]),
                     {"x": (1, 2)})  # fmt: skip
    assert named.result_names == ["y", "same"]


def test_trees_of_other_orders() -> None:
    # PyTorch's dictionaries keep their order, axir's are sorted.
    trees = ((0,), {"scale": 1}), {"scaled": 0, "given": 1}
    found = read(trees, x=(1, 2))
    x, scale = np.ones((1, 2), np.float32), np.array([5.0, 6.0], np.float32)
    results = found(x, scale=scale)
    np.testing.assert_array_equal(results["scaled"], [W])
    np.testing.assert_array_equal(results["given"], scale)
    assert found.result_names == ["result['given']", "result['scaled']"]
    # A structure that is no tree of axir's stays flat.
    assert read((object(), object()), x=(1, 2))(x, scale)[0].shape == (1, 2)


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
    found = imported(text, "a model", weights, Names("main", ["x"]), {}, unnamed=())
    assert list(found.parameters) == ["W", "B1", "B2"]


def test_failures_of_other_packages_are_told() -> None:
    def fail() -> None:
        raise ValueError("first line\nerror: failed to legalize operation 'torch.operator'")

    with pytest.raises(ModelImportError, match=r"cannot read it: ValueError: error: failed to leg"):
        told("torch-mlir cannot read it", "Export it without.", fail)
    said = ["loc(m.py:3): error: failed to legalize 'torch.aten.item'"]
    with pytest.raises(ModelImportError, match=r"ValueError: loc\(m.py:3\): error: .*aten.item"):
        told("torch-mlir cannot read it", "Export it without.", fail, said)


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
    text = exported.stablehlo()
    Path("m.mlir").write_text(text)
    Path("m.v1.mlir").write_text(text)
    assert CliRunner().invoke(cli, ["import", "m.v1.mlir"]).exit_code == 0
    assert load("m.v1.axir")(np.float32(4)) == 8
    unnamed = CliRunner().invoke(cli, ["import", "-"], input=text)
    assert unnamed.exit_code == 2
    assert "A module from stdin needs -o FILE" in unnamed.stderr
    assert CliRunner().invoke(cli, ["import", "-", "-o", "n.axir"], input=text).exit_code == 0
    assert load("n.axir")(np.float32(4)) == 8
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


def program_of(forward: Any, *arguments: Any, state: Any = None, **options: Any) -> Any:
    """Returns the program of a function of a module, which has a buffer perhaps."""
    import torch

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("state", state)

    Net.forward = forward
    return torch.export.export(Net(), arguments, **options)


@needs_torch
def test_weights_are_those_of_the_time() -> None:
    import torch

    state = torch.arange(6.0).reshape(2, 3)
    found = from_torch(program_of(lambda self, x: x * self.state, torch.ones(3), state=state))
    with torch.no_grad():
        state.zero_()  # as training does
    expected = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(found.parameters["state"], expected)
    np.testing.assert_array_equal(found(np.ones(3, np.float32)), expected)


@needs_torch
def test_arguments_and_results_that_are_no_tensors() -> None:
    import torch

    x = torch.ones(2)
    found = from_torch(
        program_of(lambda self, x, flag, y, z=None: (x * flag + y, None), x, 3, x, None)
    )
    assert found.argument_names == ["x", "y"]
    ones = np.ones(2, np.float32)
    result, nothing = found(ones, None, ones, None)
    np.testing.assert_array_equal(result, [4.0, 4.0])
    assert nothing is None
    with pytest.raises(TreeError):  # it was exported for 3
        found(ones, 5, ones, None)
    dynamic = {"x": None, "n": torch.export.Dim.DYNAMIC}
    with pytest.raises(
        ModelImportError, match=r"The argument 'n' is no tensor(.*\n)*.*for one val"
    ):
        from_torch(program_of(lambda self, x, n: x * n, x, 3, dynamic_shapes=dynamic))
    with pytest.raises(ModelImportError, match=r"returns 3, which is no tensor(.*\n)*.*or None in"):
        from_torch(program_of(lambda self, x: (x, 3), x))


@needs_torch
def test_what_changes_is_refused() -> None:
    import torch

    def forward(self: Any, x: Any) -> Any:
        self.state.add_(x)
        return x * 2

    message = r"The module changes 'state' when it runs(.*\n)*.*Export it after eval\(\), or have"
    with pytest.raises(ModelImportError, match=message):
        from_torch(program_of(forward, torch.ones(2), state=torch.zeros(2)))
    with pytest.raises(ModelImportError, match="The module changes 'x' when it runs"):
        from_torch(program_of(lambda self, x: x.add_(1) * 2, torch.ones(2)))


@needs_torch
def test_what_torch_mlir_says_is_told(capfd: pytest.CaptureFixture[str]) -> None:
    import torch

    program = program_of(lambda self, x: torch.linalg.svdvals(x), torch.ones(4, 2))
    with pytest.raises(ModelImportError, match=r"failed to legalize.*_linalg_svd"):
        from_torch(program)
    assert "failed to legalize" not in capfd.readouterr().err


def onnx_model(path: Path, nodes: Any, initializers: Any, shape: Any) -> Path:
    """Writes a model of one input `x` and one output `y`, of the same shape."""
    import onnx
    from onnx import TensorProto, helper

    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in "xy")
    graph = helper.make_graph(nodes, "net", [x], [y], initializers)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path


@needs_onnx
def test_initializers_keep_their_names(tmp_path: Path) -> None:
    from onnx import helper, numpy_helper

    w = np.arange(1, 5, dtype=np.float32)

    def constant(output: str, scale: int, name: str) -> Any:
        value = numpy_helper.from_array(w * scale, name)
        return helper.make_node("Constant", [], [output], value=value)

    nodes = [
        constant("c", 3, "a/b"),
        constant("d", 4, ""),
        constant("e", 5, "own"),
        helper.make_node("Mul", ["x", "a/b"], ["t"]),
        helper.make_node("Sub", ["t", "a:b"], ["u"]),
        helper.make_node("Max", ["u", "c"], ["v"]),
        helper.make_node("Min", ["v", "d"], ["w"]),
        helper.make_node("Add", ["w", "e"], ["y"]),
    ]
    given = [numpy_helper.from_array(w, "a/b"), numpy_helper.from_array(2 * w, "a:b")]
    found = from_onnx(onnx_model(tmp_path / "m.onnx", nodes, given, [4]))
    assert set(found.parameters) == {"a/b", "a:b", "own"}
    np.testing.assert_array_equal(found.parameters["a/b"], w)
    np.testing.assert_array_equal(found.parameters["a:b"], 2 * w)
    x = np.array([9, 4, 5, 100], np.float32)

    def expected(weight: np.ndarray) -> np.ndarray:
        return np.minimum(np.maximum(x * weight - 2 * w, 3 * w), 4 * w) + 5 * w

    np.testing.assert_array_equal(found(x), expected(w))
    changed = found.with_parameters({"a/b": 2 * w})
    np.testing.assert_array_equal(changed(x), expected(2 * w))


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


@needs_onnx
@pytest.mark.parametrize(
    ("target", "shape"),
    [([-1, 12], (5, 12)), ([0, -1], (5, 12)), ([-1, 4], (15, 4)), ([0, 0, 2, -1], (5, 3, 2, 2))],
)
def test_open_arrays_are_reshaped(target: list[int], shape: tuple[int, ...], tmp_path: Path):
    from onnx import TensorProto, helper, numpy_helper, save

    graph = helper.make_graph(
        [helper.make_node("Reshape", ["x", "to"], ["y"])], "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["b", 3, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * len(shape))],
        [numpy_helper.from_array(np.array(target, np.int64), "to")],
    )  # fmt: skip
    opset = [helper.make_opsetid("", 17)]
    save(helper.make_model(graph, opset_imports=opset, ir_version=9), tmp_path / "m.onnx")
    found = from_onnx(tmp_path / "m.onnx")
    assert str(found.in_avals[0]) == "float32[b,3,4]"  # as ONNX names it
    x = np.arange(60, dtype=np.float32).reshape(5, 3, 4)
    np.testing.assert_array_equal(found(x), x.reshape(shape))
    fixed = from_onnx(tmp_path / "m.onnx", shapes={"x": (5, 3, 4)})
    assert fixed.in_avals[0].shape == (5, 3, 4)
