"""`unfold-convolutions`: a convolution of few positions is a product with what its windows see."""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.legalize.convolution_attributes import Convolution
from axir.passes.legalize.rewriting import RewritePass

# Windows of more elements are cut out of the input in more steps than one kernel has.
_LARGEST_WINDOW = 16


@dataclasses.dataclass(frozen=True)
class UnfoldConvolutions(RewritePass):
    """Computes convolutions of few positions as products of matrices.

    The fact: the kernel of `tile-convolutions` reads a window whose output features are side by
    side. Elsewhere, as in PyTorch, the elements of one output feature are, and bringing them into
    the other order takes longer than the convolution itself where there are few positions: of 512
    features and 2x2 positions it took three quarters of 2.4 ms.

    1. Take convolutions of float32 or float64, without groups, whose input is not dilated, whose
       window is not reversed and has output features, input features and spatial dimensions in this
       order, and that take `products` multiplications. The window has at most 16 elements, and
       there are no more positions, in the whole batch, than output features: what is unfolded is no
       larger than the window.
    2. Cut what each element of the window sees out of the input, and put it side by side.
    3. Multiply: the window is a matrix with a row for each output feature, which the product reads
       as it lies, and `tile-products` computes what follows with it.

    Before::

        %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1] …
            : (tensor<1x512x2x2xf32>, tensor<512x512x1x1xf32>) -> tensor<1x512x2x2xf32>

    After::

        %1 = stablehlo.transpose %x, dims = [1, 0, 2, 3] : … -> tensor<512x1x2x2xf32>
        %2 = stablehlo.reshape %1 : … -> tensor<512x1x1x1x2x2xf32>
        %3 = stablehlo.dot_general %k, %2, contracting_dims = [1, 2, 3] x [0, 1, 2]
            : … -> tensor<512x1x2x2xf32>
        %4 = stablehlo.transpose %3, dims = [1, 0, 2, 3] : … -> tensor<1x512x2x2xf32>

    Measured on a busy machine, one thread, the least of 30 calls in turns, microseconds before and
    after, 3x3 windows: 512 features, 2x2 positions 2,360 and 495; 256, 4x4 312 and 183; 128, 8x8
    214 and 198; 1x1: 96 to 576, 8x8 88 and 74. Of more positions than features (64, 16x16: 192 and
    208) the kernel is as fast.
    """

    name: ClassVar[str] = "unfold-convolutions"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.convolution",)
    products: int = 1 << 16

    def rewrite(self, operation: ir.Operation) -> ir.Value | None:
        """Builds what is unfolded, and the product."""
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
    """Returns the input, features and batch first, with what windows see beside it."""
    low, high = zip(*convolution.padding, strict=True) if convolution.padding else ((), ())
    if not any((*low, *high)):
        return source
    zero = hlo.full(0, (), hlo.element_type_of(source))
    return hlo.pad(source, zero, (0, 0, *low), (0, 0, *high))


def _unfolded(
    source: ir.Value, convolution: Convolution, window: list[int], grid: list[int]
) -> ir.Value:
    """Returns what windows see: input features, elements of the window, batch, positions."""
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
