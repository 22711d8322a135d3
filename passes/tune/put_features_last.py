"""`put-features-last`: convolutions read the features of a position contiguously."""

from __future__ import annotations

import dataclasses
import math
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.legalize.attributes import Convolution
from axir.passes.legalize.rewriting import RewritePass


@dataclasses.dataclass(frozen=True)
class PutFeaturesLast(RewritePass):
    """Transposes the operands and the result of a convolution, so that features come last.

    The fact: IREE vectorizes a convolution over the output features if these are adjacent in
    memory, as in NHWC. For other orders, such as NCHW, it makes loops over single numbers.

    1. Take convolutions of real floating-point numbers with several output features, and at least
       `products` multiplications, if the left operand or the result has another order than batch,
       spatial dimensions, features.
    2. Transpose the left operand to that order, and the right one to spatial dimensions, input
       features, output features. Optimization barriers keep IREE from undoing it.
    3. Convolve, and transpose the result.

    Before::

        %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1] …
            : (tensor<8x64x32x32xf32>, tensor<64x64x3x3xf32>) -> tensor<8x64x32x32xf32>

    After::

        %1 = stablehlo.transpose %x, dims = [0, 2, 3, 1] : … -> tensor<8x32x32x64xf32>
        %2 = stablehlo.transpose %k, dims = [2, 3, 1, 0] : … -> tensor<3x3x64x64xf32>
        %3:2 = stablehlo.optimization_barrier %1, %2 : …
        %4 = stablehlo.convolution(%3#0, %3#1)
            dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f] … -> tensor<8x32x32x64xf32>
        %5 = stablehlo.transpose %4, dims = [0, 3, 1, 2] : … -> tensor<8x64x32x32xf32>

    Measured on this example, processor time relative to JAX: 41 before, 0.8 after; with 8 groups
    5.7 before, 2.8 after; depthwise 0.17 before, 0.05 after; with a 1x1 kernel 5.1 before, 1.7
    after.
    """

    name: ClassVar[str] = "put-features-last"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.convolution",)
    products: int = 1 << 16

    def rewrite(self, operation: ir.Operation) -> ir.Value | None:
        """Builds the transpositions and the convolution."""
        result = operation.results[0]
        if not all(map(hlo.is_float, (*operation.operands, result))):
            return None
        convolution = Convolution.read(operation)
        rank = len(convolution.strides)
        last = (0, rank + 1, *range(1, rank + 1))
        if rank == 0 or convolution.lhs == convolution.result == last:
            return None
        shape = hlo.shape_of(result)
        kernel = hlo.shape_of(operation.operands[1])
        outputs = kernel[convolution.rhs[0]]
        if outputs < 2 or math.prod(shape) * math.prod(kernel) < self.products * outputs:
            return None
        made = _convolve(operation, convolution, [shape[axis] for axis in convolution.result])
        places = [convolution.result.index(axis) for axis in range(rank + 2)]
        return hlo.transpose(made, [last[place] for place in places])


def _convolve(operation: ir.Operation, convolution: Convolution, sizes: list[int]) -> ir.Value:
    """Returns the convolution with features last; `sizes` are (batch, feature, *spatial) of its
    result.
    """
    lhs, rhs = operation.operands
    batch, feature, *spatial = convolution.lhs
    output, source, *window = convolution.rhs
    operands = hlo.optimization_barrier(
        [
            hlo.transpose(lhs, [batch, *spatial, feature]),
            hlo.transpose(rhs, [*window, source, output]),
        ]
    )
    numbers = ", ".join(map(str, range(len(spatial))))
    attributes = {name: operation.attributes[name] for name in operation.attributes}
    attributes["dimension_numbers"] = hlo.attribute(
        f"#stablehlo.conv<[b, {numbers}, f]x[{numbers}, i, o]->[b, {numbers}, f]>"
    )
    element = hlo.element_type_of(operation.results[0])
    result_type = hlo.tensor_type([sizes[0], *sizes[2:], sizes[1]], element)
    name = "convolution"
    return hlo.build(name, operation.name, operands, [result_type], attributes).result
