"""`renew-branch-results`: branches give arrays of their own, where these are updated in place."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from typing import ClassVar

from iree.compiler import ir

from axir.passes.framework.base import Pass
from axir.passes.legalize.rewriting import defining_operation, find_operations, renewed

from .storage import IN_PLACE, moved_from, overwritten_places

_BRANCHING = ("stablehlo.if", "stablehlo.case")


@dataclasses.dataclass(frozen=True)
class RenewBranchResults(Pass):
    """Copies what a branch hands on as it is, if its result or the array is updated in place.

    The fact: IREE takes the result of a condition for an array of its own, also where a branch
    gives an array from outside, or gives one array twice. An update of the result then overwrites
    that array, whoever reads it later, and an update of the array the result.

    1. Follow what operations in place overwrite back through views, to results of branches.
    2. Of what the branches give there, copy the arrays from outside that something else reads.
    3. Find where branches give the arrays on that way as results that do not lie on it, and copy
       them there if the operation comes after the condition, and something reads that result.

    Before::

        %1 = "stablehlo.if"(%p) ({ … stablehlo.return %sine }, { stablehlo.return %x })
        %2 = stablehlo.dynamic_update_slice %1, %y, %zero

    After::

        %1 = "stablehlo.if"(%p) ({ … stablehlo.return %sine }, {
          %t = util.optimization_barrier %true : tensor<i1>
          %own = stablehlo.select %t, %x, %zeros
          stablehlo.return %own
        })

    Precondition: the passes that remove barriers have run.
    """

    name: ClassVar[str] = "renew-branch-results"

    def run(self, module: ir.Module) -> None:
        """Copies what is to be copied."""
        ends = _ends_by_array(module)
        for operation in find_operations(module.operation, IN_PLACE):
            for place in overwritten_places(operation):
                _Overwriting(operation, ends).renew(operation.operands[place])


class _End:
    """Where a branch gives a value as one of the results of its condition."""

    def __init__(self, returned: ir.Operation, index: int) -> None:
        self._returned = returned
        self._index = index
        self.condition: ir.Operation = returned.parent.operation
        # Whether it gives a copy by now, which nothing else reads.
        self.is_renewed = False

    def value(self) -> ir.Value:
        """Returns what the branch gives."""
        return self._returned.operands[self._index]

    def result(self) -> ir.Value:
        """Returns what it is given as."""
        return self.condition.results[self._index]

    def renew(self) -> None:
        """Has the branch give a copy."""
        with ir.InsertionPoint(self._returned), self._returned.location:
            self._returned.operands[self._index] = renewed(self.value())
        self.is_renewed = True


# The ends of branches by the arrays that they give, themselves or a view; and by the results.
@dataclasses.dataclass(frozen=True)
class _Ends:
    giving: dict[ir.Value, list[_End]]
    behind: dict[ir.Value, list[_End]]


def _ends_by_array(module: ir.Module) -> _Ends:
    ends = _Ends(defaultdict(list), defaultdict(list))
    for condition in find_operations(module.operation, _BRANCHING):
        for region in condition.regions:
            operations = region.blocks[0].operations
            returned = operations[len(operations) - 1].operation
            for index in range(len(condition.results)):
                end = _End(returned, index)
                ends.giving[_array_behind(end.value())].append(end)
                ends.behind[end.result()].append(end)
    return ends


class _Overwriting:
    """Sees to what one operation overwrites."""

    def __init__(self, operation: ir.Operation, ends: _Ends) -> None:
        self._operation = operation
        self._ends = ends

    def renew(self, value: ir.Value, through: tuple[_End, ...] = ()) -> None:
        """Copies what branches give, and would change with a value that is overwritten.

        Args:
            value: The value.
            through: The ends of branches by way of which it is what the operation overwrites.
        """
        array = _array_behind(value)
        for end in self._ends.giving.get(array, ()):
            if end not in through and not end.is_renewed and self._changes(end):
                end.renew()
        for end in self._ends.behind.get(array, ()):
            if end.is_renewed:
                continue
            if _is_shared(end):
                end.renew()
            else:
                self.renew(end.value(), (*through, end))

    def _changes(self, end: _End) -> bool:
        """Tells whether somebody may read the result that an end gives after the operation."""
        is_read = next(iter(end.result().uses), None) is not None
        return is_read and _comes_after(self._operation, end.condition)


def _array_behind(value: ir.Value) -> ir.Value:
    """Returns the array whose storage a value has, as far as no condition lies between."""
    while (source := moved_from(value)) is not None:
        value = source
    return value


def _comes_after(operation: ir.Operation, condition: ir.Operation) -> bool:
    """Tells whether an operation comes after a condition, and not in one of its branches."""
    before: ir.Operation | None = condition
    while before is not None:
        after: ir.Operation | None = operation
        while after is not None and after.block != before.block:
            after = _parent(after)
        if after is not None:
            return before != after and before.is_before_in_block(after)
        before = _parent(before)
    return False


def _is_shared(end: _End) -> bool:
    """Tells whether an array from outside of a condition is read by something else, too."""
    value: ir.Value | None = end.value()
    while value is not None:
        if len(list(value.uses)) > 1 and not _is_within(defining_operation(value), end.condition):
            return True
        value = moved_from(value)
    return False


def _is_within(operation: ir.Operation | None, condition: ir.Operation) -> bool:
    while operation is not None:
        if operation == condition:
            return True
        operation = _parent(operation)
    return False


def _parent(operation: ir.Operation) -> ir.Operation | None:
    return operation.parent.operation if operation.parent is not None else None
