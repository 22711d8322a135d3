"""Moves the loads of arrays' addresses to their first use, in kernels of many arrays.

A kernel begins with the loads of the addresses of all arrays. With hundreds of arrays, LLVM spills
most of the addresses to the stack and reloads them, and spends half of its time on that. Elsewhere:
the kernels (`native.py`).
"""

from __future__ import annotations

from iree.compiler import ir

# As many addresses as registers hold.
_FEW = 16
_LOAD, _PLACE = "llvm.load", "llvm.getelementptr"


def load_addresses_late(module: ir.Operation) -> None:
    """Moves loads of addresses in the first blocks of functions to their first uses there."""
    functions: list[ir.Operation] = []

    def collect(operation: ir.Operation) -> ir.WalkResult:
        if operation.name != "llvm.func":
            return ir.WalkResult.ADVANCE
        functions.append(operation)
        return ir.WalkResult.SKIP

    module.walk(collect, ir.WalkOrder.PRE_ORDER)
    for function in functions:
        if len(function.regions[0].blocks):
            _move(function)


def _move(function: ir.Operation) -> None:
    order: dict[ir.Operation, int] = {}
    end = _end_of_first_block(function)

    def number(operation: ir.Operation) -> ir.WalkResult:
        if operation == function:
            return ir.WalkResult.ADVANCE
        order[operation] = len(order)
        return ir.WalkResult.INTERRUPT if operation == end else ir.WalkResult.SKIP

    function.walk(number, ir.WalkOrder.PRE_ORDER)
    pointer = ir.Type.parse("!llvm.ptr", function.context)
    loads = [x for x in order if x.name == _LOAD and x.results[0].type == pointer]
    if len(loads) <= _FEW:
        return
    for load in loads:
        users = [use.owner.operation for use in load.results[0].uses]
        here = [x for x in users if x in order]
        if here:
            place = load.operands[0].owner
            load.move_before(min(here, key=order.__getitem__))
            is_place = not isinstance(place, ir.Block) and place.operation.name == _PLACE
            if is_place and len(list(place.operation.results[0].uses)) == 1:
                place.operation.move_before(load)


def _end_of_first_block(function: ir.Operation) -> ir.Operation:
    block = function.regions[0].blocks[0]
    return block.operations[len(block.operations) - 1].operation
