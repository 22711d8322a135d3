"""`unfold-convolutions`: convolutions of few positions become products with unfolded inputs."""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.legalize.attributes import Convolution
from axir.passes.legalize.rewriting import RewritePass

# Windows of more elements need more slices of the input than one kernel holds.
_LARGEST_WINDOW = 16


@dataclasses.dataclass(frozen=True)
class UnfoldConvolutions(RewritePass):
    """Computes convolutions of few positions as products of matrices.

    The fact: the kernel of `tile-convolutions` reads a window with adjacent output features. In
    other layouts, as in PyTorch, the elements of one output feature are adjacent. For few
    positions, transposing the window takes longer than the convolution itself: for 512 features and
    2x2 positions it took three quarters of 2.4 ms.

    1. Take convolutions of float32 or float64, without groups, without dilation of the input and
       without reversal of the window, that take `products` multiplications. The window has its
       output features, input features and spatial dimensions in this order, and at most 16 spatial
       elements. The whole batch has at most as many positions as output features, so that the
       unfolded input is no larger than the window.
    2. Slice the input for each element of the window, and concatenate the slices.
    3. Multiply: the window is a matrix with a row for each output feature, which the product reads
       without a transpose. `tile-products` then fuses the elementwise operations behind it.

    Before::

        %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1] …
            : (tensor<1x512x2x2xf32>, tensor<512x512x1x1xf32>) -> tensor<1x512x2x2xf32>

    After::

        %1 = stablehlo.transpose %x, dims = [1, 0, 2, 3] : … -> tensor<512x1x2x2xf32>
        %2 = stablehlo.reshape %1 : … -> tensor<512x1x1x1x2x2xf32>
        %3 = stablehlo.dot_general %k, %2, contracting_dims = [1, 2, 3] x [0, 1, 2]
            : … -> tensor<512x1x2x2xf32>
        %4 = stablehlo.transpose %3, dims = [1, 0, 2, 3] : … -> tensor<1x512x2x2xf32>

    Measured on a busy machine with one thread, the fastest of 30 interleaved calls, in microseconds
    before and after. Windows of 3x3: 512 features and 2x2 positions 2,360 and 495; 256 and 4x4 312
    and 183; 128 and 8x8 214 and 198. Windows of 1x1: 96 to 576 features and 8x8 positions 88 and
    74. For more positions than features (64 and 16x16: 192 and 208) the kernel is as fast.
    """

    name: ClassVar[str] = "unfold-convolutions"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.convolution",)
    products: int = 1 << 16

    def rewrite(self, operation: ir.Operation) -> ir.Value | None:
        """Builds the unfolded input and the product."""
        convolution = Convolution.read(operation)
        if not _is_plain(operation, convolution):
            return None
        lhs, rhs = operation.operands
        shape = hlo.shape_of(operation.results[0])
        grid = [shape[axis] for axis in convolution.result[2:]]
        features, *summed = hlo.shape_of(rhs)
        positions = shape[convolution.result[0]] * math.prod(grid)
        is_small = 0 < positions <= features and math.prod(summed[1:]) <= _LARGEST_WINDOW
        if not is_small or positions * features * math.prod(summed) < self.products:
            return None
        batch, feature, *spatial = convolution.lhs
        source = hlo.transpose(lhs, [feature, batch, *spatial])
        unfolded = _unfolded(_padded(source, convolution), convolution, summed[1:], grid)
        contracting = (range(1, len(summed) + 1), range(len(summed)))
        made = hlo.dot_general(rhs, unfolded, contracting)  # feature, batch, *spatial
        place = {convolution.result[1]: 0, convolution.result[0]: 1}
        place |= {axis: index + 2 for index, axis in enumerate(convolution.result[2:])}
        return hlo.transpose(made, [place[axis] for axis in range(len(shape))])


def _is_plain(operation: ir.Operation, convolution: Convolution) -> bool:
    values = (*operation.operands, operation.results[0])
    kinds = {str(hlo.element_type_of(x)) for x in values}
    is_known = kinds in ({"f32"}, {"f64"}) and all(x.type.has_static_shape for x in values)
    is_one = convolution.feature_groups == convolution.batch_groups == 1
    holes = max(convolution.lhs_dilation, default=1) > 1
    in_order = convolution.rhs == tuple(range(len(convolution.rhs)))
    return is_known and is_one and in_order and not holes and not any(convolution.reversal)


def _padded(source: ir.Value, convolution: Convolution) -> ir.Value:
    """Returns the input, features and batch first, with padding around it."""
    low, high = zip(*convolution.padding, strict=True) if convolution.padding else ((), ())
    if not any((*low, *high)):
        return source
    zero = hlo.full(0, (), hlo.element_type_of(source))
    return hlo.pad(source, zero, (0, 0, *low), (0, 0, *high))


def _unfolded(
    source: ir.Value, convolution: Convolution, window: list[int], grid: list[int]
) -> ir.Value:
    """Returns the unfolded input [input features, elements of the window, batch, positions]."""
    features, batch, *_ = hlo.shape_of(source)
    parts = []
    for element in itertools.product(*map(range, window)):
        starts, limits = [0, 0], [features, batch]
        for axis, index in enumerate(element):
            stride = convolution.strides[axis]
            starts.append(index * convolution.rhs_dilation[axis])
            limits.append(starts[-1] + (grid[axis] - 1) * stride + 1)
        seen = hlo.slice(source, starts, limits, [1, 1, *convolution.strides])
        parts.append(hlo.reshape(seen, (features, 1, batch, *grid)))
    joined = hlo.concatenate(parts, 1) if len(parts) > 1 else parts[0]
    return hlo.reshape(joined, (features, *window, batch, *grid))
