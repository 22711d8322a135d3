"""`store-updates`: what is written into an array is not written before others have read that."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.legalize.rewriting import RewritePass, constant_behind, defining_operation

from .storage import folded_sources


@dataclasses.dataclass(frozen=True)
class StoreUpdates(RewritePass):
    """Keeps in memory what updates a part of an array that others read, too.

    The fact: IREE has a dispatch write its result to where it is copied in the end
    (`iree-stream-emplace-allocations`). Of an array that is updated in part and has no later reader
    the update is that place, and the dispatch runs where it stood: before the array's other
    readers, which find what it has written, where they read the array by another shape.

    1. Visit each update whose array, or one that it is a view of, has other readers.
    2. Let it read what it writes through an optimization barrier.

    Before::

        %n = stablehlo.reduce(%z init: %zero) applies stablehlo.add across dimensions = [0]
        %0 = stablehlo.reshape %t : (tensor<300xf32>) -> tensor<30x10xf32>
        %1 = stablehlo.dot_general %0, %v, …
        %2 = stablehlo.dynamic_update_slice %t, %n, %i

    After::

        %b = stablehlo.optimization_barrier %n
        %2 = stablehlo.dynamic_update_slice %t, %b, %i

    Precondition: `protect-inputs` has run, which removes barriers.
    """

    name: ClassVar[str] = "store-updates"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.dynamic_update_slice",)

    def rewrite(self, operation: ir.Operation) -> None:
        """Puts a barrier in front of an update."""
        array, update = operation.operands[0], operation.operands[1]
        is_computed = defining_operation(update) is not None and constant_behind(update) is None
        if is_computed and _is_shared(array):
            operation.operands[1] = hlo.optimization_barrier(update)[0]


def _is_shared(array: ir.Value) -> bool:
    """Tells whether an array, or what it may be a view of, has several readers."""
    pending = [array]
    while pending:
        value = pending.pop()
        if sum(1 for _ in value.uses) > 1:
            return True
        pending += folded_sources(value)
    return False
