"""Batching rules of primitives.

`primitive_batchers[p] = rule` with `rule(operands, axes, **params) -> (result, axis)`, where `axes`
tells for each operand the position of the batch axis, or None if it has none.
"""

from __future__ import annotations

from axir.dialect.core.annotations import Param, UserObject
from axir.dialect.ops.elementwise.family import batch_elementwise
from axir.dialect.ops.shape.rearranging import moveaxis
from axir.dialect.program.primitive import Primitive
from axir.passes.transforms.vmap import to_axis

from ._rules import RuleTable

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


def bdim_at_front(value: UserObject, axis: int | None, size: int) -> UserObject:
    """Moves the batch axis to the front, broadcasting a value that has none."""
    return to_axis(value, axis, 0, size)


def defvectorized(primitive: Primitive) -> None:
    """Declares a unary elementwise primitive: the batch axis stays where it is."""

    def batch(operands: UserObject, axes: UserObject, **params: Param) -> tuple[UserObject, int]:
        return primitive.bind(*operands, **params), axes[0]

    primitive_batchers[primitive] = batch


def defbroadcasting(primitive: Primitive) -> None:
    """Declares an elementwise primitive of several operands: their batch axes are aligned."""
    primitive_batchers[primitive] = batch_elementwise(primitive)
