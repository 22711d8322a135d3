"""Stops the compiler half way, where the program that calls the kernels is still easy to read.

In the phase `executable-targets` the kernels are about to become machine code, and the rest of the
program gives each kernel the parts of buffers that it runs on: all sizes and numbers of workgroups
are known. Elsewhere: reading that program (`axir.runtime.cpp.reading`), running the compiler
(`invoker.py`).
"""

from __future__ import annotations

import ctypes

from iree.compiler import ir
from iree.compiler.passmanager import PassManager

from .library import Invocation, ctypes_dl

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
