"""Open dimensions on the command line: output of verbs, accepted sizes, refusals."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from axir.cli import cli
from axir.export import export, load, symbolic_args_specs, to_cpp

WEIGHTS = np.arange(12, dtype=np.float32).reshape(4, 3)
X = np.linspace(-1, 1, 2 * 3 * 4, dtype=np.float32).reshape(2, 3, 4)


def centred(w: Any, x: Any) -> Any:
    return x @ w - (x @ w).mean((0, 1))


def loss(w: Any, x: Any) -> Any:
    return ((x @ w) ** 2).mean()


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
    folder = tmp_path_factory.mktemp("open")
    specs = symbolic_args_specs((X,), "b, t, ...")
    functions = {name: functools.partial(f, WEIGHTS) for name, f in FUNCTIONS.items()}
    export(functions)(centred=specs, loss=specs).save(folder / "model.axir")
    simple = export(lambda x: x - x.mean(0))(*symbolic_args_specs((X[0],), "b, ..."))
    simple.save(folder / "simple.mlir")
    return folder


FUNCTIONS = {"centred": centred, "loss": loss}


def test_inspect_shows_dimensions_and_sizes(folder: Path) -> None:
    text = succeeds("inspect", folder / "model.axir")
    assert "argument  x       bxtx4xf32" in text
    assert "open      b, t: any size" in text
    found = json.loads(succeeds("inspect", folder / "model.axir", "--json"))
    assert found["functions"]["loss"]["arguments"][0]["shape"] == ["b", "t", 4]
    assert found["functions"]["loss"]["open"] == {
        "symbols": ["b", "t"],
        "constraints": [],
        "sizes": [],
    }
    assert "bx4xf32" in succeeds("inspect", folder / "simple.mlir")


def test_functions_run_for_the_sizes_of_their_inputs(folder: Path) -> None:
    np.save(folder / "x.npy", X)
    for flags in ((), ("--eager",)):
        output = folder / "loss.npy"
        given = (f"x=@{folder / 'x.npy'}", "--function", "loss", "--out", output)
        succeeds("run", folder / "model.axir", *given, *flags)
        np.testing.assert_allclose(np.load(output), loss(WEIGHTS, X), rtol=1e-6)
    text = succeeds("run", folder / "simple.mlir", "4x4xf32=2", "--json")
    assert json.loads(text)["result"]["data"] == [[0.0] * 4] * 4


def test_programs_for_sizes(folder: Path) -> None:
    made = folder / "made.axir"
    sizes = ("--size", "t=3", "--size", "t=1")
    succeeds("compile", folder / "model.axir", "--batch", "2,4", *sizes, "-o", made)
    text = succeeds("inspect", made)
    assert "centred (b=2,t=3; b=4,t=3; b=2,t=1; b=4,t=1)" in text
    np.testing.assert_allclose(load(made).centred(X), centred(WEIGHTS, X), atol=1e-5)
    assert "sizes any became b=2,t=3;" in fails_to_equal(folder / "model.axir", made)
    target = folder / "simple.vmfb"
    succeeds("compile", folder / "simple.mlir", "--size", "b=3", "-o", target)
    np.testing.assert_allclose(load(target)(X[0]), X[0] - X[0].mean(0), atol=1e-6)


def test_functions_take_their_own_of_the_sizes_named(folder: Path) -> None:
    def centred(x):
        return x - x.mean((0, 1))

    functions = {"f": centred, "g": centred, "rows": lambda x: x + 1}
    shapes = {"f": "b, t", "g": "b, s", "rows": "b, ..."}
    specs = {name: symbolic_args_specs((X[0],), text) for name, text in shapes.items()}
    source, made = folder / "three.axir", folder / "three_made.axir"
    export(functions)(**specs).save(source)
    succeeds("compile", source, "--batch", "1", "--size", "t=7", "--size", "s=5", "-o", made)
    loaded = load(made)
    assert loaded.f.open.sizes == ((("b", 1), ("t", 7)),)
    assert loaded.g.open.sizes == ((("b", 1), ("s", 5)),)
    assert loaded.rows.batch.sizes == (1,)
    succeeds("compile", source, "--batch", "1", "--size", "b=2,t=7,s=5", "-o", made)
    loaded = load(made)
    assert loaded.f.open.sizes == ((("b", 1), ("t", 7)), (("b", 2), ("t", 7)))
    assert loaded.rows.batch.sizes == (1, 2)
    assert "b, s, not s." in fails("compile", source, "--size", "s=5", "-o", made)


def fails_to_equal(one: Path, other: Path) -> str:
    result = axir_command("diff", one, other)
    assert result.exit_code == 1
    return result.stdout


def test_wrong_sizes_are_refused(folder: Path) -> None:
    model, simple = folder / "model.axir", folder / "simple.mlir"
    output = ("-o", folder / "never.axir")
    assert "--size b=8,t=8" in fails("compile", model, *output)
    assert "No function has an open dimension 'z'" in fails("compile", model, "--size", "z=1")
    assert "are b, t, not b" in fails("compile", model, "--size", "b=2", *output)
    assert "write sizes as b=8,t=128" in fails("compile", model, "--size", "b", code=2)
    program = ("-o", folder / "never.vmfb")
    assert "float32[b,4] has dimensions that are open" in fails("compile", simple, *program)
    two = ("--size", "b=1", "--size", "b=2")
    assert "Name --size once" in fails("compile", simple, *two, *program)


def test_passes_work_on_open_dimensions(folder: Path) -> None:
    made = folder / "trained.axir"
    succeeds("grad", folder / "model.axir", "--function", "loss", "--wrt", "w", "-o", made)
    found = load(made).loss_grad(X)
    y = X.reshape(-1, 4)
    np.testing.assert_allclose(found, 2 * y.T @ (y @ WEIGHTS) / (len(y) * 3), rtol=1e-5)
    text = succeeds("opt", folder / "simple.mlir", "-p", "instantiate{sizes={b=3}}")
    assert 'func.func @main(%arg0: tensor<3x4xf32> {jaxpr.name = "x"})' in text
    assert "is missing" in fails("opt", folder / "simple.mlir", "-p", "instantiate")
    text = succeeds("opt", folder / "simple.mlir", "-p", "jvp,vmap{axis_size=2,in_axes=(0,0)}")
    assert 'tensor<2x?x4xf32, {dims = ["b"]}>' in text


def test_models_in_cpp_have_a_method_for_each_size(folder: Path) -> None:
    model = load(folder / "model.axir").loss.with_sizes(b=(1, 2), t=3)
    files = to_cpp(model, folder / "cpp", name="sized")
    header = next(path for path in files if path.name == "sized.hpp").read_text()
    assert "loss_b1_t3(" in header
    assert "loss_b2_t3(" in header
    target = folder / "by_verb"
    succeeds("compile", folder / "model.axir", "--emit", "cpp", "--size", "b=2,t=3", "-o", target)
    assert "centred_b2_t3(" in (target / "model.hpp").read_text()
