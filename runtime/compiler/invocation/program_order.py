"""Keeps a program in the order of its text, so that nothing is read after it was overwritten.

IREE lets an operation work in place on an array that no later operation of the text reads. Then it
cuts the program where the host reads a number, and moves each operation to the last part in which
its result is still in time: a reader of the old array ends up behind what overwrites it, for
nothing tells that the one has to come first. What has effects stays where it is, and all before it
stays before it. So a number that the host reads passes through a barrier here, and in each part the
text's order holds (`--iree-stream-partitioning-favor=debug`).

Each such read is a wait. What the host knows already is not read: the truth values that keep equal
arrays apart are numbers of the host from here on. Barriers that kept operations out of one kernel
have done their work in the phase `flow`, where the kernels are made, and would cut the program,
too. What does not live here: when the compiler stops for this (`invoker.py`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from iree.compiler import ir

FLOW_PHASE = "flow"
_BARRIER = "util.optimization_barrier"
_READ = "flow.tensor.load"
_VIEW = "flow.tensor.reshape"
_UPDATE = "flow.tensor.update"
_FUNCTIONS = ("util.func", "util.initializer")


def keep_order(module: ir.Operation) -> None:
    """Lets the order of a module's text in the phase `flow` be that of its execution, in place."""
    for function in _operations(module, _FUNCTIONS):
        for block in _blocks(function):
            _keep_order_in(block)


def _operations(module: ir.Operation, names: tuple[str, ...]) -> list[ir.Operation]:
    block = module.regions[0].blocks[0]
    return [op.operation for op in block.operations if op.operation.name in names]


def _blocks(operation: ir.Operation) -> Iterator[ir.Block]:
    """Yields the blocks of an operation, and those of the operations in them, the latter first."""
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
    part = _Part()
    for operation in [op.operation for op in block.operations]:
        if operation.name == _READ:
            _put_barrier_behind(operation, part)
            part = _Part()
        elif operation.name.startswith("scf."):
            _put_barrier_before(operation, part)
            part = _Part()
        else:
            part.add(operation)


def _named(block: ir.Block, name: str) -> list[ir.Operation]:
    return [op.operation for op in block.operations if op.operation.name == name]


@dataclasses.dataclass
class _Part:
    """What runs between two places where the host waits.

    Attributes:
        arrays: The results of its operations.
    """

    arrays: dict[ir.Value, None] = dataclasses.field(default_factory=dict)

    def add(self, operation: ir.Operation) -> None:
        """Takes in the results of an operation that runs on the device."""
        if operation.name.startswith("flow.") and operation.name != _VIEW:
            self.arrays.update(dict.fromkeys(operation.results))

    def last(self) -> list[ir.Value]:
        """Returns its last array, if it has one: when that is there, all of it has run."""
        return list(self.arrays)[-1:]


def _tell_what_is_known(read: ir.Operation, block: ir.Block) -> None:
    """Replaces what the host reads of a constant behind a barrier by a number behind a barrier.

    The barrier stands where the block begins and cuts nothing.
    """
    barrier = _source(read.operands[0])
    if barrier is None or barrier.name != _BARRIER:
        return
    number = list(barrier.results).index(_viewed(read.operands[0]))
    constant = _source(barrier.operands[number])
    if constant is None or constant.name != "arith.constant":
        return
    dense = constant.attributes["value"]
    if not isinstance(dense, ir.DenseElementsAttr) or not dense.is_splat:
        return
    kind = read.results[0].type
    with ir.InsertionPoint.at_block_begin(block), read.location:
        known = ir.Operation.create(
            "arith.constant", results=[kind], attributes={"value": dense.get_splat_value()}
        )
        hidden = ir.Operation.create(_BARRIER, results=[kind], operands=known.results)
    read.results[0].replace_all_uses_with(hidden.result)
    read.erase()


def _viewed(value: ir.Value) -> ir.Value:
    """Returns the array of which a value is a view in another shape."""
    source = _definition(value)
    while source is not None and source.name == _VIEW:
        value = source.operands[0]
        source = _definition(value)
    return value


def _source(value: ir.Value) -> ir.Operation | None:
    """Returns what makes the array of which a value is a view."""
    return _definition(_viewed(value))


def _definition(value: ir.Value) -> ir.Operation | None:
    return None if isinstance(value, ir.BlockArgument) else value.owner.operation


def _remove_done(barrier: ir.Operation) -> None:
    """Removes a barrier of arrays that nothing else reads, or whose results nothing reads.

    IREE lets an operation write its result to where that is copied: the barrier before an update
    stays. One that hides which array is read from those who compute the same again stays, too.
    """
    for operand, result in zip(list(barrier.operands), list(barrier.results), strict=True):
        if not isinstance(operand.type, ir.RankedTensorType):
            return
        is_read = next(iter(result.uses), None) is not None
        if is_read and (len(list(operand.uses)) > 1 or _is_written_by_update(result)):
            return
    for operand, result in zip(list(barrier.operands), list(barrier.results), strict=True):
        result.replace_all_uses_with(operand)
    barrier.erase()


def _is_written_by_update(value: ir.Value) -> bool:
    for use in value.uses:
        user = use.owner.operation
        if user.name == _UPDATE and user.operands[0] != value:
            return True
        if user.name == _VIEW and _is_written_by_update(user.results[0]):
            return True
    return False


def _put_barrier_behind(read: ir.Operation, part: _Part) -> None:
    """Passes a number that the host reads, when all before has run, through a barrier."""
    read_part = _viewed(read.operands[0]) in part.arrays
    others = [] if read_part else part.last()
    number = read.results[0]
    uses = [(use.owner.operation, use.operand_number) for use in number.uses]
    with ir.InsertionPoint.after(read), read.location:
        values = [number, *others]
        barrier = ir.Operation.create(
            _BARRIER, results=[value.type for value in values], operands=values
        )
    for user, place in uses:
        user.operands[place] = barrier.results[0]


def _put_barrier_before(operation: ir.Operation, part: _Part) -> None:
    """Has all that stands before an operation with blocks of its own run before it."""
    values = part.last()
    if values:
        with ir.InsertionPoint(operation), operation.location:
            ir.Operation.create(
                _BARRIER, results=[value.type for value in values], operands=values
            )
