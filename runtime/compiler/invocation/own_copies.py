"""Copies the operands of operations that work in place, where another operation reads them too.

`give_copies` copies all such operands; it is used if a program is wrong with IREE's choice of
copies. `read_originals` mends kernels that also read the array which they work on: IREE copies the
array, and then makes the kernel read the copy, which it overwrites. Two operands are also one array
if they were computed twice and IREE found them equal.

The parts of a program end where the host waits. IREE duplicates a fill with a number for each group
of operations that reads it. If two groups before a wait have duplicates, IREE loses the readers
behind that wait, and then refuses the program ("streamable op expected to be in an execution
region"). With a fill for each part, no reader is behind a wait. Only a refused program gets
separate fills.

Elsewhere: the passes around this (`stream_passes.py`), kernels in which IREE has merged both
operands into one (`own_reads.py`), and dispatches without array operands (`program_order.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter

from iree.compiler import ir

from .compiler_library import operations_named
from .update_places import definition, viewed

_DISPATCH, _CLONE = "stream.async.dispatch", "stream.async.clone"
_FLOW_DISPATCH, _FUNCTION = "flow.dispatch", "util.func"
_SIZES, _TIES = "operandSegmentSizes", "tied_operands"
# Operations that write into their first operand; their second operand is its size.
_WRITERS = frozenset(("stream.async.copy", "stream.async.fill", "stream.async.update"))
_DEVICE = "affinity"


def give_copies(module: ir.Operation) -> int:
    """Copies, in place, the changed operands of a module that is not yet scheduled.

    Arrays are values in such a module.

    Returns:
        The number of copies added.
    """
    count = 0
    for operation, places in places_worked_on(module):
        for operand, size in places:
            copy_operand(operation, operand, size)
        count += len(places)
    return count


def places_worked_on(module: ir.Operation) -> list[tuple[ir.Operation, list[tuple[int, int]]]]:
    """Returns the operations that work in place in a module in which arrays are values.

    With each operation come pairs of places: an operand that it works on, and that operand's size.
    """
    found = operations_named(module, _WRITERS | {_DISPATCH})
    return [(x, _tied(x) if x.name == _DISPATCH else [(0, 1)]) for x in found]


def has_read_what_changes(module: ir.Operation) -> bool:
    """Tells whether a kernel of a module in the phase `flow` reads an array that it changes."""
    functions = [
        op.operation
        for op in module.regions[0].blocks[0].operations
        if op.operation.name == _FUNCTION
    ]
    return any(
        _reads_what_changes(dispatch)
        for function in functions
        for dispatch in operations_named(function, (_FLOW_DISPATCH,))
    )


def _reads_what_changes(dispatch: ir.Operation) -> bool:
    ties = _ties(dispatch)
    if not ties:
        return False
    first, count = list(ir.DenseI32ArrayAttr(dispatch.attributes[_SIZES]))[:2]
    handed = [viewed(x) for x in list(dispatch.operands)[first : first + count]]
    return any(handed.count(handed[place]) > 1 for place in ties)


def read_originals(module: ir.Operation) -> int:
    """Makes kernels read the original of an array that they change a copy of, in place.

    Args:
        module: The module, in which IREE has copied each array that is changed in place.

    Returns:
        The number of operands replaced.
    """
    return sum(_read_originals(x) for x in operations_named(module, (_DISPATCH,)))


def _read_originals(dispatch: ir.Operation) -> int:
    count = 0
    tied = _tied(dispatch)
    places = {place for place, _ in tied}
    for place, _ in tied:
        value = dispatch.operands[place]
        copy = definition(value)
        if copy is None or copy.name != _CLONE:
            continue
        for other, operand in enumerate(dispatch.operands):
            if operand == value and other not in places:
                dispatch.operands[other] = copy.operands[0]
                count += 1
    return count


def copy_operand(operation: ir.Operation, operand: int, size: int) -> None:
    """Replaces an operand of an operation by a copy; `size` is the place of the operand's size."""
    value = operation.operands[operand]
    device = {x: operation.attributes[x] for x in (_DEVICE,) if x in operation.attributes}
    with ir.InsertionPoint(operation), operation.location:
        length = operation.operands[size]
        copy = ir.Operation.create(
            _CLONE, results=[value.type], operands=[value, length, length], attributes=device
        )
    operation.operands[operand] = copy.result


def _tied(dispatch: ir.Operation) -> list[tuple[int, int]]:
    """Returns which operands of a dispatch it works on in place, each with its size's place."""
    groups = list(ir.DenseI32ArrayAttr(dispatch.attributes[_SIZES]))
    first, sizes = groups[0], groups[0] + groups[1]
    arrays = [
        x
        for x in range(first, sizes)
        if str(dispatch.operands[x].type).startswith("!stream.resource")
    ]
    return [(first + x, sizes + arrays.index(first + x)) for x in _ties(dispatch)]


def _ties(dispatch: ir.Operation) -> list[int]:
    """Returns which of its arrays and numbers a dispatch works on in place."""
    if _TIES not in dispatch.attributes:
        return []
    ties = [ir.IntegerAttr(x).value for x in ir.ArrayAttr(dispatch.attributes[_TIES])]
    return [x for x in ties if x >= 0]


_FILL = "stream.async.splat"
_WAITS = frozenset(("stream.async.load", "stream.timepoint.await", "util.optimization_barrier"))
_BRANCH = "scf."


def give_own_fills(module: ir.Operation) -> int:
    """Gives each part a separate fill, in place.

    Args:
        module: The module, in which arrays are values and operations are not yet scheduled.

    Returns:
        The number of fills added.
    """
    count = 0
    for operation, (_, *others) in list(_readers(module)):
        for readers in others:
            with ir.InsertionPoint(readers[0][0]), operation.location:
                filled = operation.clone().results[0]
            for _, use in readers:
                use.owner.operation.operands[use.operand_number] = filled
            count += 1
    return count


_Reader = tuple[ir.Operation, ir.OpOperand]


def _readers(module: ir.Operation) -> Iterator[tuple[ir.Operation, list[list[_Reader]]]]:
    """Yields fills with their uses, grouped by the parts of the fill's block, in order.

    A use is a pair: the operation in the fill's block that contains the reader, and the use.
    """
    fills = operations_named(module, (_FILL,))
    for block in dict.fromkeys(fill.block for fill in fills):
        operations = [view.operation for view in block.operations]
        parts, part = {}, 0
        for number, operation in enumerate(operations):
            parts[operation] = part, number
            part += operation.name in _WAITS or operation.name.startswith(_BRANCH)
        for fill in operations:
            if fill.name == _FILL and (groups := _grouped(fill, parts)):
                yield fill, groups


def _grouped(fill: ir.Operation, parts: dict[ir.Operation, tuple[int, int]]) -> list[list[_Reader]]:
    groups: dict[int, list[tuple[int, _Reader]]] = {}
    for use in fill.results[0].uses:
        outer = use.owner.operation
        while outer not in parts:
            outer = outer.parent
        part, number = parts[outer]
        groups.setdefault(part, []).append((number, (outer, use)))
    by_place = [sorted(group, key=itemgetter(0)) for _, group in sorted(groups.items())]
    return [[reader for _, reader in group] for group in by_place]
