"""Keeps a program in its textual order, so that no array is read after it was overwritten.

IREE lets an operation work in place on an array that no later operation of the text reads. Then it
splits the program where the host reads a number, and moves each operation to the last part in which
its result is still in time. A reader of the old array may end up after the operation that
overwrites it, because no dependency connects the two. Operations with effects stay where they are,
and everything before them stays before them. So axir puts a barrier, which counts as an effect,
behind each such read; within each part the textual order holds
(`--iree-stream-partitioning-favor=debug`).

Each such read is a wait. Numbers that the host knows already are not read: the truth values that
keep equal arrays apart become numbers of the host here. Barriers that kept operations out of one
kernel have done their work once the phase `flow` has made the kernels; they are removed, because
they would split the program, too.

IREE duplicates a dispatch that reads no array wherever its result is read, like arrays that are
filled with a number. But after duplicating it, IREE loses the readers behind the next place where
the host waits, in a branch, or in another block, and then refuses the program ("streamable op
expected to be in an execution region"). Such readers get the result of a barrier, which IREE does
not duplicate. Elsewhere: when the compiler stops for this (`invoker.py`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from iree.compiler import ir

from .update_places import PART, UPDATE, VIEW, UpdatePlaces, definition, place_of_written, viewed

FLOW_PHASE = "flow"
_BARRIER = "util.optimization_barrier"
_READ = "flow.tensor.load"
_FUNCTIONS = ("util.func", "util.initializer")
# Types of numbers that the host reads; it reads others as integers of the same width.
_HOST_TYPES = (ir.IntegerType, ir.F32Type, ir.F64Type)


def keep_order(module: ir.Operation) -> None:
    """Makes the order of execution follow the text of a module in the phase `flow`, in place."""
    for function in _operations(module, _FUNCTIONS):
        for block in _blocks(function):
            _keep_order_in(block)


def _operations(module: ir.Operation, names: tuple[str, ...]) -> list[ir.Operation]:
    block = module.regions[0].blocks[0]
    return [op.operation for op in block.operations if op.operation.name in names]


def _blocks(operation: ir.Operation) -> Iterator[ir.Block]:
    """Yields the blocks of an operation and of the operations in them, inner blocks first."""
    for region in operation.regions:
        for block in region.blocks:
            for inner in block.operations:
                if inner.operation.name.startswith("scf."):
                    yield from _blocks(inner.operation)
            yield block


def _keep_order_in(block: ir.Block) -> None:
    for operation in _named(block, _READ):
        _tell_what_is_known(operation, block)
    for operation in _named(block, _BARRIER):
        _remove_done(operation)
    if updates := _named(block, UPDATE):
        places = UpdatePlaces(block)
        for update in [update for update in updates if not places.may_be_early(update)]:
            number = place_of_written(update)
            place, written = ir.InsertionPoint(update), update.operands[number]
            [stored] = _put_barrier(place, update.location, [written])
            update.operands[number] = stored
    part = _Part()
    for operation in [op.operation for op in block.operations]:
        if operation.name == _READ:
            # Who waits for the number waits for the part that computes it.
            is_awaited = viewed(operation.operands[0]) in part.arrays
            others = [] if is_awaited else part.last()
            _put_barrier(ir.InsertionPoint.after(operation), operation.location, others)
            part = _Part()
        elif operation.name.startswith("scf.") and part.arrays:
            _put_barrier(ir.InsertionPoint(operation), operation.location, part.last())
            part = _Part()
        else:
            part.add(operation)
    keep_for_later_parts(block)


def _named(block: ir.Block, name: str) -> list[ir.Operation]:
    return [op.operation for op in block.operations if op.operation.name == name]


@dataclasses.dataclass
class _Part:
    """The operations between two places where the host waits.

    Attributes:
        arrays: The results of its operations.
    """

    arrays: dict[ir.Value, None] = dataclasses.field(default_factory=dict)

    def add(self, operation: ir.Operation) -> None:
        """Takes in the results of an operation that runs on the device."""
        if operation.name.startswith("flow.") and operation.name != VIEW:
            self.arrays.update(dict.fromkeys(operation.results))

    def last(self) -> list[ir.Value]:
        """Returns its last array, if it has one: once that is computed, the whole part has run."""
        return list(self.arrays)[-1:]


def _tell_what_is_known(read: ir.Operation, block: ir.Block) -> None:
    """Replaces the host's read of a constant behind a barrier by a host constant behind a barrier.

    The new barrier stands at the begin of the block and splits nothing.
    """
    barrier = definition(viewed(read.operands[0]))
    if barrier is None or barrier.name != _BARRIER:
        return
    number = list(barrier.results).index(viewed(read.operands[0]))
    constant = definition(viewed(barrier.operands[number]))
    if constant is None or constant.name != "arith.constant":
        return
    dense = constant.attributes["value"]
    kind = read.results[0].type
    is_known = isinstance(dense, ir.DenseElementsAttr) and dense.is_splat
    if not is_known or not isinstance(kind, _HOST_TYPES):
        return
    with ir.InsertionPoint.at_block_begin(block), read.location:
        known = ir.Operation.create(
            "arith.constant", results=[kind], attributes={"value": dense.get_splat_value()}
        )
        hidden = ir.Operation.create(_BARRIER, results=[kind], operands=known.results)
    read.results[0].replace_all_uses_with(hidden.result)
    read.erase()


def _remove_done(barrier: ir.Operation) -> None:
    """Removes a barrier with operands that nothing else reads, or with results that nothing reads.

    If another operation reads the operand, the barrier stays: it is a checkpoint's, and the
    computation on its result must not be merged with the equal one on the operand. It also stays
    for a slice that is copied to a place that overlaps it, because the copy needs separate memory.
    """
    for operand, result in zip(list(barrier.operands), list(barrier.results), strict=True):
        if not isinstance(operand.type, ir.RankedTensorType):
            return
        maker = definition(viewed(operand))
        is_part = maker is not None and maker.name == PART
        if _is_used(result) and (is_part or len(list(operand.uses)) > 1):
            return
    for operand, result in zip(list(barrier.operands), list(barrier.results), strict=True):
        result.replace_all_uses_with(operand)
    barrier.erase()


def _is_used(value: ir.Value) -> bool:
    return next(iter(value.uses), None) is not None


def _put_barrier(
    place: ir.InsertionPoint, location: ir.Location, values: list[ir.Value]
) -> list[ir.Value]:
    """Puts a barrier of arrays at a place, or a barrier of an unused number."""
    with place, location:
        if not values:
            kind = ir.IntegerType.get_signless(32)
            zero = {"value": ir.IntegerAttr.get(kind, 0)}
            values = list(ir.Operation.create("arith.constant", [kind], attributes=zero).results)
        barrier = ir.Operation.create(_BARRIER, [value.type for value in values], values)
    return list(barrier.results)


_DISPATCH = "flow.dispatch"
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
