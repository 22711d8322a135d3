"""`stablehlo.reduce` and `stablehlo.map`: functions of scalars, over arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from iree.compiler import ir

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Dtype, UserObject
from axir.dialect.core.array import ConcreteArray, from_numpy
from axir.dialect.core.state import outside_traces
from axir.dialect.core.types import ShapedArray, numpy_dtype
from axir.dialect.ops.elementwise import arithmetic, comparison
from axir.dialect.ops.reductions.arg_reduce import argmax, argmin
from axir.dialect.ops.reductions.computations import IDENTITIES, apply_elementwise, single_op
from axir.dialect.ops.reductions.folding import greatest, least
from axir.dialect.ops.reductions.reduce import (
    reduce_and,
    reduce_max,
    reduce_min,
    reduce_or,
    reduce_prod,
    reduce_sum,
    reduce_xor,
)
from axir.dialect.ops.reductions.variadic_reduce import reduce
from axir.dialect.program.function import Function
from axir.dialect.program.function_tracing import trace_function
from axir.dialect.program.op_table import Traceable
from axir.dialect.program.rules import Value
from axir.passes.raising.dimensions.attributes import integer, integers, word

from .table import Raised, RaisingContext, raises

MONOIDS: dict[str, tuple[Traceable, Traceable]] = {
    "add": (arithmetic.add, reduce_sum),
    "mul": (arithmetic.mul, reduce_prod),
    "max": (arithmetic.max, reduce_max),
    "min": (arithmetic.min, reduce_min),
    "and": (comparison.and_, reduce_and),
    "or": (comparison.or_, reduce_or),
    "xor": (comparison.xor, reduce_xor),
}
"""Operations that reductions of their own exist for, and these."""


def scalar_function(context: RaisingContext, operation: ir.Operation, number: int = 0) -> Function:
    """Returns a region that takes scalars as a function."""
    block = operation.regions[number].blocks[0]
    types = [ShapedArray((), scalar_dtype(argument)) for argument in block.arguments]
    return trace_function(context.body(operation, number), types)


def scalar_dtype(value: ir.Value) -> Dtype:
    """Returns the dtype of a value of rank 0."""
    return numpy_dtype(value.type.element_type)


def known(context: RaisingContext, value: ir.Value) -> Value:
    """Returns the raised value, with its elements if they follow from constants."""
    found = context.constant(value)
    return context.value(value) if found is None else from_numpy(found)


@raises("stablehlo.reduce")
def _reduce(context: RaisingContext, operation: ir.Operation, *values: Value) -> Raised:
    count = len(values) // 2
    arrays = values[:count]
    inits = [known(context, v) for v in list(operation.operands)[count:]]
    dimensions = integers(operation, "dimensions")
    if count == 1:
        monoid = single_op(scalar_function(context, operation))
        if monoid in MONOIDS:
            combine, reduction = MONOIDS[monoid]
            return [_started(combine, reduction(arrays[0], dimensions), inits[0], monoid)]
    search = _search(context, operation, inits) if count == 2 and len(dimensions) == 1 else None
    if search is not None:
        positions = search[0](arrays[0], dimensions[0], arrays[1].dtype)
        is_value_used = any(True for _ in operation.results[0].uses)
        return [search[1](arrays[0], dimensions) if is_value_used else None, positions]
    body, operands, starts = context.body(operation), _listed(arrays), _listed(inits)
    return reduce(operands, starts, lambda lhs, rhs: body(*lhs, *rhs), dimensions)


def _listed(values: Sequence[Value]) -> UserObject:
    return list(values)


def _started(combine: Traceable, reduced: Value, init: Value, monoid: str) -> Value:
    return reduced if is_identity(monoid, init) else combine(reduced, init)


def is_identity(monoid: str, init: Value) -> bool:
    """Tells whether a value is known to be the neutral element of an operation."""
    if monoid not in IDENTITIES or type(init) is not ConcreteArray:
        return False
    return bool(init.host() == IDENTITIES[monoid](init.dtype))


@raises("stablehlo.map")
def _map(context: RaisingContext, operation: ir.Operation, *values: Value) -> Sequence[Value]:
    return elementwise(context, operation, values)


def elementwise(
    context: RaisingContext, operation: ir.Operation, values: Sequence[Value], number: int = 0
) -> Sequence[Value]:
    """Applies a region that takes scalars to each element of arrays of one shape."""
    return apply_elementwise(scalar_function(context, operation, number), values)


def scalar_values(
    context: RaisingContext,
    operation: ir.Operation,
    wanted: Sequence[ir.Value],
    arrays: Sequence[Value],
) -> Sequence[Value]:
    """Returns values that a comparator computes from its left elements, for all elements."""
    arguments = list(operation.regions[0].blocks[0].arguments)
    body = context.body(operation)

    def compute(*elements: Value) -> list[Value]:
        body(*(x for element in elements for x in (element, element)))
        return [context.value(value) for value in wanted]

    types = [ShapedArray((), scalar_dtype(argument)) for argument in arguments[::2]]
    return apply_elementwise(trace_function(compute, types), arrays)


# Positions of extrema ---------------------------------------------------------------------------

_LOGICAL = frozenset(f"stablehlo.{name}" for name in ("and", "or", "not", "xor"))


def _search(
    context: RaisingContext, operation: ir.Operation, inits: Sequence[Value]
) -> tuple[Traceable, Traceable] | None:
    """Returns the functions for a search by a reduction of (value, position) pairs; else None.

    The results are `argmax` and `reduce_max`, or `argmin` and `reduce_min`. A region of only
    comparisons and selections depends only on how the values and positions of two pairs compare. So
    a test of each case is sufficient.
    """
    if not _counts_along(operation) or not only_compares(operation):
        return None
    dtype = inits[0].dtype
    for find, extremum, start in ((argmax, reduce_max, least), (argmin, reduce_min, greatest)):
        starts_below = type(inits[0]) is ConcreteArray and inits[0].host() == start(dtype)
        if starts_below and _prefers(context, operation, extremum is reduce_max):
            return find, extremum
    return None


def _counts_along(operation: ir.Operation) -> bool:
    """Tells whether the second operand has positions along the dimension that is reduced."""
    (dimension,) = integers(operation, "dimensions")
    owner = operation.operands[1].owner
    if isinstance(owner, ir.Block):
        return False
    if owner.name == "stablehlo.broadcast_in_dim" and not isinstance(
        owner.operands[0].owner, ir.Block
    ):
        source = owner.operands[0].owner
        along = integers(owner, "broadcast_dimensions") == (dimension,)
        return along and source.name == "stablehlo.iota"
    return owner.name == "stablehlo.iota" and integer(owner, "iota_dimension") == dimension


_TRUTH = -1


def only_compares(operation: ir.Operation, number: int = 0) -> bool:
    """Tells whether a region only compares its arguments and selects among them.

    Values are compared with values and positions with positions, so that a few numbers represent
    all cases.
    """
    block = operation.regions[number].blocks[0]
    count = max(len(block.arguments) // 2, 1)
    kinds = {argument: place % count for place, argument in enumerate(block.arguments)}
    for view in list(block.operations)[:-1]:
        given = [kinds.get(v) for v in view.operation.operands]
        kind = (
            None if None in given else _kind_of(view.operation, [k for k in given if k is not None])
        )
        if kind is None:
            return False
        kinds[view.operation.results[0]] = kind
    return True


def _kind_of(operation: ir.Operation, given: Sequence[int]) -> int | None:
    """Returns the kind of a comparison's or selection's result: an operand's, or `_TRUTH`."""
    if operation.name == "stablehlo.select":
        is_choice = given[0] == _TRUTH and given[1] == given[2]
        return given[1] if is_choice else None
    if operation.name == "stablehlo.compare":
        attributes = operation.attributes
        is_total = "compare_type" in attributes and word(attributes["compare_type"]) == "TOTALORDER"
        return None if is_total or given[0] != given[1] else _TRUTH
    is_logical = operation.name in _LOGICAL and set(given) == {_TRUTH}
    return _TRUTH if is_logical else None


def _prefers(context: RaisingContext, operation: ir.Operation, is_max: bool) -> bool:
    """Tells whether a region keeps the extremum, prefers NaN, and among equal values the first."""
    types = [scalar_dtype(v) for v in operation.regions[0].blocks[0].arguments]
    numbers = [1, 2, np.nan] if dtypes.is_float(types[0]) else [1, 2]
    if types[0] == dtypes.bool_:
        numbers = [0, 1]
    cases = [(a, i, b, 1 - i) for a in numbers for b in numbers for i in (0, 1)]
    columns = [np.array(c).astype(t) for c, t in zip(zip(*cases, strict=True), types, strict=True)]
    with outside_traces():
        found = elementwise(context, operation, [from_numpy(c) for c in columns])
    value, position = (np.asarray(x.host()) for x in found)  # type: ignore[attr-defined]
    for (a, i, b, j), chosen, place in zip(cases, value, position, strict=True):
        wanted = _preferred((a, i), (b, j), is_max)
        if place != wanted[1] or not np.array_equal(float(chosen), wanted[0], equal_nan=True):
            return False
    return True


def _preferred(lhs: tuple[float, int], rhs: tuple[float, int], is_max: bool) -> tuple[float, int]:
    def rank(pair: tuple[float, int]) -> tuple[bool, float, int]:
        value, position = pair
        is_nan = value != value
        return not is_nan, 0 if is_nan else (-value if is_max else value), position

    return min(lhs, rhs, key=rank)
