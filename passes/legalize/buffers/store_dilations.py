"""`store-dilations`: what a pad spreads out is no part of a further pad."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.legalize.rewriting import RewritePass


@dataclasses.dataclass(frozen=True)
class StoreDilations(RewritePass):
    """Keeps in memory an array with padding between its elements.

    The fact: such a pad becomes a `tensor.insert_slice` with strides. IREE folds a `tensor.pad` of
    its result, which windows have, too, into the insertion and drops the strides: the elements
    stood side by side.

    1. Visit each pad with padding between elements.
    2. Let its users read an optimization barrier of it.

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
        """Puts a barrier behind a pad."""
        if any(ir.DenseI64ArrayAttr(operation.attributes["interior_padding"])):
            with ir.InsertionPoint.after(operation):
                stored = hlo.optimization_barrier(operation.result)[0]
            operation.result.replace_all_uses_except(stored, stored.owner.operation)
