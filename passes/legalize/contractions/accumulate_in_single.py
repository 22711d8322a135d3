"""`accumulate-in-single`: products of half precision are summed in single precision, for GPUs."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.legalize.rewriting import RewritePass

_HALF = 16


@dataclasses.dataclass(frozen=True)
class AccumulateInSingle(RewritePass):
    """Sums the products of f16 and bf16 in f32, and rounds once.

    The fact: IREE compiles no contraction with a bf16 result for GPUs ("failed to distribute" for
    CUDA). It sums f16 products in f16, while tensor cores take operands of 16 bits and sum in f32.
    For SPIR-V it does not compile bf16 operands ("failed to legalize operation 'vector.bitcast'").

    1. Give a contraction or convolution with a result of f16 or bf16 an f32 result, and convert
       that.
    2. With the option `widens`, convert bf16 operands to f32, behind a barrier.

    Before::

        %0 = stablehlo.dot_general %x, %y, … -> tensor<4x4xbf16>

    After::

        %1 = stablehlo.dot_general %x, %y, … -> tensor<4x4xf32>
        %0 = stablehlo.convert %1 : (tensor<4x4xf32>) -> tensor<4x4xbf16>
    """

    name: ClassVar[str] = "accumulate-in-single"
    operations: ClassVar[tuple[str, ...]] = (
        "stablehlo.convolution",
        "stablehlo.dot",
        "stablehlo.dot_general",
    )
    widens: bool = False

    def rewrite(self, operation: ir.Operation) -> ir.Value | None:
        """Builds the contraction and the conversion."""
        result = operation.results[0]
        element = hlo.element_type_of(result)
        operands = list(operation.operands)
        is_half = isinstance(element, ir.FloatType) and element.width == _HALF
        is_widened = self.widens and any(map(_is_brain_float, operands))
        if not is_half and not is_widened:
            return None
        if is_widened:
            wide = [hlo.convert(x, np.float32) for x in operands]
            operands = hlo.optimization_barrier(wide)
        contracted = hlo.build(
            operation.name.split(".")[1],
            operation.name,
            operands,
            [hlo.tensor_type(result.type.shape, np.float32 if is_half else element)],
            {name: operation.attributes[name] for name in operation.attributes},
        ).result
        if is_widened:  # nor does it compile results of bf16
            contracted = hlo.optimization_barrier(contracted)[0]
        return hlo.convert(contracted, element) if is_half else contracted


def _is_brain_float(value: ir.Value) -> bool:
    return isinstance(hlo.element_type_of(value), ir.BF16Type)
