"""While a compilation runs: passes are imported, and slow ones are announced."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import textwrap

import pytest

import axir
from axir.dialect.core.config import config
from axir.runtime import CompileError, Target, compile_module
from axir.runtime.compiler import compilation, waiting

PROGRAM = """
    import os, sys, time
    import numpy as np
    import axir
    from axir.runtime.compiler import waiting

    def imported():
        return len([name for name in sys.modules if name.startswith("axir.passes")])

    assert "axir.passes.tune.products.tile_products" not in sys.modules
    with waiting.passes_imported_meanwhile():
        # The helper that compiles this is waited for inside, and its answer is no end of it.
        axir.jit(lambda x: x + 1)(np.ones(3, np.float32))
        if os.fork() == 0:
            with waiting.passes_imported_meanwhile():
                import axir.passes.fuse.fuse_islands
            os._exit(0)
        status = os.wait()[1]
    time.sleep(0.1)  # a module that has been begun
    [thread] = waiting._threads
    before = imported()
    time.sleep(0.2)
    assert imported() == before
    with waiting.passes_imported_meanwhile():
        thread.join()
    assert "axir.passes.tune.products.tile_products" in sys.modules
    assert "axir.passes.fuse.fuse_islands" in sys.modules
    assert "axir.passes.legalize.sorting.sort_by_digits" not in sys.modules  # few need it
    print("status", status)
"""


def test_passes_are_imported_while_a_helper_compiles(tmp_path) -> None:
    environment = os.environ | {"AXIR_CACHE_DIR": str(tmp_path), "AXIR_ISOLATE_COMPILER": "auto"}
    command = [sys.executable, "-c", textwrap.dedent(PROGRAM)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "status 0\n", done.stderr


ADD = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""


class Clock:
    """Replaces a timer; its time comes when the test says so."""

    running: list[Clock]

    def __init__(self, seconds, function, arguments):
        self.seconds, self.function, self.arguments = seconds, function, arguments

    def start(self) -> None:
        self.running.append(self)

    def cancel(self) -> None:
        self.running.remove(self)

    def strike(self) -> None:
        self.function(*self.arguments)


@pytest.fixture
def clocks(tmp_path, monkeypatch) -> list[Clock]:
    config.update("axir_cache_dir", str(tmp_path))
    config.update("axir_compiler", "iree")
    monkeypatch.setattr(Clock, "running", [], raising=False)
    monkeypatch.setattr(waiting, "Timer", Clock)
    return Clock.running


@pytest.fixture
def slow_compiler(clocks, monkeypatch) -> None:
    invoke = compilation._invoke

    def wait_and_invoke(*arguments):
        for clock in clocks:
            clock.strike()
        return invoke(*arguments)

    monkeypatch.setattr(compilation, "_invoke", wait_and_invoke)


@pytest.mark.usefixtures("slow_compiler")
def test_a_slow_compilation_names_the_function_and_its_size(clocks, caplog):
    @axir.jit
    def doubled_and_added(x):
        return x * 2 + 1

    assert doubled_and_added(3.0) == 7
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.name == "axir.runtime.compiler.waiting"
    message = record.getMessage()
    assert message.startswith("compiling 'doubled_and_added' takes more than 5 s: it is ")
    assert " lines of StableHLO. " in message
    assert message.endswith(
        "Its next compilation comes from the disk cache. The option axir_slow_compile_seconds sets "
        "after how long this is said."
    )
    assert clocks == []
    assert doubled_and_added(4.0) == 9
    axir.clear_caches()
    assert doubled_and_added(5.0) == 11  # from the disk
    assert len(caplog.records) == 1


@pytest.mark.usefixtures("slow_compiler")
def test_lines_are_counted_without_locations(caplog):
    compile_module(ADD + '#loc1 = loc("a.py":1:1)\n', Target())
    assert "it is 5 lines of StableHLO" in caplog.records[0].getMessage()


@pytest.mark.usefixtures("slow_compiler")
def test_bytecode_has_bytes(caplog):
    bytecode = b"ML\xefR" + bytes(1996)
    with pytest.raises(CompileError):
        compile_module(bytecode, Target())
    assert "it is 2,000 bytes of StableHLO" in caplog.records[0].getMessage()


def test_a_fast_compilation_says_nothing(clocks, caplog):
    compile_module(ADD, Target())
    assert clocks == []
    assert caplog.records == []


@pytest.mark.usefixtures("slow_compiler")
def test_the_option_sets_the_time(clocks, caplog):
    with config(axir_slow_compile_seconds=60):
        compile_module(ADD, Target())
    assert "takes more than 60 s" in caplog.records[0].getMessage()


@pytest.mark.usefixtures("slow_compiler")
def test_zero_says_nothing(caplog):
    with config(axir_slow_compile_seconds=0):
        compile_module(ADD, Target())
    assert caplog.records == []
