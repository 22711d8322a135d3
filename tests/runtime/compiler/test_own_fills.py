"""Each part of a program has separate fills with a number."""

from __future__ import annotations

import pytest
from iree.compiler import ir

from axir.dialect.core.context import context
from axir.runtime.compiler.invocation.own_copies import give_own_fills

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
