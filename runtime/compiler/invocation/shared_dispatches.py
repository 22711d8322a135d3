"""Keeps the result of a dispatch without array operands for later parts of a program.

IREE duplicates a dispatch that reads no array wherever its result is read, like arrays that are
filled with a number. But after duplicating it, IREE loses the readers behind the next place where
the host waits, in a branch, or in another block, and then refuses the program ("streamable op
expected to be in an execution region"). Such readers get the result of a barrier, which IREE does
not duplicate. Elsewhere: where the host waits (`program_order.py`).
"""

from __future__ import annotations

from iree.compiler import ir

_DISPATCH = "flow.dispatch"
_BARRIER = "util.optimization_barrier"
_BRANCH = "scf."


def keep_for_later_parts(block: ir.Block) -> None:
    """Makes later parts read one result of each dispatch that reads no array, in place.

    Args:
        block: A block in the phase `flow`; its parts end with barriers, with branches, or with the
            block.
    """
    operations = [operation.operation for operation in block.operations]
    for number, operation in enumerate(operations):
        if _reads_no_array(operation):
            end = _end_of_part(operations, number)
            for result in operation.results:
                _keep(result, operations[number + 1 : end], operations[end])


def _reads_no_array(operation: ir.Operation) -> bool:
    return operation.name == _DISPATCH and not any(
        isinstance(operand.type, ir.RankedTensorType) for operand in operation.operands
    )


def _end_of_part(operations: list[ir.Operation], start: int) -> int:
    """Returns the place of the operation at which the host waits next, or the end of the block."""
    last = len(operations) - 1
    for number in range(start + 1, last):
        name = operations[number].name
        if name == _BARRIER or name.startswith(_BRANCH):
            return number
    return last


def _keep(array: ir.Value, part: list[ir.Operation], end: ir.Operation) -> None:
    """Puts a barrier at the end of a part for the readers of an array that are outside the part."""
    early = sum(operand == array for operation in part for operand in operation.operands)
    readers = list(array.uses)
    ends_block = not (end.name == _BARRIER or end.name.startswith(_BRANCH))
    if early + ends_block * sum(operand == array for operand in end.operands) == len(readers):
        return
    with ir.InsertionPoint(end), end.location:
        barrier = ir.Operation.create(_BARRIER, [array.type], [array])
    for reader in readers:
        owner = reader.owner.operation
        if owner not in part:
            owner.operands[reader.operand_number] = barrier.result
