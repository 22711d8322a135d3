"""Elementwise operations of StableHLO: arithmetic, comparisons, conversions.

Here: the rules, and operations on integers and bits that have no op of the dialect.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from iree.compiler import ir

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Dtype
from axir.dialect.core.array import ConcreteArray, from_numpy
from axir.dialect.ops.calls.barriers import optimization_barrier
from axir.dialect.ops.control_flow.closed_bodies import trace_body
from axir.dialect.ops.control_flow.while_loop import bind_while
from axir.dialect.ops.elementwise import (
    arithmetic,
    comparison,
    conversion,
    precision,
    transcendental,
)
from axir.dialect.ops.elementwise.arithmetic import add, mul
from axir.dialect.ops.elementwise.comparison import (
    and_,
    eq,
    ge,
    gt,
    le,
    lt,
    ne,
    or_,
    select_n,
    shift_left,
    shift_right_logical,
    xor,
)
from axir.dialect.ops.elementwise.conversion import bitcast_convert_type, convert_element_type
from axir.dialect.ops.reductions.reduce import reduce_or, reduce_sum
from axir.dialect.ops.shape.broadcasting import broadcast_in_dim
from axir.dialect.program.rules import Value
from axir.passes.raising.dimensions.attributes import integer, word

from .shapes import iota
from .table import RaisingContext, raises, raises_elementwise, result_dtype


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


def _power(base: Value, exponent: Value) -> Value:
    if dtypes.is_integer(base.dtype):
        return integer_power(base, exponent)
    return transcendental.pow(base, exponent)


def _cbrt(x: Value) -> Value:
    if not dtypes.is_complex(x.dtype):
        return transcendental.cbrt(x)
    third = np.asarray(1 / 3).astype(x.dtype)
    return select_n(eq(x, arithmetic.zeros_like(x)), transcendental.pow(x, from_numpy(third)), x)


raises_elementwise(
    {
        "stablehlo.abs": arithmetic.abs,
        "stablehlo.and": comparison.and_,
        "stablehlo.atan2": transcendental.atan2,
        "stablehlo.cbrt": _cbrt,
        "stablehlo.ceil": arithmetic.ceil,
        "stablehlo.clamp": arithmetic.clamp,
        "stablehlo.complex": conversion.complex_,
        "stablehlo.cosine": transcendental.cos,
        "stablehlo.count_leading_zeros": comparison.clz,
        "stablehlo.divide": arithmetic.div,
        "stablehlo.exponential": transcendental.exp,
        "stablehlo.exponential_minus_one": transcendental.expm1,
        "stablehlo.floor": arithmetic.floor,
        "stablehlo.is_finite": arithmetic.is_finite,
        "stablehlo.log": transcendental.log,
        "stablehlo.log_plus_one": transcendental.log1p,
        "stablehlo.logistic": transcendental.logistic,
        "stablehlo.maximum": arithmetic.max,
        "stablehlo.minimum": arithmetic.min,
        "stablehlo.negate": arithmetic.neg,
        "stablehlo.not": comparison.not_,
        "stablehlo.or": comparison.or_,
        "stablehlo.popcnt": comparison.population_count,
        "stablehlo.power": _power,
        "stablehlo.remainder": arithmetic.rem,
        "stablehlo.round_nearest_afz": lambda x: arithmetic.round(x, 0),
        "stablehlo.round_nearest_even": lambda x: arithmetic.round(x, 1),
        "stablehlo.rsqrt": transcendental.rsqrt,
        "stablehlo.shift_left": comparison.shift_left,
        "stablehlo.shift_right_arithmetic": comparison.shift_right_arithmetic,
        "stablehlo.shift_right_logical": comparison.shift_right_logical,
        "stablehlo.sign": arithmetic.sign,
        "stablehlo.sine": transcendental.sin,
        "stablehlo.sqrt": transcendental.sqrt,
        "stablehlo.subtract": arithmetic.sub,
        "stablehlo.tan": transcendental.tan,
        "stablehlo.tanh": transcendental.tanh,
        "stablehlo.xor": comparison.xor,
    }
)


@raises("stablehlo.add")
def _add(context: RaisingContext, operation: ir.Operation, lhs: Value, rhs: Value) -> Value:
    # For booleans these are logical operations.
    return or_(lhs, rhs) if lhs.dtype == dtypes.bool_ else add(lhs, rhs)


@raises("stablehlo.multiply")
def _multiply(context: RaisingContext, operation: ir.Operation, lhs: Value, rhs: Value) -> Value:
    return and_(lhs, rhs) if lhs.dtype == dtypes.bool_ else mul(lhs, rhs)


@raises("stablehlo.select")
def _select(
    context: RaisingContext, operation: ir.Operation, which: Value, on_true: Value, on_false: Value
) -> Value:
    known = _known_truth(context, operation.operands[0])
    if known is not None:  # such as whether LAPACK has failed
        return on_true if known else on_false
    return select_n(which, on_false, on_true)


def _known_truth(context: RaisingContext, value: ir.Value) -> bool | None:
    """Returns the boolean that all elements of an array are, if known; else None."""
    while isinstance(value, ir.OpResult) and value.owner.name == "stablehlo.broadcast_in_dim":
        value = value.owner.operands[0]
    found = context.value(value)
    if type(found) is not ConcreteArray or not found.size:
        return None
    host = found.host()
    return bool(host.flat[0]) if (host == host.flat[0]).all() else None


@raises("stablehlo.real")
def _real(context: RaisingContext, operation: ir.Operation, x: Value) -> Value:
    return conversion.real(x) if dtypes.is_complex(x.dtype) else x


@raises("stablehlo.imag")
def _imag(context: RaisingContext, operation: ir.Operation, x: Value) -> Value:
    return conversion.imag(x) if dtypes.is_complex(x.dtype) else arithmetic.zeros_like(x)


@raises("stablehlo.convert", "arith.extf", "arith.fptosi", "arith.truncf")
def _convert(context: RaisingContext, operation: ir.Operation, x: Value) -> Value:
    return convert_element_type(x, result_dtype(operation))


@raises("stablehlo.bitcast_convert")
def _bitcast(context: RaisingContext, operation: ir.Operation, x: Value) -> Value:
    wanted = result_dtype(operation)
    if bits_differ(x.dtype, wanted):
        return to_bits(x) if wanted == dtypes.bool_ else from_bits(x, wanted)
    return bitcast_convert_type(x, wanted)


@raises("stablehlo.reduce_precision")
def _reduce_precision(context: RaisingContext, operation: ir.Operation, x: Value) -> Value:
    bits = integer(operation, "exponent_bits"), integer(operation, "mantissa_bits")
    return precision.reduce_precision(x, *bits)


_COMPARISONS = {"EQ": eq, "NE": ne, "GE": ge, "GT": gt, "LE": le, "LT": lt}


@raises("stablehlo.compare")
def _compare(context: RaisingContext, operation: ir.Operation, lhs: Value, rhs: Value) -> Value:
    attributes = operation.attributes
    direction = word(attributes["comparison_direction"])
    kind = word(attributes["compare_type"]) if "compare_type" in attributes else ""
    if kind == "TOTALORDER" and dtypes.is_float(lhs.dtype):
        lhs, rhs = total_order_key(lhs), total_order_key(rhs)
    return _COMPARISONS[direction](lhs, rhs)


def total_order_key(x: Value) -> Value:
    """Returns integers in IEEE's total order of floats: -nan < -inf < -0 < 0 < inf < nan."""
    integers = np.dtype(f"int{x.dtype.itemsize * 8}")
    bits = bitcast_convert_type(x, integers)
    flipped = xor(bits, np.array(np.iinfo(integers).max, integers))
    return select_n(lt(bits, np.array(0, integers)), bits, flipped)


@raises("stablehlo.optimization_barrier")
def _optimization_barrier(
    context: RaisingContext, operation: ir.Operation, *values: Value
) -> list[Value]:
    return optimization_barrier(*values)
