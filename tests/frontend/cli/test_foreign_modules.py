"""Modules from elsewhere on the command line: weights, functions, pipes, 64 bits, open shapes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import axir
from axir.cli import cli
from axir.dialect.core.errors import DTypeError
from axir.export import export, load

NET = """func.func @net(%x: tensor<3x2xf32>) -> tensor<3x4xf32> {
  %w = stablehlo.constant dense_resource<layer.weight> : tensor<4x2xf32>
  %one = arith.constant dense<1> : tensor<1xi64>
  %0 = stablehlo.convert %one : (tensor<1xi64>) -> tensor<1xf32>
  %1 = stablehlo.reshape %0 : (tensor<1xf32>) -> tensor<f32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<3x4xf32>
  %3 = stablehlo.transpose %w, dims = [1, 0] : (tensor<4x2xf32>) -> tensor<2x4xf32>
  %4 = stablehlo.dot_general %x, %3, contracting_dims = [1] x [0]
    : (tensor<3x2xf32>, tensor<2x4xf32>) -> tensor<3x4xf32>
  %5 = stablehlo.add %4, %2 : tensor<3x4xf32>
  return %5 : tensor<3x4xf32>
}
"""
WEIGHTS = np.arange(8, dtype=np.float32).reshape(4, 2)
SECTION = f"""
{{-# dialect_resources: {{ builtin: {{
  layer.weight: "0x04000000{WEIGHTS.tobytes().hex()}"
}} }} #-}}
"""
X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(3, 2)
Y = X @ WEIGHTS.T + 1


def command(*arguments: Any) -> Result:
    return CliRunner().invoke(cli, [str(a) for a in arguments], prog_name="axir")


def succeeds(*arguments: Any) -> str:
    result = command(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def fails(*arguments: Any, code: int = 1) -> str:
    result = command(*arguments)
    assert result.exit_code == code, result.output
    return result.stderr


@pytest.fixture
def net(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", X)
    Path("net.mlir").write_text(NET + SECTION)
    return Path("net.mlir")


def test_verbs_take_weights(net: Path) -> None:
    shown = succeeds("inspect", net)
    assert "parameters: 32 bytes" in shown
    assert "layer.weight  4x2xf32" in shown
    succeeds("run", net, "@x.npy", "--out", "y.npy")
    np.testing.assert_allclose(np.load("y.npy"), Y, 1e-6)
    succeeds("run", net, "@x.npy", "--eager", "--out", "eager.npy")
    np.testing.assert_allclose(np.load("eager.npy"), Y, 1e-6)
    # Of a module the weights are constants, of a bundle parameters.
    assert "@net" in succeeds("opt", net, "-p", "jvp")
    succeeds("vmap", net, "--size", 2, "-o", "rows.mlir")
    assert load("rows.mlir")(np.stack([X, X])).shape == (2, 3, 4)
    succeeds("opt", net, "--to", "jaxpr", "-o", "net.axir")
    assert list(load("net.axir").parameters) == ["layer.weight"]
    succeeds("vmap", net, "--size", 2, "-o", "both.axir")
    both = load("both.axir")
    assert (list(both), list(both.parameters)) == (["net", "net_vmap"], ["layer.weight"])
    np.testing.assert_allclose(both.net_vmap(np.stack([X, X]))[1], Y, 1e-6)
    assert "There is no function 'main'" in fails("opt", net, "-p", "jvp", "--function", "main")
    succeeds("compile", net, "--emit", "cpp", "--embed-limit", 0, "-o", "cpp")
    assert '"layer.weight"' in Path("cpp/net.cpp").read_text()
    assert Path("cpp/net.safetensors").read_bytes().endswith(WEIGHTS.tobytes())


def test_modules_without_stablehlo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.mlir").write_text(
        "func.func @negated(%x: tensor<2x3xf32>) -> tensor<3x2xf32> {\n"
        "  %0 = arith.negf %x : tensor<2x3xf32>\n"
        "  %1 = tensor.collapse_shape %0 [[0, 1]] : tensor<2x3xf32> into tensor<6xf32>\n"
        "  %2 = tensor.expand_shape %1 [[0, 1]] output_shape [3, 2]"
        " : tensor<6xf32> into tensor<3x2xf32>\n"
        "  return %2 : tensor<3x2xf32>\n}\n"
    )
    np.testing.assert_array_equal(load("m.mlir")(X.T.copy()), -X.T.reshape(3, 2))
    assert "StableHLO module" in succeeds("inspect", "m.mlir")
    succeeds("run", "m.mlir", "2x3xf32=1,2,3,4,5,6", "--out", "y.npy")
    np.testing.assert_array_equal(np.load("y.npy"), [[-1, -2], [-3, -4], [-5, -6]])


def test_functions_whose_names_are_none_of_python(tmp_path: Path) -> None:
    bodies = {"a.1": "add %x, %x", "a-1": "multiply %x, %x", "a_1": "negate %x"}
    (tmp_path / "m.mlir").write_text(
        "".join(
            f'func.func @"{name}"(%x: tensor<f32>) -> tensor<f32> {{\n'
            f"  %0 = stablehlo.{body} : tensor<f32>\n  return %0 : tensor<f32>\n}}\n"
            for name, body in bodies.items()
        )
    )
    found = load(tmp_path / "m.mlir")
    assert list(found) == ["a_1_2", "a_1_3", "a_1"]
    assert [float(found[name](np.float32(3))) for name in found] == [6.0, 9.0, -3.0]


def test_gradients_of_weights(net: Path) -> None:
    text = NET.replace("-> tensor<3x4xf32> {", "-> tensor<f32> {").replace(
        "  return %5 : tensor<3x4xf32>",
        "  %zero = stablehlo.constant dense<0.0> : tensor<f32>\n"
        "  %6 = stablehlo.reduce(%5 init: %zero) applies stablehlo.add across dimensions = [0, 1]\n"
        "    : (tensor<3x4xf32>, tensor<f32>) -> tensor<f32>\n  return %6 : tensor<f32>",
    )
    Path("loss.mlir").write_text(text + SECTION)
    succeeds("grad", "loss.mlir", "-o", "loss.axir")
    gradient = load("loss.axir").net_grad(X)
    np.testing.assert_allclose(gradient, np.broadcast_to(X.sum(0), (4, 2)), 1e-6, 1e-6)


def test_pipes_and_stdout(net: Path) -> None:
    program = f"{sys.executable} -m axir"
    shown = subprocess.run(
        ["bash", "-c", f"{program} inspect <(cat net.mlir); cat net.mlir | {program} opt - -o -"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "layer.weight  4x2xf32" in shown
    assert "dense<" in shown.partition("module {")[2]


DOUBLE = """
func.func @main(%x: tensor<4xf64>) -> tensor<f64> {
  %z = stablehlo.constant dense<0.0> : tensor<f64>
  %1 = stablehlo.multiply %x, %x : tensor<4xf64>
  %2 = stablehlo.reduce(%1 init: %z) applies stablehlo.add across dimensions = [0]
    : (tensor<4xf64>, tensor<f64>) -> tensor<f64>
  return %2 : tensor<f64>
}
"""


def test_passes_mean_what_the_module_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("f64.mlir").write_text(DOUBLE)
    with axir.enable_x64(False):
        succeeds("grad", "f64.mlir", "-o", "gradient.mlir")
        succeeds("run", "gradient.mlir", "1,2,3,4", "--out", "gradient.npy")
        with pytest.raises(DTypeError, match="need the option jax_enable_x64"):
            axir.jit(load("f64.mlir"))(np.arange(4.0))
    np.testing.assert_array_equal(np.load("gradient.npy"), [2.0, 4.0, 6.0, 8.0])


def test_open_shapes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("open.mlir").write_text(
        "func.func @f(%x: tensor<?x2xf32>) -> tensor<?x2xf32> {\n"
        "  %0 = stablehlo.sine %x : tensor<?x2xf32>\n  return %0 : tensor<?x2xf32>\n}\n"
    )
    assert "arg0     ?x2xf32" in succeeds("inspect", "open.mlir")
    # Where arguments have names, these are shown and asked for.
    named = (
        'func.func @f(%x: tensor<?x2xf32> loc("rows")) -> (tensor<?x2xf32> {jax.result_info = "y"})'
    )
    body = " %0 = stablehlo.sine %x : tensor<?x2xf32> return %0 : tensor<?x2xf32>"
    Path("named.mlir").write_text(f"{named} {{{body} }}")
    shown = succeeds("inspect", "named.mlir")
    assert "argument  rows  ?x2xf32" in shown
    assert "result    y     ?x2xf32" in shown
    assert '"shape": [1, 2]' in succeeds("run", "named.mlir", "--shape", "rows=1x2", "0", "--json")
    assert 'tensor<?x2xf32, {dims = ["arg0_0"]}>' in succeeds("opt", "open.mlir", "-p", "jvp")
    named = succeeds("opt", "open.mlir", "--shape", "arg0=bx2", "-p", "jvp")
    assert 'tensor<?x2xf32, {dims = ["b"]}>' in named
    assert '"shape": [3, 2]' in succeeds("run", "open.mlir", "3x2xf32=1", "--json")
    succeeds("compile", "open.mlir", "--size", "arg0_0=3", "-o", "open.vmfb")
    assert '"shape": [3, 2]' in succeeds("run", "open.vmfb", "3x2xf32=1", "--json")
    assert "has dimensions that are open" in fails("compile", "open.mlir", "-o", "open.vmfb")
    assert "write the shape as NAME=8x64" in fails("run", "open.mlir", "--shape", "x", code=2)
    for shape in ("lambdax2", "größex2", "axis", "x2", "bx2x", "b,2,,"):
        refused = fails("opt", "open.mlir", "--shape", f"arg0={shape}", code=2)
        assert "write commas: NAME=max_length,64." in " ".join(refused.split())
    for shape, read in (
        ("max_length,", "('max_length',)"),
        ("max_lengthx2", "('ma', '_length', 2)"),
    ):
        refused = fails("opt", "open.mlir", "--shape", f"arg0={shape}")
        assert f"The shape {read} is none of the argument 'arg0'" in refused
    named = succeeds("opt", "open.mlir", "--shape", "arg0=max_length,2", "-p", "jvp")
    assert 'tensor<?x2xf32, {dims = ["max_length"]}>' in named
    shown = succeeds("run", "open.mlir", "--shape", "arg0=1x2", "0", "--json")
    assert '"shape": [1, 2]' in shown
    assert load("open.mlir", shapes={"arg0": (3, 2)})(X).shape == (3, 2)
    succeeds("opt", "open.mlir", "--shape", "arg0=5x2", "-o", "f.axir")
    assert load("f.axir").in_avals[0].shape == (5, 2)
    assert "--shape is for modules of StableHLO" in fails(
        "run", "f.axir", "--shape", "arg0=5x2", code=2
    )


def test_what_was_loaded_is_exported_again(net: Path) -> None:
    loaded = load(net)
    again = export(loaded)(X)
    assert (again.fun_name, again.argument_names) == ("net", ["arg0"])
    assert list(again.parameters) == ["layer.weight"]
    both = export({"plain": loaded, "double": lambda x: loaded(x) * 2})(plain=(X,), double=(X,))
    assert list(both.parameters) == ["layer.weight"]
    np.testing.assert_allclose(both.double(X), 2 * Y, 1e-6)
    export({"predict": lambda x: x + 1})(predict=(1.0,)).save("one.axir")
    one = load("one.axir")
    assert (one.predict(1.0), one["predict"](2.0)) == (2.0, 3.0)
    with pytest.raises(AttributeError, match="'Exported' has no attribute 'other'"):
        _ = one.other


def test_verbs_that_are_mistyped() -> None:
    assert "There is no verb 'inspct'. Did you mean inspect?" in fails("inspct", "x", code=2)
    assert "`axir --help` lists them" in fails("qqqq", code=2)


def test_where_time_goes(net: Path) -> None:
    shown = command("compile", net, "-o", "net.vmfb", "--timing")
    assert shown.exit_code == 0, shown.output
    assert "s  in all" in shown.stderr
    assert "s  raise-stablehlo" in shown.stderr
