"""Operations of StableHLO on integers and bits without an op of the dialect."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Dtype
from axir.dialect.core.array import from_numpy
from axir.dialect.ops.control_flow.closed_bodies import trace_body
from axir.dialect.ops.control_flow.while_loop import bind_while
from axir.dialect.ops.elementwise.arithmetic import mul
from axir.dialect.ops.elementwise.comparison import (
    and_,
    eq,
    lt,
    ne,
    select_n,
    shift_left,
    shift_right_logical,
)
from axir.dialect.ops.elementwise.conversion import bitcast_convert_type, convert_element_type
from axir.dialect.ops.reductions.reduce import reduce_or, reduce_sum
from axir.dialect.ops.shape.broadcasting import broadcast_in_dim
from axir.dialect.program.rules import Value

from .shapes import iota


def _number(value: int, dtype: Dtype) -> Value:
    return from_numpy(np.array(value).astype(dtype))


def integer_power(base: Value, exponent: Value) -> Value:
    """Returns the power of an integer, by squaring; it wraps around as products do.

    For negative exponents the result is 0, except for the bases 1 and -1.
    """
    dtype = base.dtype
    zero, one = _number(0, dtype), _number(1, dtype)
    is_negative = lt(exponent, zero)
    left = select_n(is_negative, exponent, broadcast_in_dim(zero, exponent.shape, ()))

    def is_going_on(power: Value, square: Value, left: Value) -> Sequence[Value]:
        return [reduce_or(ne(left, zero), tuple(range(left.ndim)))]

    def advance(power: Value, square: Value, left: Value) -> Sequence[Value]:
        is_odd = ne(and_(left, one), zero)
        power = select_n(is_odd, power, mul(power, square))
        return [power, mul(square, square), shift_right_logical(left, one)]

    carry = [broadcast_in_dim(one, base.shape, ()), base, left]
    types = [x.aval.strip_weak_type() for x in carry]
    power = bind_while(trace_body(is_going_on, types), trace_body(advance, types), carry)[0]
    if dtype.kind != "i":
        return power
    sign = select_n(ne(and_(exponent, one), zero), one, base)
    is_unit = eq(mul(base, base), one)
    # 1 and -1 are their own inverses; other numbers may also have a square that wraps around to 1.
    is_unit = and_(is_unit, and_(lt(base, _number(2, dtype)), lt(_number(-2, dtype), base)))
    inverse = select_n(is_unit, broadcast_in_dim(zero, base.shape, ()), sign)
    return select_n(is_negative, power, inverse)


def to_bits(x: Value) -> Value:
    """Returns the bits of numbers along a new last dimension, from the lowest one."""
    kind = np.dtype(f"uint{x.dtype.itemsize * 8}")
    words = x if x.dtype == kind else bitcast_convert_type(x, kind)
    shape = (*x.shape, kind.itemsize * 8)
    spread = broadcast_in_dim(words, shape, tuple(range(x.ndim)))
    places = iota(x.aval.update(shape=shape, dtype=kind), x.ndim)
    one = _number(1, kind)
    return ne(and_(shift_right_logical(spread, places), one), _number(0, kind))


def from_bits(x: Value, dtype: Dtype) -> Value:
    """Returns the numbers made from the bits along the last dimension."""
    kind = np.dtype(f"uint{dtype.itemsize * 8}")
    places = iota(x.aval.update(dtype=kind), x.ndim - 1)
    bits = shift_left(convert_element_type(x, kind), places)
    words = reduce_sum(bits, (x.ndim - 1,))
    return words if dtype == kind else bitcast_convert_type(words, dtype)


def bits_differ(old: Dtype, new: Dtype) -> bool:
    """Tells whether exactly one of two dtypes is bool; booleans are single bits here."""
    return (old == dtypes.bool_) != (new == dtypes.bool_)
