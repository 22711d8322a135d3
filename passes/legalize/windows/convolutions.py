"""Convolutions that IREE computes wrongly: windows of a single step, and groups on SPIR-V."""

from __future__ import annotations

from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.stablehlo.core import integer, integers, padding_pairs
from axir.dialect.ops.convolution.types import dilate
from axir.passes.legalize.attributes import Convolution
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


class SplitGroupedConvolutions(RewritePass):
    """Computes each group of a convolution separately.

    The fact: for Vulkan IREE compiles convolutions of several groups of more than one channel each
    to programs that silently give wrong numbers. Depthwise convolutions, with one channel for each
    group, are correct.

    1. Take convolutions of several groups of more than one input channel, or of several groups of
       images.
    2. Slice the channels of each group from the operand, or its images, and its output channels
       from the kernel.
    3. Concatenate the results along the output channels.

    Before::

        %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0],
            {feature_group_count = 2} … : (tensor<1x4x8xf32>, tensor<6x2x3xf32>)
            -> tensor<1x6x6xf32>

    After::

        %1 = stablehlo.slice %x [0:1, 0:2, 0:8]
        %2 = stablehlo.slice %k [0:3, 0:2, 0:3]
        %3 = stablehlo.convolution(%1, %2) … -> tensor<1x3x6xf32>
        …
        %0 = stablehlo.concatenate %3, %6, dim = 1
    """

    name: ClassVar[str] = "split-grouped-convolutions"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.convolution",)

    def rewrite(self, operation: ir.Operation) -> ir.Value | None:
        """Builds a convolution for each group, and the concatenation of the results."""
        convolution = Convolution.read(operation)
        lhs, rhs = operation.operands
        count = max(convolution.feature_groups, convolution.batch_groups)
        is_depthwise = hlo.shape_of(rhs)[convolution.rhs[1]] == 1 and convolution.batch_groups == 1
        if count == 1 or is_depthwise:
            return None
        cut = convolution.lhs[1] if convolution.feature_groups > 1 else convolution.lhs[0]
        attributes = {name: operation.attributes[name] for name in operation.attributes}
        attributes |= {"feature_group_count": integer(1), "batch_group_count": integer(1)}
        found = operation.results[0].type
        shape = list(found.shape)
        shape[convolution.result[1]] //= count
        kind = ir.RankedTensorType.get(shape, found.element_type)
        parts = [
            hlo.build(
                "convolution",
                operation.name,
                [_part(lhs, cut, n, count), _part(rhs, convolution.rhs[0], n, count)],
                [kind],
                attributes,
            ).result
            for n in range(count)
        ]
        return hlo.concatenate(parts, convolution.result[1])


def _part(x: ir.Value, axis: int, number: int, count: int) -> ir.Value:
    """Returns one of so many equal parts of a tensor along an axis."""
    start, limit = [0] * len(hlo.shape_of(x)), list(hlo.shape_of(x))
    extent = limit[axis] // count
    start[axis], limit[axis] = number * extent, (number + 1) * extent
    return hlo.slice(x, start, limit)
