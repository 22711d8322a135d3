"""Separate copies of operands, and separate fills."""

from __future__ import annotations

import re

import numpy as np
import pytest
from iree.compiler import ir
from support.stablehlo_runner import Example, build, deviations, run_examples

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core.context import context
from axir.passes.framework.pipeline import run_passes
from axir.runtime import Target, compile_module
from axir.runtime.compiler.binaries import linker_flags
from axir.runtime.compiler.invocation import stream_passes
from axir.runtime.compiler.invocation.invoker import Invoker
from axir.runtime.compiler.invocation.own_copies import give_own_fills, read_originals
from axir.runtime.compiler.invocation.stream_passes import WrongMemoryError
from axir.runtime.compiler.target import PROCESS_FLAGS

X = np.arange(6, dtype=np.float64).reshape(3, 2)
SINES = np.sin(X)
CHANGED = SINES.copy()
CHANGED[1:, 0] = SINES[2]
PLACE = np.int32(1)
PASSES = "protect-inputs,branch-loops"


def put_last_row_in_column(x, row, place):
    last = hlo.reshape(hlo.slice(row, [4], [6]), (2, 1))
    return hlo.dynamic_update_slice(x, last, [place, hlo.constant(np.int32(0))])


def computed_twice(x, place):
    """Only the compiler finds out that the two arrays are equal."""
    row = hlo.sine(hlo.reshape(x, (6,)))
    return [put_last_row_in_column(hlo.sine(x), row, place)]


def read_later(x, place):
    sines = hlo.sine(x)
    row = hlo.sine(hlo.reshape(x, (6,)))
    return [put_last_row_in_column(sines, row, place), hlo.add(sines, sines)]


def in_a_loop(x, place):
    """Puts the last row into the column twice, each time the row of the current array."""

    def is_running(i, _):
        return hlo.compare(i, hlo.constant(np.int32(2)), "LT")

    def step(i, y):
        one = hlo.constant(np.int32(1))
        row = hlo.negate(hlo.reshape(y, (6,)))
        return [hlo.add(i, one), put_last_row_in_column(hlo.negate(y), row, place)]

    return [hlo.while_([hlo.constant(np.int32(0)), x], is_running, step)[1]]


def looped() -> np.ndarray:
    y = X
    for _ in range(2):
        y = -y
        y[1:, 0] = y[2].copy()
    return y


EXAMPLES = [
    Example("computed_twice", (X, PLACE), computed_twice, [CHANGED]),
    Example("read_later", (X, PLACE), read_later, [CHANGED, SINES + SINES]),
    Example("in_a_loop", (X, PLACE), in_a_loop, [looped()]),
]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_the_first_program_is_right(example: Example, caplog: pytest.LogCaptureFixture) -> None:
    results = run_examples(
        [example], PASSES, compiler=lambda module: compile_module(module, Target())
    )
    assert deviations(results[example.name], example, ulps=4) == []
    assert "is compiled again" not in caplog.text


def compiled(example: Example) -> bytes | None:
    module = build({example.name: (example.arguments, example.builder)})
    run_passes(module, PASSES)
    return Invoker(PROCESS_FLAGS).compile(
        str(module).encode(), (*Target().flags(), *linker_flags()), print
    )


@pytest.mark.makes_wrong_programs
def test_else_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_passes, "has_read_what_changes", lambda module: False)
    with pytest.raises(
        WrongMemoryError, match="slow_memcpy .*writes to what it reads or writes elsewhere"
    ):
        compiled(EXAMPLES[0])


def test_other_programs_take_the_passes_of_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(module: ir.Operation) -> int:
        raise AssertionError("a program that reads nothing that it changes")

    def put_another(x, place):
        row = hlo.cosine(hlo.reshape(x, (6,)))
        return [put_last_row_in_column(hlo.sine(x), row, place)]

    monkeypatch.setattr(stream_passes, "read_originals", fail)
    assert compiled(Example("another", (X, PLACE), put_another, [])) is not None
    with pytest.raises(AssertionError, match="reads nothing"):
        compiled(EXAMPLES[0])


def test_a_copy_is_not_read() -> None:
    array = "!stream.resource<*>"
    kernel = f"({array}{{%n}}, {array}{{%n}}) -> %c{{%n}}"
    text = f"""
      util.func public @f(%x: {array}, %n: index) -> {array} {{
        %c0 = arith.constant 0 : index
        %c = stream.async.clone %x : {array}{{%n}} -> {array}{{%n}}
        %y = stream.async.dispatch @e::@k(%c[%c0 to %n for %n], %c[%c0 to %n for %n]) : {kernel}
        util.return %y : {array}
      }}
    """
    with ir.Context():
        module = ir.Module.parse(text)
        assert read_originals(module.operation) == 1
        assert module.operation.verify()
        (line,) = [x for x in str(module).splitlines() if "dispatch" in x]
        assert re.findall(r"(%\w+)\[", line) == ["%0", "%arg0"]
        assert read_originals(module.operation) == 0


SCHEDULED = """
util.func private @main(%a: ARRAY) -> ARRAY {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0 : i8
  %fill = stream.async.splat %zero : i8 -> ARRAY{%c8}
  %0 = stream.async.dispatch @e::@f(PART) : (ARRAY{%c8}) -> ARRAY{%c8}
  %1 = stream.async.dispatch @e::@f(PART) : (ARRAY{%c8}) -> ARRAY{%c8}
  BARRIER
  %3 = stream.async.dispatch @e::@f(PART) : (ARRAY{%c8}) -> ARRAY{%c8}
  %4 = stream.async.dispatch @e::@f(PART) : (ARRAY{%c8}) -> ARRAY{%c8}
  util.return %4 : ARRAY
}
"""
ARRAY = "!stream.resource<transient>"
WAIT = "%wait = util.optimization_barrier %{} : {}"


def parsed(text: str, barrier: str) -> ir.Module:
    text = text.replace("BARRIER", barrier).replace("PART", "%fill[%c0 to %c8 for %c8]")
    return ir.Module.parse(text.replace("ARRAY", ARRAY))


@pytest.mark.parametrize("waits", [True, False])
def test_readers_behind_a_wait_have_another_fill(waits: bool) -> None:
    barrier = WAIT.format(1, ARRAY) if waits else ""
    with context():
        module = parsed(SCHEDULED, barrier)
        assert give_own_fills(module.operation) == waits
        assert module.operation.verify()
        lines = str(module).splitlines()
    fills = [n for n, line in enumerate(lines) if "stream.async.splat" in line]
    assert len(fills) == 1 + waits
    if waits:
        assert "optimization_barrier" in lines[fills[1] - 1]
        name = lines[fills[1]].split()[0]
        assert [name in line for line in lines[fills[1] + 1 : fills[1] + 3]] == [True, True]
