"""The compiler's passes are not verified one by one; their result after a phase is."""

from __future__ import annotations

from typing import Any

import pytest
from iree.compiler import ir

from axir.passes.legalize.rewriting import operations_in_order
from axir.runtime import Target
from axir.runtime.compiler.binaries import linker_flags
from axir.runtime.compiler.invocation import invoker
from axir.runtime.compiler.invocation.invoker import UNVERIFIED, Invoker
from axir.runtime.compiler.target import PROCESS_FLAGS

TWO_DISPATCHES = b"""
func.func @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.dot %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = stablehlo.dot %0, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %1 : tensor<4x4xf32>
}
"""


def test_optimized_programs_alone_are_compiled_unverified() -> None:
    assert [UNVERIFIED in Target(opt_level=level).flags() for level in range(4)] == [
        False, True, True, True,
    ]  # fmt: skip
    assert UNVERIFIED not in Target().plain.flags()


def exchange_dispatches(module: ir.Operation) -> None:
    """Puts the second dispatch before the first one, although it takes the first one's result."""
    first, second = operations_in_order(module, ["flow.dispatch.workgroups"])
    second.move_before(first)


def test_what_a_phase_breaks_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    compile_between = invoker._compile_between

    def compile_and_break(session: Any, invocation: Any, start: str | None, end: str) -> bool:
        is_good = compile_between(session, invocation, start, end)
        if end == "dispatch-creation":
            module = invocation.export_module()
            exchange_dispatches(module)
            invocation.import_module(module)
        return is_good

    monkeypatch.setattr(invoker, "_compile_between", compile_and_break)
    reported: list[str] = []
    flags = Target().flags() + linker_flags()
    assert Invoker(PROCESS_FLAGS).compile(TWO_DISPATCHES, flags, reported.append) is None
    assert any("does not dominate this use" in text for text in reported)
