"""Keeps what a dispatch makes of nothing for the parts of a program that read it later.

A dispatch that reads no array IREE makes anew wherever its result is read, as it does with arrays
that are filled with a number. But once it has made two of them it forgets who reads the result
behind the next place where the host waits, in a branch, or in another block, and then refuses the
program ("streamable op expected to be in an execution region"). Such readers get the result of a
barrier, which no dispatch makes again. Elsewhere: where the host waits (`program_order.py`).
"""

from __future__ import annotations

from iree.compiler import ir

_DISPATCH = "flow.dispatch"
_BARRIER = "util.optimization_barrier"
_BRANCH = "scf."


def keep_for_later_parts(block: ir.Block) -> None:
    """Lets what reads no array make its result once for all parts but its own, in place.

    Args:
        block: A block in the phase `flow`, whose parts end with barriers, branches, or the block.
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
    """Returns where the operation stands at which the host waits next, or the block ends."""
    last = len(operations) - 1
    for number in range(start + 1, last):
        name = operations[number].name
        if name == _BARRIER or name.startswith(_BRANCH):
            return number
    return last


def _keep(array: ir.Value, part: list[ir.Operation], end: ir.Operation) -> None:
    """Puts a barrier where a part ends, if an array of it has readers elsewhere, for these."""
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
