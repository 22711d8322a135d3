"""Convolutions in forms that compile to faster programs: bytes, features last, dilated inputs.

Elsewhere: convolutions with few results (`unroll_wide_windows.py`), convolutions as kernels
(`products/tile_convolutions.py`).
"""

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

# The largest product of two bytes is 2^14, and f32 represents all integers up to 2^24.
_BYTE, _EXACT_PRODUCTS = 8, 1 << 10
_MOST_PARTS = 24


@dataclasses.dataclass(frozen=True)
class ConvolveBytes(RewritePass):
    """Computes convolutions of bytes exactly by convolutions of f32, which have kernels.

    The fact: IREE's code for a convolution of bytes in NCHW, of 3x3 windows over 28x28 positions
    and 64 features, takes 100 times as long as its code for f32.

    1. Take convolutions of signed bytes into integers of more than 16 bits, of at least `products`
       multiplications, with windows of at most 1,024 places.
    2. Cut the input features into parts, so that each sum has at most 1,024 products: f32
       represents it exactly. There are at most 24 parts, and with groups only one.
    3. Convolve the parts in f32, convert the sums, and add them as integers, which wrap around as
       in the convolution of integers.

    Before::

        %0 = stablehlo.convolution(%x, %k) … : (tensor<1x64x28x28xi8>, tensor<64x64x3x3xi8>)
            -> tensor<1x64x28x28xi32>

    After::

        %1 = stablehlo.convert %x : (tensor<1x64x28x28xi8>) -> tensor<1x64x28x28xf32>
        %2 = stablehlo.convert %k : (tensor<64x64x3x3xi8>) -> tensor<64x64x3x3xf32>
        %3 = stablehlo.convolution(%1, %2) … -> tensor<1x64x28x28xf32>
        %4 = stablehlo.convert %3 : (tensor<1x64x28x28xf32>) -> tensor<1x64x28x28xi32>
    """

    name: ClassVar[str] = "convolve-bytes"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.convolution",)
    products: int = 1 << 16

    def rewrite(self, operation: ir.Operation) -> ir.Value | None:
        """Builds the convolutions of the parts, and their sum."""
        if not _are_bytes(operation):
            return None
        convolution = Convolution.read(operation)
        lhs, rhs = operation.operands
        [result] = operation.results
        _, source, *window = convolution.rhs
        kernel = hlo.shape_of(rhs)
        places = math.prod(kernel[axis] for axis in window)
        products = hlo.size_of(result) * places * kernel[source]
        if products < self.products or places > _EXACT_PRODUCTS:
            return None
        most = _EXACT_PRODUCTS // places
        is_one = convolution.feature_groups == convolution.batch_groups == 1
        if kernel[source] > most * (_MOST_PARTS if is_one else 1):
            return None
        total = None
        for first in range(0, kernel[source], most):
            last = min(first + most, kernel[source])
            parts = lhs, rhs
            if last - first < kernel[source]:
                features = convolution.lhs[1]
                parts = _part(lhs, features, first, last), _part(rhs, source, first, last)
            sums = hlo.convert(_in_floats(operation, *parts), hlo.element_type_of(result))
            total = sums if total is None else hlo.add(total, sums)
        return total


def _are_bytes(operation: ir.Operation) -> bool:
    values = (*operation.operands, operation.results[0])
    if not all(x.type.has_static_shape and 0 not in hlo.shape_of(x) for x in values):
        return False
    elements = [hlo.element_type_of(x) for x in values]
    *factors, result = (x.width if isinstance(x, ir.IntegerType) else 0 for x in elements)
    is_signed = not any(hlo.is_unsigned(x) for x in operation.operands)
    return factors == [_BYTE, _BYTE] and result > 2 * _BYTE and is_signed


def _part(x: ir.Value, axis: int, first: int, last: int) -> ir.Value:
    shape = hlo.shape_of(x)
    starts = [first if place == axis else 0 for place in range(len(shape))]
    ends = [last if place == axis else extent for place, extent in enumerate(shape)]
    return hlo.slice(x, starts, ends)


def _in_floats(operation: ir.Operation, lhs: ir.Value, rhs: ir.Value) -> ir.Value:
    single = ir.F32Type.get()
    attributes = {name: operation.attributes[name] for name in operation.attributes}
    kind = hlo.tensor_type(hlo.shape_of(operation.results[0]), single)
    operands = [hlo.convert(x, single) for x in (lhs, rhs)]
    return hlo.build("convolution", operation.name, operands, [kind], attributes).result


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


_MOST_REMAINDERS = 16


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
            math.prod(dilation) > _MOST_REMAINDERS
            or products < self.products * kernel[convolution.rhs[0]]
        ):
            return None
        return _interleaved(
            operation,
            convolution,
            [_dilated_part(operation, convolution, x) for x in _remainders(dilation)],
        )


def _remainders(dilation: Sequence[int]) -> list[tuple[int, ...]]:
    return list(itertools.product(*map(range, dilation)))


def _dilated_part(
    operation: ir.Operation, convolution: Convolution, remainders: Sequence[int]
) -> ir.Value:
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
