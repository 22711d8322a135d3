"""Reads MLIR bytecode, to see whether the reader survives it.

Elsewhere: the faults of bytecode (`axir.dialect.text.parsing`).
"""

from __future__ import annotations

from iree.compiler import ir


def try_to_read(bytecode: bytes) -> None:
    """Reads, walks and prints a module; this process crashes if that does."""
    context = ir.Context()
    context.allow_unregistered_dialects = True
    context.enable_multithreading(False)
    try:
        module = ir.Module.parse(bytecode, context)
    except (ir.MLIRError, ValueError, RuntimeError):
        return  # an error and no crash
    module.operation.get_asm(binary=True, enable_debug_info=True)
