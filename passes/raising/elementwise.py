"""Elementwise operations of StableHLO: arithmetic, comparisons, conversions."""

from __future__ import annotations

import numpy as np
from iree.compiler import ir

from axir.dialect.core import dtypes
from axir.dialect.core.array import ConcreteArray, from_numpy
from axir.dialect.ops.calls.optimization_barrier import optimization_barrier
from axir.dialect.ops.elementwise import (
    arithmetic,
    comparison,
    conversion,
    precision,
    transcendental,
)
from axir.dialect.ops.elementwise.arithmetic import add, mul
from axir.dialect.ops.elementwise.comparison import and_, eq, ge, gt, le, lt, ne, or_, select_n, xor
from axir.dialect.ops.elementwise.conversion import bitcast_convert_type, convert_element_type
from axir.dialect.program.rules import Value

from .attributes import integer, word
from .integers import bits_differ, from_bits, integer_power, to_bits
from .table import RaisingContext, raises, raises_elementwise, result_dtype


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
