"""Messages of the command line for users' mistakes, and mistakes that it accepts."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from axir.cli import cli
from axir.dialect.core.errors import ParseError
from axir.export import load

STABLEHLO = """
func.func public @forward(%x: tensor<4xf32>, %w: tensor<4xf32>) -> tensor<f32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.multiply %x, %w : tensor<4xf32>
  %1 = stablehlo.sine %0 : tensor<4xf32>
  %2 = stablehlo.reduce(%1 init: %z) applies stablehlo.add across dimensions = [0]
    : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
  return %2 : tensor<f32>
}
"""
TWO = """
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }
func.func @g(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }
"""
OPEN = """
func.func @main(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  %0 = stablehlo.tanh %x : tensor<?x3xf32>
  return %0 : tensor<?x3xf32>
}
"""
NAMED = """
func.func @main(%0: tensor<4xf32> {jaxpr.name = "x"}, %1: tensor<4xf32> {jaxpr.name = "w"})
    -> tensor<f32> {
  %2 = "jaxpr.mul"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %3 = "jaxpr.reduce_sum"(%2) {axes = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  return %3 : tensor<f32>
}
"""


def axir_command(*arguments: Any, given: bytes | None = None) -> Result:
    words = [str(word) for word in arguments]
    return CliRunner().invoke(cli, words, prog_name="axir", input=given)


def succeeds(*arguments: Any, given: bytes | None = None) -> str:
    result = axir_command(*arguments, given=given)
    assert result.exit_code == 0, result.output
    return result.stdout_bytes.decode(errors="replace")


def fails(*arguments: Any, code: int = 1, given: bytes | None = None) -> str:
    result = axir_command(*arguments, given=given)
    assert result.exit_code == code, result.output
    assert "This is a fault of axir itself" not in result.stderr
    return result.stderr


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in {"s": STABLEHLO, "two": TWO, "open": OPEN, "named": NAMED}.items():
        Path(f"{name}.mlir").write_text(text)
    np.save("x.npy", np.ones(4, np.float32))
    return tmp_path


def test_the_content_of_a_file_says_what_it_is() -> None:
    succeeds("opt", "s.mlir", "--to", "jaxpr", "-o", "s.axir")
    succeeds("compile", "s.mlir", "-o", "s.vmfb")
    for name, other in (("s.axir", "bundle.mlir"), ("s.vmfb", "program.bin")):
        shutil.copy(name, other)
        assert "= 3.36588" in succeeds("run", other, "ones:", "ones:")
        assert "@forward" in succeeds("inspect", other)
        assert round(float(load(other)(np.ones(4, "f"), np.ones(4, "f"))), 4) == 3.3659
    assert "program.bin is a compiled program." in fails("opt", "program.bin")
    assert list(load("bundle.mlir").argument_names) == ["arg0", "arg1"]
    for name, kind in (("s.axir", "bundle"), ("s.vmfb", "compiled program")):
        message = fails("inspect", "-", given=Path(name).read_bytes())
        assert f"<stdin> is a {kind}, not a module." in message
        assert "give its path" in message


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.npy", None, "x.npy is an array of NumPy, not a module.\n  at x.npy\n  Give it as an "),
        ("m.onnx", b"\x08\x07\x12\x03", "m.onnx is not MLIR.\n  at m.onnx\n  `axir import m.onnx "),
        ("m.pt2", b"PK\x03\x04" + b"\0" * 22 + b"\7\0\0\0m/data", "is an archive (zip), not a mo"),
        ("m.h5", b"\x89HDF\r\n", "m.h5 is a file of HDF5, not a module."),
        ("m.o", b"\x7fELF\2", "m.o is a program or an object file, not a module."),
        ("m.mlir", b"\x1f\x8b\x08", "m.mlir is compressed by gzip, not a module."),
        ("m.mlir", b"\xff\xfe\0a", "models of others are read by `axir import`."),
    ],
)
def test_files_of_other_kinds_are_called_by_their_name(
    name: str, content: bytes | None, message: str
) -> None:
    if content is not None:
        Path(name).write_bytes(content)
    assert message in fails("inspect", name)
    with pytest.raises(ParseError):
        load(name)


def test_mistakes_in_texts_name_what_may_be_meant() -> None:
    Path("a.mlir").write_text(STABLEHLO.replace("sine %0", "sine %nope"))
    message = fails("inspect", "a.mlir")
    assert "use of undeclared SSA value name '%nope'.\n" in message
    assert "\n                      ^\n  at a.mlir:5:23\n" in message
    Path("a.mlir").write_text(STABLEHLO.replace("stablehlo.sine", "stablehlo.sinus"))
    message = fails("compile", "a.mlir", "--emit", "cpp")
    assert "custom op 'stablehlo.sinus' is unknown.\n  %1 = stablehlo.sinus" in message
    assert "\n  Correct the name of the operation, or write it in the generic form." in message


def test_verbs_say_how_a_function_is_chosen() -> None:
    message = fails("opt", "two.mlir", "-p", "jvp")
    assert "It has f, g; rename one to main, or name it: `axir opt --function`." in message
    assert "@g" in succeeds("opt", "two.mlir", "-p", "jvp", "--function", "g")
    assert "There are several functions." in fails("grad", "two.mlir")


def test_passes_say_what_their_options_take() -> None:
    message = fails("opt", "named.mlir", "-p", "vmap{axis_size=-1}")
    assert "vmap: axis_size is -1.\n  Give the extent of the new axis." in message
    message = fails("opt", "named.mlir", "-p", "bogus")
    assert "there is no pass named 'bogus'.\n  There are " in message
    assert "; `axir passes` lists them." in message


def test_arguments_to_differentiate_in_are_listed_with_commas() -> None:
    both = succeeds("grad", "named.mlir", "--wrt", "x", "--wrt", "w")
    assert succeeds("grad", "named.mlir", "--wrt", "x, w") == both
    message = fails("grad", "named.mlir", "--wrt", "z")
    assert "There is no argument, parameter or result 'z' to choose from.\n  There are x, w." in (
        message
    )


def test_sizes_are_asked_for_by_their_names() -> None:
    message = fails("compile", "open.mlir", "-o", "x.vmfb")
    assert "exported.of_sizes(arg0_0=8), `axir compile --size arg0_0=8`, or the pass" in message
    message = fails("compile", "s.mlir", "--size", "b=8", "-o", "x.vmfb")
    assert "No function has an open dimension 'b'.\n  All dimensions are numbers." in message


def test_outputs_may_be_devices_and_are_no_other_kind_of_file() -> None:
    assert succeeds("opt", "named.mlir", "-o", "/dev/null") == ""
    assert succeeds("compile", "named.mlir", "-o", "/dev/null") == ""
    assert "PK" in succeeds("compile", "named.mlir", "-o", "-")
    if Path("/dev/full").exists():
        message = fails("opt", "named.mlir", "-o", "/dev/full")
        assert "No space left on device." in message
    if Path("/proc").exists():
        message = fails("opt", "named.mlir", "-o", "/proc/x.mlir")
        assert "error: /proc/x.mlir: No file can be made in that folder." in message
    message = fails("compile", "named.mlir", "--emit", "cpp", "-o", "x.vmfb", code=2)
    assert "-o x.vmfb: C++ is written to a folder; name one." in message
    message = fails("compile", "named.mlir", "--emit", "cpp", "--name", "3x")
    assert "'3x' is no name in C++.\n  Choose one such as 'model_3x'." in message


def test_arrays_come_through_pipes_and_are_known_for_what_they_are() -> None:
    os.mkfifo("pipe")
    writer = threading.Thread(target=lambda: Path("pipe").write_bytes(Path("x.npy").read_bytes()))
    writer.start()
    assert "= 4." in succeeds("run", "--eager", "named.mlir", "@pipe", "ones:")
    writer.join()
    message = fails("run", "--eager", "named.mlir", "@s.mlir", "ones:")
    assert "s.mlir is not a readable NumPy file: it does not begin like one." in message


def test_models_to_import_are_looked_for_before_their_readers() -> None:
    for name in ("nothing.pt2", "nothing.onnx", "nothing.mlir"):
        assert f"error: There is no file or folder {name}." in fails("import", name)


def test_functions_that_are_not_called_main_keep_their_names() -> None:
    for verb in (("grad",), ("vmap", "--size", 3), ("opt", "-p", "jvp")):
        succeeds(*verb, "s.mlir", "-o", "made.mlir")
        assert load("made.mlir").fun_name == "forward"
    succeeds("grad", "s.mlir", "--name", "slope", "-o", "made.mlir")
    slope = np.cos(np.ones(4, "f"))
    np.testing.assert_allclose(load("made.mlir").slope(slope * 0 + 1, slope * 0 + 1)[0], slope)
    succeeds("compile", "made.mlir", "-o", "made.vmfb")
    assert "0.54030" in succeeds("run", "made.vmfb", "ones:", "ones:")
