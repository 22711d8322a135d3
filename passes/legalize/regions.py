"""Operations of modules by kind, and blocks of operations, read quickly.

Iterating over `block.operations` makes a Python object of a dialect's own class for each operation:
15 microseconds each, and the first of a dialect imports a package. A walk takes half a microsecond
for each operation.

Here: the operations of regions, the operations that IREE fuses into one dispatch, calls of host
functions.
Elsewhere: the operations that IREE computes element by element (`rewriting.py`), and the results
that share storage with an operand (`buffers/storage.py`).
"""

from __future__ import annotations

from collections.abc import Iterator

from iree.compiler import ir

from axir.dialect.program.function_rules import HOST

KERNEL = "flow.dispatch"
LOOP = "stablehlo.while"
BRANCHES = ("stablehlo.if", "stablehlo.case")
HANDED_ON = ("stablehlo.optimization_barrier", "util.optimization_barrier", "flow.tensor.transfer")
"""Operations that give what they take: IREE needs them."""
IN_PLACE = "axir.in_place"
"""The attribute of a kernel that may run in place: for each result an operand that it may
overwrite, which programs without IREE do where nobody reads that operand later.
"""
TRANSFORM = "axir.transform"
"""The attribute of a dispatch of the library of Fourier transforms: the transform, as text."""
WORKGROUPS = "axir.workgroups"
"""The attribute of such a dispatch: the workgroups of the kernel that takes its place for IREE."""
ALIASES = (*HANDED_ON, "stablehlo.reshape", "stablehlo.bitcast_convert")
"""Operations that give the same bytes in the same order."""
_CONTROL_FLOW = frozenset(("func.func", LOOP, *BRANCHES))


def is_run_by_itself(operation: ir.Operation) -> bool:
    """Tells whether an operation is in a function, or in a loop or a branch of one, and not in the
    body of an operation on elements.
    """
    return operation.parent.name in _CONTROL_FLOW


def operations_of(parent: ir.Operation) -> list[list[ir.Operation]]:
    """Returns the operations directly in each region of an operation, of one block each."""
    blocks = [region.blocks[0] if len(region.blocks) else None for region in parent.regions]
    found: list[list[ir.Operation]] = [[] for _ in blocks]
    if len(blocks) == 1:
        return [_operations_below(parent)]

    def visit(operation: ir.Operation) -> ir.WalkResult:
        if operation == parent:
            return ir.WalkResult.ADVANCE
        found[blocks.index(operation.block)].append(operation)
        return ir.WalkResult.SKIP

    parent.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def _operations_below(parent: ir.Operation) -> list[ir.Operation]:
    """Returns the operations directly in the only region, without a check of each parent."""
    found: list[ir.Operation] = []

    def visit(operation: ir.Operation) -> ir.WalkResult:
        found.append(operation)
        return ir.WalkResult.SKIP if len(found) > 1 else ir.WalkResult.ADVANCE

    parent.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found[1:]


def operations_within(parent: ir.Operation) -> Iterator[ir.Operation]:
    """Yields all operations in the regions of one, except in the bodies of formulas."""
    for operations in operations_of(parent):
        for operation in operations:
            yield operation
            if len(operation.regions) and operation.name != "linalg.generic":
                yield from operations_within(operation)


def captured_by(parent: ir.Operation) -> list[ir.Value]:
    """Returns the values from outside that are used in the regions of an operation."""
    inside: set[ir.Value] = set()
    outside: dict[ir.Value, None] = {}
    _collect(parent, inside, outside)
    return [value for value in outside if value not in inside]


def _collect(parent: ir.Operation, inside: set[ir.Value], outside: dict[ir.Value, None]) -> None:
    for region in parent.regions:
        inside.update(region.blocks[0].arguments)
    for operations in operations_of(parent):
        for operation in operations:
            outside.update(dict.fromkeys(x for x in operation.operands if x not in inside))
            inside.update(operation.results)
            if len(operation.regions) and operation.name != "linalg.generic":
                _collect(operation, inside, outside)


def _stablehlo(names: str) -> frozenset[str]:
    return frozenset(f"stablehlo.{name}" for name in names.split())


VIEWS = _stablehlo("broadcast_in_dim reshape transpose")
"""Operations that IREE moves through elementwise operations, or folds into their readers."""
SLICES = _stablehlo("slice dynamic_slice")
"""Operations that readers read in place, with an offset and strides."""
MOVES = _stablehlo("concatenate gather pad reverse scatter slice")
"""Operations that IREE fuses with the conversions that compute their operands."""
REDUCTIONS = _stablehlo("dot_general reduce")
"""Operations that IREE fuses with the elementwise operations that read their results."""
WINDOWED = _stablehlo("convolution reduce_window")
"""Reductions of windows, which IREE fuses likewise."""
CALL = "func.call"
"""Calls, which may hold any operation, because IREE inlines the called functions."""


def sums_up(operation: ir.Operation) -> bool:
    """Tells whether an operation is a reduction, a product, or a loop with a reduction."""
    if operation.name == "linalg.generic":
        return "reduction" in str(operation.attributes["iterator_types"])
    return operation.name in REDUCTIONS


_PREFIX = f"{HOST}.callback_"


def host_function(operation: ir.Operation) -> int | None:
    """Returns the number of the host function that an operation calls; None if it calls none."""
    if operation.name != "func.call":
        return None
    callee = ir.FlatSymbolRefAttr(operation.attributes["callee"]).value
    return int(callee.removeprefix(_PREFIX)) if callee.startswith(_PREFIX) else None
