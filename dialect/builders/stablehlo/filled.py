"""StableHLO constants and positions in arrays of a shape, which may be open."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from iree.compiler import ir

from axir.dialect.core.annotations import Extent, NestedNumbers
from axir.dialect.core.symbolic_dims import is_open, is_symbolic_dim
from axir.dialect.core.types import numpy_dtype

from .core import (
    ElementType,
    as_element_type,
    build,
    element_type_of,
    integer,
    shape_of,
    tensor_type,
)
from .extents import extent, extents, spread


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
