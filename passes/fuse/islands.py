"""Islands: the operations of a program between two of its kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.kernels import Memory
from axir.dialect.builders.kernels.packing import MOST_BINDINGS
from axir.passes.legalize.loops.host_scalars import is_supported
from axir.passes.legalize.regions import (
    ALIASES,
    BRANCHES,
    KERNEL,
    LOOP,
    captured_by,
    host_function,
    operations_of,
    operations_within,
)

from .elementwise import Code
from .emitter import Emitter
from .fitness import Fitness
from .region_kernel import region_kernel
from .values import Value

SUMS = tuple(
    f"stablehlo.{name}"
    for name in "reduce reduce_window scatter dot_general convolution select_and_scatter".split()
)
"""What adds up, in an order that IREE and kernels of ours each choose."""

PARTIAL = ("stablehlo.dynamic_update_slice", "stablehlo.scatter")
"""What changes parts of an array: IREE does so where it lies, if nobody else reads it."""
LARGE_BYTES = 1 << 15
"""Smaller arrays are copied faster than another operation is begun."""
# The work of one thread in about 10 microseconds.
_MOST_WORK_OF_BRANCH = 1 << 17

Island = list[ir.Operation]


def is_float_sum(operation: ir.Operation) -> bool:
    """Tells whether an operation sums numbers with rounding."""
    floats = (ir.FloatType, ir.ComplexType)
    return operation.name in SUMS and any(
        isinstance(x.type.element_type, floats) for x in operation.results
    )


def is_step(operation: ir.Operation, fitness: Fitness) -> bool:
    """Tells whether an operation is a separate step of a program: a kernel, a call of a host
    function, or a loop or branch that no kernel holds.
    """
    if operation.name in (KERNEL, LOOP) or host_function(operation) is not None:
        return True
    if operation.name not in BRANCHES:
        return False
    if fitness.of_small([operation], _MOST_WORK_OF_BRANCH) is not None:
        return True
    return any(x.name in (KERNEL, LOOP) for x in operations_within(operation))


def blocks_of(operations: Sequence[ir.Operation], fitness: Fitness) -> list[list[ir.Operation]]:
    """Returns a block's operations, preceded by the blocks in its loops and branches that are
    steps; inner blocks come first.
    """
    found = []
    for operation in operations:
        if operation.name in (LOOP, *BRANCHES) and is_step(operation, fitness):
            for inner in operations_of(operation):
                found += blocks_of(inner, fitness)
    return [*found, list(operations)]


def islands_of(
    operations: Sequence[ir.Operation], fitness: Fitness, *, is_for_both: bool = False
) -> list[Island]:
    """Returns the islands of a block's operations.

    Operations that only reinterpret an array from outside, and constants, belong to no island.

    Args:
        operations: The operations.
        fitness: Tells which of them kernels can hold.
        is_for_both: Whether IREE also runs the kernels. IREE computes loop counters, and the
            integers that follow from them, on the host, and it updates parts of large arrays in
            place. Neither then belongs to an island.
    """
    islands: list[Island] = [[]]
    inside: set[ir.Value] = set()
    for operation in operations[:-1]:
        if is_step(operation, fitness) or (is_for_both and _updates_large(operation)):
            islands.append([])
            inside.clear()
        elif operation.name == "stablehlo.constant":
            continue
        elif inside.isdisjoint(operation.operands) and (
            operation.name in ALIASES or (is_for_both and _is_counter(operation))
        ):
            continue
        else:
            islands[-1].append(operation)
            inside.update(operation.results)
    return list(filter(None, islands))


def without_aliases_at_the_end(island: Island) -> Island:
    """Removes reinterpretations at the end that no operation of the island reads.

    They are moved behind the others: a reinterpretation of a kernel's result needs no copy.
    """
    kept = list(island)
    aliases = []
    for operation in reversed(island):
        readers = {_beside(operation, use.owner) for x in operation.results for use in x.uses}
        if operation.name in ALIASES and readers.isdisjoint(kept):
            kept.remove(operation)
            aliases.append(operation)
    for operation in aliases:
        operation.move_after(kept[-1])
    return kept


def _is_counter(operation: ir.Operation) -> bool:
    return len(operation.results) == 1 and is_supported(operation.results[0])


def _updates_large(operation: ir.Operation) -> bool:
    if operation.name not in PARTIAL:
        return False
    return hlo.bytes_of(operation.operands[0]) >= LARGE_BYTES


def connected(island: Island) -> list[Island]:
    """Cuts an island into parts that do not read each other's results, in the order of their last
    operations.
    """
    # For each operation a later one of its part; the last operation of a part maps to itself.
    later = list(range(len(island)))
    makers: dict[ir.Value, int] = {}
    for number, operation in enumerate(island):
        for x in _read_by(operation):
            if x in makers:
                later[_last_of(makers[x], later)] = number
        makers.update(dict.fromkeys(operation.results, number))
    parts: dict[int, Island] = {}
    for number, operation in enumerate(island):
        parts.setdefault(_last_of(number, later), []).append(operation)
    return [parts[last] for last in sorted(parts)]


def _last_of(number: int, later: list[int]) -> int:
    """Follows the numbers of later operations to the last one, and shortens the way."""
    while later[number] != number:
        later[number] = later[later[number]]
        number = later[number]
    return number


def fuse_island(island: Island, code: Code, name: str, most_bindings: int = MOST_BINDINGS) -> None:
    """Makes a kernel of operations, in the place of the last one.

    Args:
        island: The operations, in order.
        code: The symbols of the module.
        name: The name of the kernel.
        most_bindings: As for `dispatch`: IREE has room for few, kernels without it for many.
    """
    last = island[-1]
    made_here = dict.fromkeys(result for operation in island for result in operation.results)
    outside = [
        x for x in dict.fromkeys(y for z in island for y in _read_by(z)) if x not in made_here
    ]
    members = set(island)
    ends = [x for x in made_here if any(_beside(last, use.owner) not in members for use in x.uses)]
    with ir.InsertionPoint.after(last), last.location:
        end = ir.Operation.create(
            "stablehlo.optimization_barrier", results=[x.type for x in ends], operands=ends
        )

    def build(emitter: Emitter, places: Mapping[int, Memory]) -> dict[int, Value]:
        emitter.targets = {x: places[number] for number, x in enumerate(ends) if number in places}
        return dict(enumerate(emitter.block([*island, end], ())))

    results = {number: x.type for number, x in enumerate(ends)}
    with ir.InsertionPoint.after(end), last.location:
        made = region_kernel(name, code, outside, results, build, most_bindings)
    end.erase()
    for number, x in enumerate(ends):
        x.replace_all_uses_with(made[number])
    for operation in reversed(island):
        operation.erase()


def _read_by(operation: ir.Operation) -> list[ir.Value]:
    """Returns the values that an operation reads, also in its regions."""
    found = list(operation.operands)
    if len(operation.regions) and operation.name != "linalg.generic":
        found += captured_by(operation)
    return found


def _beside(other: ir.Operation, operation: ir.Operation) -> ir.Operation:
    """Returns the operation in another one's block that is or contains an operation."""
    operation = operation.operation
    while operation.block != other.block:
        operation = operation.parent
    return operation
