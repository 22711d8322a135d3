"""The commands of pages about modules and bundles work as described, in their order."""

from __future__ import annotations

import functools
import re
import shlex
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import axir
import axir.numpy as jnp
from axir.cli import cli
from axir.export import export

DOCS = Path(__file__).resolve().parents[3] / "docs"
W, B, X = np.eye(2, dtype=np.float32), np.zeros(2, np.float32), np.array([0.25, 2], np.float32)


def commands(page: str) -> list[str]:
    text = (DOCS / page).read_text()
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


@axir.custom_jvp
def clipped(x: Any) -> Any:
    return jnp.clip(x, 0.0, 1.0)


clipped.defjvps(lambda t, ans, x: t)


def loss(params: Any, x: Any) -> Any:
    return jnp.sum(clipped(x @ params["w"] + params["b"]) ** 2)


def test_commands_as_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    export(loss)({"w": W, "b": B}, X).save("model.mlir")
    np.savez("inputs.npz", **{"params['w']": W, "params['b']": B, "x": X})
    np.save("x.npy", X)
    outputs = {}
    for command in commands("saved_modules.md"):
        program, *arguments = shlex.split(command)
        if program == "axir":
            result = CliRunner().invoke(cli, arguments, prog_name="axir")
            assert result.exit_code == 0, f"{command}\n{result.output}"
            outputs[command] = result.stdout
        else:
            tool = Path(sysconfig.get_path("scripts")) / program
            subprocess.run([tool, *arguments], check=True, capture_output=True, timeout=60)
    assert len(outputs) >= 15
    expected = axir.grad(loss)({"w": W, "b": B}, X)
    with np.load("gradient.npz") as found:
        np.testing.assert_allclose(found["ct_params['w']"], np.asarray(expected["w"]), rtol=1e-6)
        np.testing.assert_allclose(found["ct_params['b']"], np.asarray(expected["b"]), rtol=1e-6)
    np.testing.assert_allclose(np.load("loss.npy"), 1.0625)
    assert "dresult: f32 = 0.5" in outputs["axir run tangent.mlir @inputs.npz dx=1,0"]


def test_commands_on_bundles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    params = {"w": W, "b": np.array([0.5, -0.5], np.float32)}
    x, y = np.ones((4, 2), np.float32), np.zeros((4, 2), np.float32)

    def predict(params: Any, x: Any) -> Any:
        return jnp.tanh(x @ params["w"] + params["b"])

    def distance(params: Any, x: Any, y: Any) -> Any:
        return {"loss": jnp.mean((predict(params, x) - y) ** 2)}

    functions = {"predict": predict, "loss": distance}
    bound = {name: functools.partial(f, params) for name, f in functions.items()}
    export(bound)(predict=(x,), loss=(x, y)).save("model.axir")
    codes = {}
    for command in commands("export.md"):
        result = CliRunner().invoke(cli, shlex.split(command)[1:], prog_name="axir")
        codes[command.split()[1]] = result.exit_code
        assert result.exit_code <= (command.split()[1] == "diff"), f"{command}\n{result.output}"
    assert list(codes) == ["inspect", "run", "compile", "grad", "vmap", "opt", "diff"]
    expected = axir.grad(lambda p: distance(p, x, y)["loss"])(axir.tree.map(jnp.asarray, params))
    with np.load("gradient.npz") as found:
        np.testing.assert_allclose(found["grad_params['w']"], expected["w"], rtol=1e-5)
    found = axir.export.load("batched.axir").loss_vmap(np.stack([x] * 8), np.stack([y] * 8))
    np.testing.assert_allclose(found["loss"], [distance(params, x, y)["loss"]] * 8, rtol=1e-5)


def test_commands_on_modules_from_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    page = (DOCS / "stablehlo.md").read_text()
    text = page[page.index('>>> text = """') : page.index('... """')]
    Path("from_jax.mlir").write_text(re.sub(r"^\.\.\. ", "", text.partition("\n")[2], flags=re.M))
    outputs = {}
    for command in commands("stablehlo.md"):
        result = CliRunner().invoke(cli, shlex.split(command)[1:], prog_name="axir")
        assert result.exit_code == 0, f"{command}\n{result.output}"
        outputs[command] = result.stdout
    assert "1.4142" in outputs["axir run from_jax.mlir 1,0.5 2,0.5,0.5,1"]
    assert '"jaxpr.cholesky"' in Path("raised.mlir").read_text()
    assert "tensor<5x2xf32>" in Path("tangents.mlir").read_text()
    assert Path("model.vmfb").stat().st_size > 0
