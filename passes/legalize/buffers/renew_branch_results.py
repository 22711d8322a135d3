"""`renew-branch-results`: branches give arrays of their own, where these are updated in place."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import ClassVar

from iree.compiler import ir

from axir.passes.framework.base import Pass
from axir.passes.legalize.rewriting import defining_operation, find_operations, renewed

from .storage import BARRIER, IN_PLACE, overwritten_places

_BRANCHING = ("stablehlo.if", "stablehlo.case")
_VIEWS = ("stablehlo.reshape", "stablehlo.bitcast_convert", BARRIER)


@dataclasses.dataclass(frozen=True)
class RenewBranchResults(Pass):
    """Copies what a branch hands on as it is, if the result is updated in place.

    The fact: IREE takes the result of a condition for an array of its own, also where a branch
    gives an array from outside. An update of the result then overwrites that array, whoever reads
    it later.

    1. Follow what operations in place overwrite back through views, to results of branches.
    2. Of what the branches give there, copy the arrays from outside that something else reads.

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
        for operation in find_operations(module.operation, IN_PLACE):
            for place in overwritten_places(operation):
                for returned, index in _given_by_branches(operation.operands[place]):
                    value = returned.operands[index]
                    if _is_shared(value, returned.parent):
                        with ir.InsertionPoint(returned), returned.location:
                            returned.operands[index] = renewed(value)


def _given_by_branches(value: ir.Value) -> Iterator[tuple[ir.Operation, int]]:
    """Yields the ends of branches that may give an array, and as which of their operands."""
    made = defining_operation(value)
    if made is None:
        return
    number = ir.OpResult(value).result_number
    if made.name in _VIEWS:
        yield from _given_by_branches(made.operands[number])
    elif made.name in _BRANCHING:
        for region in made.regions:
            operations = region.blocks[0].operations
            returned = operations[len(operations) - 1].operation
            yield returned, number
            yield from _given_by_branches(returned.operands[number])


def _is_shared(value: ir.Value, branch: ir.Operation) -> bool:
    """Tells whether an array from outside of a branch is read by something else, too."""
    while (made := defining_operation(value)) is not None and made.name in _VIEWS:
        if len(list(value.uses)) > 1 and not _is_within(made, branch):
            return True
        value = made.operands[ir.OpResult(value).result_number]
    is_outside = made is None or not _is_within(made, branch)
    return is_outside and len(list(value.uses)) > 1


def _is_within(operation: ir.Operation, branch: ir.Operation) -> bool:
    parent: ir.Operation | None = operation
    while parent is not None:
        if parent.operation == branch.operation:
            return True
        parent = parent.parent
    return False
