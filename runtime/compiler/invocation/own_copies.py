"""Gives each operation that works in place a copy of what it works on, whoever else reads that.

Used where IREE's own choice of what has to be copied made a program that is wrong. What does not
live here: the passes around this (`stream_passes.py`).
"""

from __future__ import annotations

from iree.compiler import ir

_DISPATCH, _CLONE = "stream.async.dispatch", "stream.async.clone"
# What writes into their first operand, whose size is the second one.
_WRITERS = frozenset(("stream.async.copy", "stream.async.fill", "stream.async.update"))
_DEVICE = "affinity"


def give_copies(module: ir.Operation) -> int:
    """Puts copies into a module whose arrays are values, before it is scheduled, in place.

    Returns:
        How many copies there are.
    """
    found: list[ir.Operation] = []

    def collect(operation: ir.Operation) -> ir.WalkResult:
        if operation.name == _DISPATCH or operation.name in _WRITERS:
            found.append(operation)
        return ir.WalkResult.ADVANCE

    module.walk(collect)
    return sum(_copy_operands(operation) for operation in found)


def _copy_operands(operation: ir.Operation) -> int:
    places = _tied(operation) if operation.name == _DISPATCH else [(0, 1)]
    for operand, size in places:
        value = operation.operands[operand]
        device = {x: operation.attributes[x] for x in (_DEVICE,) if x in operation.attributes}
        with ir.InsertionPoint(operation), operation.location:
            length = operation.operands[size]
            copy = ir.Operation.create(
                _CLONE, results=[value.type], operands=[value, length, length], attributes=device
            )
        operation.operands[operand] = copy.result
    return len(places)


def _tied(dispatch: ir.Operation) -> list[tuple[int, int]]:
    """Returns which operands of a dispatch it works on in place, each with its size's place."""
    groups = list(ir.DenseI32ArrayAttr(dispatch.attributes["operandSegmentSizes"]))
    first, sizes = groups[0], groups[0] + groups[1]
    arrays = [
        x
        for x in range(first, sizes)
        if str(dispatch.operands[x].type).startswith("!stream.resource")
    ]
    if "tied_operands" not in dispatch.attributes:
        return []
    ties = [ir.IntegerAttr(x).value for x in ir.ArrayAttr(dispatch.attributes["tied_operands"])]
    return [(first + x, sizes + arrays.index(first + x)) for x in ties if x >= 0]
