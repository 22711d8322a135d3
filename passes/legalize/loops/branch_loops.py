"""`branch-loops`: loops become blocks and branches."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.scalars import Scalar
from axir.passes.framework.base import Pass
from axir.passes.legalize.buffers.protect_inputs import transfer
from axir.passes.legalize.rewriting import hidden_truths, operations_in_order

from .carried_storage import overwritten_arguments, with_storage_of_their_own
from .host_scalars import HostScalars, may_be_on_host, scalar_type

_WHILE = "stablehlo.while"
_BRANCHES = ("stablehlo.if", "stablehlo.case")
_PASSING = frozenset((_WHILE, "stablehlo.return", "cf.br", "cf.cond_br", "func.return"))
# IREE follows the sizes of arrays from argument to argument, and gives up after about eight.
_LONGEST_EXCHANGE = 4
# From this depth of nested choices on, the host waits for the values that a loop carries.
_DEEP = 3


@dataclasses.dataclass(frozen=True)
class BranchLoops(Pass):
    """Writes loops, and the branches that contain loops, as blocks of the function.

    The fact: IREE converts a loop to `scf.while`. MLIR then rewrites it so that its two regions
    take different numbers of values: it drops carried values that one region does not read, that
    are equal or constant, or that are the condition itself. IREE's conversion to streams needs the
    same number in both. Otherwise it fails ("region branch point has 4 operands, but region
    successor needs 2 inputs"), or does not terminate and brings the process down. Loops that stop
    on an error are of this kind. Branches between blocks pass each value explicitly, so that the
    numbers cannot differ.

    If the host counts the iterations, the condition is tested once before the loop and then at the
    end of the body. IREE then sees that an array has no readers behind the branch that passes it,
    and lets the body change parts of it in place. Otherwise it copied the whole stacked result of a
    scan in each iteration.

    1. Visit each loop, and each branch around a loop or a call, from the outermost on.
    2. Split the block behind it. The condition, the body and the rest become blocks that branch to
       each other. The carried values are the arguments of the condition's block or, where the host
       counts, of the body and of the rest.
    3. Pass integers of rank 0 that the host can compute (counters and values computed from them) as
       scalars, and the condition, too. The host then waits for the device in no iteration. Integers
       that the condition needs are read once, before the loop.
    4. Where the host counts, transfer the initial values to the device, and give each carried value
       separate memory (`carried_storage.py`).
    5. Hide every condition behind a barrier: if IREE finds that a loop has no iteration, its
       canonicalization of the unreachable blocks does not always terminate.
    6. Where a condition is read from the device, put barriers on the tensors at the head of the
       loop, so that the host waits for them as well. Without barriers, IREE has to follow from
       block to block which timepoints to wait for, and fails on branches and loops nested four deep
       ("failed to solve for timepoint coverage"). Do the same where the host counts and the body
       has three or more nested choices.
    7. Carried values that no iteration changes are read directly, not passed. (Where a block only
       passed arrays on, a program failed with "indirect buffer reference slot 0 is out range".)
    8. Where carried arrays exchange places in each iteration, copy every fourth by a select between
       it and zeros with a boolean that is opaque to the compiler. Otherwise IREE follows their
       sizes until it fails ("int arithmetic optimization failed to converge").

    Before::

        %0 = stablehlo.while(%x = %a) : tensor<f32>
        cond {
          %1 = stablehlo.compare LT, %x, %limit
          stablehlo.return %1
        } do {
          %2 = stablehlo.add %x, %x
          stablehlo.return %2
        }
        return %0

    After::

          cf.br ^condition(%a : tensor<f32>)
        ^condition(%x: tensor<f32>):
          %1 = stablehlo.compare LT, %x, %limit
          %2 = tensor.extract %1[] : tensor<i1>
          %3 = util.optimization_barrier %2 : i1
          cf.cond_br %3, ^body, ^end
        ^body:
          %4 = stablehlo.add %x, %x
          cf.br ^condition(%4 : tensor<f32>)
        ^end:
          return %x

    and for a loop that doubles `%a` while a counter `%i` is less than 3::

          %0 = flow.tensor.transfer %a : tensor<f32> to #hal.device.promise<@__device_0>
          cf.cond_br %true, ^body(%0, %c0 : tensor<f32>, i32), ^end(%0, %c0 : tensor<f32>, i32)
        ^body(%x: tensor<f32>, %i: i32):
          %1 = stablehlo.add %x, %x
          %2 = arith.addi %i, %c1 : i32
          %3 = arith.cmpi slt, %2, %c3 : i32
          %4 = util.optimization_barrier %3 : i1
          cf.cond_br %4, ^body(%1, %2 : tensor<f32>, i32), ^end(%1, %2 : tensor<f32>, i32)
        ^end(%y: tensor<f32>, %n: i32):
          return %y

    Precondition: the passes that look for loops have run, and `sign-unsigned-data`, because host
    scalars are converted to tensors. Loops in the bodies of reductions, sorts and the like do not
    change.
    """

    name: ClassVar[str] = "branch-loops"
    device: str = "__device_0"

    def run(self, module: ir.Module) -> None:
        """Rewrites the functions of the module that contain loops."""
        for function in module.body.operations:
            operation = function.operation
            if operation.name == "func.func" and operations_in_order(operation, (_WHILE,)):
                _branch(operation, self.device)


def _branch(function: ir.Operation, device: str) -> None:
    scalars, placement = HostScalars(), _Placement(device)
    for operation in operations_in_order(function, (_WHILE, *_BRANCHES)):
        # Outer loops have become blocks by now; an operation that is still nested stays.
        if operation.parent != function:
            continue
        if operation.name == _WHILE:
            _branch_loop(operation, scalars, placement)
        elif operations_in_order(operation, (_WHILE, "func.call")):
            _branch_choice(operation, scalars)


# Loops -------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class _Placement:
    """The device of the arrays, and the block arguments with memory that has no other reader."""

    device: str
    owned: set[ir.Value] = dataclasses.field(default_factory=set)


def _branch_loop(loop: ir.Operation, scalars: HostScalars, placement: _Placement) -> None:
    _read_unchanged(loop)
    on_host = _host_carries(loop, scalars)
    with loop.location:
        _renew_exchanged(loop, on_host)
        if _is_counted(loop, on_host, scalars):
            _branch_counted(loop, on_host, scalars, placement)
        else:
            _branch_awaited(loop, on_host, scalars)
    loop.erase()


def _read_unchanged(loop: ir.Operation) -> None:
    """Replaces a carried value that no iteration changes by its initial value."""
    condition, body = (region.blocks[0] for region in loop.regions)
    end = _terminator(body)
    overwritten = overwritten_arguments(body)
    for index, first in enumerate(loop.operands):
        argument = body.arguments[index]
        if end.operands[index] == argument and index not in overwritten:
            for later in (condition.arguments[index], argument, loop.results[index]):
                later.replace_all_uses_with(first)


def _branch_counted(
    loop: ir.Operation, on_host: Sequence[int], scalars: HostScalars, placement: _Placement
) -> None:
    """Dissolves a loop; the host tests the condition before it and at the end of its body."""
    condition, body = (region.blocks[0] for region in loop.regions)
    question = _terminator(condition).operands[0]
    numbers = [condition.arguments[index] for index in on_host]
    tensors = [index for index in range(len(loop.results)) if index not in on_host]
    overwritten = overwritten_arguments(body)
    changed = {place for place, index in enumerate(tensors) if index in overwritten}
    end = _part_behind(loop)

    def branch(values: Sequence[ir.Value], is_first: bool) -> None:
        known = {x: scalars.as_scalar(values[i]) for x, i in zip(numbers, on_host, strict=True)}
        passed = with_storage_of_their_own([values[i] for i in tensors], changed, placement.owned)
        if is_first:
            # IREE does not find the placement of arguments of blocks that branch to themselves, and
            # would copy them to the same device in each iteration.
            passed = [transfer(value, placement.device) for value in passed]
        truth = scalars.as_scalar_where(question, known)
        _branch_by(truth, body, end, [*passed, *known.values()])

    with ir.InsertionPoint(loop):
        branch(list(loop.operands), True)
    # Both blocks take the tensors first, then the host scalars.
    for index in tensors:
        result = end.add_argument(loop.results[index].type, loop.location)
        loop.results[index].replace_all_uses_with(result)
        if index in overwritten:
            placement.owned.update((result, body.arguments[index]))
    for block, values in ((body, list(body.arguments)), (end, list(loop.results))):
        for index in on_host:
            number = block.add_argument(scalar_type(values[index]), loop.location)
            with ir.InsertionPoint.at_block_begin(block):
                scalars.replace(values[index], number)
    _drop_arguments(body, on_host)
    body.append_to(loop.block.region)
    if _depth_of_choices(body) >= _DEEP:
        with ir.InsertionPoint.at_block_begin(body), loop.location:
            for tensor in list(body.arguments)[: len(tensors)]:
                _await(tensor)
    with _at_end(body) as terminator:
        branch(list(terminator.operands), False)


def _branch_awaited(loop: ir.Operation, on_host: Sequence[int], scalars: HostScalars) -> None:
    """Dissolves a loop; a block before the body reads the condition from the device."""
    condition, body = (region.blocks[0] for region in loop.regions)
    end = _part_behind(loop)
    with ir.InsertionPoint(loop):
        _branch_to(condition, _passed(loop.operands, on_host, scalars))
    for index, result in enumerate(loop.results):
        tensor = condition.arguments[index]
        for later in (body.arguments[index], result):
            later.replace_all_uses_with(tensor)
        with ir.InsertionPoint.at_block_begin(condition):
            if index in on_host:
                number = condition.add_argument(scalar_type(tensor), loop.location)
                scalars.replace(tensor, number)
            else:
                _await(tensor)
    for block in (condition, body):
        block.append_to(loop.block.region)
    with _at_end(condition) as terminator:
        _branch_by(scalars.as_scalar(terminator.operands[0]), body, end)
    with _at_end(body) as terminator:
        _branch_to(condition, _passed(terminator.operands, on_host, scalars))
    _drop_arguments(body, range(len(body.arguments)))
    _drop_arguments(condition, on_host)


def _renew_exchanged(loop: ir.Operation, on_host: Sequence[int]) -> None:
    """Copies some of the values that move from one carried place to another in each iteration."""
    body = loop.regions[1].blocks[0]
    end = _terminator(body)
    places = {x: index for index, x in enumerate(body.arguments)}
    source = {
        index: places[x]
        for index, x in enumerate(end.operands)
        if places.get(x, index) != index and index not in on_host
    }
    renewed = set()
    while source:
        index, length = next(iter(source)), 0
        while index in source:
            length += 1
            if length % _LONGEST_EXCHANGE == 0:
                renewed.add(index)
            index = source.pop(index)
    if not renewed:
        return
    with ir.InsertionPoint(end):
        for index, truth in zip(sorted(renewed), hidden_truths(len(renewed)), strict=True):
            value = end.operands[index]
            end.operands[index] = hlo.select(truth, value, hlo.full_like(value, 0))


def _is_counted(loop: ir.Operation, on_host: Sequence[int], scalars: HostScalars) -> bool:
    """Tells whether the host knows the condition."""
    condition = loop.regions[0].blocks[0]
    known = {condition.arguments[index] for index in on_host}
    return scalars.roots(_terminator(condition).operands[0]) <= known


def _depth_of_choices(block: ir.Block) -> int:
    """Returns the largest depth of nested choices in a block."""
    return max(
        (
            1 + max(map(_depth_of_choices, (b for region in operation.regions for b in region)))
            for operation in block.operations
            if operation.operation.name in _BRANCHES
        ),
        default=0,
    )


def _await(tensor: ir.Value) -> None:
    """Makes the host wait for an argument of the block that is being built.

    An argument that is only passed on does not change: IREE does not know the sizes of values
    behind barriers, and queries them in a place that some branches do not reach.
    """
    users = [use for use in tensor.uses if use.owner.operation.name not in _PASSING]
    if not users:
        return
    if hlo.is_unsigned(tensor):
        # IREE's barrier takes signless integers only.
        element = hlo.element_type_of(tensor)
        signless = hlo.bitcast_convert(tensor, ir.IntegerType.get_signless(element.width))
        awaited = hlo.bitcast_convert(_barrier(signless), element)
    else:
        awaited = _barrier(tensor)
    for use in users:
        use.owner.operation.operands[use.operand_number] = awaited


def _host_carries(loop: ir.Operation, scalars: HostScalars) -> list[int]:
    """Returns the carried values that the host computes; reads their inputs from the device.

    The inputs of the condition are worth a read before the loop, since it saves a read in each
    iteration. Other values are on the host only if their initial values are.
    """
    flow = _Flow.of(loop, scalars)
    fits = {index for index, value in enumerate(loop.operands) if may_be_on_host(value)}
    needed = flow.needed_by_condition(flow.closed(fits, flow.outer))
    if needed is not None:
        carries, read = needed
        for value in read:
            scalars.read_where_defined(value)
        flow = _Flow.of(loop, scalars)
    else:
        carries = set()
    started = {index for index in fits if not scalars.roots(loop.operands[index])}
    return sorted(flow.closed(carries | started, set()))


@dataclasses.dataclass(frozen=True)
class _Flow:
    """The values from which the host can compute a loop's condition and next carried values."""

    carries: dict[ir.Value, int]  # the arguments of both regions
    condition: set[ir.Value]
    following: list[set[ir.Value]]
    outer: set[ir.Value]  # values defined outside of the loop

    @classmethod
    def of(cls, loop: ir.Operation, scalars: HostScalars) -> _Flow:
        blocks = [region.blocks[0] for region in loop.regions]
        carries = {x: index for block in blocks for index, x in enumerate(block.arguments)}
        condition = scalars.roots(_terminator(blocks[0]).operands[0])
        following = [scalars.roots(x) for x in _terminator(blocks[1]).operands]
        outer = {
            x for x in condition.union(*following) if may_be_on_host(x) and not _is_inside(x, loop)
        }
        return cls(carries, condition, following, outer)

    def closed(self, indices: set[int], known: set[ir.Value]) -> set[int]:
        """Returns the carries among these that follow only from such carries and known values."""
        while True:
            allowed = known | {x for x, index in self.carries.items() if index in indices}
            kept = {index for index in indices if self.following[index] <= allowed}
            if kept == indices:
                return kept
            indices = kept

    def needed_by_condition(self, available: set[int]) -> tuple[set[int], set[ir.Value]] | None:
        """Returns the carries and outer values that the condition follows from, if all are on the
        host.
        """
        needed: set[int] = set()
        read: set[ir.Value] = set()
        pending = list(self.condition)
        while pending:
            value = pending.pop()
            if value in self.outer:
                read.add(value)
            elif (index := self.carries.get(value)) is None or index not in available:
                return None
            elif index not in needed:
                needed.add(index)
                pending += self.following[index]
        return needed, read


def _is_inside(value: ir.Value, loop: ir.Operation) -> bool:
    owner = value.owner
    ancestor = owner.owner if isinstance(owner, ir.Block) else owner.operation.parent
    while ancestor is not None:
        if ancestor.operation == loop:
            return True
        ancestor = ancestor.operation.parent
    return False


# Choices -----------------------------------------------------------------------------------------


def _branch_choice(choice: ir.Operation, scalars: HostScalars) -> None:
    """Dissolves an `if` or a `case`; its results become arguments of the block behind it."""
    with choice.location:
        end = _part_behind(choice)
        results = [end.add_argument(x.type, choice.location) for x in choice.results]
        for old, new in zip(choice.results, results, strict=True):
            old.replace_all_uses_with(new)
        branches = [region.blocks[0] for region in choice.regions]
        with ir.InsertionPoint(choice):
            selector = scalars.as_scalar(choice.operands[0])
            if choice.name == "stablehlo.if":
                _branch_by(selector, *branches)
            else:
                _branch_by_number(Scalar(selector), branches, choice.block)
    for branch in branches:
        branch.append_to(choice.block.region)
        with _at_end(branch) as terminator:
            _branch_to(end, list(terminator.operands))
    choice.erase()


def _branch_by_number(number: Scalar, branches: list[ir.Block], block: ir.Block) -> None:
    """Ends `block`: compares with 0, 1, ...; a number out of range takes the last branch."""
    *others, last = branches
    for index, branch in enumerate(others):
        following = last if index == len(others) - 1 else block.create_after()
        with ir.InsertionPoint(block):
            _branch_by((number == index).value, branch, following)
        block = following
    if not others:
        with ir.InsertionPoint(block):
            _branch_to(last, [])


# Blocks ------------------------------------------------------------------------------------------


def _terminator(block: ir.Block) -> ir.Operation:
    return block.operations[len(block.operations) - 1].operation


@contextmanager
def _at_end(block: ir.Block) -> Iterator[ir.Operation]:
    """Builds operations that replace the terminator of a block."""
    terminator = _terminator(block)
    with ir.InsertionPoint(terminator), terminator.location:
        yield terminator
    terminator.erase()


def _part_behind(operation: ir.Operation) -> ir.Block:
    """Moves the operations behind an operation into a new block."""
    operations = [other.operation for other in operation.block.operations]
    end = operation.block.create_after()
    for other in operations[operations.index(operation) + 1 :]:
        end.append(other)
    return end


def _drop_arguments(block: ir.Block, indices: Sequence[int]) -> None:
    for index in reversed(indices):
        block.erase_argument(index)


def _branch_to(block: ir.Block, values: Sequence[ir.Value]) -> None:
    ir.Operation.create("cf.br", operands=values, successors=[block])


def _branch_by(
    condition: ir.Value, on_true: ir.Block, on_false: ir.Block, values: Sequence[ir.Value] = ()
) -> None:
    """Ends a block by a branch to one of two blocks, which take the same values."""
    segments = ir.DenseI32ArrayAttr.get([1, len(values), len(values)])
    ir.Operation.create(
        "cf.cond_br",
        operands=[_barrier(condition), *values, *values],
        successors=[on_true, on_false],
        attributes={"operandSegmentSizes": segments},
    )


def _barrier(value: ir.Value) -> ir.Value:
    """Returns the same value, opaque to the compiler."""
    # One value at a time: IREE's barrier on several values fails if their memory differs in kind.
    return ir.Operation.create(
        "util.optimization_barrier", results=[value.type], operands=[value]
    ).result


def _passed(
    values: Sequence[ir.Value], on_host: Sequence[int], scalars: HostScalars
) -> list[ir.Value]:
    """Returns the operands of a branch: tensors, then the host scalars."""
    tensors = [x for index, x in enumerate(values) if index not in on_host]
    return [*tensors, *(scalars.as_scalar(values[index]) for index in on_host)]
