"""`convolve-bytes`: convolutions of bytes as exact convolutions of floats."""

from __future__ import annotations

import dataclasses
import math
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
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
