"""`round-to-bfloat16`: a conversion to bf16 rounds, wherever its result is read."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.expressions import select
from axir.dialect.builders.scalars import Scalar, bitcast, convert_float, float32
from axir.passes.legalize.elementwise_loops import elementwise
from axir.passes.legalize.rewriting import RewritePass

_BODIES = frozenset(
    f"stablehlo.{name}"
    for name in ("reduce", "reduce_window", "scatter", "select_and_scatter", "sort")
)


class RoundToBfloat16(RewritePass):
    """Rounds numbers to bf16's precision before they are converted to bf16.

    The fact: CPUs have no arithmetic in bf16, so IREE computes in f32 within a dispatch
    (`iree-convert-bf16-arith-to-f32`), and only rounds numbers that it writes to memory. A
    conversion to bf16 has no effect if its result is read in the same dispatch:
    `x.astype(bfloat16) == x` was true for all numbers.

    1. Visit each conversion to bf16 from another float type, except if its result is only returned,
       and except in bodies of reductions and the like.
    2. Round to f32 numbers that are also bf16 numbers: to the upper half of their bits, ties to
       even; nan does not change. Then convert, which is exact.

    Before::

        %0 = stablehlo.convert %x : (tensor<9xf32>) -> tensor<9xbf16>
        %1 = stablehlo.convert %0 : (tensor<9xbf16>) -> tensor<9xf32>

    After::

        %0 = linalg.generic {…} ins(%x : tensor<9xf32>) … { ^bb0(%in: f32, %out: bf16): … }
        %1 = stablehlo.convert %0 : (tensor<9xbf16>) -> tensor<9xf32>
    """

    name: ClassVar[str] = "round-to-bfloat16"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.convert",)

    def rewrite(self, operation: ir.Operation) -> list[ir.Value] | None:
        """Builds the loop."""
        operand, result = operation.operands[0], operation.results[0]
        element = hlo.element_type_of(result)
        source = hlo.element_type_of(operand)
        if not isinstance(element, ir.BF16Type) or element == source:
            return None
        if not isinstance(source, ir.F16Type | ir.F32Type | ir.F64Type):
            return None
        if operation.parent.name in _BODIES or _is_only_returned(result):
            return None
        single = hlo.convert(operand, np.float32)
        return elementwise(
            self.name, [single], lambda x: convert_float(_rounded(x), element), [element]
        )


def _is_only_returned(result: ir.Value) -> bool:
    return all(use.owner.operation.name == "func.return" for use in result.uses)


def _rounded(x: Scalar) -> Scalar:
    bits = x.bits()
    upward = ((bits >> 16) & 1) + 0x7FFF
    nearest = bitcast((bits + upward) & ~0xFFFF, float32())
    return select(x != x, x, nearest)
