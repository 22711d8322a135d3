"""`read_program`: from the text of the phase `executable-targets` to a `HostProgram`.

Elsewhere: the operations of functions (`function_reader.py`), constants (`constants.py`), the
compiler (`axir.runtime.compiler`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from iree.compiler import ir

from axir.runtime.cpp.program.host_program import (
    HostFunction,
    HostProgram,
    Machine,
)

from .function_reader import FunctionReader, kind_of, user_line
from .kernel_table import KernelTable


def read_program(text: str, constants: list[bytes] | None = None) -> HostProgram:
    """Reads a program.

    Args:
        text: A module of the phase `executable-targets`, as `compile_object` returns it.
        constants: The constants of other programs, which it may share; its constants are added.

    Raises:
        CppEmissionError: if the program has an operation that C++ is not written for; names the
            operation and the user's line.
    """
    # A context separate from the process-wide one, which would keep the constants until it ends.
    with ir.Context() as context:
        context.enable_multithreading(False)
        return _ModuleReader(ir.Module.parse(text), [] if constants is None else constants).read()


class _ModuleReader:
    def __init__(self, module: ir.Module, constants: list[bytes]):
        self._module = module
        self._kernels = KernelTable()
        self._globals: dict[str, str] = {}
        self._constants = constants
        self._machine: Machine | None = None

    def read(self) -> HostProgram:
        for executable in _named(self._module.operation, "hal.executable"):
            self._read_kernels(executable)
        for operation in _named(self._module.operation, "util.global"):
            kind = kind_of(ir.TypeAttr(operation.attributes["type"]).value)
            if kind is not None:
                self._globals[_text(operation, "sym_name")] = kind
        functions, initializers = {}, []
        for operation in _named(self._module.operation, "util.initializer"):
            initializers.append(self._read_function(operation, "initialize"))
        for operation in _named(self._module.operation, "util.func"):
            name = _text(operation, "sym_name")
            if _text(operation, "sym_visibility") == "public":
                functions[name] = self._read_function(operation, name)
        return HostProgram(
            functions,
            tuple(initializers),
            self._globals,
            self._kernels.called,
            tuple(self._constants),
            self._machine,
        )

    def _read_function(self, operation: ir.Operation, name: str) -> HostFunction:
        reader = FunctionReader(self._kernels, self._globals, self._constants)
        return reader.read(operation, name)

    def _read_kernels(self, executable: ir.Operation) -> None:
        place = _text(executable, "sym_name")
        for variant in _named(executable, "hal.executable.variant"):
            self._machine = _machine(variant)
            path = f"@{place}::@{_text(variant, 'sym_name')}"
            for export in _named(variant, "hal.executable.export"):
                name = _text(export, "sym_name")
                self._kernels.add(f"{path}::@{name}", export, user_line(export))


def _machine(variant: ir.Operation) -> Machine:
    # The bindings have no class for this attribute.
    text = str(variant.attributes["target"])
    found = {key: value for key, value in re.findall(r'(\w+) = "([^"]*)"', text)}
    return Machine(found.get("target_triple", ""), found.get("cpu_features", ""))


def _named(parent: ir.Operation, name: str) -> Iterator[ir.Operation]:
    for region in parent.regions:
        for block in region:
            for operation in block.operations:
                if operation.operation.name == name:
                    yield operation.operation


def _text(operation: ir.Operation, attribute: str) -> str:
    return ir.StringAttr(operation.attributes[attribute]).value
