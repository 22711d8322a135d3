"""Products of integers as products of bytes; their zero points are applied afterwards.

    sum (l - a) (r - b) = sum l r - a sum r - b sum l + n a b

Bytes are multiplied without their zero points, into sums of 32 bits. The terms of the zero points
are sums over one side. Programs of frameworks widen bytes, subtract their zero points, and multiply
integers of 32 bits. Products of bytes are faster, and their sums are equal, because they wrap
around in the same way.

Here: such products, and integers that are bytes by conversions in the program.
Elsewhere: integers that are bytes by their types (`quantized_products.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from iree.compiler import ir

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Dtype, Extent, HostArray, Param
from axir.dialect.core.array import ConcreteArray, from_numpy
from axir.dialect.core.quantized_types import is_quantized
from axir.dialect.ops.elementwise.arithmetic import mul, sub
from axir.dialect.ops.elementwise.comparison import xor
from axir.dialect.ops.elementwise.conversion import bitcast_convert_type, convert_element_type
from axir.dialect.ops.reductions.reduce import reduce_sum
from axir.dialect.ops.shape.padding import pad
from axir.dialect.ops.shape.rearranging import transpose
from axir.dialect.program.module_writer import SMALL_BYTES
from axir.dialect.program.rules import Value
from axir.dialect.text.resources import resource_name
from axir.passes.legalize.attributes import Convolution
from axir.passes.raising.dimensions.attributes import DimensionNumbers, integers

from .products import convolved, dot_dimensions, product
from .shapes import spread
from .table import RULES, RaisingContext, recorded, result_dtype

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


_BYTES = (dtypes.int8, dtypes.uint8)
# Not `arith.extui`, which treats signless bytes as unsigned.
_CONVERSIONS = ("stablehlo.convert", "arith.extsi")
_SPREADING = ("stablehlo.broadcast_in_dim", "stablehlo.dynamic_broadcast_in_dim")
# Operations that move integers and, except for the last two, the axis of their zero points.
_MOVING = (*_SPREADING, "stablehlo.transpose", "stablehlo.reshape", "tensor.cast")


def dot_of_widened(context: RaisingContext, operation: ir.Operation) -> Value | None:
    """Returns a product of arrays that were bytes; None if they were not."""
    sides = _sides(context, operation)
    if sides is None:
        return None
    return dot_of_integers(operation, *sides, dot_dimensions(operation), dtypes.int32)


def convolution_of_widened(
    context: RaisingContext, operation: ir.Operation, padding: list[tuple[int, ...]]
) -> Value | None:
    """Returns a convolution of arrays that were bytes; None if they were not."""
    sides = _sides(context, operation)
    if sides is None:
        return None
    read = Convolution.read(operation)
    return convolution_of_integers(operation, *sides, read, padding, dtypes.int32)


def _sides(context: RaisingContext, operation: ir.Operation) -> tuple[Factors, Factors] | None:
    operands = list(operation.operands)[:2]
    if any(is_quantized(x.type) for x in operands) or result_dtype(operation) != dtypes.int32:
        return None
    if any(str(x.type.element_type) != "i32" for x in operands):
        return None
    lhs, rhs = (_bytes_of(context, x) for x in operands)
    return None if lhs is None or rhs is None else (lhs.with_signs(), rhs.with_signs())


def _bytes_of(context: RaisingContext, value: ir.Value) -> Factors | None:
    """Returns the bytes from which integers were converted, with the subtracted zero points."""
    if not isinstance(value, ir.OpResult):
        return None
    op: ir.Operation = value.owner
    if op.name in _CONVERSIONS and _byte_dtype(op.operands[0]) in _BYTES:
        return Factors(context.value(op.operands[0]))
    if op.name == "stablehlo.constant" and resource_name(op.attributes["value"]) is None:
        return _known_bytes(context.constant(value))
    if op.name == "stablehlo.subtract":
        return _less(context, op)
    if op.name in _MOVING:
        return _moved(context, op)
    return None


def _byte_dtype(value: ir.Value) -> Dtype | None:
    """Returns the dtype of a byte array; None for other values."""
    kind = value.type
    if not isinstance(kind, ir.ShapedType) or is_quantized(kind):
        return None
    return {"i8": dtypes.int8, "ui8": dtypes.uint8}.get(str(kind.element_type))


def _known_bytes(found: HostArray | None) -> Factors | None:
    if found is None or found.nbytes > SMALL_BYTES or not found.size:
        return None
    bounds = np.iinfo(np.int8)
    if found.min() < bounds.min or found.max() > bounds.max:
        return None
    words = found.astype(np.int8)
    made = recorded("constant", (), value=words) if words.shape else None
    return Factors(from_numpy(words) if made is None else made)


def _less(context: RaisingContext, op: ir.Operation) -> Factors | None:
    """Returns bytes with the zero points that a program subtracts."""
    found = _bytes_of(context, op.operands[0])
    if found is None or found.zeros is not None:
        return None
    zeros = _zeros(context, op.operands[1], found.values.dtype)
    return None if zeros is None else found._replace(zeros=zeros)


def _zeros(context: RaisingContext, value: ir.Value, dtype: Dtype) -> Zeros | None:
    """Returns zero points from an array that has them for each element; None for other arrays.

    They must be bytes, so that padding can be filled with them.
    """
    known = context.constant(value)
    if known is not None:
        return _known_zeros(known, dtype)
    if not isinstance(value, ir.OpResult) or value.owner.name not in _SPREADING:
        return None
    source, places = value.owner.operands[0], integers(value.owner, "broadcast_dimensions")
    known = context.constant(source)
    if known is None and not _was(source, dtype):
        return None
    if known is not None and _known_zeros(known, dtype) is None:
        return None
    if not places:
        return Zeros(context.value(source))
    is_whole = len(places) == 1 and source.type.shape[0] == value.type.shape[places[0]]
    return Zeros(context.value(source), places[0]) if is_whole else None


def _known_zeros(known: HostArray, dtype: Dtype) -> Zeros | None:
    bounds = np.iinfo(dtype)
    if not known.size or known.min() < bounds.min or known.max() > bounds.max:
        return None
    if (known == known.flat[0]).all():
        return Zeros(from_numpy(np.array(known.flat[0], np.int32)))
    for axis in range(known.ndim):
        line = known[tuple(slice(None) if d == axis else 0 for d in range(known.ndim))]
        shape = [-1 if d == axis else 1 for d in range(known.ndim)]
        if (known == line.reshape(shape)).all():
            return Zeros(from_numpy(line.astype(np.int32)), axis)
    return None


def _was(value: ir.Value, dtype: Dtype) -> bool:
    """Tells whether integers were bytes of a dtype."""
    while isinstance(value, ir.OpResult):
        op = value.owner
        if op.name in _CONVERSIONS:
            return _byte_dtype(op.operands[0]) == dtype
        if op.name != "stablehlo.reshape":
            return False
        value = op.operands[0]
    return False


def _moved(context: RaisingContext, op: ir.Operation) -> Factors | None:
    """Returns the bytes of integers that were moved after they had been widened."""
    found = _bytes_of(context, op.operands[0])
    if found is None:
        return None
    zeros = found.zeros
    if zeros is not None and zeros.axis is not None:
        if op.name == "stablehlo.transpose":
            axis = integers(op, "permutation").index(zeros.axis)
        elif op.name in _SPREADING:
            axis = integers(op, "broadcast_dimensions")[zeros.axis]
        else:
            return None
        zeros = zeros._replace(axis=axis)
    rest = [context.value(x) for x in list(op.operands)[1:]]
    made: Param = RULES[op.name](context, op, found.values, *rest)
    return Factors(made, zeros)
