"""`store-several-results`: results of reductions with several results are read from memory."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.framework.base import Pass
from axir.passes.legalize.rewriting import operations_in_order

_WITH_SEVERAL = ("stablehlo.reduce", "linalg.generic")


@dataclasses.dataclass(frozen=True)
class StoreSeveralResults(Pass):
    """Puts optimization barriers on the results of loops that have several results.

    The fact: IREE fuses a transpose with the loops that produce its operand. If the loops have
    several results, it keeps only the buffer of the transposed one, and the compiler crashes on the
    others (SIGSEGV in `FuseTransposeWithProducerLinalgOp`). Before that it moves transposes through
    elementwise operations and views, and adds transposes for products. So the readers of a result
    do not tell whether it will be transposed.

    1. Visit the reductions and loops that have several results of rank 2 or more.
    2. Put a barrier on each result that is read.

    Before::

        %0:2 = stablehlo.reduce(%x init: %least), (%positions init: %zero) …
        %1 = stablehlo.transpose %0#1, dims = [1, 0]

    After::

        %0:2 = stablehlo.reduce(%x init: %least), (%positions init: %zero) …
        %2 = stablehlo.optimization_barrier %0#1
        %1 = stablehlo.transpose %2, dims = [1, 0]

    Precondition: `protect-inputs` has run, because it would remove the barriers, and
    `loop-over-windows`, because it makes such loops.
    """

    name: ClassVar[str] = "store-several-results"

    def run(self, module: ir.Module) -> None:
        """Inserts the barriers."""
        for operation in operations_in_order(module.operation, _WITH_SEVERAL):
            results = list(operation.results)
            if len(results) > 1 and len(hlo.shape_of(results[0])) > 1:
                for result in results:
                    _store(operation, result)


def _store(operation: ir.Operation, result: ir.Value) -> None:
    if any(True for _ in result.uses):
        with ir.InsertionPoint.after(operation), operation.location:
            (stored,) = hlo.optimization_barrier(result)
        result.replace_all_uses_except(stored, stored.owner.operation)
