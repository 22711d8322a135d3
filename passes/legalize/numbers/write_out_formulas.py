"""`write-out-formulas`: loops that share a function get its formula as their body."""

from __future__ import annotations

from typing import ClassVar

from iree.compiler import ir

from axir.passes.legalize.elementwise_loops import erase_shared_formulas, write_out_formula
from axir.passes.legalize.rewriting import RewritePass


class WriteOutFormulas(RewritePass):
    """Inlines formulas into the loops that call a function of the module for them.

    The fact: a program of thousands of sines is a hundred times as large with the formula in each
    loop. Kernels need the formula only once. But IREE compiles the loops that did not become
    kernels, and its dispatches call no functions.

    1. Give each such loop the body of the function.
    2. Erase the functions.

    Before::

        %0 = linalg.generic {…} ins(%x : tensor<9xf32>) … { %1 = func.call @formula_0(%in) … }

    After::

        %0 = linalg.generic {…} ins(%x : tensor<9xf32>) … { ^bb0(%in: f32, %out: f32): … }

    Precondition: `legalize-for-iree{part=numbers}` has made the functions.
    """

    name: ClassVar[str] = "write-out-formulas"
    operations: ClassVar[tuple[str, ...]] = ("linalg.generic",)

    def run(self, module: ir.Module) -> None:
        """Rewrites the loops, then erases the functions that they called."""
        super().run(module)
        erase_shared_formulas(module)

    def rewrite(self, operation: ir.Operation) -> list[ir.Value] | None:
        """Builds the loop with its formula."""
        return write_out_formula(operation)
