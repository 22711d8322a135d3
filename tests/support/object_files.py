"""Object files of LLVM IR, to test their loader."""

from __future__ import annotations

from axir.runtime.compiler.invocation.llvm_text import for_older_llvm
from axir.runtime.compiler.invocation.native import NativeCompiler


def object_of(text: str) -> bytes:
    """Compiles LLVM IR for this machine as kernels are compiled."""
    return NativeCompiler()._object(for_older_llvm(text.encode()))
