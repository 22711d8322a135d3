"""Products of quantized arrays: sums of products of integers, whose zero points come in afterwards.

    sum (l - a) (r - b) = sum l r - a sum r - b sum l + n a b

So the product itself is one of bytes, which are multiplied as they are. It is exact, and becomes
integers of the result by one factor: the scales of both sides over that of the result. Products of
a float array with a quantized one are those of floats. What does not live here: which dimensions
are summed over (`contractions.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from iree.compiler import ir

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Dtype, Extent, HostArray
from axir.dialect.core.array import from_numpy
from axir.dialect.core.quantized_types import Quantization
from axir.dialect.core.symbolic_dims import is_symbolic_dim
from axir.dialect.ops.elementwise.arithmetic import add, mul, sub
from axir.dialect.ops.elementwise.comparison import xor
from axir.dialect.ops.elementwise.conversion import bitcast_convert_type, convert_element_type
from axir.dialect.ops.reductions.reduce import reduce_sum
from axir.dialect.ops.shape.padding import pad
from axir.dialect.ops.shape.rearranging import transpose
from axir.dialect.program.rules import Value
from axir.passes.legalize.convolution_attributes import Convolution

from .attributes import DimensionNumbers
from .contractions import convolved, dot_dimensions, product
from .dynamic_shapes import known
from .quantized_numbers import (
    along,
    computed_in,
    dequantized,
    narrowed,
    quantizations,
    quantized,
    rounded,
)
from .quantized_operations import QUANTIZED_RULES
from .shapes import spread
from .table import RaisingContext, raises, result_dtype

_Shape = Sequence[Extent]

# A factor this near to 1 is 1: it is that of scales, of which each was rounded to float32.
_NEARLY_ONE = 2.0**-22
_SIGN_BIT = 0x80


class _Factors(NamedTuple):
    """Array of integers as a product has it.

    Attributes:
        values: The integers.
        zeros: Which ones stand for zero: one, or one for each place along `axis`.
        axis: The axis along which zero points and scales change.
    """

    values: Value
    zeros: HostArray
    axis: int | None

    @property
    def is_centred(self) -> bool:
        return not self.zeros.any()


@raises("stablehlo.dot", "stablehlo.dot_general", table=QUANTIZED_RULES)
def _dot(context: RaisingContext, operation: ir.Operation, lhs: Value, rhs: Value) -> Value:
    left, right, wanted = quantizations([*operation.operands, operation.results[0]])
    numbers = dot_dimensions(operation)
    places = _places(numbers, lhs.ndim, rhs.ndim)
    count = math.prod(lhs.shape[d] for d in numbers["lhs_contracting_dimensions"])
    kind = None if left is None or right is None else _accumulator(left, right, count)
    axes = [side and side.axis for side in (left, right)]
    is_mixed = any(a is not None and p[a] is None for a, p in zip(axes, places, strict=True))
    if left is None or right is None or kind is None or is_mixed:
        floats = _as_floats(operation, lhs, rhs, left, right, wanted)
        made = product(operation, *floats, numbers, _float_result(operation, wanted))
        return made if wanted is None else quantized(made, wanted)
    total = _dot_of_integers(
        operation, _factors(lhs, left, kind), _factors(rhs, right, kind), numbers, kind
    )
    sides = [(q, a if a is None else p[a]) for q, a, p in
             zip((left, right), axes, places, strict=True)]  # fmt: skip
    return _scaled(total, sides, wanted, _float_result(operation, wanted))


@raises("stablehlo.convolution", table=QUANTIZED_RULES)
def _convolution(context: RaisingContext, operation: ir.Operation, lhs: Value, rhs: Value) -> Value:
    padding = [tuple(pair) for pair in Convolution.read(operation).padding]
    return _any_convolution(operation, lhs, rhs, padding)


@raises("stablehlo.dynamic_conv", table=QUANTIZED_RULES)
def _dynamic_conv(
    context: RaisingContext, operation: ir.Operation, lhs: Value, rhs: Value, padding: Value
) -> Value:
    pairs = [tuple(pair) for pair in known(context, operation, 2).tolist()]
    return _any_convolution(operation, lhs, rhs, pairs)


def _any_convolution(
    operation: ir.Operation, lhs: Value, rhs: Value, padding: list[tuple[int, ...]]
) -> Value:
    left, right, wanted = quantizations([*list(operation.operands)[:2], operation.results[0]])
    read = Convolution.read(operation)
    count = math.prod(rhs.shape[d] for d in read.rhs[1:])
    kind = None if left is None or right is None else _accumulator(left, right, count)
    is_mixed = left is not None and left.axis is not None
    is_mixed = is_mixed or (right is not None and right.axis not in (None, read.rhs[0]))
    if left is None or right is None or kind is None or is_mixed:
        floats = _as_floats(operation, lhs, rhs, left, right, wanted)
        made = convolved(operation, *floats, read, padding, _float_result(operation, wanted))
        return made if wanted is None else quantized(made, wanted)
    factors = _factors(lhs, left, kind), _factors(rhs, right, kind)
    total = _convolution_of_integers(operation, *factors, read, padding, kind)
    place = None if right.axis is None else read.result[1]
    sides = [(left, None), (right, place)]
    return _scaled(total, sides, wanted, _float_result(operation, wanted))


# Products of floats -------------------------------------------------------------------------------


def _as_floats(
    operation: ir.Operation,
    lhs: Value,
    rhs: Value,
    left: Quantization | None,
    right: Quantization | None,
    wanted: Quantization | None,
) -> list[Value]:
    is_hybrid = left is None or right is None
    kind = None if wanted is not None or not is_hybrid else result_dtype(operation)
    return [
        x if q is None else dequantized(x, q, kind or (q.expressed if is_hybrid else None))
        for x, q in ((lhs, left), (rhs, right))
    ]


def _float_result(operation: ir.Operation, wanted: Quantization | None) -> Dtype:
    """Returns the dtype of the numbers that a product results in."""
    return result_dtype(operation) if wanted is None else computed_in(wanted)


# Products of integers -----------------------------------------------------------------------------


def _accumulator(left: Quantization, right: Quantization, count: Extent) -> Dtype | None:
    """Returns the dtype that holds sums of so many products; None if no integers do."""
    if is_symbolic_dim(count):
        return None
    most = count * left.reach * right.reach
    if most <= np.iinfo(np.int32).max:
        return dtypes.int32
    return dtypes.int64 if most <= np.iinfo(np.int64).max else None


def _factors(x: Value, q: Quantization, kind: Dtype) -> _Factors:
    """Returns integers as a product takes them: bytes with a sign, or the type of the sums."""
    zeros = np.array(q.zero_points, np.int64)
    if q.storage.itemsize > 1 or kind != dtypes.int32:
        wide = convert_element_type(x, kind)
        if zeros.any():
            wide = sub(wide, along(zeros, q.axis, kind, wide.aval.shape))
        return _Factors(wide, np.zeros_like(zeros), q.axis)
    if q.storage == dtypes.uint8:
        # Signed bytes in the same order are 128 less, and have the sign bit turned.
        turned = xor(x, spread(from_numpy(np.array(_SIGN_BIT, np.uint8)), x.aval.shape, ()))
        return _Factors(bitcast_convert_type(turned, dtypes.int8), zeros - _SIGN_BIT, q.axis)
    return _Factors(convert_element_type(x, dtypes.int8), zeros, q.axis)


def _places(numbers: DimensionNumbers, *ranks: int) -> list[list[int | None]]:
    """Returns for each dimension of both sides which one of the result it becomes, if any."""
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


def _dot_of_integers(
    operation: ir.Operation,
    lhs: _Factors,
    rhs: _Factors,
    numbers: DimensionNumbers,
    kind: Dtype,
) -> Value:
    if lhs.values.dtype != rhs.values.dtype:
        lhs, rhs = _centred(lhs, kind), _centred(rhs, kind)
    if lhs.axis is not None:  # which zero points along a batch would cross
        lhs = _centred(lhs, kind)
    total = product(operation, lhs.values, rhs.values, numbers, kind)
    places = _places(numbers, lhs.values.ndim, rhs.values.ndim)
    shape = total.aval.shape
    count = math.prod(lhs.values.shape[d] for d in numbers["lhs_contracting_dimensions"])
    right_axis = None if rhs.axis is None else places[1][rhs.axis]
    if not lhs.is_centred:
        sums = _sums(rhs.values, places[1], kind, shape)
        total = sub(total, mul(sums, along(lhs.zeros, None, kind, shape)))
    if not rhs.is_centred:
        zeros = along(rhs.zeros, right_axis, kind, shape)
        sums = _sums(lhs.values, places[0], kind, shape)
        if not lhs.is_centred:
            sums = sub(sums, along(count * lhs.zeros, None, kind, shape))
        total = sub(total, mul(sums, zeros))
    return total


def _centred(side: _Factors, kind: Dtype) -> _Factors:
    """Returns integers of a wide type, of which 0 stands for zero."""
    wide = convert_element_type(side.values, kind)
    if not side.is_centred:
        wide = sub(wide, along(side.zeros, side.axis, kind, wide.aval.shape))
    return _Factors(wide, np.zeros_like(side.zeros), side.axis)


def _sums(x: Value, places: Sequence[int | None], kind: Dtype, shape: _Shape) -> Value:
    """Returns the sums over what a product contracts, spread over its result."""
    contracted = tuple(d for d, place in enumerate(places) if place is None)
    kept = [place for place in places if place is not None]
    sums = reduce_sum(convert_element_type(x, kind), contracted)
    order = sorted(range(len(kept)), key=kept.__getitem__)
    return spread(transpose(sums, tuple(order)), tuple(shape), tuple(sorted(kept)))


def _convolution_of_integers(
    operation: ir.Operation,
    lhs: _Factors,
    rhs: _Factors,
    read: Convolution,
    padding: list[tuple[int, ...]],
    kind: Dtype,
) -> Value:
    if lhs.values.dtype != rhs.values.dtype or not rhs.is_centred:
        lhs, rhs = _centred(lhs, kind), _centred(rhs, kind)
    if lhs.is_centred:
        return convolved(operation, lhs.values, rhs.values, read, padding, kind)
    # Padding stands for zero, so it is made of the integer that does.
    values, read = _padded(lhs, read, padding)
    total = convolved(operation, values, rhs.values, read, [(0, 0)] * len(padding), kind)
    shape, feature = total.aval.shape, read.result[1]
    taps = reduce_sum(convert_element_type(rhs.values, kind), read.rhs[1:])
    zeros = along(lhs.zeros, None, kind, taps.aval.shape)
    return sub(total, spread(mul(taps, zeros), shape, (feature,)))


def _padded(
    lhs: _Factors, read: Convolution, padding: list[tuple[int, ...]]
) -> tuple[Value, Convolution]:
    """Returns an array with its padding, and between elements what dilates it."""
    amounts = [(0, 0, 0)] * lhs.values.ndim
    for axis, (low, high), dilation in zip(read.lhs[2:], padding, read.lhs_dilation, strict=True):
        amounts[axis] = (low, high, dilation - 1)
    values = lhs.values
    if any(amount != (0, 0, 0) for amount in amounts):
        filling = lhs.zeros.reshape(-1)[0].astype(values.dtype)
        values = pad(values, from_numpy(np.asarray(filling)), tuple(amounts))
    return values, read.without_lhs_dilation()


def _scaled(
    total: Value,
    sides: Sequence[tuple[Quantization, int | None]],
    wanted: Quantization | None,
    dtype: Dtype,
) -> Value:
    """Returns what sums of products of integers stand for, quantized if so wanted.

    Args:
        total: The sums.
        sides: What the integers of both sides stand for, and along which axis of the sums their
            scales change.
        wanted: What the integers of the result stand for; None for floats.
        dtype: The dtype of the numbers.
    """
    shape = total.aval.shape
    factors: dict[int | None, HostArray] = {}
    ratios = [(q, axis, 1) for q, axis in sides]
    if wanted is not None:
        ratios.append((wanted, wanted.axis, -1))
    for q, axis, sign in ratios:
        scales = np.array(q.scales).astype(computed_in(q)).astype(np.float64)
        factors[axis] = factors.get(axis, np.float64(1)) * scales**sign
    if None in factors and len(factors) == 2:
        (axis,) = (axis for axis in factors if axis is not None)
        factors = {axis: factors[axis] * factors[None]}
    is_one = all((np.abs(factor - 1) <= _NEARLY_ONE).all() for factor in factors.values())
    if wanted is not None and is_one:
        if any(wanted.zero_points):
            zeros = np.array(wanted.zero_points)
            total = add(total, along(zeros, wanted.axis, total.dtype, shape))
        return narrowed(total, wanted)
    numbers = convert_element_type(total, computed_in(sides[0][0]))
    for axis, factor in factors.items():
        numbers = mul(numbers, along(np.atleast_1d(factor), axis, numbers.dtype, shape))
    return convert_element_type(numbers, dtype) if wanted is None else rounded(numbers, wanted)
