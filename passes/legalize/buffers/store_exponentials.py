"""`store-exponentials`: a softmax whose parts are used elsewhere is no softmax to IREE."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.legalize.rewriting import RewritePass, defining_operation

_VIEWS = ("stablehlo.reshape", "stablehlo.broadcast_in_dim")
# The maximum of the reduced one and its lower bound.
_OF_MAXIMUM = (*_VIEWS, "stablehlo.maximum", "stablehlo.reduce")


@dataclasses.dataclass(frozen=True)
class StoreExponentials(RewritePass):
    """Keeps the exponentials of a softmax in memory if more is made of its parts.

    The fact: IREE makes one operation of a softmax. If the gradient, for one, uses the exponentials
    again, it computes them a second time, from the operand, and the dispatch of the softmax then
    gives the operand as well, if that is computed elementwise. Of small arrays this does not
    compile ("write affecting operations on global resources are restricted to workgroup distributed
    contexts"). Larger ones do; with the exponentials kept the gradient of attention takes up to 30%
    less time to compile, and no longer to run.

    1. Visit every exponential of a difference that a sum reads.
    2. If the difference, the exponentials, or what is reduced of either has other uses than the one
       quotient of the exponentials and their sum, put an optimization barrier on the exponentials.

    Before::

        %e = stablehlo.exponential %difference
        %sum = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1]
        %use = stablehlo.multiply %cotangent, %e

    After::

        %0 = stablehlo.exponential %difference
        %e = stablehlo.optimization_barrier %0
        %sum = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1]
        %use = stablehlo.multiply %cotangent, %e

    Precondition: `protect-inputs` has run, which would remove the barriers.
    """

    name: ClassVar[str] = "store-exponentials"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.exponential",)

    def rewrite(self, operation: ir.Operation) -> ir.Value | None:
        """Builds the exponentials and the barrier."""
        exponentials = operation.results[0]
        maximum = _subtracted_maximum(operation.operands[0])
        if not maximum or not any(_is_reduction(user) for user in _users(exponentials)):
            return None
        if all(len(_users(x)) == 1 for x in maximum) and _ends_in_quotient(exponentials):
            return None
        return hlo.optimization_barrier(hlo.exponential(operation.operands[0]))[0]


def _subtracted_maximum(difference: ir.Value) -> list[ir.Value]:
    """Returns a difference and what its subtrahend is computed from, up to a reduction, if any."""
    operation = defining_operation(difference)
    if operation is None or operation.name != "stablehlo.subtract":
        return []
    values = [difference]
    operation = defining_operation(operation.operands[1])
    while operation is not None and operation.name in _OF_MAXIMUM:
        values.append(operation.results[0])
        if _is_reduction(operation):
            return values
        operation = defining_operation(operation.operands[0])
    return []


def _ends_in_quotient(exponentials: ir.Value) -> bool:
    """Tells whether nothing but a quotient comes of exponentials and their sum."""
    quotients: set[ir.Operation] = set()
    pending = [exponentials]
    while pending:
        for user in _users(pending.pop()):
            if user.name == "stablehlo.divide":
                quotients.add(user)
            elif user.name in _VIEWS or _is_reduction(user):
                pending += user.results
            else:
                return False
    return len(quotients) == 1


def _is_reduction(operation: ir.Operation) -> bool:
    return operation.name == "stablehlo.reduce"


def _users(value: ir.Value) -> list[ir.Operation]:
    return [use.owner.operation for use in value.uses]
