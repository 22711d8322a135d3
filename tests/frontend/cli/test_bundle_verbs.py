"""Bundles on the command line: every verb that takes one, and its errors for wrong bundles."""

from __future__ import annotations

import functools
import io
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import axir
import axir.numpy as jnp
from axir._bundles.programs import fits
from axir.cli import cli
from axir.cli.outputs import progress
from axir.export import export, load, symbolic_args_specs
from axir.runtime.compiler.architectures import host_architecture

RNG = np.random.default_rng(2)
PARAMS = {
    "w": RNG.normal(size=(3, 2)).astype(np.float32),
    "b": RNG.normal(size=2).astype(np.float32),
}
X = RNG.normal(size=(5, 3)).astype(np.float32)
Y = RNG.normal(size=(5, 2)).astype(np.float32)


def predict(params: Any, x: Any) -> Any:
    return jnp.tanh(x @ params["w"] + params["b"])


def loss(params: Any, x: Any, y: Any) -> Any:
    return {"loss": jnp.mean((predict(params, x) - y) ** 2), "count": x.shape[0]}


def axir_command(*arguments: Any) -> Result:
    return CliRunner().invoke(cli, [str(a) for a in arguments], prog_name="axir")


def succeeds(*arguments: Any) -> str:
    result = axir_command(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def fails(*arguments: Any, code: int = 1) -> str:
    result = axir_command(*arguments)
    assert result.exit_code == code, result.output
    assert "This is a fault of axir itself" not in result.stderr
    return result.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundles")
    functions = {"predict": predict, "loss": loss}
    bound = {name: functools.partial(f, PARAMS) for name, f in functions.items()}
    rows = symbolic_args_specs((X,), "b, ...")
    export(bound)(predict=rows, loss=(X, Y)).save(folder / "model.axir")
    export(lambda x: jnp.sum(x**3))(X[0]).save(folder / "cubes.mlir")
    np.save(folder / "x.npy", X)
    return folder


@pytest.fixture(scope="module")
def model(folder: Path) -> Path:
    return folder / "model.axir"


@pytest.fixture(scope="module")
def compiled(folder: Path, model: Path) -> Path:
    path = folder / "compiled.axir"
    succeeds("compile", model, "--batch", "2,4", "--target-cpu", "host", "-o", path)
    return path


def test_inspect_shows_functions_costs_and_parameters(model: Path) -> None:
    text = succeeds("inspect", model)
    assert "argument  x       bx3xf32" in text
    assert "rows      b: any number" in text
    # A row: 2 * 3 * 2 of the product, 2 sums, 2 tangents; reshapes count for nothing.
    assert "costs     16 operations; bytes: 12 of arguments, 8 of results, 32 of parameters" in text
    assert "parameters: 32 bytes\n           8  params['b']  2xf32" in text
    found = json.loads(succeeds("inspect", model, "--json"))
    assert found["functions"]["loss"]["costs"]["flops"] > 5 * 12
    assert found["functions"]["loss"]["costs"]["bytes"]["arguments"] == 5 * 5 * 4
    assert found["functions"]["predict"]["arguments"][0]["shape"] == ["b", 3]
    assert found["functions"]["predict"]["rows"] == {"symbol": "b", "sizes": []}


def test_run_takes_any_number_of_rows(compiled: Path, folder: Path) -> None:
    out = folder / "out.npy"
    succeeds("run", compiled, "--function", "predict", f"x=@{folder / 'x.npy'}", "--out", out)
    np.testing.assert_allclose(np.load(out), predict(PARAMS, X), rtol=1e-5)
    text = succeeds("run", compiled, "--function", "predict", "zeros:3x3xf32", "--eager")
    assert text.startswith("result: 3x2xf32 =")
    assert "result: 1x2xf32" in succeeds("run", compiled, "--function", "predict", "x=1,2,3")


def test_programs_become_part_of_the_bundle(compiled: Path) -> None:
    found = json.loads(succeeds("inspect", compiled, "--json"))
    (program,) = found["programs"]
    assert program["target"]["cpu"] == "host"
    assert found["functions"]["predict"]["rows"]["sizes"] == [2, 4]
    assert "programs/0.vmfb  cpu host" in succeeds("inspect", compiled)
    timed = json.loads(succeeds("bench", compiled, "--function", "loss", "--repeat", 3, "--json"))
    assert timed["calls"] == 3


def test_grad_adds_a_function(compiled: Path, folder: Path) -> None:
    out = folder / "gradient.axir"
    chosen = ("--function", "loss", "--wrt", "params", "--result", "result.loss")
    succeeds("grad", compiled, *chosen, "-o", out)
    bundle = load(out)
    assert list(bundle) == ["predict", "loss", "loss_grad"]
    assert bundle.loss_grad.result_names == ["grad_params['b']", "grad_params['w']"]
    expected = axir.grad(lambda p: loss(p, X, Y)["loss"])(axir.tree.map(jnp.asarray, PARAMS))
    found = bundle.loss_grad(X, Y)
    np.testing.assert_allclose(found[0], expected["b"], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(found[1], expected["w"], rtol=1e-4, atol=1e-6)
    # Earlier compiled programs still exist for unchanged functions.
    assert [sorted(p.functions) for p in bundle.programs] == [["loss", "predict"]]


def test_grad_of_a_module_replaces_main(folder: Path) -> None:
    succeeds("grad", folder / "cubes.mlir", "--value", "-o", folder / "gradient.mlir")
    value, gradient = load(folder / "gradient.mlir")(X[0])
    np.testing.assert_allclose(value, np.sum(X[0] ** 3), rtol=1e-5)
    np.testing.assert_allclose(gradient, 3 * X[0] ** 2, rtol=1e-5)


def test_vmap_leaves_parameters_alone(model: Path, folder: Path) -> None:
    out = folder / "batched.axir"
    chosen = ("--function", "loss", "--size", 2, "--in", "x", "--name", "both")
    succeeds("vmap", model, *chosen, "-o", out)
    found = load(out).both(np.stack([X, 2 * X]), Y)
    np.testing.assert_allclose(found["loss"][1], loss(PARAMS, 2 * X, Y)["loss"], rtol=1e-5)


def test_opt_transforms_one_function(model: Path, folder: Path) -> None:
    out = folder / "simplified.axir"
    succeeds("opt", model, "--function", "predict", "-p", "simplify", "-o", out)
    assert load(out).predict(X[:2]).shape == (2, 2)
    text = succeeds("opt", model, "--function", "predict", "--to", "stablehlo")
    assert "%arg2: tensor<3x2xf32>" in text
    succeeds("opt", folder / "cubes.mlir", "-p", "simplify", "-o", folder / "cubes.axir")
    np.testing.assert_allclose(load(folder / "cubes.axir")(X[0]), np.sum(X[0] ** 3), rtol=1e-5)


def test_diff_tells_what_changed(compiled: Path, model: Path, folder: Path) -> None:
    assert succeeds("diff", model, model) == ""
    changed = load(model).with_parameters({"params['b']": PARAMS["b"] + [0.5, 0]})
    changed.save(folder / "changed.axir")
    result = axir_command("diff", model, folder / "changed.axir")
    assert result.exit_code == 1
    assert result.stdout == "parameters\n  params['b']: 1 of 2 elements differ, by up to 0.5\n"
    found = json.loads(axir_command("diff", model, compiled, "--json").stdout)
    assert found["functions"] == {"predict": ["rows any became 2, 4"]}
    assert list(found["programs"].values()) == [["only in the second"]]
    succeeds("opt", folder / "cubes.mlir", "-p", "jvp", "-o", folder / "tangent.mlir")
    text = axir_command("diff", folder / "cubes.mlir", folder / "tangent.mlir", "--text").stdout
    assert "main: arguments (x: 3xf32) became (x: 3xf32, dx: 3xf32)" in text
    assert "\n+    " in text


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(shell: str) -> None:
    assert "_AXIR_COMPLETE" in succeeds("completion", shell)


def test_a_bundle_has_programs_for_several_machines(model: Path, folder: Path) -> None:
    one, out = folder / "one.axir", folder / "several.axir"
    succeeds("compile", model, "--batch", "2", "--target-cpu", "generic, host", "-o", one)
    succeeds("compile", one, "--batch", "2", "--target-triple", "aarch64-linux-gnu", "-o", out)
    succeeds("compile", out, "--batch", "2", "--target", "vmvx", "-o", out)
    bundle = load(out)
    found = [(p.target["platform"], p.target.get("cpu")) for p in bundle.programs]
    assert found == [("cpu", "generic"), ("cpu", "host"), ("cpu", "generic"), ("vmvx", None)]
    here = host_architecture()
    assert [fits(p.target, "cpu") for p in bundle.programs] == [True, True, here == "aarch64", True]
    x = np.ones((2, *bundle["predict"].in_avals[0].shape[1:]), np.float32)
    wanted = np.asarray(load(model)["predict"](x))
    np.testing.assert_allclose(np.asarray(bundle["predict"](x)), wanted, rtol=1e-5)
    (program,) = bundle.programs[3:]
    only = folder / "virtual.axir"
    succeeds("compile", model, "--batch", "2", "--target", "vmvx", "-o", only)
    assert load(only).programs[0].target == program.target
    np.testing.assert_allclose(np.asarray(load(only)["predict"](x)), wanted, rtol=1e-4)


def test_wrong_uses_are_told(compiled: Path, model: Path, folder: Path) -> None:
    cubes, out = folder / "cubes.mlir", folder / "never.axir"
    several = fails("run", model)
    assert "There are several functions." in several
    assert "The functions are predict, loss; --function names one." in several
    assert "no function 'lose'" in fails("run", model, "--function", "lose")
    assert "rows of 'predict' is open" in fails("compile", model, "-o", out)
    assert "--batch x: write numbers" in fails("compile", model, "--batch", "x", code=2)
    assert "--batch is for bundles" in fails("compile", cubes, "--batch", "1", code=2)
    assert "is part of a bundle" in fails("compile", model, "-o", "a.vmfb", code=2)
    assert "cannot have a program for the CPU 'znver4'" in fails(
        "compile", model, "--batch", "1", "--target-cpu", "znver4", "-o", out
    )
    assert "or result 'v' to choose from" in fails(
        "grad", model, "--function", "loss", "--wrt", "v"
    )
    assert "grad: result 0 is of type float32[2]" in fails(
        "grad", model, "--function", "predict", "--wrt", "x"
    )
    assert "all of them share params['b']" in fails("grad", model, "--function", "predict")
    assert "takes any number of rows already" in fails(
        "vmap", model, "--function", "predict", "--size", 2
    )
    assert "There is no function 'f'" in fails("grad", cubes, "--function", "f")
    (folder / "broken.axir").write_bytes(model.read_bytes()[:-40])
    for verb in ("inspect", "run", "compile", "opt"):
        assert "is not a bundle, or one that is not whole" in fails(verb, folder / "broken.axir")
    assert not out.exists()


def test_results_passes_and_cache_as_json(model: Path, tmp_path: Path) -> None:
    found = json.loads(succeeds("run", model, "--function", "predict", "x=1,2,3", "--json"))
    expected = np.asarray(predict(PARAMS, np.array([[1, 2, 3]], np.float32)))
    assert (found["result"]["dtype"], found["result"]["shape"]) == ("float32", [1, 2])
    np.testing.assert_allclose(found["result"]["data"], expected, rtol=1e-5)
    export(lambda x: (x / 0, x * 1j))(1.0).save(tmp_path / "odd.mlir")
    odd = json.loads(succeeds("run", tmp_path / "odd.mlir", "x=-1", "--eager", "--json"))
    assert (odd["result[0]"]["data"], odd["result[1]"]["data"]) == ("-inf", [0.0, -1.0])
    passes = json.loads(succeeds("passes", "--json"))
    assert passes["vmap"]["options"] == {"axis_size": None, "in_axes": "0", "out_axes": "0"}
    assert list(json.loads(succeeds("passes", "jvp", "--json"))) == ["jvp"]
    assert json.loads(succeeds("cache", "--json"))["programs"] >= 0


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_shown_on_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("axir.cli.outputs._SILENT_SECONDS", 0.0)
    monkeypatch.setattr("axir.cli.outputs._INTERVAL_SECONDS", 0.001)
    for stream in (Terminal(), io.StringIO()):
        monkeypatch.setattr("sys.stderr", stream)
        with progress("compiling f"):
            time.sleep(0.05)
        assert ("compiling f, 0 s" in stream.getvalue()) == stream.isatty()
