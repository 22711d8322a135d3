"""`bypass-barriers`: values that are overwritten in place are not hidden behind barriers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from iree.compiler import ir

from axir.passes.framework.base import Pass
from axir.passes.legalize.rewriting import (
    defining_operation,
    find_operations,
    innermost_loop_block,
    operations_in_order,
)

from .storage import BARRIER, IN_PLACE, folded_sources, overwritten_places


class BypassBarriers(Pass):
    """Removes the barrier between two values if one of the two is overwritten in place.

    The fact: IREE keeps optimization barriers until storage is assigned, and gives a barrier's
    result the storage of its operand. But its analysis treats the two as unrelated. An operation
    that works in place on the last use of one changes the other: after
    `y = optimization_barrier(x)` and `y.at[0].set(1)`, `x` is silently wrong. The values that
    `checkpoint` recomputes are wrong, too, because `checkpoint` hides them from the compiler by
    barriers.

    1. Visit every operation that works in place, and follow its overwritten operands backwards
       through barriers and through operations that may fold away.
    2. Where a barrier's result is among the values found, or its operand and the result is used
       later, and the operand has other users or is a constant: let the users of the result use the
       operand instead. IREE then knows that it must copy.

    Before::

        %b = stablehlo.optimization_barrier %0
        %1 = stablehlo.dynamic_update_slice %b, %arg1, %c
        return %0, %1

    After::

        %1 = stablehlo.dynamic_update_slice %0, %arg1, %c
        return %0, %1

    Precondition: the passes that make operations in place have run.
    """

    name: ClassVar[str] = "bypass-barriers"

    def run(self, module: ir.Module) -> None:
        """Changes the users of barriers."""
        barriers = find_operations(module.operation, (BARRIER,))
        if not barriers:
            return
        written = _written(module)
        if not written:
            return
        order = _Order(module)
        for barrier in barriers:
            for operand, result in zip(list(barrier.operands), barrier.results, strict=True):
                stored = list(_storage(operand))
                changes = [writer for value in stored for writer in written.get(value, ())]
                is_changed = result in written or order.is_read_after(result, changes)
                if is_changed and any(map(_is_shared, stored)):
                    result.replace_all_uses_with(operand)
            if not any(list(result.uses) for result in barrier.results):
                barrier.erase()


def _written(module: ir.Module) -> dict[ir.Value, list[ir.Operation]]:
    """Returns the values that may be overwritten, with the operations that overwrite them."""
    written: dict[ir.Value, list[ir.Operation]] = {}
    for writer in operations_in_order(module.operation, IN_PLACE):
        for place in overwritten_places(writer):
            for value in _storage(writer.operands[place]):
                written.setdefault(value, []).append(writer)
    return written


class _Order:
    """The order of a module's operations.

    Operations are looked up by their first result, and operations without results by their block.
    The bindings hash an operation by its operands, and operands change here.
    """

    def __init__(self, module: ir.Module) -> None:
        self._positions: dict[ir.Value | ir.Block, int] = {}
        self._count = 0
        module.operation.walk(self._visit, ir.WalkOrder.PRE_ORDER)

    def _visit(self, operation: ir.Operation) -> ir.WalkResult:
        if operation.parent is not None:
            self._positions[_key(operation)] = self._count  # the last operation of a block stays
        self._count += 1
        return ir.WalkResult.ADVANCE

    def is_read_after(self, value: ir.Value, writers: list[ir.Operation]) -> bool:
        """Tells whether a use of a value may come after one of these operations."""
        if not writers:
            return False
        first = min(self._positions[_key(writer)] for writer in writers)
        return any(
            self._positions[_key(use.owner.operation)] > first
            or innermost_loop_block(use.owner.operation) is not None
            for use in value.uses
        )


def _key(operation: ir.Operation) -> ir.Value | ir.Block:
    return operation.results[0] if len(operation.results) else operation.block


def _storage(value: ir.Value) -> Iterator[ir.Value]:
    """Yields the values that may share a value's storage, and the value itself."""
    pending, seen = [value], {value}
    while pending:
        value = pending.pop()
        yield value
        fresh = [source for source in folded_sources(value) if source not in seen]
        seen.update(fresh)
        pending += fresh


def _is_shared(value: ir.Value) -> bool:
    operation = defining_operation(value)
    is_constant = operation is not None and operation.name == "stablehlo.constant"
    return is_constant or len(list(value.uses)) > 1
