"""`axir compile --emit cpp`: the folder that it writes, and errors for wrong input."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import axir.numpy as jnp
from axir.cli import cli
from axir.export import export, symbolic_args_specs
from axir.runtime.compiler.architectures import host_architecture

X = jnp.ones((4, 64))


def predict(w, x):
    return jnp.tanh(x @ w)


def compile_(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, ["compile", *map(str, arguments)], prog_name="axir")


def test_a_bundle_becomes_a_folder(tmp_path: Path) -> None:
    function = functools.partial(predict, jnp.ones((64, 10)))
    rows = symbolic_args_specs((X,), "b, ...")
    export({"plain": function, "rows": function})(plain=(X,), rows=rows).save(tmp_path / "m.axir")
    refused = compile_(tmp_path / "m.axir", "--emit", "cpp", "-o", tmp_path / "out")
    assert refused.exit_code == 1
    assert "rows.with_rows(1, 8, 64), or --batch 1,8,64." in refused.output
    assert not (tmp_path / "out").exists()
    options = ["--batch", "1,8", "--embed-limit", "0", "--name", "net", "-o", tmp_path / "out"]
    options += ["--target-cpu", "generic"]
    done = compile_(tmp_path / "m.axir", "--emit", "cpp", *options)
    assert done.exit_code == 0, done.output
    written = {p.name for p in (tmp_path / "out").iterdir()}
    assert written == {
        *("CMakeLists.txt", "example.cpp", "include", "net.cpp", "net.h", "net.hpp"),
        *("net.safetensors", "net_c.cpp", "net_kernels.o"),
    }
    header = (tmp_path / "out" / "net.hpp").read_text()
    view = "axir::v3::View<const float, axir::v3::dynamic_extent, 64>"
    assert f"  RowsResult rows({view} x);" in header
    numpy = pytest.importorskip("safetensors.numpy")
    (weights,) = numpy.load_file(tmp_path / "out" / "net.safetensors").items()
    assert (weights[0], weights[1].shape) == ("w", (64, 10))


def test_large_constants_of_a_module_are_parameters(tmp_path: Path) -> None:
    weights = jnp.sin(jnp.arange(640.0)).reshape(64, 10)
    export(functools.partial(predict, weights))(X).save(tmp_path / "net.mlir")
    done = compile_(tmp_path / "net.mlir", "--emit", "cpp", "-o", tmp_path / "out")
    assert done.exit_code == 0, done.output
    # Without a name of a CPU there are kernels for all, and for those that do more.
    kernels = {path.name for path in (tmp_path / "out").glob("*.o")}
    levels = {f"net_kernels_for_x86_64{level}.o" for level in ("", "_v3", "_v4")}
    assert kernels == (levels if host_architecture() == "x86_64" else {"net_kernels.o"})
    source = (tmp_path / "out" / "net.cpp").read_text()
    assert '{"constant", "F32", "64,10", 2560}' in source


OF_MATH = """
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = math.absf %x : tensor<2xf32>
  return %0 : tensor<2xf32>
}
"""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--target", "cuda"], "--emit cpp takes --target cpu"),
        (["--name", "no name"], "'no name' is no name in C++"),
        (["--batch", "x"], "write numbers of rows as 1,8,64"),
        ([], "is a module of math, which cannot be transformed."),
    ],
)
def test_what_cannot_be_written_is_refused(
    tmp_path: Path, arguments: list[str], message: str
) -> None:
    exported = export(jnp.sin)(1.0)
    file = tmp_path / "m.mlir"
    if arguments:
        exported.save(file)
    else:
        file.write_text(OF_MATH)
    refused = compile_(file, "--emit", "cpp", "-o", tmp_path / "out", *arguments)
    assert refused.exit_code in (1, 2)
    assert message in " ".join(refused.output.split())
    assert not (tmp_path / "out").exists()
