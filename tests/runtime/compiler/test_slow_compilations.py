"""The message about compilations that take long."""

from __future__ import annotations

import logging

import pytest

import axir
from axir.dialect.core.config import config
from axir.runtime import CompileError, Target, compile_module
from axir.runtime.compiler import compilation, waiting

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
