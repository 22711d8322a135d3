"""`store-dilations`: what a pad spreads out is no part of another pad."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.legalize.rewriting import RewritePass, values_behind

from .storage import folded_sources


@dataclasses.dataclass(frozen=True)
class StoreDilations(RewritePass):
    """Keeps in memory an array with padding between its elements.

    The fact: such a pad becomes a `tensor.insert_slice` with strides. IREE folds a `tensor.pad` of
    its result, which windows have, too, into the insertion and drops the strides: the elements
    stood side by side. A `tensor.pad` by the same number that is spread out it folds, too, and
    takes the place of an element after the first pad for that before the strides.

    1. Visit each pad with padding between elements.
    2. Let its users read an optimization barrier of it.
    3. If its operand may come to be a pad when the compiler has folded what is between the two, let
       it read an optimization barrier of that.

    Before::

        %0 = stablehlo.pad %x, %zero, low = [0], high = [0], interior = [1]
        %1 = stablehlo.pad %0, %zero, low = [1], high = [0], interior = [0]

    After::

        %0 = stablehlo.pad %x, %zero, low = [0], high = [0], interior = [1]
        %b = stablehlo.optimization_barrier %0
        %1 = stablehlo.pad %b, %zero, low = [1], high = [0], interior = [0]

    Precondition: `protect-inputs` has run, which removes barriers.
    """

    name: ClassVar[str] = "store-dilations"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.pad",)

    def rewrite(self, operation: ir.Operation) -> None:
        """Puts a barrier behind a pad, and one between it and a pad before."""
        if any(ir.DenseI64ArrayAttr(operation.attributes["interior_padding"])):
            if _is_padded(operation.operands[0]):
                operation.operands[0] = hlo.optimization_barrier(operation.operands[0])[0]
            with ir.InsertionPoint.after(operation):
                stored = hlo.optimization_barrier(operation.result)[0]
            operation.result.replace_all_uses_except(stored, stored.owner.operation)


def _is_padded(value: ir.Value) -> bool:
    """Tells whether a value is a pad, or what may be folded to one."""
    behind = values_behind(value, lambda x, _: folded_sources(x))
    return any(operation.name == "stablehlo.pad" for _, operation in behind)
