"""Batching rules of primitives.

`primitive_batchers[p] = rule` with `rule(operands, axes, **params) -> (result, axis)`, where `axes`
tells for each operand the position of the batch axis, or None without a batch axis. A rule that
needs the axis is stored in `fancy_primitive_batchers`: `rule(axis, operands, axes, **params)` with
the `AxisData` of the axis, or in `axis_primitive_batchers`: `rule(size, name, None, operands, axes,
**params)`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass

from axir._transforms.mapped_containers import register_vmappable, unregister_vmappable
from axir.dialect.core.annotations import Param, UserFunction, UserObject
from axir.dialect.ops.elementwise.family import as_value, batch_elementwise
from axir.dialect.ops.shape.rearranging import moveaxis
from axir.dialect.program.effects import current_frame
from axir.dialect.program.op_table import OPS, USER_OPS
from axir.dialect.program.primitive import Primitive
from axir.passes.transforms.vmap import to_axis

__all__ = [
    "AxisData", "axis_primitive_batchers", "bdim_at_front", "broadcast", "defbroadcasting",
    "defreducer", "defvectorized", "fancy_primitive_batchers", "moveaxis", "not_mapped",
    "primitive_batchers", "register_vmappable", "unregister_vmappable",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


Rule = UserFunction


class RuleTable(MutableMapping[Primitive, Rule]):
    """Reads and writes one rule of each primitive.

    Args:
        attribute: The rule's name.
        read: Returns the rule of a primitive that lacks the attribute but has another form of it.
    """

    def __init__(self, attribute: str, read: Callable[[Primitive], Rule | None] | None = None):
        self._attribute = attribute
        self._read = read

    def __getitem__(self, primitive: Primitive) -> Rule:
        rule = getattr(primitive, self._attribute)
        if rule is None and self._read is not None:
            rule = self._read(primitive)
        if rule is None:
            raise KeyError(primitive)
        return rule

    def __setitem__(self, primitive: Primitive, rule: Rule) -> None:
        setattr(primitive, self._attribute, rule)

    def __delitem__(self, primitive: Primitive) -> None:
        self[primitive]
        setattr(primitive, self._attribute, None)

    def __iter__(self) -> Iterator[Primitive]:
        for primitive in (*OPS.values(), *USER_OPS.values()):
            if primitive in self:
                yield primitive

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, primitive: object) -> bool:
        try:
            self[primitive]  # type: ignore[index]
        except (KeyError, AttributeError):
            return False
        return True


# Batching rules -----------------------------------------------------------------------------------


primitive_batchers = RuleTable("batch")
not_mapped = None


@dataclass(frozen=True)
class AxisData:
    """The axis over which a function is vectorized.

    Attributes:
        name: Its name in collectives, or None.
        size: Its extent.
    """

    name: Hashable | None
    size: int


class _RulesOfAxes:
    """Takes rules that get the axis over which they vectorize."""

    def __setitem__(self, primitive: Primitive, rule: Callable[..., object]) -> None:
        def batch(operands: object, axes: object, **params: object) -> UserObject:
            frame = current_frame()
            return rule(AxisData(frame.name, frame.size), operands, axes, **params)

        primitive_batchers[primitive] = batch


class _RulesOfNamedAxes:
    """Takes rules that get the extent and the name of the axis over which they vectorize."""

    def __setitem__(self, primitive: Primitive, rule: Callable[..., object]) -> None:
        def batch(axis: AxisData, operands: object, axes: object, **params: object) -> UserObject:
            return rule(axis.size, axis.name, None, operands, axes, **params)

        fancy_primitive_batchers[primitive] = batch


fancy_primitive_batchers = _RulesOfAxes()
axis_primitive_batchers = _RulesOfNamedAxes()


def broadcast(x: object, sz: int, axis: int | None, mesh_axis: object = None) -> UserObject:
    """Gives a value a batch axis of an extent at a position; None leaves it as it is.

    >>> broadcast(1.0, 2, 0)
    Array([1., 1.], dtype=float32, weak_type=True)
    """
    return to_axis(as_value(x), None, axis, sz)


def bdim_at_front(
    x: UserObject, bdim: int | None, size: int, mesh_axis: object = None
) -> UserObject:
    """Moves the batch axis to the front, broadcasting a value without one.

    Args:
        x: The value.
        bdim: Its batch axis, or None.
        size: Extent of the axis.
        mesh_axis: Accepted for compatibility: the axis lies where its values do.
    """
    return to_axis(x, bdim, 0, size)


def defvectorized(prim: Primitive) -> None:
    """Declares a unary elementwise primitive: the batch axis stays where it is."""

    def batch(operands: UserObject, axes: UserObject, **params: Param) -> tuple[UserObject, int]:
        return prim.bind(*operands, **params), axes[0]

    primitive_batchers[prim] = batch


def defbroadcasting(prim: Primitive) -> None:
    """Declares an elementwise primitive of several operands: their batch axes are aligned."""
    primitive_batchers[prim] = batch_elementwise(prim)


def defreducer(prim: Primitive) -> None:
    """Declares a primitive of one operand that reduces along the axes of its parameter `axes`."""

    def batch(
        operands: UserObject, dims: UserObject, *, axes: Sequence[int], **params: Param
    ) -> tuple[UserObject, int]:
        (operand,), (place,) = operands, dims
        moved = tuple(axis + (axis >= place) for axis in axes)
        result = prim.bind(operand, axes=moved, **params)
        return result, place - sum(axis < place for axis in moved)

    primitive_batchers[prim] = batch
