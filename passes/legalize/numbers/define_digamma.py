"""`define-digamma`: the digamma function has no value at 0."""

from __future__ import annotations

import math
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.legalize.rewriting import RewritePass


class DefineDigamma(RewritePass):
    """Makes digamma(0) nan, as at the other poles, and as in JAX.

    The fact: IREE computes -inf there.

    1. Compute as before, and select nan where x = 0.

    Before::

        %0 = chlo.digamma %x : tensor<9xf32>

    After::

        %0 = chlo.digamma %x : tensor<9xf32>
        %1 = stablehlo.select %is_zero, %nan, %0
    """

    name: ClassVar[str] = "define-digamma"
    operations: ClassVar[tuple[str, ...]] = ("chlo.digamma",)

    def rewrite(self, operation: ir.Operation) -> ir.Value:
        """Builds the select."""
        (operand,) = operation.operands
        is_zero = hlo.compare(operand, hlo.full_like(operand, 0), "EQ")
        value = hlo.digamma(operand)
        return hlo.select(is_zero, hlo.full_like(value, math.nan), value)
