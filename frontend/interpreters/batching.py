"""Batching rules of primitives.

`primitive_batchers[p] = rule` with `rule(operands, axes, **params) -> (result, axis)`, where `axes`
tells for each operand the position of the batch axis, or None if it has none.
"""

from __future__ import annotations

from typing import Any

from axir.dialect.ops.family import batch_elementwise
from axir.dialect.ops.shape import moveaxis
from axir.dialect.primitive import Primitive
from axir.interpreters.rules import RuleTable
from axir.passes.vmap import to_axis

__all__ = [
    "bdim_at_front",
    "defbroadcasting",
    "defvectorized",
    "moveaxis",
    "not_mapped",
    "primitive_batchers",
]

primitive_batchers = RuleTable("batch")
not_mapped = None


def bdim_at_front(value: Any, axis: int | None, size: int) -> Any:
    """Moves the batch axis to the front, broadcasting a value that has none."""
    return to_axis(value, axis, 0, size)


def defvectorized(primitive: Primitive) -> None:
    """Declares a unary elementwise primitive: the batch axis stays where it is."""

    def batch(operands: Any, axes: Any, **params: Any) -> tuple[Any, int]:
        return primitive.bind(*operands, **params), axes[0]

    primitive_batchers[primitive] = batch


def defbroadcasting(primitive: Primitive) -> None:
    """Declares an elementwise primitive of several operands: their batch axes are aligned."""
    primitive_batchers[primitive] = batch_elementwise(primitive)
