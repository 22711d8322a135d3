"""IREE's compiler library: loaded without changes of logging, and stopped between its phases.

The wheel calls `logging.debug`, which adds a handler to a root logger without handlers: the user's
`logging.basicConfig` would have no effect, and warnings would look different.

In the phase `executable-targets` the kernels are about to become machine code, and the rest of the
program gives each kernel the parts of buffers that it runs on: all sizes and numbers of workgroups
are known.

Here: the library, a trial reading of bytecode, the phases, and operations of modules by name.
Elsewhere: the faults of bytecode (`axir.dialect.text.parsing`), reading the program of the last
phase (`axir.runtime.cpp.reading`), running the compiler (`invoker.py`).
"""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from iree.compiler import ir
from iree.compiler.passmanager import PassManager

__all__ = ["Invocation", "Output", "Session", "Source", "ctypes_dl", "keeping_logging"]


@contextmanager
def keeping_logging() -> Iterator[None]:
    """Prevents code in the block from adding a handler to the root logger."""
    handler = logging.NullHandler()
    logging.root.addHandler(handler)
    try:
        yield
    finally:
        logging.root.removeHandler(handler)


with keeping_logging():
    from iree.compiler.api import Invocation, Output, Session, Source, ctypes_dl


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


HOST_PHASE = "executable-targets"


def set_phases(invocation: Invocation, *, start: str | None = None, to: str | None = None) -> None:
    """Says from where and how far an invocation compiles; the wheel's Python API cannot."""
    for direction, phase in (("From", start), ("To", to)):
        if phase is not None:
            function = getattr(
                ctypes_dl._dylib, f"ireeCompilerInvocationSetCompile{direction}Phase"
            )
            function.restype = None
            function.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
            function(invocation._inv_p, phase.encode())


def rename_executables(module: ir.Operation, prefix: str) -> None:
    """Prefixes the symbols that the object file exports, so that several models can be linked.

    A library of several executables is named after the module; a library of one executable is named
    after it.
    """
    with module.context:
        module.attributes["sym_name"] = ir.StringAttr.get(prefix)
    symbols = ir.SymbolTable(module)
    for index, executable in enumerate(_operations(module, "hal.executable")):
        old = ir.StringAttr(executable.attributes["sym_name"]).value
        new = prefix if index == 0 else f"{prefix}_{index}"
        with module.context:
            ir.SymbolTable.replace_all_symbol_uses(old, new, module)
            symbols.set_symbol_name(executable, new)


def remove_kernels(module: ir.Operation) -> bytes:
    """Returns the text of a module without the code of its kernels."""
    host = module.clone(ip=False)
    for executable in _operations(host, "hal.executable"):
        for variant in _operations(executable, "hal.executable.variant"):
            for code in _operations(variant, "builtin.module"):
                code.erase()
    return host.get_asm(enable_debug_info=True).encode()


def remove_locations(module: ir.Operation) -> None:
    """Removes source locations, so that object files contain no paths of this machine."""
    with module.context:
        PassManager.parse("any(strip-debuginfo)").run(module)


def _operations(parent: ir.Operation, name: str) -> list[ir.Operation]:
    return [
        op.operation
        for region in parent.regions
        for block in region
        for op in block.operations
        if op.operation.name == name
    ]


def operations_named(top: ir.Operation, names: Collection[str]) -> list[ir.Operation]:
    """Returns the operations with one of these names that are nested in another one."""
    found: list[ir.Operation] = []

    def collect(operation: ir.Operation) -> ir.WalkResult:
        if operation.name in names:
            found.append(operation)
        return ir.WalkResult.ADVANCE

    top.walk(collect)
    return found
