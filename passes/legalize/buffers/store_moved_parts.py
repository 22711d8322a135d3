"""`store-moved-parts`: a part that moves within an array is copied before it is written."""

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
    """Stores a slice before it is written back to another place of the same array.

    The fact: IREE fuses a slice with the kernel that writes it to a computed position
    (`slow_memcpy`), and the kernel works in place. If the slice moves by less than its extent, the
    kernel read elements that it had just written.

    1. Visit each update, and follow its second operand back through views to slices, and to the
       arrays that are sliced.
    2. If one of these is the updated array, or an array that it is a view of, put an optimization
       barrier on the second operand.

    Before::

        %0 = stablehlo.dynamic_slice %x, %i, %zero, sizes = [6, 5]
        %1 = stablehlo.dynamic_update_slice %x, %0, %j, %zero

    After::

        %0 = stablehlo.dynamic_slice %x, %i, %zero, sizes = [6, 5]
        %b = stablehlo.optimization_barrier %0
        %1 = stablehlo.dynamic_update_slice %x, %b, %j, %zero

    Precondition: `protect-inputs` has run, because it removes barriers.
    """

    name: ClassVar[str] = "store-moved-parts"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.dynamic_update_slice",)

    def rewrite(self, operation: ir.Operation) -> None:
        """Puts a barrier in front of an update."""
        array, update = operation.operands[0], operation.operands[1]
        if not _wholes(update).isdisjoint(_closure(array)):
            operation.operands[1] = hlo.optimization_barrier(update)[0]


def _wholes(value: ir.Value) -> set[ir.Value]:
    """Returns the arrays that a value is a slice of, through views and other slices."""
    pending, found = [value], set[ir.Value]()
    while pending:
        for viewed in _closure(pending.pop(), _VIEWS):
            maker = defining_operation(viewed)
            if maker is not None and maker.name in _SLICES and maker.operands[0] not in found:
                found |= _closure(maker.operands[0])
                pending.append(maker.operands[0])
    return found


def _closure(value: ir.Value, views: frozenset[str] = frozenset()) -> set[ir.Value]:
    """Returns a value and the values that it may be a view of; `views` are always followed."""
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
