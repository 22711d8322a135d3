"""Arithmetic of MLIR on numbers and arrays, which exporters write in addition to StableHLO."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from iree.compiler import ir

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Returning
from axir.dialect.core.array import from_numpy
from axir.dialect.ops.elementwise import arithmetic
from axir.dialect.ops.elementwise.arithmetic import add, div, mul, rem, sub
from axir.dialect.ops.elementwise.comparison import (
    and_,
    eq,
    ge,
    gt,
    le,
    lt,
    ne,
    not_,
    or_,
    select_n,
    shift_left,
    shift_right_arithmetic,
    shift_right_logical,
    xor,
)
from axir.dialect.ops.elementwise.conversion import bitcast_convert_type, convert_element_type
from axir.dialect.program.rules import Value
from axir.passes.raising.dimensions.attributes import integer

from .table import RaisingContext, raises, raises_elementwise, result_dtype


def _unsigned(function: Returning[Value]) -> Returning[Value]:
    """Returns a function of integers that treats them as unsigned."""

    def rule(*values: Value) -> Value:
        given = values[0].dtype
        kind = np.dtype(f"uint{given.itemsize * 8}")
        if given == dtypes.bool_ or given.kind == "u":
            return function(*values)
        found = function(*(bitcast_convert_type(x, kind) for x in values))
        return found if found.dtype == dtypes.bool_ else bitcast_convert_type(found, given)

    return rule


def _logical(on_truth: Returning[Value], on_numbers: Returning[Value]) -> Returning[Value]:
    return lambda *values: (on_truth if values[0].dtype == dtypes.bool_ else on_numbers)(*values)


def _number(lhs: Value, rhs: Value, larger: bool) -> Value:
    """Returns the larger or smaller number; the number if the other operand is nan."""
    found = arithmetic.max(lhs, rhs) if larger else arithmetic.min(lhs, rhs)
    found = select_n(ne(lhs, lhs), found, rhs)
    return select_n(ne(rhs, rhs), found, lhs)


def _quotient(lhs: Value, rhs: Value, step: int) -> Value:
    """Divides integers, and rounds down (step -1) or up (step 1)."""
    found, rest = div(lhs, rhs), rem(lhs, rhs)
    zero, one = (from_numpy(np.zeros((), lhs.dtype) + n) for n in (0, step))
    are_alike = eq(lt(rest, zero), lt(rhs, zero))
    is_inexact = ne(rest, zero)
    moves = and_(is_inexact, are_alike if step > 0 else not_(are_alike))
    return select_n(moves, found, add(found, one))


_INTEGERS: Mapping[str, Returning[Value]] = {
    "addi": _logical(xor, add),
    "andi": and_,
    "ceildivui": _unsigned(lambda lhs, rhs: _quotient(lhs, rhs, 1)),
    "ceildivsi": lambda lhs, rhs: _quotient(lhs, rhs, 1),
    "divsi": div,
    "divui": _unsigned(div),
    "floordivsi": lambda lhs, rhs: _quotient(lhs, rhs, -1),
    "maxsi": _logical(arithmetic.min, arithmetic.max),  # true is -1
    "maxui": _unsigned(arithmetic.max),
    "minsi": _logical(arithmetic.max, arithmetic.min),
    "minui": _unsigned(arithmetic.min),
    "muli": _logical(and_, mul),
    "ori": or_,
    "remsi": rem,
    "remui": _unsigned(rem),
    "shli": shift_left,
    "shrsi": shift_right_arithmetic,
    "shrui": shift_right_logical,
    "subi": _logical(xor, sub),
    "xori": xor,
}
_FLOATS: Mapping[str, Returning[Value]] = {
    "addf": add,
    "divf": div,
    "maximumf": arithmetic.max,
    "maxnumf": lambda lhs, rhs: _number(lhs, rhs, True),
    "minimumf": arithmetic.min,
    "minnumf": lambda lhs, rhs: _number(lhs, rhs, False),
    "mulf": mul,
    "negf": arithmetic.neg,
    "remf": rem,
    "subf": sub,
}
raises_elementwise({f"arith.{name}": rule for name, rule in {**_INTEGERS, **_FLOATS}.items()})


@raises("arith.select")
def _select(
    context: RaisingContext, operation: ir.Operation, which: Value, on_true: Value, on_false: Value
) -> Value:
    return select_n(which, on_false, on_true)


@raises("arith.extsi", "arith.index_cast", "arith.sitofp")
def _extend(context: RaisingContext, operation: ir.Operation, x: Value) -> Value:
    if result_dtype(operation) == dtypes.bool_:
        return _lowest_bit(x)
    wide = convert_element_type(x, result_dtype(operation))
    return arithmetic.neg(wide) if x.dtype == dtypes.bool_ else wide  # true is -1


@raises("arith.extui", "arith.index_castui", "arith.uitofp")
def _extend_unsigned(context: RaisingContext, operation: ir.Operation, x: Value) -> Value:
    if result_dtype(operation) == dtypes.bool_:
        return _lowest_bit(x)
    if x.dtype != dtypes.bool_ and x.dtype.kind == "i":
        x = bitcast_convert_type(x, np.dtype(f"uint{x.dtype.itemsize * 8}"))
    return convert_element_type(x, result_dtype(operation))


@raises("arith.fptoui")
def _to_unsigned(context: RaisingContext, operation: ir.Operation, x: Value) -> Value:
    wanted = result_dtype(operation)
    if wanted == dtypes.bool_ or wanted.kind == "u":
        return convert_element_type(x, wanted)
    unsigned = convert_element_type(x, np.dtype(f"uint{wanted.itemsize * 8}"))
    return bitcast_convert_type(unsigned, wanted)


@raises("arith.trunci")
def _truncate(context: RaisingContext, operation: ir.Operation, x: Value) -> Value:
    wanted = result_dtype(operation)
    return _lowest_bit(x) if wanted == dtypes.bool_ else convert_element_type(x, wanted)


def _lowest_bit(x: Value) -> Value:
    return ne(and_(x, from_numpy(np.ones((), x.dtype))), from_numpy(np.zeros((), x.dtype)))


@raises("arith.bitcast")
def _bitcast(context: RaisingContext, operation: ir.Operation, x: Value) -> Value:
    return bitcast_convert_type(x, result_dtype(operation))


_SIGNED = (eq, ne, lt, le, gt, ge)
_ORDERED = (eq, gt, ge, lt, le, ne)


@raises("arith.cmpi")
def _compare_integers(
    context: RaisingContext, operation: ir.Operation, lhs: Value, rhs: Value
) -> Value:
    number = integer(operation, "predicate")
    if number < len(_SIGNED):
        if lhs.dtype == dtypes.bool_:  # true is -1
            lhs, rhs = rhs, lhs
        return _SIGNED[number](lhs, rhs)
    return _unsigned(_SIGNED[number - 4])(lhs, rhs)


@raises("arith.cmpf")
def _compare_floats(
    context: RaisingContext, operation: ir.Operation, lhs: Value, rhs: Value
) -> Value:
    # 0 is false, 1 to 6 compare numbers, 7 tells whether both are numbers, 8 to 14 are the same
    # with nan as true (14 tells whether one is nan), and 15 is true.
    number = integer(operation, "predicate")
    is_number = and_(eq(lhs, lhs), eq(rhs, rhs))
    if number in (0, 15):
        return eq(is_number, not_(is_number)) if number == 0 else or_(is_number, not_(is_number))
    if number in (7, 14):
        return is_number if number == 7 else not_(is_number)
    if number < 7:
        return and_(_ORDERED[number - 1](lhs, rhs), is_number)
    return or_(_ORDERED[number - 8](lhs, rhs), not_(is_number))
