"""What a loop passes on from pass to pass, so that no two values lie in the same memory.

The fact: an array that a branch passes to a block, and nobody reads behind the branch, IREE lets
the block overwrite. It does so, too, where the branch passes that array twice, or two that are
computed alike and thus become one: what is written to one of the block's arguments is then found in
both.
Elsewhere: the blocks (`branch_loops.py`).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from iree.compiler import ir

from axir.passes.legalize.buffers.storage import IN_PLACE, folded_sources, overwritten_places
from axir.passes.legalize.copies import made_alone
from axir.passes.legalize.rewriting import defining_operation

_WHILE = "stablehlo.while"
# Values whose last operations are alike are taken for equal from this many on.
_DEPTH = 4


def overwritten_arguments(block: ir.Block) -> set[int]:
    """Returns which arguments of a block, the body of a loop, operations in it may overwrite."""
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
    """Returns what a branch passes, renewed where two might share memory.

    Args:
        values: The values.
        overwritten: Which of them the block that takes them may overwrite: these are renewed unless
            an operation has just overwritten them, or they are an argument of the block around
            that nobody else reads.
        owned: Arguments of blocks that were passed so.
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
    """Tells whether a value has memory that only the one who asks reads from now on."""
    operation = defining_operation(value)
    if operation is not None and operation.name == "stablehlo.reshape":
        return len(list(value.uses)) == 1 and _is_owned(operation.operands[0], owned)
    is_fresh = value in owned if operation is None else operation.name in IN_PLACE
    return is_fresh and len(list(value.uses)) == 1


class _Kinds:
    """Numbers of values: equal ones have the same, as they are computed alike to some depth."""

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
