"""`renew-branch-results`: branches return copies of arrays that are updated in place."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from typing import ClassVar

from iree.compiler import ir

from axir.passes.framework.base import Pass
from axir.passes.legalize.rewriting import defining_operation, find_operations, renewed

from .storage import IN_PLACE, moved_from, overwritten_places

_BRANCHING = ("stablehlo.if", "stablehlo.case")


class RenewBranchResults(Pass):
    """Copies arrays that a branch returns unchanged if the array or the result is overwritten.

    The fact: IREE treats the result of a condition as a new array, even where a branch returns an
    array from outside, or returns one array twice. An update of the result then overwrites the
    outer array for its later readers, and an update of the outer array overwrites the result.

    1. Follow the operands that operations overwrite back through views, to results of branches.
    2. In the branches, copy each returned array that comes from outside and has other readers.
    3. Find other branches that return an array passed on the way. Copy the array there if the
       overwriting operation comes after the condition, and the condition's result is read.

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
        """Copies the arrays that an update in place would change for another reader."""
        ends = _ends_by_array(module)
        for operation in find_operations(module.operation, IN_PLACE):
            for place in overwritten_places(operation):
                _Overwriting(operation, ends).renew(operation.operands[place])


class _End:
    """The place where a branch returns a value as one of the results of its condition."""

    def __init__(self, returned: ir.Operation, index: int) -> None:
        self._returned = returned
        self._index = index
        self.condition: ir.Operation = returned.parent.operation
        # Whether the branch already returns a copy, which has no other reader.
        self.is_renewed = False

    def value(self) -> ir.Value:
        """Returns the value that the branch returns."""
        return self._returned.operands[self._index]

    def result(self) -> ir.Value:
        """Returns the condition's result at this place."""
        return self.condition.results[self._index]

    def renew(self) -> None:
        """Makes the branch return a copy."""
        with ir.InsertionPoint(self._returned), self._returned.location:
            self._returned.operands[self._index] = renewed(self.value())
        self.is_renewed = True


# The ends of branches: by the arrays that they return (directly or as a view), and by the results.
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
    """Copies the arrays that one operation in place would change for other readers."""

    def __init__(self, operation: ir.Operation, ends: _Ends) -> None:
        self._operation = operation
        self._ends = ends

    def renew(self, value: ir.Value, through: tuple[_End, ...] = ()) -> None:
        """Copies the values that branches return and that would change with an overwritten value.

        Args:
            value: The value.
            through: The ends of branches between the value and the overwritten operand.
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
        """Tells whether the result of an end may be read after the operation."""
        is_read = next(iter(end.result().uses), None) is not None
        return is_read and _comes_after(self._operation, end.condition)


def _array_behind(value: ir.Value) -> ir.Value:
    """Returns the array that a value is a view of; conditions are not followed."""
    while (source := moved_from(value)) is not None:
        value = source
    return value


def _comes_after(operation: ir.Operation, condition: ir.Operation) -> bool:
    """Tells whether an operation comes after a condition and outside its branches."""
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
    """Tells whether the returned array comes from outside the condition and has other readers."""
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
