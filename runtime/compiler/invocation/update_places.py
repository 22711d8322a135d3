"""Decides which kernels may write their result directly to the place that an update copies it to.

IREE saves that copy (`iree-stream-emplace-allocations`): the kernel then writes into the updated
array, at the kernel's position in the program instead of the update's. IREE does not check whether
another operation, or the kernel, reads the array between the two, nor whether the update happens at
all. A part of an array that is written back into the same array is copied directly, also where the
two places overlap, which drivers refuse. Elsewhere: how an update that must not be early is kept
(`program_order.py`).
"""

from __future__ import annotations

from collections.abc import Iterator

from iree.compiler import ir

UPDATE = "flow.tensor.update"
VIEW = "flow.tensor.reshape"
PART = "flow.tensor.slice"
_DISPATCH = "flow.dispatch"
# Arrays without earlier contents; IREE makes them before the kernel if it has to.
_FRESH = frozenset(f"flow.tensor.{name}" for name in ("empty", "splat", "alloca", "constant"))


class UpdatePlaces:
    """Decides which updates in a block stay right if their operand is written in place early."""

    def __init__(self, block: ir.Block) -> None:
        self._block = block
        self._positions = {op.operation: number for number, op in enumerate(block.operations)}

    def may_be_early(self, update: ir.Operation) -> bool:
        """Tells whether an update stays right if a kernel writes the update's operand in place."""
        result = viewed(written_by(update))
        pasts = list(_pasts(viewed(update.operands[0])))
        whole = _whole(result)
        if whole is not None and whole in pasts:
            return False
        kernel = definition(result)
        if kernel is None or kernel.name != _DISPATCH or len(list(_readers(result))) > 1:
            return True  # IREE does not move such an update
        begin = self._positions.get(kernel)
        if begin is None:
            return False  # the update is in a branch or loop, the kernel is not
        return (
            self._is_there(pasts[-1], kernel, begin)
            and not self._is_read(pasts, update, begin)
            and not _has_two_places(kernel, result, pasts[-1])
        )

    def _is_there(self, array: ir.Value, kernel: ir.Operation, begin: int) -> bool:
        """Tells whether an array is made before a kernel, or can be."""
        maker = definition(array)
        if maker is None or maker.name in _FRESH:
            return True
        return maker != kernel and self._positions.get(maker, -1) < begin

    def _is_read(self, pasts: list[ir.Value], update: ir.Operation, begin: int) -> bool:
        """Tells whether an array's past is read from the kernel on, until the update."""
        end = self._positions[update]
        return any(
            begin <= position < end
            for past in pasts
            for reader, place in _readers(past)
            if not (reader.name == UPDATE and place == 0)
            and (position := self._position(reader)) is not None
        )

    def _position(self, operation: ir.Operation) -> int | None:
        """Returns the position in the block of an operation, or of the operation around it."""
        parent: ir.Operation | None = operation
        while parent is not None and parent not in self._positions:
            parent = parent.parent
        return None if parent is None else self._positions[parent.operation]


def written_by(update: ir.Operation) -> ir.Value:
    """Returns the array that an update copies into a part of another one."""
    return update.operands[place_of_written(update)]


def place_of_written(update: ir.Operation) -> int:
    """Returns the number of that operand."""
    operands = list(enumerate(update.operands))
    return max(place for place, value in operands if isinstance(value.type, ir.RankedTensorType))


def viewed(value: ir.Value) -> ir.Value:
    """Returns the array behind views in other shapes."""
    maker = definition(value)
    while maker is not None and maker.name == VIEW:
        value = maker.operands[0]
        maker = definition(value)
    return value


def _whole(value: ir.Value) -> ir.Value | None:
    """Returns the array that a value is a slice of, None if it is not a slice."""
    maker = definition(value)
    if maker is None or maker.name != PART:
        return None
    array = viewed(maker.operands[0])
    return _whole(array) or array


def definition(value: ir.Value) -> ir.Operation | None:
    """Returns the operation that defines a value; None for an argument of a block."""
    return None if isinstance(value, ir.BlockArgument) else value.owner.operation


def _pasts(array: ir.Value) -> Iterator[ir.Value]:
    """Yields an array, and its versions before updates, which may share its memory."""
    yield array
    while (maker := definition(array)) is not None and maker.name == UPDATE:
        array = viewed(maker.operands[0])
        yield array


def _readers(array: ir.Value) -> Iterator[tuple[ir.Operation, int]]:
    """Yields the operations that read an array, also through views, and the operand's number."""
    for use in array.uses:
        user = use.owner.operation
        if user.name == VIEW:
            yield from _readers(user.results[0])
        else:
            yield user, use.operand_number


def _has_two_places(kernel: ir.Operation, result: ir.Value, array: ir.Value) -> bool:
    """Tells whether another result of a kernel would be written to the same array."""
    others = [other for other in kernel.results if other != result]
    return any(
        reader.name == UPDATE and array in _pasts(viewed(reader.operands[0]))
        for other in others
        for reader, _ in _readers(other)
    )
