"""Products of integers as products of bytes; their zero points are applied afterwards.

    sum (l - a) (r - b) = sum l r - a sum r - b sum l + n a b

Bytes are multiplied without their zero points, into sums of 32 bits. The terms of the zero points
are sums over one side. Elsewhere: finding integers that are bytes, by types
(`quantized_products.py`) or by conversions in the program (`widened_bytes.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from iree.compiler import ir

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Dtype, Extent
from axir.dialect.core.array import ConcreteArray, from_numpy
from axir.dialect.ops.elementwise.arithmetic import mul, sub
from axir.dialect.ops.elementwise.comparison import xor
from axir.dialect.ops.elementwise.conversion import bitcast_convert_type, convert_element_type
from axir.dialect.ops.reductions.reduce import reduce_sum
from axir.dialect.ops.shape.padding import pad
from axir.dialect.ops.shape.rearranging import transpose
from axir.dialect.program.rules import Value
from axir.passes.legalize.convolution_attributes import Convolution

from .attributes import DimensionNumbers
from .products import convolved, product
from .shapes import spread

_SIGN_BIT = 0x80


class Zeros(NamedTuple):
    """The integers that represent zero.

    Attributes:
        values: One integer, or one for each place along an axis.
        axis: This axis; None if `values` is one integer.
    """

    values: Value
    axis: int | None = None

    def along(self, axis: int | None, kind: Dtype, shape: Sequence[Extent]) -> Value:
        """Returns them broadcast to a shape; `axis` is their axis in this shape."""
        places = () if self.axis is None or axis is None else (axis,)
        return spread(convert_element_type(self.values, kind), tuple(shape), places)


class Factors(NamedTuple):
    """Integers as an operand of a product.

    Attributes:
        values: The integers.
        zeros: The integers that represent zero; None if 0 does.
    """

    values: Value
    zeros: Zeros | None = None

    def centred(self, kind: Dtype) -> Factors:
        """Returns integers of a wide type in which 0 represents zero."""
        wide = convert_element_type(self.values, kind)
        if self.zeros is not None:
            wide = sub(wide, self.zeros.along(self.zeros.axis, kind, wide.aval.shape))
        return Factors(wide)

    def with_signs(self) -> Factors:
        """Returns signed bytes for unsigned bytes: in the same order, with other zeros."""
        if self.values.dtype != dtypes.uint8:
            words = convert_element_type(self.values, dtypes.int8)
            return Factors(words, self.zeros and _unless_zero(self.zeros))
        mask = spread(from_numpy(np.array(_SIGN_BIT, np.uint8)), self.values.aval.shape, ())
        turned = bitcast_convert_type(xor(self.values, mask), dtypes.int8)
        given = self.zeros or Zeros(from_numpy(np.array(0, np.int32)))
        zeros = convert_element_type(given.values, dtypes.int32)
        offset = spread(from_numpy(np.array(_SIGN_BIT, np.int32)), zeros.aval.shape, ())
        return Factors(turned, _unless_zero(given._replace(values=sub(zeros, offset))))


def _unless_zero(zeros: Zeros) -> Zeros | None:
    known = zeros.values
    return None if type(known) is ConcreteArray and not known.host().any() else zeros


def places_of(numbers: DimensionNumbers, *ranks: int) -> list[list[int | None]]:
    """Returns for each dimension of both sides its dimension in the result, or None."""
    found: list[list[int | None]] = []
    free = len(numbers["lhs_batching_dimensions"])
    for side, rank in zip(("lhs", "rhs"), ranks, strict=True):
        places: list[int | None] = [None] * rank
        for place, dimension in enumerate(numbers[f"{side}_batching_dimensions"]):
            places[dimension] = place
        for dimension in range(rank):
            kinds = ("contracting", "batching")
            if not any(dimension in numbers[f"{side}_{kind}_dimensions"] for kind in kinds):
                places[dimension], free = free, free + 1
        found.append(places)
    return found


def dot_of_integers(
    operation: ir.Operation, lhs: Factors, rhs: Factors, numbers: DimensionNumbers, kind: Dtype
) -> Value:
    """Returns sums of products of integers in a wide type, which wrap around as its sums do."""
    places = places_of(numbers, lhs.values.ndim, rhs.values.ndim)
    lhs, rhs = (
        side.centred(kind) if _has_summed_zeros(side, where) else side
        for side, where in zip((lhs, rhs), places, strict=True)
    )
    if lhs.values.dtype != rhs.values.dtype:
        lhs, rhs = lhs.centred(kind), rhs.centred(kind)
    total = product(operation, lhs.values, rhs.values, numbers, kind)
    shape = total.aval.shape
    left, right = (
        side.zeros
        and side.zeros.along(
            None if side.zeros.axis is None else where[side.zeros.axis], kind, shape
        )
        for side, where in zip((lhs, rhs), places, strict=True)
    )
    if left is not None:
        total = sub(total, mul(_sums(rhs.values, places[1], kind, shape), left))
    if right is not None:
        sums = _sums(lhs.values, places[0], kind, shape)
        if left is not None:
            count = math.prod(lhs.values.shape[d] for d in numbers["lhs_contracting_dimensions"])
            counts = spread(from_numpy(np.array(count).astype(kind)), shape, ())
            sums = sub(sums, mul(left, counts))
        total = sub(total, mul(sums, right))
    return total


def _has_summed_zeros(side: Factors, places: Sequence[int | None]) -> bool:
    """Tells whether zero points change along an axis that is summed over."""
    if side.zeros is None or side.zeros.axis is None:
        return False
    return places[side.zeros.axis] is None


def _sums(x: Value, places: Sequence[int | None], kind: Dtype, shape: Sequence[Extent]) -> Value:
    """Returns the sums of a side over the contracted dimensions, broadcast to the result."""
    contracted = tuple(d for d, place in enumerate(places) if place is None)
    kept = [place for place in places if place is not None]
    sums = reduce_sum(convert_element_type(x, kind), contracted)
    order = sorted(range(len(kept)), key=kept.__getitem__)
    return spread(transpose(sums, tuple(order)), tuple(shape), tuple(sorted(kept)))


def convolution_of_integers(
    operation: ir.Operation,
    lhs: Factors,
    rhs: Factors,
    read: Convolution,
    padding: list[tuple[int, ...]],
    kind: Dtype,
) -> Value:
    """Returns sums of products of integers, as `dot_of_integers` does, of a convolution."""
    is_uneven = lhs.zeros is not None and lhs.zeros.axis is not None
    if lhs.values.dtype != rhs.values.dtype or rhs.zeros is not None or is_uneven:
        lhs, rhs = lhs.centred(kind), rhs.centred(kind)
    if lhs.zeros is None:
        return convolved(operation, lhs.values, rhs.values, read, padding, kind)
    # Padding represents zero, so it is filled with the integer that does.
    values, read = _padded(lhs.values, lhs.zeros, read, padding)
    total = convolved(operation, values, rhs.values, read, [(0, 0)] * len(padding), kind)
    shape, feature = total.aval.shape, read.result[1]
    taps = reduce_sum(convert_element_type(rhs.values, kind), read.rhs[1:])
    taps = mul(taps, lhs.zeros.along(None, kind, taps.aval.shape))
    return sub(total, spread(taps, shape, (feature,)))


def _padded(
    values: Value, zeros: Zeros, read: Convolution, padding: list[tuple[int, ...]]
) -> tuple[Value, Convolution]:
    """Returns an array with its padding around and between elements."""
    amounts = [(0, 0, 0)] * values.ndim
    for axis, (low, high), dilation in zip(read.lhs[2:], padding, read.lhs_dilation, strict=True):
        amounts[axis] = (low, high, dilation - 1)
    if any(amount != (0, 0, 0) for amount in amounts):
        values = pad(values, convert_element_type(zeros.values, values.dtype), tuple(amounts))
    return values, read.without_lhs_dilation()
