"""Extents as values, for operations of StableHLO that take shapes at run time.

While a function with symbolic dimensions is written, its values have types that hold these as an
encoding (`tensor<?xf32, {dims = ["b"]}>`), so that builders know shapes as expressions. The value
of an expression is computed once, at the beginning of the function, from the values of the names.
Constants and positions in arrays of
a shape, which may be open, stand here, too.

Elsewhere: the source of these values (`passes/transforms/open_modules.py`).
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar

import numpy as np
from iree.compiler import ir

from axir.dialect.core.annotations import Dtype, Extent, NestedNumbers
from axir.dialect.core.symbolic.terms import Applied
from axir.dialect.core.symbolic_dims import (
    SymbolicDim,
    is_open,
    is_symbolic_dim,
    symbolic_dim_bounds,
)
from axir.dialect.core.types import numpy_dtype

from .core import (
    ElementType,
    as_element_type,
    attribute,
    build,
    constant,
    element_type_of,
    integer,
    integers,
    shape_of,
    tensor_type,
)

EXTENT = np.dtype(np.int64)
"""The dtype of extents, which products of 32 bits might not fit."""


class ExtentValues:
    """The values of extents in a function that is being written.

    Args:
        anchor: An operation of the function's block; extents are computed before it. By default
            they are computed where they are requested.

    Attributes:
        names: The values of the names, of rank 0 and dtype `EXTENT`.
    """

    def __init__(self, anchor: ir.Operation | None = None):
        self._anchor = anchor
        self.names: dict[str, ir.Value] = {}
        self._known: dict[str, ir.Value] = {}

    def define(self, name: str, value: ir.Value) -> None:
        """Sets the value of a name."""
        self.names[name] = self._known[name] = value

    def of(self, extent: Extent) -> ir.Value:
        """Returns an extent as a number of rank 0."""
        text = str(extent)
        if text not in self._known:
            with ir.InsertionPoint(self._anchor) if self._anchor else contextlib.nullcontext():
                self._known[text] = self._computed(extent)
        return self._known[text]

    def _computed(self, extent: Extent) -> ir.Value:
        if not isinstance(extent, SymbolicDim):
            return constant(np.array(extent, EXTENT))
        sums = []
        for product, factor in extent.terms.items():
            parts = [self._atom(atom) for atom in product]
            if factor != 1 or not parts:
                parts.append(self.of(factor))
            sums.append(functools.reduce(functools.partial(_binary, "multiply"), parts))
        return functools.reduce(functools.partial(_binary, "add"), sums)

    def _atom(self, atom: str | Applied) -> ir.Value:
        if isinstance(atom, str):
            return self.names[atom]
        a, b = (self.of(operand) for operand in atom.operands)
        match atom.name:
            case "max":
                return _binary("maximum", a, b)
            case "min":
                return _binary("minimum", a, b)
        operands = atom.operands
        is_plain = symbolic_dim_bounds(operands[0])[0] >= 0 < symbolic_dim_bounds(operands[1])[0]
        if atom.name == "floordiv":
            return _binary("divide", a, b) if is_plain else self._floor(a, b)
        if is_plain:
            return _binary("remainder", a, b)
        return _binary("subtract", a, _binary("multiply", self._floor(a, b), b))

    def _floor(self, a: ir.Value, b: ir.Value) -> ir.Value:
        """Returns a quotient rounded down, unlike StableHLO's."""
        quotient, rest = _binary("divide", a, b), _binary("remainder", a, b)
        zero, one = self.of(0), self.of(1)
        has_rest = compared(rest, zero, "NE")
        is_opposite = compared(_unary("sign", rest), _unary("sign", b), "NE")
        is_below = _binary("and", has_rest, is_opposite)
        lower = _binary("subtract", quotient, one)
        return build("select", "stablehlo.select", (is_below, lower, quotient), (a.type,)).result


def _unary(name: str, x: ir.Value) -> ir.Value:
    return build(name, f"stablehlo.{name}", (x,), (x.type,)).result


def _binary(name: str, a: ir.Value, b: ir.Value) -> ir.Value:
    return build(name, f"stablehlo.{name}", (a, b), (a.type,)).result


def compared(a: ir.Value, b: ir.Value, direction: str) -> ir.Value:
    """Returns whether a comparison of two extents holds."""
    attributes = {
        "comparison_direction": attribute(f"#stablehlo<comparison_direction {direction}>"),
        "compare_type": attribute("#stablehlo<comparison_type SIGNED>"),
    }
    kinds = [tensor_type((), ir.IntegerType.get_signless(1))]
    return build("compare", "stablehlo.compare", (a, b), kinds, attributes).result


_current: ContextVar[ExtentValues | None] = ContextVar("extents", default=None)


@contextlib.contextmanager
def computing_extents(names: Mapping[str, ir.Value]) -> Iterator[ExtentValues]:
    """Lets builders compute extents at the beginning of the current block, which must be empty."""
    anchor = constant(np.array(0, EXTENT)).owner
    values = ExtentValues(anchor)
    for name, value in names.items():
        values.define(name, value)
    token = _current.set(values)
    try:
        yield values
    finally:
        _current.reset(token)
        anchor.erase()


def current_names() -> Mapping[str, ir.Value]:
    """Returns the values of names in the function that is being written."""
    values = _current.get()
    return {} if values is None else values.names


def extent(value: Extent, dtype: Dtype) -> ir.Value:
    """Returns an extent as a number of rank 0, of a dtype."""
    values = _current.get()
    if not isinstance(value, SymbolicDim) or values is None:
        return constant(np.array(value, dtype))
    found = values.of(value)
    if dtype == EXTENT:
        return found
    kinds = (tensor_type((), dtype),)
    return build("convert", "stablehlo.convert", (found,), kinds).result


def extents(values: Sequence[Extent], dtype: Dtype = EXTENT) -> ir.Value:
    """Returns extents as an array of rank 1."""
    if not any(isinstance(value, SymbolicDim) for value in values):
        return constant(np.array(values, dtype).reshape(len(values)))
    kinds = (tensor_type((1,), dtype),)
    parts = [
        build("reshape", "stablehlo.reshape", (extent(value, dtype),), kinds).result
        for value in values
    ]
    if len(parts) == 1:
        return parts[0]
    kinds = (tensor_type((len(parts),), dtype),)
    attributes = {"dimension": integer(0)}
    return build("concatenate", "stablehlo.concatenate", parts, kinds, attributes).result


def spread(scalar: ir.Value, shape: Sequence[Extent]) -> ir.Value:
    """Returns a number in each place of a shape that is open."""
    kinds = (tensor_type(shape, scalar.type.element_type),)
    attributes = {"broadcast_dimensions": integers(())}
    name = "dynamic_broadcast_in_dim"
    return build(name, f"stablehlo.{name}", (scalar, extents(shape)), kinds, attributes).result


def full(value: NestedNumbers | Extent, shape: Sequence[int], element: ElementType) -> ir.Value:
    """Returns a splat constant; if the number or the shape is open, a splat made at run time."""
    if is_symbolic_dim(value):
        number = extent(value, numpy_dtype(as_element_type(element)))
        return spread(number, shape) if len(shape) else number
    if is_open(shape):
        return spread(full(value, (), element), shape)
    result_type = tensor_type(shape, element)
    with np.errstate(over="ignore"):  # beyond the range is infinity
        data = np.asarray(value).astype(numpy_dtype(result_type.element_type)).reshape(1)
    data = data if math.prod(shape) else data[:0]
    dense = ir.DenseElementsAttr.get(data, type=result_type)
    return build("full", "stablehlo.constant", (), [result_type], {"value": dense}).result


def full_like(operand: ir.Value, value: NestedNumbers | Extent) -> ir.Value:
    """Returns a splat constant of `value` in the shape and element type of `operand`."""
    return full(value, shape_of(operand), element_type_of(operand))


scalar_like = full_like
"""The constant `value` as an operand for an elementwise operation with `operand` (StableHLO does
not broadcast).
"""


def iota(shape: Sequence[int], dimension: int, element: ElementType) -> ir.Value:
    """Numbers that count along `dimension`, from zero."""
    kinds, attributes = [tensor_type(shape, element)], {"iota_dimension": integer(dimension)}
    if is_open(shape):
        operands = (extents(shape),)
        return build("iota", "stablehlo.dynamic_iota", operands, kinds, attributes).result
    return build("iota", "stablehlo.iota", (), kinds, attributes).result
