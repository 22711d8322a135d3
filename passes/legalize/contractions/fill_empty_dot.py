"""`fill-empty-dot`: a contraction over an empty dimension is a constant of zeros."""

from __future__ import annotations

from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.legalize.rewriting import RewritePass

from .widen_unsigned_dot import CONTRACTIONS


class FillEmptyDot(RewritePass):
    """Replaces a contraction over an empty dimension by zeros.

    The fact: IREE's compiler divides by zero on a `dot_general` with a contracted extent of 0.

    1. Find contractions with an extent of 0 in an operand.
    2. Their result, an empty sum (or empty itself), is a constant of zeros.

    Before::

        %0 = stablehlo.dot_general %a, %b … : (tensor<4x0xf32>, tensor<0x6xf32>) -> tensor<4x6xf32>

    After::

        %0 = stablehlo.constant dense<0.0> : tensor<4x6xf32>
    """

    name: ClassVar[str] = "fill-empty-dot"
    operations: ClassVar[tuple[str, ...]] = CONTRACTIONS

    def rewrite(self, operation: ir.Operation) -> ir.Value | None:
        """Builds the constant."""
        if not any(0 in operand.type.shape for operand in operation.operands):
            return None
        return hlo.full_like(operation.results[0], 0)
