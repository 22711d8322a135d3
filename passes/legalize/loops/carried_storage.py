"""The values that a loop carries from iteration to iteration, each in separate memory.

The fact: IREE lets a block overwrite an array that a branch passes to it if the array has no
readers behind the branch. It does so even where the branch passes one array twice, or two arrays
with equal computations, which become one. A write to one of the block's arguments then changes
both. Elsewhere: the blocks (`branch_loops.py`).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from iree.compiler import ir

from axir.passes.legalize.buffers.storage import IN_PLACE, folded_sources, overwritten_places
from axir.passes.legalize.copies import made_alone
from axir.passes.legalize.rewriting import defining_operation

_WHILE = "stablehlo.while"
# Values count as equal if their last operations are equal to this depth.
_DEPTH = 4


def overwritten_arguments(block: ir.Block) -> set[int]:
    """Returns the arguments of a loop's body that operations in it may overwrite."""
    places = {argument: index for index, argument in enumerate(block.arguments)}
    found = set()
    pending = [x for operation in block.operations for x in _overwritten(operation.operation)]
    seen: set[ir.Value] = set()
    while pending:
        value = pending.pop()
        if value in places:
            found.add(places[value])
        elif value not in seen:
            seen.add(value)
            pending += folded_sources(value)
    return found


def _overwritten(operation: ir.Operation) -> list[ir.Value]:
    if operation.name == _WHILE:
        places: Sequence[int] = sorted(overwritten_arguments(operation.regions[1].blocks[0]))
    elif operation.name in IN_PLACE:
        places = overwritten_places(operation)
    else:
        places = ()
    return [operation.operands[place] for place in places]


def with_storage_of_their_own(
    values: Sequence[ir.Value], overwritten: set[int], owned: set[ir.Value]
) -> list[ir.Value]:
    """Returns the operands of a branch, with copies where two might share memory.

    Args:
        values: The operands.
        overwritten: The operands that the target block may overwrite. They are copied unless an
            operation has just made them in place, or they are an owned argument without other
            readers.
        owned: Arguments of blocks that were passed in this way.
    """
    kinds = _Kinds()
    seen: set[tuple[ir.Type, int]] = set()
    passed = []
    for index, value in enumerate(values):
        kind = (value.type, kinds.of(value))
        is_alone = kind not in seen and (index not in overwritten or _is_owned(value, owned))
        seen.add(kind)
        passed.append(value if is_alone else made_alone(value))
    return passed


def _is_owned(value: ir.Value, owned: set[ir.Value]) -> bool:
    """Tells whether a value has memory that only its single user reads from now on."""
    operation = defining_operation(value)
    if operation is not None and operation.name == "stablehlo.reshape":
        return len(list(value.uses)) == 1 and _is_owned(operation.operands[0], owned)
    is_fresh = value in owned if operation is None else operation.name in IN_PLACE
    return is_fresh and len(list(value.uses)) == 1


class _Kinds:
    """Assigns numbers to values; values with equal computations to some depth share a number."""

    def __init__(self) -> None:
        self._known: dict[tuple[ir.Value, int], int] = {}
        self._numbers: dict[Hashable, int] = {}

    def of(self, value: ir.Value, depth: int = _DEPTH) -> int:
        """Returns the number of a value."""
        key = (value, depth)
        if key not in self._known:
            description = self._description(value, depth)
            self._known[key] = self._numbers.setdefault(description, len(self._numbers))
        return self._known[key]

    def _description(self, value: ir.Value, depth: int) -> Hashable:
        operation = defining_operation(value)
        if operation is None:
            return value
        attributes = tuple((name, operation.attributes[name]) for name in operation.attributes)
        operands = tuple(self.of(x, depth - 1) for x in operation.operands) if depth else ()
        return operation.name, ir.OpResult(value).result_number, attributes, operands
