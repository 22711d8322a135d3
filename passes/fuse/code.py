"""The functions and existing kernels of a module that kernels made from its parts may use."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from iree.compiler import ir, passmanager

from axir.passes.legalize.rewriting import ELEMENTWISE, operations_in_order
from axir.passes.legalize.stages import operation_names

from .elementwise import CHEAP, cost_of, formula_name, length_of_formula

# How many times a formula may be written out, and how many operations of repeated long formulas:
# compiling each takes as long as a million calls of a function.
_WRITTEN_OUT = 12
_WRITTEN_AGAIN = 150
_DEAR = frozenset(name for name in ELEMENTWISE if cost_of(name) != CHEAP)


class Code:
    """The symbols of a module.

    Attributes:
        functions: Functions, by name.
        executables: Kernels, by name.
        repeated: The names of formulas that many operations have.
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
    dear = defaultdict(list)
    for operation in operations_in_order(module.operation, _DEAR):
        dear[formula_name(operation)].append(operation)
    return frozenset(name for name, found in dear.items() if name and _is_often(found))


def _is_often(operations: Sequence[ir.Operation]) -> bool:
    """Tells whether so many operations have one formula that it should be a function."""
    first, *others = operations
    length = length_of_formula(first) if others else 0
    return len(operations) > _WRITTEN_OUT or len(others) * length > _WRITTEN_AGAIN


def write_out_functions(module: ir.Module) -> None:
    """Replaces the functions of CHLO by formulas, as IREE would later."""
    if any(name.startswith("chlo.") for name in operation_names(module)):
        pipeline = "builtin.module(func.func(chlo-legalize-to-stablehlo))"
        passmanager.PassManager.parse(pipeline).run(module.operation)
