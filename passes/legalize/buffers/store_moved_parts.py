"""`store-moved-parts`: a part of an array that moves within it is taken out before it is put in."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.legalize.rewriting import RewritePass, defining_operation

from .storage import folded_sources

_SLICES = frozenset(("stablehlo.slice", "stablehlo.dynamic_slice"))
_VIEWS = frozenset(f"stablehlo.{name}" for name in "reshape transpose convert reverse".split())


@dataclasses.dataclass(frozen=True)
class StoreMovedParts(RewritePass):
    """Keeps in memory what an update takes from a part of the array that it updates.

    The fact: IREE makes a slice part of the kernel that writes it to a place that is computed
    (`slow_memcpy`), which works in place: of a part that is moved by less than its extent it read
    what it had just written.

    1. Visit each update, and follow what it writes back through views to slices, and to what these
       are slices of.
    2. If one is a slice of the array that is updated, or of what that is a view of, let the update
       read what it writes through an optimization barrier.

    Before::

        %0 = stablehlo.dynamic_slice %x, %i, %zero, sizes = [6, 5]
        %1 = stablehlo.dynamic_update_slice %x, %0, %j, %zero

    After::

        %0 = stablehlo.dynamic_slice %x, %i, %zero, sizes = [6, 5]
        %b = stablehlo.optimization_barrier %0
        %1 = stablehlo.dynamic_update_slice %x, %b, %j, %zero

    Precondition: `protect-inputs` has run, which removes barriers.
    """

    name: ClassVar[str] = "store-moved-parts"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.dynamic_update_slice",)

    def rewrite(self, operation: ir.Operation) -> None:
        """Puts a barrier in front of an update."""
        array, update = operation.operands[0], operation.operands[1]
        if not _wholes(update).isdisjoint(_closure(array)):
            operation.operands[1] = hlo.optimization_barrier(update)[0]


def _wholes(value: ir.Value) -> set[ir.Value]:
    """Returns what a value is, by way of views and of other slices, a slice of."""
    pending, found = [value], set[ir.Value]()
    while pending:
        for viewed in _closure(pending.pop(), _VIEWS):
            maker = defining_operation(viewed)
            if maker is not None and maker.name in _SLICES and maker.operands[0] not in found:
                found |= _closure(maker.operands[0])
                pending.append(maker.operands[0])
    return found


def _closure(value: ir.Value, views: frozenset[str] = frozenset()) -> set[ir.Value]:
    """Returns a value, and those that it may be a view of, by way of `views` in any case."""
    pending, found = [value], set[ir.Value]()
    while pending:
        value = pending.pop()
        if value not in found:
            found.add(value)
            pending += folded_sources(value)
            maker = defining_operation(value)
            if maker is not None and maker.name in views:
                pending.append(maker.operands[0])
    return found
