"""A kernel in the place of operations: its operands and results.

Elsewhere: which operations become a kernel (the passes), and the code of each operation
(`emitter.py` and the rules).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.kernels import Memory, dispatch
from axir.dialect.builders.kernels.packing import MOST_BINDINGS
from axir.dialect.core.annotations import Returning
from axir.passes.legalize.regions import operations_within

from . import control, inlining, products, reductions, updates, windows
from .elementwise import Code, is_uniform, write_out_functions
from .emitter import Emitter, Rule, is_empty, nothing_of, uniform
from .fitness import Fitness
from .values import Number, Stored, Value

# Takes an emitter, the memory of results, and the number of the workgroup if there are several.
Build: TypeAlias = Returning[Mapping[int, Value]]

RULES: dict[str, Rule] = {
    **control.RULES,
    **inlining.RULES,
    **products.RULES,
    **reductions.RULES,
    **updates.RULES,
    **windows.RULES,
}
"""What operations other than elementwise ones and views become, by name."""

_ALWAYS = 1 << 30


def region_kernel(
    name: str,
    code: Code,
    outside: Sequence[ir.Value],
    results: Mapping[int, ir.Type],
    build: Build,
    most_bindings: int = MOST_BINDINGS,
    workgroups: int | None = None,
) -> dict[int, ir.Value]:
    """Puts a kernel at the insertion point.

    Args:
        name: The name of the kernel.
        code: The symbols of the module.
        outside: The values that the operations use. Uniform constants are made again in the kernel,
            and empty arrays are neither operands nor results.
        results: The types of the results, by numbers that the caller chooses.
        build: Builds the operations; takes an emitter that knows the values from outside, and the
            memory of the results by number; with `workgroups`, also the number of the workgroup.
            Returns the results, in their memory or elsewhere.
        most_bindings: As for `dispatch`.
        workgroups: As for `dispatch`: each writes its share of the results to their memory.

    Returns:
        The results by number.
    """
    empty = [x for x in outside if is_empty(x.type)]
    present = [x for x in outside if not is_empty(x.type)]
    constants = [x for x in present if is_uniform(x)]
    operands = [x for x in present if not is_uniform(x)]
    filled = {number: kind for number, kind in results.items() if not is_empty(kind)}

    def kernel(*given: Memory) -> None:
        workgroup = given[: workgroups is not None]
        memories = given[len(workgroup) :]
        emitter = Emitter(RULES, code)
        for x, memory in zip(operands, memories, strict=False):
            emitter.values[x] = value_of(memory)
        for x in constants:
            emitter.values[x] = _always(uniform(x.owner.operation))
        for x in empty:
            emitter.values[x] = _always(nothing_of(x.type))
        places = dict(zip(filled, memories[len(operands) :], strict=True))
        ends = build(emitter, places, *workgroup)
        for number, place in places.items():
            end = ends[number]
            if not isinstance(end, Stored) or end.memory.value != place.value:
                emitter.fill(place, end)

    kinds = list(filled.values())
    made = []
    if kinds:
        made = dispatch(
            kernel,
            operands,
            kinds,
            workgroups=workgroups,
            name=name,
            most_bindings=most_bindings,
        )
    found = dict(zip(filled, made, strict=True))
    for number, kind in results.items():
        if number not in found:
            found[number] = hlo.full(0, kind.shape, kind.element_type)
    return found


def code_and_fitness(module: ir.Module) -> tuple[Code, Fitness]:
    """Returns the symbols of a module, and the test for operations that a kernel can hold, windows
    of all kinds included.
    """
    write_out_functions(module)
    code = Code(module)
    return code, Fitness(code, frozenset(RULES), has_windows=True)


def move_constants(parent: ir.Operation, operations: Sequence[ir.Operation]) -> list[ir.Operation]:
    """Moves constants that differ from element to element in front of some operations.

    Args:
        parent: The operation that holds the constants, also in nested regions.
        operations: The operations that they are moved before, in one block.

    Returns:
        The constants.
    """
    found = [
        x
        for x in operations_within(parent)
        if x.name == "stablehlo.constant" and not is_uniform(x.results[0])
    ]
    first = next((x for x in operations if x not in found), None)
    for constant in found:
        if first is not None:
            constant.move_before(first)
    return found


def value_of(memory: Memory) -> Value:
    """Returns an operand of a kernel."""
    stored = Stored(memory, is_own=False)
    if stored.size > 1:
        return _always(stored)
    return _always(Number(stored.shape, memory[(0,) * len(stored.shape)]))


def _always(value: Value) -> Value:
    """Marks an array from outside as always held, so that no last reader changes it."""
    value.holders = _ALWAYS
    return value
