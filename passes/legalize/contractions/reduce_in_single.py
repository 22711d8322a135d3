"""`reduce-in-single`: reductions of bf16 are computed in f32 on Vulkan."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.legalize.regions import operations_of
from axir.passes.legalize.rewriting import RewritePass

_BODIES = {
    f"stablehlo.{build.__name__}": build
    for build in (hlo.add, hlo.maximum, hlo.minimum, hlo.multiply)
}


class ReduceInSingle(RewritePass):
    """Reduces bf16 in f32, and converts the results.

    The fact: IREE vectorizes reductions along rows if the extent is a multiple of the subgroup
    size. For SPIR-V it does not compile such reductions of bf16 ("'spirv.Bitcast' op mismatch in
    result type bitwidth 32 and operand type bitwidth 16"). The maximum of a row of 24 failed, and
    so did softmax.

    1. Visit each reduction of one array of bf16 by a sum, a product, a maximum or a minimum.
    2. Convert the array and the initial value to f32, reduce, and convert to bf16. Maxima and
       minima stay equal; sums and products are rounded once.

    Before::

        %0 = stablehlo.reduce(%x init: %z) applies stablehlo.maximum across dimensions = [1]
             : (tensor<4x8xbf16>, tensor<bf16>) -> tensor<4xbf16>

    After::

        %1 = stablehlo.convert %x : (tensor<4x8xbf16>) -> tensor<4x8xf32>
        %2 = stablehlo.convert %z : (tensor<bf16>) -> tensor<f32>
        %3 = stablehlo.reduce(%1 init: %2) applies stablehlo.maximum across dimensions = [1]
        %0 = stablehlo.convert %3 : (tensor<4xf32>) -> tensor<4xbf16>
    """

    name: ClassVar[str] = "reduce-in-single"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.reduce",)

    def rewrite(self, operation: ir.Operation) -> ir.Value | None:
        """Builds the reduction and the conversions."""
        result = operation.results[0]
        element = hlo.element_type_of(result)
        [[first, *others]] = operations_of(operation)
        is_plain = len(others) == 1 and list(others[0].operands) == list(first.results)
        if len(operation.results) > 1 or not is_plain or first.name not in _BODIES:
            return None
        if not isinstance(element, ir.BF16Type):
            return None
        operand, init = (hlo.convert(x, np.float32) for x in operation.operands)
        axes = list(operation.attributes["dimensions"])
        (reduced,) = hlo.reduce([operand], [init], axes, _BODIES[first.name])
        return hlo.convert(reduced, element)
