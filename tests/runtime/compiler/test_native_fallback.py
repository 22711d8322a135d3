"""Programs without machine code here: IREE compiles them, and logs say so."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import axir
from axir.dialect.core.config import config
from axir.runtime.calls.compiled_function import CompiledFunction
from axir.runtime.calls.executable import Executable
from axir.runtime.calls.native_executable import NativeExecutable
from axir.runtime.compiler import native_compilation
from axir.runtime.compiler.diagnostics import CompilerEndedError
from axir.runtime.compiler.helpers import helpers
from axir.runtime.compiler.invocation import native
from axir.runtime.compiler.invocation.native import NativeCompiler, NativeUnavailableError
from axir.runtime.native import object_files

TWICE = b"""
func.func @twice(%x: !stream.binding, %y: !stream.binding) {
  %zero = arith.constant 0 : index
  %0 = stream.binding.subspan %x[%zero] : !stream.binding -> memref<f32>
  %1 = stream.binding.subspan %y[%zero] : !stream.binding -> memref<f32>
  %2 = memref.load %0[] : memref<f32>
  %3 = arith.addf %2, %2 : f32
  memref.store %3, %1[] : memref<f32>
  return
}
"""


pytestmark = pytest.mark.chooses_compiler


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing comes from the disk cache, and each test begins with llvmlite available."""
    config.update("axir_cache_dir", str(tmp_path / "cache"))
    monkeypatch.setattr(native_compilation, "_unavailable", [])


def compiled_form(f: Any) -> CompiledFunction:
    (unit,) = (e.compiled for e in f._entries.values())
    return unit


def check_two_programs() -> None:
    """Runs a program of more arrays than IREE's kernels bind, and another one."""
    numbers = np.arange(40, dtype=np.float32)
    f = axir.jit(lambda *xs: [2 * x + 1 for x in xs])
    assert [float(x) for x in f(*numbers)] == [2 * x + 1 for x in range(40)]
    g = axir.jit(lambda x: x[::-1] - 1)
    np.testing.assert_array_equal(g(numbers), numbers[::-1] - 1)
    for unit in map(compiled_form, (f, g)):
        assert isinstance(unit._executable, Executable)


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [x.message for x in caplog.records if x.levelno == logging.WARNING]


def test_a_compiler_of_kernels_that_ends_leaves_programs_to_iree(monkeypatch, caplog):
    def crash(*_):
        raise CompilerEndedError("SIGKILL", "first\nout of memory\n")

    monkeypatch.setattr(helpers, "compile_kernels", crash)
    check_two_programs()
    reason = "is compiled by IREE, for the compiler of kernels ended with SIGKILL: out of memory"
    assert said(caplog)
    assert all(reason in x for x in said(caplog))


def test_what_no_machine_code_is_leaves_programs_to_iree(monkeypatch, caplog):
    monkeypatch.setattr(helpers, "compile_kernels", lambda *_: (b"no machine code",))
    check_two_programs()
    reason = "is compiled by IREE, for its machine code cannot be loaded: This is no object file"
    assert [reason in x for x in said(caplog)] == [True, True]


def test_a_system_that_runs_no_such_code_leaves_all_programs_to_iree(monkeypatch, caplog):
    monkeypatch.setattr(object_files, "_protect", lambda: lambda *_: -1)
    check_two_programs()
    (text,) = said(caplog)
    assert text == (
        "all programs are compiled by IREE, which takes longer: The system does not let this "
        "process run code that it has loaded."
    )


def test_an_llvmlite_that_does_not_fit_is_told_from_a_kernel_that_is_wrong(monkeypatch):
    compiler = NativeCompiler()
    messages: list[str] = []
    assert compiler.compile(TWICE, False, messages.append) is not None
    assert compiler.compile(b"no kernel", False, messages.append) is None
    assert len(messages) == 1
    monkeypatch.setattr(native, "for_older_llvm", lambda text: text + b"\nof another version")
    with pytest.raises(NativeUnavailableError, match=r"llvmlite [\d.]+ does not fit IREE's MLIR: "):
        compiler.compile(TWICE, False, messages.append)
    monkeypatch.setattr(compiler, "_llvm", object())
    with pytest.raises(NativeUnavailableError, match="no attribute"):
        compiler.compile(TWICE, False, messages.append)


def test_without_llvmlite_all_programs_are_iree_s_and_the_log_says_so_once(tmp_path):
    (tmp_path / "llvmlite.py").write_text("raise ImportError('it is not there')\n")
    program = (
        "import axir, numpy as np\n"
        "for n in range(2):\n"
        "    print(axir.jit(lambda x: x * 3 + n)(np.float32(2)))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "AXIR_CACHE_DIR": str(tmp_path)}
    for mode in ("auto", "never"):
        environment["AXIR_ISOLATE_COMPILER"] = mode
        environment["AXIR_CACHE_DIR"] = str(tmp_path / mode)
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True
        )
        assert done.stdout.split() == ["6.0", "7.0"], done.stderr
        assert done.stderr.count("llvmlite cannot be loaded: it is not there") == 1


def test_kernels_are_dumped_whether_they_are_compiled_or_known(tmp_path):
    for folder in ("a", "b"):
        config.update("axir_dump_dir", str(tmp_path / folder))
        f = axir.jit(lambda x: x * 5 - 1)
        assert f(2.0) == 9
        assert isinstance(compiled_form(f)._executable, NativeExecutable)
        (file,) = (tmp_path / folder).glob("lambda-*.kernel.mlir")
        assert "func.func @" in file.read_text()


def test_a_damaged_entry_is_compiled_again(tmp_path):
    def run() -> int:
        f = axir.jit(lambda x: x * 7 - 1)
        assert f(2.0) == 13
        return compiled_form(f).code_size

    size = run()
    (file,) = (tmp_path / "cache").glob("*.program")
    content = file.read_bytes()
    file.write_bytes(content[:-9])
    assert run() == size
    assert file.read_bytes() == content


# A separate process, because a fork of one that has loaded JAX warns.
FORK = """
import os, threading
import numpy as np
import axir, axir.numpy as jnp
from axir.runtime.calls import background

turns = background._turns = threading.Semaphore(0)  # the parent begins, and comes to no end
f = axir.jit(lambda x: jnp.tanh(x @ x).sum(axis=0))
x = jnp.full((128, 128), 0.01)
expected = f(x)
(unit,) = (e.compiled for e in f._entries.values())
successor = unit._successor
successor.begin()  # as if it had been called often

def kind():
    np.testing.assert_array_equal(f(x), expected)
    return type(unit._executable).__name__

print(kind())
child = os.fork()
if child:
    print("child ended with", os.waitpid(child, 0)[1])
    turns.release()
else:
    assert unit._native is None
    kind()
successor.wait()
print(kind(), flush=True)
os._exit(0)
"""


def test_a_forked_child_goes_on_with_what_its_parent_was_making(tmp_path):
    environment = {**os.environ, "AXIR_CACHE_DIR": str(tmp_path), "PYTHONUNBUFFERED": "1"}
    done = subprocess.run(
        [sys.executable, "-c", FORK], env=environment, capture_output=True, text=True
    )
    assert done.stdout.splitlines() == [
        "NativeExecutable",
        "Executable",
        "child ended with 0",
        "Executable",
    ], done.stderr
