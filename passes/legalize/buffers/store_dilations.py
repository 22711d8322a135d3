"""`store-dilations`: the result of a pad with interior padding is not fused with another pad."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.legalize.rewriting import RewritePass, values_behind

from .storage import folded_sources


@dataclasses.dataclass(frozen=True)
class StoreDilations(RewritePass):
    """Keeps the result of a pad with interior padding in memory.

    The fact: such a pad becomes a `tensor.insert_slice` with strides. IREE folds a `tensor.pad` of
    its result (windows have one, too) into the insertion and drops the strides: the elements were
    then adjacent. It also folds a `tensor.pad` with the same number before the insertion, and takes
    an element's position after the first pad for its position before the strides.

    1. Visit each pad with padding between elements.
    2. Let its users read an optimization barrier of it.
    3. If its operand may become a pad when the compiler folds the operations in between, put an
       optimization barrier on the operand.

    Before::

        %0 = stablehlo.pad %x, %zero, low = [0], high = [0], interior = [1]
        %1 = stablehlo.pad %0, %zero, low = [1], high = [0], interior = [0]

    After::

        %0 = stablehlo.pad %x, %zero, low = [0], high = [0], interior = [1]
        %b = stablehlo.optimization_barrier %0
        %1 = stablehlo.pad %b, %zero, low = [1], high = [0], interior = [0]

    Precondition: `protect-inputs` has run, because it removes barriers.
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
    """Tells whether a value is a pad or may be folded to one."""
    behind = values_behind(value, lambda x, _: folded_sources(x))
    return any(operation.name == "stablehlo.pad" for _, operation in behind)
