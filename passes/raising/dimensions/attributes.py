"""Reading attributes of StableHLO operations, for which the wheel has no Python classes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from iree.compiler import ir

from axir.dialect.core.annotations import HostArray, Param
from axir.dialect.core.attributes import dense_to_numpy
from axir.dialect.core.errors import ParameterError
from axir.dialect.core.types import numpy_dtype
from axir.dialect.text.resources import resource_array
from axir.passes.legalize.attributes import DimensionNumbers, dimension_numbers

__all__ = [
    "DimensionNumbers",
    "dense",
    "dimension_numbers",
    "flag",
    "integer",
    "integers",
    "optional_integers",
    "pairs",
    "text",
    "word",
    "words",
]


def dense(attribute: ir.Attribute) -> HostArray:
    """Returns the elements of an attribute that holds an array or a number.

    Raises:
        ParameterError: if they are not in the module.
        WeightsError: if it names weights that are missing or have another size.
    """
    if isinstance(attribute, ir.DenseElementsAttr):
        shaped = ir.ShapedType(attribute.type)
        if isinstance(shaped.element_type, ir.IndexType):
            return np.array(list(attribute), np.int64).reshape(tuple(shaped.shape))
        return dense_to_numpy(attribute)
    if isinstance(attribute, (ir.IntegerAttr, ir.FloatAttr, ir.BoolAttr)):
        kind = ir.Attribute(attribute).type
        is_index = isinstance(kind, ir.IndexType)
        return np.array(attribute.value, np.int64 if is_index else numpy_dtype(kind))
    found = resource_array(attribute)
    if found is not None:
        return found
    shown = str(attribute)
    raise ParameterError(
        f"its elements are {shown[:60]}{'...' if len(shown) > 60 else ''}, which cannot be read.",
        "Write constants as dense<...>.",
    )


def integers(operation: ir.Operation, name: str, default: Sequence[int] = ()) -> tuple[int, ...]:
    """Returns a list of integers, also from `dense<...>` in older text."""
    found = optional_integers(operation, name)
    return tuple(default) if found is None else found


def optional_integers(operation: ir.Operation, name: str) -> tuple[int, ...] | None:
    """Returns a list of integers; None if the attribute is absent."""
    if name not in operation.attributes:
        return None
    attribute = operation.attributes[name]
    if isinstance(attribute, (ir.DenseI64ArrayAttr, ir.DenseBoolArrayAttr)):
        return tuple(attribute)
    return tuple(dense(attribute).reshape(-1).tolist())


def pairs(operation: ir.Operation, name: str, count: int) -> tuple[tuple[int, int], ...]:
    """Returns pairs (low, high) for so many dimensions; zeros if the attribute is absent."""
    flat = integers(operation, name, (0,) * (2 * count))
    return tuple(zip(flat[::2], flat[1::2], strict=True))


def integer(operation: ir.Operation, name: str, default: int | None = None) -> int:
    """Returns an integer."""
    if default is not None and name not in operation.attributes:
        return default
    return ir.IntegerAttr(operation.attributes[name]).value


def flag(operation: ir.Operation, name: str, default: bool = False) -> bool:
    """Returns a boolean."""
    if name not in operation.attributes:
        return default
    return ir.BoolAttr(operation.attributes[name]).value


def text(operation: ir.Operation, name: str, default: str = "") -> str:
    """Returns a text or the name of a function."""
    if name not in operation.attributes:
        return default
    attribute: Param = operation.attributes[name]
    return attribute.value


def word(attribute: ir.Attribute) -> str:
    """Returns the last word of an attribute such as `#stablehlo<comparison_direction LT>`."""
    return str(attribute).rstrip(">").split()[-1]


def words(operation: ir.Operation, name: str) -> list[str]:
    """Returns the last words of a list of such attributes; an empty list if it is absent."""
    if name not in operation.attributes:
        return []
    return [word(entry) for entry in ir.ArrayAttr(operation.attributes[name])]
