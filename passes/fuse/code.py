"""What a module offers to the kernels made of its parts: functions, and kernels it has already."""

from __future__ import annotations

from iree.compiler import ir, passmanager

from axir.passes.legalize.rewriting import operations_in_order
from axir.passes.legalize.stages import operation_names


class Code:
    """The symbols of a module.

    Attributes:
        functions: Functions, by name.
        executables: Kernels, by name.
    """

    def __init__(self, module: ir.Module):
        self.functions = _by_name(module, "func.func")
        self.executables = _by_name(module, "stream.executable")


def _by_name(module: ir.Module, kind: str) -> dict[str, ir.Operation]:
    found = operations_in_order(module.operation, (kind,))
    return {
        ir.StringAttr(x.attributes["sym_name"]).value: x
        for x in found
        if x.parent == module.operation
    }


def write_out_functions(module: ir.Module) -> None:
    """Replaces the functions of CHLO by formulas, as IREE would later."""
    if any(name.startswith("chlo.") for name in operation_names(module)):
        pipeline = "builtin.module(func.func(chlo-legalize-to-stablehlo))"
        passmanager.PassManager.parse(pipeline).run(module.operation)
