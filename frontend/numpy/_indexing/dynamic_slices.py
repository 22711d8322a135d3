"""Slices with a computed start: `x[jax.ds(i, 4)]`, read and updated one axis at a time.

Elsewhere: indices of other kinds (`index_parsing.py`), which the part that is cut out is then
indexed with.
"""

from __future__ import annotations

import builtins
import operator
from dataclasses import dataclass
from types import EllipsisType
from typing import NamedTuple

import numpy as np

from axir._trees.registration import register_pytree_node_class
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import IndexLike, UserObject
from axir.dialect.core.errors import (
    ConcretizationTypeError,
    IndexTypeError,
    ParameterError,
    ShapeError,
)
from axir.dialect.ops.elementwise import arithmetic as lax
from axir.dialect.ops.elementwise import comparison
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.ops.shape.constants import full_like, iota
from axir.dialect.program.rules import Value
from axir.dialect.program.tracer import Tracer
from axir.numpy._arguments.promotion import array_argument, broadcast_value, constant

from .index_parsing import axes_used, normal_item

__all__ = ["Cut", "Slice", "cut_of", "dslice"]


class SliceStrideError(ParameterError, ValueError):
    """The stride of a slice is negative, or not known while tracing."""


class SliceSizeError(ShapeError, TypeError):
    """A slice has more entries than the axis."""


def _is_known(x: object) -> bool:
    return isinstance(x, (int, np.integer))


@register_pytree_node_class
@dataclass(slots=True)
class Slice:
    """The entries `start`, `start + stride`, ... along an axis, `size` of them.

    As a tree its children are the fields that are not known while tracing.

    Attributes:
        start: The first position, which may be computed.
        size: How many entries.
        stride: The distance from one to the next.
    """

    start: UserObject
    size: UserObject
    stride: int = 1

    def __post_init__(self) -> None:
        if self.stride < 0:
            raise SliceStrideError(
                f"A slice cannot have the stride {self.stride}: it must be >= 0.",
                "Reverse what a slice names with jnp.flip.",
            )

    @property
    def is_dynamic_start(self) -> bool:
        """Whether the start is not known while tracing."""
        return not _is_known(self.start)

    @property
    def is_dynamic_size(self) -> bool:
        """Whether the size is not known while tracing."""
        return not _is_known(self.size)

    def tree_flatten(self) -> tuple[tuple[UserObject, ...], tuple[UserObject, ...]]:
        """Returns the fields unknown while tracing (the children) and the known fields."""
        computed = (self.is_dynamic_start, self.is_dynamic_size)
        both = (self.start, self.size)
        children = tuple(x if c else None for x, c in zip(both, computed, strict=True))
        known = tuple(None if c else x for x, c in zip(both, computed, strict=True))
        return children, (*known, self.stride)

    @classmethod
    def tree_unflatten(cls, known: tuple[UserObject, ...], children: tuple[object, ...]) -> Slice:
        """Returns the slice from the results of `tree_flatten`."""
        start, size = (a if a is not None else b for a, b in zip(children, known, strict=False))
        return cls(start, size, known[2])

    @classmethod
    def from_slice(cls, slc: builtins.slice, size: int) -> Slice:
        """Returns Python's slice of an axis of extent `size` as one of these.

        >>> Slice.from_slice(slice(1, None, 2), 6)
        Slice(start=1, size=3, stride=2)
        """
        positions = range(size)[slc]
        if positions.step < 1:
            raise SliceStrideError(
                f"{slc} has the step {positions.step}, which must be >= 1.",
                "Reverse what a slice names with jnp.flip.",
            )
        return cls(positions.start, len(positions), positions.step)


def dslice(start: object, size: object = None, stride: int | None = None) -> builtins.slice | Slice:
    """Makes a slice of a known size and a start that may be computed, for `x[...]` and `x.at[...]`.

    A slice that reaches beyond the end is moved inside when it is read, and left out when it is
    updated, as whole.

    Args:
        start: The first position; None stands for a whole axis. Without a size it is that, and
            the slice begins at 0.
        size: How many entries.
        stride: The distance from one to the next, 1 by default.

    Raises:
        SliceStrideError: for a stride that is negative or not known.

    >>> import axir, axir.numpy as jnp
    >>> x = jnp.arange(10)
    >>> axir.jit(lambda i: x[axir.ds(i, 3)])(4)
    Array([4, 5, 6], dtype=int32)
    >>> x.at[axir.ds(8, 2)].set(0)
    Array([0, 1, 2, 3, 4, 5, 6, 7, 0, 0], dtype=int32)
    """
    if start is None:
        return slice(None)
    if stride is None:
        stride = 1
    if not isinstance(stride, int):
        raise SliceStrideError(
            f"The stride of a slice must be an int, not {stride!r}.",
            "Index with an array of positions: x[start + stride * jnp.arange(size)].",
        )
    if size is None:
        start, size = 0, start
    return Slice(start, size, stride)


class Cut(NamedTuple):
    """An index with a `Slice` in it, taken apart.

    Attributes:
        axis: The axis that the slice cuts.
        start: Where it starts, counted from the beginning: a scalar.
        size: How many entries it has.
        stride: The distance from one to the next.
        extent: How many entries the axis has.
        rest: The index with `:` in its place, to be applied to the part.
    """

    axis: int
    start: Value
    size: int
    stride: int
    extent: int
    rest: tuple[UserObject, ...]

    @property
    def is_block(self) -> bool:
        """Whether its entries lie side by side."""
        return self.stride == 1

    @property
    def is_all(self) -> bool:
        """Whether the rest of the index says nothing more."""
        return all(item is Ellipsis or item == slice(None) for item in self.rest)

    def is_inside(self) -> Value:
        """Returns whether a block lies in the array as whole."""
        zero = constant(0, self.start.dtype)
        last = constant(self.extent - self.size, self.start.dtype)
        return comparison.and_(comparison.ge(self.start, zero), comparison.le(self.start, last))

    def places(self) -> tuple[UserObject, ...]:
        """Returns the index of its entries, all out of bounds if a block is not inside."""
        steps = lax.mul(iota(self.start.dtype, self.size), constant(self.stride, self.start.dtype))
        positions = lax.add(steps, broadcast_value(self.start, (self.size,)))
        if self.is_block:
            outside = full_like(positions, self.extent)
            positions = comparison.select_n(self.is_inside(), outside, positions)
        return (*[slice(None)] * self.axis, positions)


def cut_of(shape: tuple[int, ...], index: IndexLike, wraps: bool) -> Cut | None:
    """Returns the first cut of an index, or None if no `Slice` is in it.

    Args:
        shape: Shape of the array.
        index: The expression between the brackets.
        wraps: Whether a negative start counts from the end.

    Raises:
        SliceSizeError: if the slice has more entries than the axis.
        ConcretizationTypeError: if its size is not known.
    """
    items = index if type(index) is tuple else (index,)
    place = next((n for n, item in enumerate(items) if type(item) is Slice), None)
    if place is None:
        return None
    found: UserObject = items[place]
    axis = _axis_of(shape, items, place)
    size = _size(found)
    extent = shape[axis] if axis < len(shape) else 0
    if found.stride == 1 and size > extent:
        raise SliceSizeError(
            f"A slice of size {size} is longer than axis {axis} of the array of shape {shape}.",
            "Pad the array with jnp.pad, or ask for fewer entries.",
        )
    rest = (*items[:place], slice(None), *items[place + 1 :])
    return Cut(axis, _counted(found.start, extent, wraps), size, found.stride, extent, rest)


def _axis_of(shape: tuple[int, ...], items: tuple[object, ...], place: int) -> int:
    """Returns the axis that an item of an index is about."""
    used = [1 if type(x) is Slice else axes_used(normal_item(x, True)) for x in items]
    before = items[:place]
    if any(type(x) is EllipsisType for x in before):
        return len(shape) - sum(used[place:])
    return sum(used[:place])


def _size(found: Slice) -> int:
    if type(found.size) is Tracer:
        raise ConcretizationTypeError(
            "The size of a slice is not known while tracing, but it is the shape of the result.",
            "Make it static with jit(..., static_argnums=...).",
        )
    return operator.index(found.size)


def _counted(start: UserObject, extent: int, wraps: bool) -> Value:
    """Returns a start as a scalar; a negative one may count from the end."""
    if _is_known(start):
        start = operator.index(start)
        return constant(start + extent if wraps and start < 0 else start, dtypes.int32)
    start = array_argument("ds", start)
    if start.ndim or dtypes.kind(start.dtype) not in "iu":
        raise IndexTypeError(
            f"The start of a slice must be an integer scalar, not of type {start.type}.",
            "Index with an array of positions for several entries: x[positions].",
        )
    if start.dtype.itemsize < dtypes.int32.itemsize:
        start = convert_element_type(start, dtypes.int32)
    if not wraps or dtypes.is_unsigned(start.dtype):
        return start
    zero, end = constant(0, start.dtype), constant(extent, start.dtype)
    return comparison.select_n(comparison.lt(start, zero), start, lax.add(start, end))
