"""CHLO: special functions, implicit broadcasting, `top_k` and other high-level operations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from iree.compiler import ir

from axir.dialect.core.annotations import Foreign, Param, Returning
from axir.dialect.core.array import from_numpy
from axir.dialect.ops.control_flow.closed_bodies import trace_body
from axir.dialect.ops.control_flow.scan import bind_scan
from axir.dialect.ops.elementwise import arithmetic, conversion, transcendental
from axir.dialect.ops.elementwise.arithmetic import abs
from axir.dialect.ops.elementwise.comparison import eq
from axir.dialect.ops.elementwise.multiply_high import mulhi
from axir.dialect.ops.shape.broadcasting import broadcast_shapes
from axir.dialect.ops.shape.rearranging import moveaxis
from axir.dialect.ops.sorting.sort import top_k
from axir.dialect.ops.special import special_functions as special
from axir.dialect.program.rules import Value
from axir.passes.raising.dimensions.attributes import flag, integer, integers

from .shapes import spread
from .table import RULES, RaisingContext, raises, raises_elementwise, result_dtype


def _infinity(x: Value) -> Value:
    return from_numpy(np.asarray(np.inf).astype(x.dtype))


_FUNCTIONS: dict[str, Returning[Value]] = {
    "acos": transcendental.acos,
    "acosh": transcendental.acosh,
    "asin": transcendental.asin,
    "asinh": transcendental.asinh,
    "atan": transcendental.atan,
    "atanh": transcendental.atanh,
    "bessel_i1e": special.bessel_i1e,
    "conj": conversion.conj,
    "cosh": transcendental.cosh,
    "digamma": special.digamma,
    "erf": transcendental.erf,
    "erf_inv": transcendental.erf_inv,
    "erfc": transcendental.erfc,
    "is_inf": lambda x: eq(abs(x), _infinity(x)),
    "is_neg_inf": lambda x: eq(x, arithmetic.neg(_infinity(x))),
    "is_pos_inf": lambda x: eq(x, _infinity(x)),
    "lgamma": special.lgamma,
    "mulhi": mulhi,
    "next_after": arithmetic.nextafter,
    "polygamma": special.polygamma,
    "sinh": transcendental.sinh,
    "square": arithmetic.square,
    "tan": transcendental.tan,
    "zeta": special.zeta,
}
raises_elementwise({f"chlo.{name}": function for name, function in _FUNCTIONS.items()})


@raises("chlo.top_k")
def _top_k(context: RaisingContext, operation: ir.Operation, x: Value) -> Sequence[Value]:
    return top_k(x, integer(operation, "k"))


def _top_k_of(attributes: Foreign, x: Value) -> Sequence[Value]:
    return top_k(x, ir.IntegerAttr(attributes["k"]).value)


def _ignoring(function: Returning[Value]) -> Returning[object]:
    return lambda attributes, *values: function(*values)


COMPOSITES: dict[str, Returning[Param]] = {
    **{name: _ignoring(function) for name, function in _FUNCTIONS.items()},
    "top_k": _top_k_of,
}
"""What composites and custom calls of CHLO's names are, from their attributes and operands."""


@raises("chlo.constant_like")
def _constant_like(context: RaisingContext, operation: ir.Operation, x: Value) -> Value:
    attribute = operation.attributes["value"]
    number = ir.FloatAttr if isinstance(attribute, ir.FloatAttr) else ir.IntegerAttr
    value = np.asarray(number(attribute).value).astype(result_dtype(operation))
    return spread(from_numpy(value), x.shape, ())


@raises("chlo.scan")
def _scan(context: RaisingContext, operation: ir.Operation, *values: Value) -> Sequence[Value]:
    dimension = integer(operation, "dimension")
    count = next(iter(ir.DenseI32ArrayAttr(operation.attributes["operandSegmentSizes"])))
    xs = [moveaxis(x, dimension, 0) for x in values[:count]]
    carry = values[count:]
    body = context.body(operation)
    stacked = len(operation.results) - len(carry)

    def advance(*given: Value) -> list[Value]:
        results = body(*given[len(carry) :], *given[: len(carry)])
        return [*results[stacked:], *results[:stacked]]

    types = [x.aval.strip_weak_type() for x in carry]
    types += [x.aval.update(shape=x.shape[1:], weak_type=False) for x in xs]
    last, stacks = bind_scan(
        trace_body(advance, types, "body"),
        (),
        carry,
        xs,
        length=values[0].shape[dimension],
        reverse=flag(operation, "is_reverse"),
    )
    return [*(moveaxis(y, 0, dimension) for y in stacks), *last]


# Implicit broadcasting --------------------------------------------------------------------------

_BROADCASTING = (
    "add and atan2 compare complex divide maximum minimum multiply or power remainder select "
    "shift_left shift_right_arithmetic shift_right_logical subtract xor"
).split()


def _common_shape(values: Sequence[Value], dimensions: Sequence[int]) -> tuple[int, ...]:
    """Returns the shape that values are broadcast to; values of smaller rank along `dimensions`."""
    rank = max(x.ndim for x in values)
    aligned = []
    for x in values:
        axes = dimensions if dimensions and x.ndim < rank else range(rank - x.ndim, rank)
        extents = dict(zip(axes, x.shape, strict=True))
        aligned.append([extents.get(axis, 1) for axis in range(rank)])
    return tuple(broadcast_shapes(*map(tuple, aligned)))


@raises(*(f"chlo.broadcast_{name}" for name in _BROADCASTING))
def _broadcasting(context: RaisingContext, operation: ir.Operation, *values: Value) -> object:
    dimensions = integers(operation, "broadcast_dimensions")
    rank = max(x.ndim for x in values)
    shape = _common_shape(values, dimensions)
    name = operation.name.removeprefix("chlo.broadcast_")
    aligned = []
    for x in values:
        axes = tuple(range(len(shape) - x.ndim, len(shape)))
        if dimensions and x.ndim < rank:
            axes = dimensions
        aligned.append(spread(x, shape, axes) if x.shape or name != "select" else x)
    return RULES[f"stablehlo.{name}"](context, operation, *aligned)


@raises("chlo.broadcast_next_after", "chlo.broadcast_zeta", "chlo.broadcast_polygamma")
def _broadcasting_special(
    context: RaisingContext, operation: ir.Operation, *values: Value
) -> Value:
    shape = _common_shape(values, ())
    ends = (tuple(range(len(shape) - x.ndim, len(shape))) for x in values)
    aligned = (spread(x, shape, axes) for x, axes in zip(values, ends, strict=True))
    return _FUNCTIONS[operation.name.removeprefix("chlo.broadcast_")](*aligned)
