"""Copies an array that an operation changes in place while another name of it is read later.

IREE treats the result of an optimization barrier, and the result of a condition, as a separate
array. But the result lies in the memory of the barrier's operand, or of the value that the branch
yields (a condition that does nothing else becomes `arith.select`, which the host computes). An
operation that works in place on the last use of one name changes the array that readers of the
other names find. The passes `bypass-barriers` and `renew-branch-results` mend this in the program
as it was written. IREE finds later that some arrays are equal: two equal loops, or `-(-x)` and `x`.
So this is checked again after IREE has merged equal arrays and chosen its copies. Elsewhere: the
passes around this (`stream_passes.py`).
"""

from __future__ import annotations

from collections.abc import Iterator

from iree.compiler import ir

from .compiler_library import operations_named
from .own_copies import copy_operand, places_worked_on
from .update_places import definition

_BARRIER, _SELECTION = "util.optimization_barrier", "arith.select"
_CHOICE, _YIELD = "scf.if", "scf.yield"
_FUNCTION = "util.func"
_LASTING = ("stream.async.constant", "stream.tensor.import", "util.global.load")


def has_other_names(module: ir.Operation) -> bool:
    """Tells whether arrays of a module in the phase `flow` have more than one name."""
    functions = [
        op.operation
        for op in module.regions[0].blocks[0].operations
        if op.operation.name == _FUNCTION
    ]
    return any(
        isinstance(result.type, ir.RankedTensorType)
        for function in functions
        for naming in operations_named(function, (_BARRIER, _SELECTION, _CHOICE))
        for result in naming.results
    )


def copy_what_others_name(module: ir.Operation) -> int:
    """Copies, in place, arrays that an operation would change and that are read by another name.

    Args:
        module: The module, in which arrays are values and IREE has chosen its copies.

    Returns:
        The number of copies added.
    """
    count = 0
    for writer, places in places_worked_on(module):
        for place, size in places:
            if _is_read_later(writer, writer.operands[place]):
                copy_operand(writer, place, size)
                count += 1
    return count


def _is_read_later(writer: ir.Operation, array: ir.Value) -> bool:
    """Tells whether an operation may read an array by another name after a writer."""
    return any(
        _is_lasting(name) or any(_reads_after(use, name, writer) for use in name.uses)
        for name in _names(writer, array)[1:]
    )


def _is_lasting(name: ir.Value) -> bool:
    """Tells whether an array exists before the function runs, and after it."""
    maker = definition(name)
    return maker is not None and maker.name in _LASTING


def _reads_after(use: ir.OpOperand, name: ir.Value, writer: ir.Operation) -> bool:
    reader = use.owner.operation
    return reader != writer and not _is_naming(reader) and _may_follow(reader, writer, name)


def _names(writer: ir.Operation, array: ir.Value) -> list[ir.Value]:
    """Returns the values that may share an array's memory when an operation changes it."""
    names = [array]
    for name in names:
        names += [x for x in dict.fromkeys(_next_names(writer, name)) if x not in names]
    return names


def _next_names(writer: ir.Operation, name: ir.Value) -> Iterator[ir.Value]:
    maker = definition(name)
    if maker is not None:
        yield from _given_as(maker, ir.OpResult(name).result_number)
    for use in name.uses:
        user = use.owner.operation
        if user.name == _BARRIER:
            yield user.results[use.operand_number]
        elif user.name == _SELECTION:
            yield user.results[0]
        elif _is_naming(user):
            choice = user.parent.operation
            if not _is_in_another_branch(writer, choice, user.block.region):
                yield choice.results[use.operand_number]


def _given_as(maker: ir.Operation, index: int) -> Iterator[ir.Value]:
    """Yields the operands that an operation may return as one of its results."""
    if maker.name == _BARRIER:
        yield maker.operands[index]
    elif maker.name == _SELECTION:
        yield from list(maker.operands)[1:]
    elif maker.name == _CHOICE:
        yield from (_end(region).operands[index] for region in maker.regions)


def _is_naming(user: ir.Operation) -> bool:
    if user.name == _YIELD:
        return bool(user.parent.operation.name == _CHOICE)
    return user.name in (_BARRIER, _SELECTION)


def _end(region: ir.Region) -> ir.Operation:
    operations = region.blocks[0].operations
    return operations[len(operations) - 1].operation


def _is_in_another_branch(operation: ir.Operation, choice: ir.Operation, branch: ir.Region) -> bool:
    """Tells whether an operation is in another branch of a choice than this one."""
    for around in _around(operation):
        if around.parent.operation == choice:
            return bool(around.block.region != branch)
    return False


def _around(operation: ir.Operation) -> Iterator[ir.Operation]:
    """Yields an operation of a function, and the operations around it, without the module."""
    around = operation
    while around.parent is not None:
        yield around
        around = around.parent.operation


def _may_follow(reader: ir.Operation, writer: ir.Operation, name: ir.Value) -> bool:
    """Tells whether an operation that reads an array by a name may run after another one."""
    outer = {around.block.region.blocks[0]: around for around in _around(writer)}
    for after in _around(reader):
        before = outer.get(after.block.region.blocks[0])
        if before is None:
            continue
        if before == after:
            return False  # in branches of one choice: only one of them runs
        if before.block == after.block and before.is_before_in_block(after):
            return True
        # A value made in each pass of a loop is not read in the next one.
        is_made_anew = before.block == after.block and _block_of(name) == before.block
        return not is_made_anew and _may_reach(before.block, after.block)
    return True


def _block_of(name: ir.Value) -> ir.Block:
    maker = definition(name)
    return name.owner if maker is None else maker.block


def _may_reach(first: ir.Block, last: ir.Block) -> bool:
    """Tells whether branches lead from the end of a block to another one, or the same."""
    reached: list[ir.Block] = []
    pending = [first]
    while pending:
        block = pending.pop()
        following = block.operations[len(block.operations) - 1].operation.successors
        fresh = [x for x in following if x not in reached]
        reached += fresh
        pending += fresh
    return last in reached
