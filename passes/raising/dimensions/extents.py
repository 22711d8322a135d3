"""Integers that a program computes from the extents of its arguments, as symbolic dimensions.

Modules with open shapes (`tensor<?x3xf32>`) read extents and combine them by operations on
integers. This module evaluates these operations symbolically, in addition to raising them: a rule
of dynamic shapes needs an array of extents, each a number or a symbolic dimension. Elsewhere: the
operations that use shapes (`passes/raising/shapes.py`,
`passes/raising/shape_arithmetic.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from iree.compiler import ir

from axir.dialect.core.annotations import Dtype, Extent, HostArray, Returning
from axir.dialect.core.array import from_numpy
from axir.dialect.core.symbolic_dims import (
    SymbolicDim,
    as_traced,
    is_same,
    is_symbolic_dim,
    larger,
    operation,
    smaller,
    symbolic_dim_bounds,
)
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.ops.shape.concatenation import concatenate
from axir.dialect.ops.shape.rearranging import reshape
from axir.dialect.program.rules import Value

from .attributes import integer, integers, word

Extents: TypeAlias = HostArray
"""An array of extents: of Python objects, in the shape of the value that holds them."""

# Arrays of up to so many integers are followed.
_MOST = 64
# Operations that may take and return booleans; the others are followed only for integers.
_OF_TRUTH_VALUES = frozenset(
    (
        "arith.extsi",
        "arith.index_cast",
        "arith.select",
        "stablehlo.and",
        "stablehlo.broadcast_in_dim",
        "stablehlo.compare",
        "stablehlo.concatenate",
        "stablehlo.convert",
        "stablehlo.reshape",
        "stablehlo.select",
        "stablehlo.slice",
    )
)
_COMPARED = {"GE": ">=", "GT": ">", "LE": "<=", "LT": "<", "EQ": "=="}


class Comparison(NamedTuple):
    """An undecided comparison of extents.

    Attributes:
        text: The constraint that it is; empty if no constraint expresses it.
        value: 1 where it holds, else 0, as an extent; None if unknown.
    """

    text: str
    value: Extent | None = None


def extents_array(extents: Sequence[Extent], shape: Sequence[int]) -> Extents:
    """Returns extents as an array of a shape."""
    made = np.empty(len(extents), object)
    for number, extent in enumerate(extents):
        made[number] = extent
    return made.reshape(tuple(shape))


def as_value(extents: Extents, dtype: Dtype) -> Value:
    """Returns extents as a value of the program; a known value if all are numbers."""
    flat = extents.reshape(-1).tolist()
    if not any(map(is_symbolic_dim, flat)):
        return from_numpy(np.array(flat, dtype).reshape(extents.shape))
    parts = [
        convert_element_type(as_traced(x), dtype)
        if is_symbolic_dim(x)
        else from_numpy(np.array(x, dtype))
        for x in flat
    ]
    if not extents.shape:
        return parts[0]
    return reshape(concatenate([reshape(x, (1,)) for x in parts], 0), extents.shape)


def followed(op: ir.Operation, extents: Callable[[ir.Value], Extents | None]) -> Extents | None:
    """Returns the extents that an operation computes, if it has few integers; else None.

    Args:
        op: The operation.
        extents: Returns the extents that an operand holds, if known.
    """
    kinds = [v.type for v in (*op.operands, *op.results)]
    if op.name not in _RULES or not all(map(_is_small, kinds)):
        return None
    if op.name not in _OF_TRUTH_VALUES and any(map(_is_truth_value, kinds)):
        return None
    operands = map(extents, op.operands)
    # Unknown elements are None.
    given = [
        extents_array([None] * math.prod(_shape(v.type)), _shape(v.type)) if x is None else x
        for x, v in zip(operands, op.operands, strict=True)
    ]
    found: Extents | None = _RULES[op.name](op, *given)
    is_known = found is not None and any(x is not None for x in found.reshape(-1).tolist())
    return found if is_known else None


def computes_extents(op: ir.Operation) -> bool:
    """Tells whether an operation may compute extents: few integers from few integers."""
    return op.name in _RULES and all(_is_small(v.type) for v in (*op.operands, *op.results))


def _is_small(kind: ir.Type) -> bool:
    """Tells whether a type has few integers; the types of the dialect `shape` count as such."""
    element = _element(kind)
    if not isinstance(element, (ir.IndexType, ir.IntegerType)) and str(element) != "!shape.size":
        return False
    if not isinstance(kind, ir.RankedTensorType):
        return True
    return kind.has_static_shape and math.prod(kind.shape) <= _MOST


def _is_truth_value(kind: ir.Type) -> bool:
    return str(_element(kind)) == "i1"


def _element(kind: ir.Type) -> ir.Type:
    return kind.element_type if isinstance(kind, ir.ShapedType) else kind


def _shape(kind: ir.Type) -> tuple[int, ...]:
    return tuple(kind.shape) if isinstance(kind, ir.RankedTensorType) else ()


def _each(function: Returning[Extent | None]) -> Returning[Extents | None]:
    """Returns a rule that applies a function to each element."""

    def rule(op: ir.Operation, *operands: Extents) -> Extents | None:
        broadcast = np.broadcast_arrays(*operands)
        columns = zip(*(x.reshape(-1).tolist() for x in broadcast), strict=True)
        found = [None if None in column else function(*column) for column in columns]
        return extents_array(found, broadcast[0].shape)

    return rule


def _sign(a: Extent) -> Extent | None:
    low, high = symbolic_dim_bounds(a)
    if low >= 1 or high <= -1:
        return 1 if low >= 1 else -1
    return 0 if low == high == 0 else None


def _truth(x: Extent | Comparison) -> Extent | None:
    """Returns a truth value as 0 or 1."""
    return x.value if isinstance(x, Comparison) else int(x)


def _and(a: Extent, b: Extent) -> Extent | Comparison | None:
    if a is False or b is False:
        return False
    if a is True or b is True:
        return a if b is True else b
    one, other = _truth(a), _truth(b)
    if one is None or other is None:
        return None
    return Comparison("", one if is_same(one, other) else one * other)


def _quotient(a: Extent, b: Extent) -> Extent | None:
    # StableHLO's division rounds towards zero, as Python's does for non-negative numbers.
    if _are_positive(-a, b):
        return -operation("floordiv", -a, b)
    return operation("floordiv", a, b) if _are_positive(a, b) else None


def _remainder(a: Extent, b: Extent) -> Extent | None:
    if _are_positive(-a, b):
        return -operation("mod", -a, b)
    return operation("mod", a, b) if _are_positive(a, b) else None


def _quotient_up(a: Extent, b: Extent) -> Extent | None:
    return operation("floordiv", a + b - 1, b) if _are_positive(a, b) else None


def _are_positive(a: Extent, b: Extent) -> bool:
    return symbolic_dim_bounds(a)[0] >= 0 and symbolic_dim_bounds(b)[0] >= 1


def _unsigned(function: Returning[Extent | None]) -> Returning[Extent | None]:
    """Returns a function of two numbers without a sign, for those that are not negative."""

    def rule(a: Extent, b: Extent) -> Extent | None:
        least = (symbolic_dim_bounds(a)[0], symbolic_dim_bounds(b)[0])
        found: Extent | None = function(a, b) if min(least) >= 0 else None
        return found

    return rule


def _compare(op: ir.Operation, a: Extents, b: Extents) -> Extents | None:
    direction = word(op.attributes["comparison_direction"])

    def one(x: Extent, y: Extent) -> Extent | None:
        if isinstance(x, Comparison) or isinstance(y, Comparison):
            a, b = _truth(x), _truth(y)
            return Comparison("") if a is None or b is None else _undecided(direction, a - b, "")
        low, high = symbolic_dim_bounds(x - y)
        decided = {
            "GE": (low >= 0, high < 0),
            "GT": (low > 0, high <= 0),
            "LE": (high <= 0, low > 0),
            "LT": (high < 0, low >= 0),
            "EQ": (low == high == 0, low > 0 or high < 0),
            "NE": (low > 0 or high < 0, low == high == 0),
        }[direction]
        if any(decided):
            return decided[0]
        text = "" if direction == "NE" else f"{x} {_COMPARED[direction]} {y}"
        return _undecided(direction, x - y, text)

    return _each(one)(op, a, b)


def _undecided(direction: str, difference: Extent, text: str) -> Comparison:
    """Returns the comparison of a difference with zero."""
    above, below = (smaller(larger(x, 0), 1) for x in (difference, -difference))
    values = {
        "GE": 1 - below,
        "GT": above,
        "LE": 1 - above,
        "LT": below,
        "EQ": 1 - above - below,
        "NE": above + below,
    }
    return Comparison(text, values[direction])


def _select(op: ir.Operation, chosen: Extents, a: Extents, b: Extents) -> Extents | None:
    def one(which: Extent, x: Extent, y: Extent) -> Extent | None:
        if not isinstance(which, Comparison):
            return x if which else y
        if which.value is None or isinstance(x, Comparison) or isinstance(y, Comparison):
            return None
        return y + which.value * (x - y)

    return _each(one)(op, chosen, a, b)


def _clamped(op: ir.Operation, least: Extents, x: Extents, most: Extents) -> Extents:
    found = []
    for low, extent, high in zip(
        *(part.reshape(-1).tolist() for part in np.broadcast_arrays(least, x, most)), strict=True
    ):
        if low is not None and high is not None and is_same(low, high):
            found.append(low)  # for every operand
        elif None in (low, extent, high):
            found.append(None)
        else:
            found.append(operation("min", operation("max", low, extent), high))
    return extents_array(found, x.shape)


def _reshaped(op: ir.Operation, x: Extents) -> Extents:
    return x.reshape(tuple(op.results[0].type.shape))


def _broadcast(op: ir.Operation, x: Extents) -> Extents:
    shape = tuple(op.results[0].type.shape)
    aligned = [1] * len(shape)
    for extent, dimension in zip(x.shape, integers(op, "broadcast_dimensions"), strict=True):
        aligned[dimension] = extent
    return np.broadcast_to(x.reshape(aligned), shape)


def _sliced(op: ir.Operation, x: Extents) -> Extents:
    names = ("start_indices", "limit_indices", "strides")
    bounds = zip(*(integers(op, name) for name in names), strict=True)
    return x[tuple(slice(*bound) for bound in bounds)]


def _concatenated(op: ir.Operation, *parts: Extents) -> Extents:
    return np.concatenate(parts, integer(op, "dimension"))


def _converted(op: ir.Operation, x: Extents) -> Extents | None:
    if _is_truth_value(op.results[0].type):
        return None
    if not _is_truth_value(op.operands[0].type):
        return x
    # MLIR's own operations treat the only bit as a sign.
    numbers = {True: 1 if op.name == "stablehlo.convert" else -1, False: 0}
    found = [
        (None if e.value is None else e.value * numbers[True])
        if isinstance(e, Comparison)
        else numbers.get(e)
        for e in x.reshape(-1).tolist()
    ]
    return extents_array(found, x.shape)


_RULES: dict[str, Returning[Extents | None]] = {
    "stablehlo.broadcast_in_dim": _broadcast,
    "stablehlo.clamp": _clamped,
    "stablehlo.compare": _compare,
    "stablehlo.concatenate": _concatenated,
    "stablehlo.reshape": _reshaped,
    "stablehlo.slice": _sliced,
    "tensor.from_elements": lambda op, *x: extents_array(
        [part.item() for part in x], op.results[0].type.shape
    ),
    **dict.fromkeys(("stablehlo.select", "arith.select"), _select),
    **dict.fromkeys(
        (
            "stablehlo.convert",
            "arith.index_cast",
            "arith.extsi",
            "arith.trunci",
            "arith.extui",
            "arith.index_castui",
        ),
        _converted,
    ),
    **dict.fromkeys(("stablehlo.add", "arith.addi", "shape.add"), _each(lambda a, b: a + b)),
    **dict.fromkeys(("stablehlo.multiply", "arith.muli", "shape.mul"), _each(lambda a, b: a * b)),
    **dict.fromkeys(("stablehlo.subtract", "arith.subi"), _each(lambda a, b: a - b)),
    **dict.fromkeys(
        ("stablehlo.divide", "arith.divsi", "arith.divui", "arith.floordivsi", "shape.div"),
        _each(_quotient),
    ),
    **dict.fromkeys(("arith.ceildivsi", "arith.ceildivui"), _each(_quotient_up)),
    **dict.fromkeys(("stablehlo.remainder", "arith.remsi", "arith.remui"), _each(_remainder)),
    "arith.maxui": _each(_unsigned(lambda a, b: operation("max", a, b))),
    "arith.minui": _each(_unsigned(lambda a, b: operation("min", a, b))),
    **dict.fromkeys(
        ("stablehlo.maximum", "arith.maxsi"), _each(lambda a, b: operation("max", a, b))
    ),
    **dict.fromkeys(
        ("stablehlo.minimum", "arith.minsi"), _each(lambda a, b: operation("min", a, b))
    ),
    "stablehlo.and": _each(_and),
    "stablehlo.negate": _each(lambda a: -a),
    "stablehlo.sign": _each(_sign),
}


def is_name(extent: Extent) -> bool:
    """Tells whether an extent is only the name of an open dimension."""
    return isinstance(extent, SymbolicDim) and extent.is_name
