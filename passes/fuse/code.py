"""What a module offers to the kernels made of its parts: functions, and kernels it has already."""

from __future__ import annotations

from collections import Counter

from iree.compiler import ir, passmanager

from axir.passes.legalize.rewriting import ELEMENTWISE, operations_in_order
from axir.passes.legalize.stages import operation_names

from .elementwise import CHEAP, cost_of, formula_name

# So many times a formula may be written out.
_WRITTEN_OUT = 12
_DEAR = frozenset(name for name in ELEMENTWISE if cost_of(name) != CHEAP)


class Code:
    """The symbols of a module.

    Attributes:
        functions: Functions, by name.
        executables: Kernels, by name.
        repeated: The names of formulas that stand in many operations.
    """

    def __init__(self, module: ir.Module):
        self.repeated = _repeated(module)
        self.functions = _by_name(module, "func.func")
        self.executables = _by_name(module, "stream.executable")


def _by_name(module: ir.Module, kind: str) -> dict[str, ir.Operation]:
    found = operations_in_order(module.operation, (kind,))
    return {
        ir.StringAttr(x.attributes["sym_name"]).value: x
        for x in found
        if x.parent == module.operation
    }


def _repeated(module: ir.Module) -> frozenset[str]:
    dear = operations_in_order(module.operation, _DEAR)
    if len(dear) <= _WRITTEN_OUT:
        return frozenset()
    counts = Counter(map(formula_name, dear))
    return frozenset(x for x, count in counts.items() if x and count > _WRITTEN_OUT)


def write_out_functions(module: ir.Module) -> None:
    """Replaces the functions of CHLO by formulas, as IREE would later."""
    if any(name.startswith("chlo.") for name in operation_names(module)):
        pipeline = "builtin.module(func.func(chlo-legalize-to-stablehlo))"
        passmanager.PassManager.parse(pipeline).run(module.operation)
