"""Islands: the operations of a program between two of its kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from iree.compiler import ir

from axir.dialect.builders.kernels import Memory
from axir.dialect.builders.kernels.packing import MOST_BINDINGS
from axir.passes.legalize.host_functions import host_function
from axir.passes.legalize.regions import captured_by

from .code import Code
from .emitter import HANDED_ON, Emitter
from .region_kernel import region_kernel
from .values import Value

KERNEL = "flow.dispatch"
SUMS = tuple(
    f"stablehlo.{name}"
    for name in "reduce reduce_window scatter dot_general convolution select_and_scatter".split()
)
"""What adds up, in an order that IREE and kernels of ours each choose."""

_ALIASES = ("stablehlo.reshape", "stablehlo.bitcast_convert", *HANDED_ON)

Island = list[ir.Operation]


def is_float_sum(operation: ir.Operation) -> bool:
    """Tells whether an operation adds up numbers that are rounded."""
    floats = (ir.FloatType, ir.ComplexType)
    return operation.name in SUMS and any(
        isinstance(x.type.element_type, floats) for x in operation.results
    )


def islands_of(operations: Sequence[ir.Operation]) -> list[Island]:
    """Returns the islands of a function's operations.

    What only reads an array from outside as another one belongs to none, nor do constants.
    """
    islands: list[Island] = [[]]
    inside: set[ir.Value] = set()
    for operation in operations[:-1]:
        if operation.name == KERNEL or host_function(operation) is not None:
            islands.append([])
            inside.clear()
        elif operation.name == "stablehlo.constant":
            continue
        elif operation.name in _ALIASES and inside.isdisjoint(operation.operands):
            continue
        else:
            islands[-1].append(operation)
            inside.update(operation.results)
    return list(filter(None, islands))


def without_aliases_at_the_end(island: Island) -> Island:
    """Leaves out operations at the end that give what they take to nobody inside.

    They come after all others: who takes a kernel's result as another array need not copy it.
    """
    kept = list(island)
    aliases = []
    for operation in reversed(island):
        readers = {_top(use.owner) for x in operation.results for use in x.uses}
        if operation.name in _ALIASES and readers.isdisjoint(kept):
            kept.remove(operation)
            aliases.append(operation)
    for operation in aliases:
        operation.move_after(kept[-1])
    return kept


def connected(island: Island) -> list[Island]:
    """Cuts an island into parts none of which reads what another one computes."""
    part_of: dict[ir.Value, int] = {}
    parts: dict[int, Island] = {}
    for number, operation in enumerate(island):
        touched = {part_of[x] for x in _read_by(operation) if x in part_of}
        merged = [operation]
        for old in sorted(touched):
            merged = [*parts.pop(old), *merged]
        parts[number] = merged
        part_of.update((x, number) for member in merged for x in member.results)
    position = {operation: number for number, operation in enumerate(island)}
    return [sorted(part, key=position.__getitem__) for part in parts.values()]


def fuse_island(island: Island, code: Code, name: str, most_bindings: int = MOST_BINDINGS) -> None:
    """Makes a kernel of operations, in the place of the last one.

    Args:
        island: The operations, in order.
        code: The symbols of the module.
        name: What the kernel is called.
        most_bindings: As for `dispatch`: IREE has room for few, kernels without it for many.
    """
    last = island[-1]
    made_here = [result for operation in island for result in operation.results]
    outside = [
        x for x in dict.fromkeys(y for z in island for y in _read_by(z)) if x not in made_here
    ]
    members = set(island)
    ends = [x for x in made_here if any(_top(use.owner) not in members for use in x.uses)]
    with ir.InsertionPoint.after(last), last.location:
        end = ir.Operation.create(
            "stablehlo.optimization_barrier", results=[x.type for x in ends], operands=ends
        )

    def build(emitter: Emitter, places: Mapping[int, Memory]) -> dict[int, Value]:
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
    """Returns what an operation reads, also in its regions."""
    found = list(operation.operands)
    if len(operation.regions) and operation.name != "linalg.generic":
        found += captured_by(operation)
    return found


def _top(operation: ir.Operation) -> ir.Operation:
    """Returns the operation of the function that holds another one, or is it."""
    operation = operation.operation
    while operation.parent.name != "func.func":
        operation = operation.parent
    return operation
