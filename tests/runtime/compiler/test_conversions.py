"""Computations on nan give nan, also where LLVM knows the number."""

from __future__ import annotations

import numpy as np
import pytest
from iree.compiler import ir

import axir
import axir.numpy as jnp
from axir.runtime.compiler.invocation import invoker
from axir.runtime.compiler.invocation.kernel_code import freeze_conversions

X = np.arange(1, 6, dtype=np.float32)

KERNEL = """
llvm.func @kernel(%x: f32, %y: vector<4xf64>) -> i32 {
  %0 = llvm.fptosi %x : f32 to i32
  %1 = llvm.fptoui %y : vector<4xf64> to vector<4xi64>
  %2 = llvm.add %0, %0 : i32
  llvm.return %2 : i32
}
"""


def test_all_uses_read_what_is_frozen() -> None:
    with ir.Context():
        module = ir.Module.parse(KERNEL)
        freeze_conversions(module.operation)
        assert module.operation.verify()
        lines = [line.strip() for line in str(module).splitlines()]
    assert "%1 = llvm.freeze %0 : i32" in lines
    assert "%3 = llvm.freeze %2 : vector<4xi64>" in lines
    assert "%4 = llvm.add %1, %1 : i32" in lines


def exponential_of_nan(number: float) -> np.ndarray:
    """`exp(nan)` with an operand that the compiler knows, by a program with a number in it."""
    return np.asarray(axir.jit(lambda x: jnp.exp(x * jnp.nan) + number)(X))


def test_exponential_of_nan_is_nan() -> None:
    assert np.isnan(exponential_of_nan(1.0)).all()


def test_it_is_still_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    axir.config.update("axir_isolate_compiler", "never")
    axir.config.update("axir_compiler", "iree")
    monkeypatch.setattr(invoker, "freeze_conversions", lambda module: None)
    assert not np.isnan(exponential_of_nan(2.0)).any()
