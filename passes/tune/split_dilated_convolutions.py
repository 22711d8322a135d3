"""`split-dilated-convolutions`: convolutions of dilated inputs, as several without dilation."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.stablehlo.core import integers, padding_pairs
from axir.passes.legalize.attributes import Convolution
from axir.passes.legalize.rewriting import RewritePass

_MOST_PARTS = 16


@dataclasses.dataclass(frozen=True)
class SplitDilatedConvolutions(RewritePass):
    """Computes convolutions of a dilated input without the zeros between its elements.

    The fact: IREE writes the dilated input to memory and multiplies its zeros. For a transposed
    convolution with strides of 2, or a gradient with such strides, the zeros are three quarters of
    the work.

    1. Take convolutions with a dilated input, of stride 1, with windows that are neither dilated
       nor reversed, of at least `products` multiplications.
    2. Results with the same position modulo the dilation meet input elements at the same positions
       of the window: compute them by a convolution with only these positions (polyphase
       decomposition: Vaidyanathan, "Multirate Systems and Filter Banks", 1993).
    3. Interleave the results.

    Before::

        %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],
            window = {pad = [[2, 1]], lhs_dilate = [2]} …
            : (tensor<4x28x64xf32>, tensor<3x64x32xf32>) -> tensor<4x56x32xf32>

    After::

        %1 = stablehlo.slice %k [0:3:2, 0:64, 0:32]
        %2 = stablehlo.convolution(%x, %1) … window = {pad = [[1, 0]]} … -> tensor<4x28x32xf32>
        %3 = stablehlo.slice %k [1:2:1, 0:64, 0:32]
        %4 = stablehlo.convolution(%x, %3) … -> tensor<4x28x32xf32>
        …
        %5 = stablehlo.concatenate %6, %7, dim = 2 : … -> tensor<4x28x2x32xf32>
        %0 = stablehlo.reshape %5 : … -> tensor<4x56x32xf32>
    """

    name: ClassVar[str] = "split-dilated-convolutions"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.convolution",)
    products: int = 1 << 16

    def rewrite(self, operation: ir.Operation) -> ir.Value | None:
        """Builds the convolutions of the remainders, and interleaves their results."""
        convolution = Convolution.read(operation)
        dilation = convolution.lhs_dilation
        is_plain = set(convolution.strides) | set(convolution.rhs_dilation) == {1}
        if max(dilation, default=1) == 1 or not is_plain or any(convolution.reversal):
            return None
        kernel = hlo.shape_of(operation.operands[1])
        products = hlo.size_of(operation.results[0]) * math.prod(kernel)
        if (
            math.prod(dilation) > _MOST_PARTS
            or products < self.products * kernel[convolution.rhs[0]]
        ):
            return None
        return _interleaved(
            operation,
            convolution,
            [_part(operation, convolution, x) for x in _remainders(dilation)],
        )


def _remainders(dilation: Sequence[int]) -> list[tuple[int, ...]]:
    return list(itertools.product(*map(range, dilation)))


def _part(operation: ir.Operation, convolution: Convolution, remainders: Sequence[int]) -> ir.Value:
    """Returns the results at positions with given remainders; padded if they are fewer."""
    lhs, rhs = operation.operands
    result = operation.results[0].type
    kernel = hlo.shape_of(rhs)
    starts, limits, steps = [0] * len(kernel), list(kernel), [1] * len(kernel)
    shape, padding = list(result.shape), []
    for index, remainder in enumerate(remainders):
        dilation = convolution.lhs_dilation[index]
        low = convolution.padding[index][0]
        axis, window = convolution.result[index + 2], convolution.rhs[index + 2]
        shape[axis] = -(-result.shape[axis] // dilation)
        first = (low - remainder) % dilation
        taps = len(range(first, kernel[window], dilation))
        starts[window], steps[window] = min(first, kernel[window]), dilation
        before = (low - remainder - first) // dilation
        extent = hlo.shape_of(lhs)[convolution.lhs[index + 2]]
        padding.append([before, shape[axis] + taps - 1 - extent - before])
    kind = hlo.tensor_type(shape, result.element_type)
    if any(start >= limit for start, limit in zip(starts, limits, strict=True)):
        return hlo.full(
            0, shape, result.element_type
        )  # no element of the window meets these results
    attributes = {name: operation.attributes[name] for name in operation.attributes}
    attributes["padding"] = padding_pairs(padding)
    attributes["lhs_dilation"] = integers([1] * len(padding))
    operands = [lhs, hlo.slice(rhs, starts, limits, steps)]
    return hlo.build("convolution", operation.name, operands, [kind], attributes).result


def _interleaved(
    operation: ir.Operation, convolution: Convolution, parts: Sequence[ir.Value]
) -> ir.Value:
    """Returns the parts interleaved, along the last spatial dimension first."""
    found = list(parts)
    for index in reversed(range(len(convolution.lhs_dilation))):
        dilation, axis = convolution.lhs_dilation[index], convolution.result[index + 2]
        found = [
            _joined(found[start : start + dilation], axis)
            for start in range(0, len(found), dilation)
        ]
    shape = hlo.shape_of(operation.results[0])
    return hlo.slice(found[0], [0] * len(shape), shape, [1] * len(shape))


def _joined(parts: Sequence[ir.Value], axis: int) -> ir.Value:
    """Returns arrays interleaved along an axis."""
    if len(parts) == 1:
        return parts[0]
    shape = list(hlo.shape_of(parts[0]))
    apart = [*shape[: axis + 1], 1, *shape[axis + 1 :]]
    whole = hlo.concatenate([hlo.reshape(x, apart) for x in parts], axis + 1)
    return hlo.reshape(whole, [*shape[:axis], shape[axis] * len(parts), *shape[axis + 1 :]])
