"""Sequences of rewrites that form one pass; a rewrite without work is skipped.

A rewrite is neither imported nor run unless the module holds an operation that it looks for: most
programs need few of them, and importing all takes longer than loading a compiled program.
Elsewhere: the sequences (`legalize_for_iree.py`, `passes/tune/tune_for_cpu.py`), and pipelines that
users write (`passes/framework/pipeline.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core.annotations import OptionValue
from axir.dialect.core.timeline import span
from axir.passes.framework.registry import find_pass

from .regions import operations_of
from .rewriting import CLOSED, operations_in_order

GPUS = ("vulkan", "cuda", "rocm", "metal")
SPIRV = ("vulkan", "metal")
"""The platforms with programs in SPIR-V."""


class Stage(NamedTuple):
    """The operations that a pass looks for: without any of them, it does not change a module.

    Attributes:
        operations: Names of operations.
        on: The platforms on which the pass runs; empty for all.
        is_fusion: Whether the pass makes kernels, and is left out if kernels are not wanted.
        also: Other operations that the pass looks for, under other conditions.
        is_complex: Whether only operations on complex numbers count.
        is_narrow: Whether only operations on narrow elements count, such as float8 and int4.
        is_double: Whether only operations with doubles as their first result count.
        has_several: Whether only operations with several results count.
        calls: Whether only operations with a call in their body count.
    """

    operations: tuple[str, ...]
    on: tuple[str, ...] = ()
    is_fusion: bool = False
    also: tuple[Stage, ...] = ()
    is_complex: bool = False
    is_narrow: bool = False
    is_double: bool = False
    has_several: bool = False
    calls: bool = False

    def is_on(self, platform: str) -> bool:
        """Tells whether the pass runs on a platform."""
        return not self.on or platform in self.on

    def for_platform(self, platform: str) -> Stage:
        """Returns the stage with the operations that the pass looks for on a platform."""
        return self._replace(also=tuple(stage for stage in self.also if stage.is_on(platform)))

    def finds_work(self, module: ir.Module, present: frozenset[str]) -> bool:
        """Tells whether a module holds a wanted operation; `present` are its operations' names."""
        if any(stage.finds_work(module, present) for stage in self.also):
            return True
        if present.isdisjoint(self.operations):
            return False
        wanted = [
            (self.is_complex, _is_on_complex),
            (self.is_narrow, _is_on_narrow),
            (self.is_double, _is_of_doubles),
            (self.has_several, _has_several_results),
            (self.calls, _calls),
        ]
        conditions = [condition for is_set, condition in wanted if is_set]
        found = operations_in_order(module.operation, self.operations) if conditions else ()
        return all(any(map(condition, found)) for condition in conditions)


def looks_for(
    names: str, on: tuple[str, ...] = (), *, also: tuple[Stage, ...] = (), **conditions: bool
) -> Stage:
    """Returns a stage by names of operations; names without a dialect are StableHLO's.

    >>> looks_for("sine chlo.tan").operations
    ('stablehlo.sine', 'chlo.tan')
    """
    operations = (name if "." in name else f"stablehlo.{name}" for name in names.split())
    return Stage(tuple(operations), on, also=also, **conditions)


def run_stages(
    module: ir.Module, stages: Mapping[str, Stage], options: Mapping[str, Mapping[str, OptionValue]]
) -> None:
    """Runs the passes that find work, in place.

    Args:
        module: The module that they change.
        stages: The stages by names of passes, in the order of the passes.
        options: Options of some of the passes, by name.
    """
    present = operation_names(module)
    for name, stage in stages.items():
        if stage.finds_work(module, present):
            with span(name, "compiler"):
                find_pass(name)(**options.get(name, {})).run(module)
            present = operation_names(module)


def operation_names(module: ir.Module) -> frozenset[str]:
    """Returns the names of all operations but those in `CLOSED` ones."""
    names: set[str] = set()

    def visit(operation: ir.Operation) -> ir.WalkResult:
        name = operation.name
        names.add(name)
        return ir.WalkResult.SKIP if name in CLOSED else ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return frozenset(names)


def _is_on_complex(operation: ir.Operation) -> bool:
    return any(map(hlo.is_complex, (*operation.operands, *operation.results)))


def _is_of_doubles(operation: ir.Operation) -> bool:
    return isinstance(hlo.element_type_of(operation.results[0]), ir.F64Type)


def _has_several_results(operation: ir.Operation) -> bool:
    return len(operation.results) > 1


def _calls(operation: ir.Operation) -> bool:
    return operations_of(operation)[0][0].name == "func.call"


def _is_on_narrow(operation: ir.Operation) -> bool:
    if operation.name == "func.func":
        function_type = operation.attributes["function_type"].value
        return any(map(hlo.is_narrow_tensor, (*function_type.inputs, *function_type.results)))
    values = (*operation.operands, *operation.results)
    return any(hlo.is_narrow_tensor(value.type) for value in values)
