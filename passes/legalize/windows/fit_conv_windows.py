"""`fit-conv-windows`: convolutions of a single step read what their window covers."""

from __future__ import annotations

from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.stablehlo.core import integers, padding_pairs
from axir.dialect.ops.convolution.types import dilate
from axir.passes.legalize.convolution_attributes import Convolution
from axir.passes.legalize.rewriting import RewritePass


class FitConvWindows(RewritePass):
    """Cuts off elements that a convolution with a single position does not read.

    The fact: where the result has one position along a dimension, the stride is greater than 1,
    and elements remain behind the window, IREE drops the dimension. It then finds that the extents
    of window and operand differ, and fails.

    1. Take the spatial dimensions of extent 1 in the result and a stride greater than 1.
    2. Give them the stride 1 and the padding at which the window covers all.

    Before::

        %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0],
            window = {stride = [2]} … : (tensor<1x2x3xf32>, tensor<2x2x2xf32>) -> tensor<1x2x1xf32>

    After::

        %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0],
            window = {stride = [1], pad = [[0, -1]]} … : (tensor<1x2x3xf32>, tensor<2x2x2xf32>)
            -> tensor<1x2x1xf32>
    """

    name: ClassVar[str] = "fit-conv-windows"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.convolution",)

    def rewrite(self, operation: ir.Operation) -> ir.Value | None:
        """Builds the convolution with the other stride and padding."""
        convolution = Convolution.read(operation)
        lhs, rhs = map(hlo.shape_of, operation.operands)
        result = operation.results[0]
        strides, padding = list(convolution.strides), list(convolution.padding)
        for index, axis in enumerate(convolution.result[2:]):
            if result.type.shape[axis] != 1 or strides[index] == 1:
                continue
            base = dilate(lhs[convolution.lhs[index + 2]], convolution.lhs_dilation[index])
            window = dilate(rhs[convolution.rhs[index + 2]], convolution.rhs_dilation[index])
            low = padding[index][0]
            strides[index], padding[index] = 1, [low, window - base - low]
        if strides == convolution.strides:
            return None
        attributes = {name: operation.attributes[name] for name in operation.attributes}
        attributes["window_strides"] = integers(strides)
        attributes["padding"] = padding_pairs(padding)
        name = "convolution"
        return hlo.build(
            name, operation.name, list(operation.operands), [result.type], attributes
        ).result
