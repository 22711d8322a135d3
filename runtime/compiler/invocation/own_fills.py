"""Gives each part of a program separate fills with a number.

The parts of a program end where the host waits. IREE duplicates a fill for each group of operations
that reads it. If two groups before a wait have duplicates, IREE loses the readers behind that wait,
and then refuses the program ("streamable op expected to be in an execution region"). With a fill
for each part, no reader is behind a wait. Elsewhere: dispatches without array operands
(`shared_dispatches.py`), and the order of the passes (`stream_passes.py`).
"""

from __future__ import annotations

from collections.abc import Iterator

from iree.compiler import ir

# Operations whose result IREE may fill with a number, before and in the phase `stream`.
_CONSTANTS = ("arith.constant", "flow.tensor.constant", "flow.tensor.splat")
_FILL = ("stream.async.splat",)
_WAITS = frozenset(
    ("flow.tensor.load", "stream.async.load", "stream.timepoint.await", "util.optimization_barrier")
)
_BRANCH = "scf."


def has_shared_fills(module: ir.Operation) -> bool:
    """Tells whether several parts of a program in the phase `flow` read one constant array."""
    return any(
        isinstance(operation.results[0].type, ir.RankedTensorType) and len(parts) > 1
        for operation, parts in _readers(module, _CONSTANTS)
    )


def give_own_fills(module: ir.Operation) -> int:
    """Gives each part a separate fill, in place.

    Args:
        module: The module, in which arrays are values and operations are not yet scheduled.

    Returns:
        The number of fills added.
    """
    count = 0
    for operation, (_, *others) in list(_readers(module, _FILL)):
        for readers in others:
            with ir.InsertionPoint(readers[0][0]), operation.location:
                filled = operation.clone().results[0]
            for _, use in readers:
                use.owner.operation.operands[use.operand_number] = filled
            count += 1
    return count


_Reader = tuple[ir.Operation, ir.OpOperand]


def _readers(
    module: ir.Operation, names: tuple[str, ...]
) -> Iterator[tuple[ir.Operation, list[list[_Reader]]]]:
    """Yields operations of these names with their uses, grouped by parts.

    A use is a pair: the operation in the same block that contains the reader, and the use.
    """
    for block in _blocks_with(module, names):
        operations = [view.operation for view in block.operations]
        parts, part = {}, 0
        for operation in operations:
            parts[operation] = part
            part += operation.name in _WAITS or operation.name.startswith(_BRANCH)
        order = {operation: number for number, operation in enumerate(operations)}
        for operation in [x for x in operations if x.name in names]:
            groups: dict[int, list[_Reader]] = {}
            for use in operation.results[0].uses:
                outer = use.owner.operation
                while outer not in parts:
                    outer = outer.parent
                groups.setdefault(parts[outer], []).append((outer, use))
            if groups:
                yield (
                    operation,
                    [sorted(groups[n], key=lambda use: order[use[0]]) for n in sorted(groups)],
                )


def _blocks_with(module: ir.Operation, names: tuple[str, ...]) -> list[ir.Block]:
    found: list[ir.Block] = []

    def visit(operation: ir.Operation) -> ir.WalkResult:
        if operation.name.endswith(".executable"):
            return ir.WalkResult.SKIP
        if operation.name in names and operation.block not in found[-1:]:
            found.append(operation.block)
        return ir.WalkResult.ADVANCE

    module.walk(visit, ir.WalkOrder.PRE_ORDER)
    return [block for n, block in enumerate(found) if block not in found[:n]]
