"""Functions of kernels stay functions."""

from __future__ import annotations

from iree.compiler import ir

from axir.dialect.builders.kernels.functions import FUNCTION_MARK
from axir.runtime.compiler.invocation.kernel_code import keep_functions

TEXT = f"""
llvm.func @program_0(%x: f32) -> f32 {{
  %0 = llvm.call @program_0{FUNCTION_MARK}0(%x) : (f32) -> f32
  llvm.return %0 : f32
}}
llvm.func @program_0{FUNCTION_MARK}0(%x: f32) -> f32 {{
  llvm.return %x : f32
}}
"""


def test_functions_of_kernels_are_not_inlined() -> None:
    with ir.Context():
        module = ir.Module.parse(TEXT)
        assert keep_functions(module.operation) == 1
        assert module.operation.verify()
        kernel, function = str(module).split("llvm.func")[1:]
    assert "noinline" not in kernel
    assert "internal" in function
    assert 'passthrough = ["noinline"]' in function
