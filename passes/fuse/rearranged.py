"""Views: arrays that are other arrays in another order or shape, and how they are read.

Elsewhere: the operations that make them (`views.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from iree.compiler import ir

from axir.dialect.builders.kernels import shuffle
from axir.dialect.builders.scalars import Scalar, broadcast, index

from .values import (
    Computed,
    Index,
    Indices,
    Mapped,
    Number,
    Stored,
    Value,
    elements_apart,
    lanes_of,
    times,
)


class Spread(Computed):
    """An array that repeats another one.

    Attributes:
        dims: For each axis of the other array, its axis in this one, in any order.
    """

    def __init__(self, x: Value, shape: Sequence[int], element: ir.Type, dims: Sequence[int]):
        super().__init__(shape, element, self._read, (x,))
        self.dims = list(dims)
        last = len(shape) - 1
        self._keeps_last = bool(dims) and dims[-1] == last and x.shape[-1] == shape[-1]
        self._turns_last = last in self.dims[:-1] and x.shape[self.dims.index(last)] != 1

    def repeats_after(self, lead: int) -> bool:
        """Tells whether the axes of the other array are among the first ones."""
        [x] = self.sources
        return all(d < lead or n == 1 for d, n in zip(self.dims, x.shape, strict=True))

    def _place(self, position: Indices) -> Indices:
        [x] = self.sources
        return tuple(
            position[d] if extent != 1 else 0 for d, extent in zip(self.dims, x.shape, strict=True)
        )

    def _read(self, position: Indices, lanes: int | None) -> Scalar:
        [x] = self.sources
        if lanes is None or self._keeps_last:
            return x.at(self._place(position), lanes)
        if self._turns_last:
            return elements_apart(x, [self._place(p) for p in lanes_of(position, lanes)])
        return broadcast(x.at(self._place(position), None), lanes)


class Transposed(Computed):
    """An array with the axes of another one in another order.

    Attributes:
        order: For each axis, its axis in the other array.
    """

    def __init__(self, x: Value, shape: Sequence[int], element: ir.Type, order: Sequence[int]):
        super().__init__(shape, element, self._read, (x,))
        self.order = list(order)

    @property
    def keeps_last(self) -> bool:
        """Whether neighbours are also neighbours in the other array."""
        return not self.order or self.order[-1] == len(self.order) - 1

    def place(self, position: Indices) -> Indices:
        """Returns the position in the other array."""
        found: list[Index] = [0] * len(self.order)
        for axis, source in enumerate(self.order):
            found[source] = position[axis]
        return tuple(found)

    def _read(self, position: Indices, lanes: int | None) -> Scalar:
        [x] = self.sources
        if lanes is None or self.keeps_last:
            return x.at(self.place(position), lanes)
        return elements_apart(x, [self.place(p) for p in lanes_of(position, lanes)])


class Half(Computed):
    """The first or the second number of each pair in memory, with a last axis of extent 1.

    Args:
        pairs: The array; its last axis has two elements.
        number: Which number: 0 or 1.
    """

    def __init__(self, pairs: Stored, number: int):
        super().__init__((*pairs.shape[:-1], 1), pairs.element, self._read, (pairs,))
        self._number = number
        self._rows = pairs.memory.reshaped((*pairs.shape[:-2], 2 * pairs.shape[-2]))

    def _read(self, position: Indices, lanes: int | None) -> Scalar:
        [pairs] = self.sources
        return pairs.at((*position[:-1], self._number), lanes)

    def along(self, position: Indices, lanes: int) -> Scalar:
        """Returns neighbours along the last axis but one; reads them with the other numbers."""
        both = self._rows.read((*position[:-1], times(position[-1], 2)), 2 * lanes)
        return shuffle(both, both, range(self._number, 2 * lanes, 2))


class Reshaped(Computed):
    """An array that differs from another one in its axes of extent 1."""

    keeps_order = True

    def __init__(self, x: Value, shape: Sequence[int]):
        super().__init__(shape, x.element, self._read, (x,))
        ends = x.shape[-1:], self.shape[-1:]
        self._keeps_last = (ends[0] == (1,)) == (ends[1] == (1,)) or () in ends

    def _place(self, position: Indices) -> Indices:
        [x] = self.sources
        rest = iter(p for p, extent in zip(position, self.shape, strict=True) if extent != 1)
        return tuple(0 if extent == 1 else next(rest) for extent in x.shape)

    def _read(self, position: Indices, lanes: int | None) -> Scalar:
        [x] = self.sources
        if lanes is None or self._keeps_last:
            return x.at(self._place(position), lanes)
        if isinstance(x, Half) and self.shape == x.shape[:-1]:
            return x.along(position, lanes)
        return elements_apart(x, [self._place(p) for p in lanes_of(position, lanes)])


class Joined(Computed):
    """Concatenated arrays of extent 1 along an axis.

    Attributes:
        axis: The axis.
    """

    def __init__(self, parts: Sequence[Value], shape: Sequence[int], axis: int):
        super().__init__(shape, parts[0].element, self._read, parts)
        self.axis = axis

    def _read(self, position: Indices, lanes: int | None) -> Scalar:
        if lanes is not None and self.axis == len(self.shape) - 1:
            return elements_apart(self, lanes_of(position, lanes))
        number = position[self.axis]
        place = (*position[: self.axis], 0, *position[self.axis + 1 :])
        if isinstance(number, int):
            return self.sources[number].at(place, lanes)
        result = self.sources[0].at(place, lanes)
        for other, part in enumerate(self.sources[1:], 1):
            is_here = index(number) == index(other)
            result = is_here.choose(part.at(place, lanes), result)
        return result


Pick: TypeAlias = Callable[[Value, int, int], Value]


def picked(x: Value, axis: int, number: int, pick: Pick | None = None) -> Value:
    """Returns the elements of an array at an index along an axis, without the axis.

    Args:
        x: The array.
        axis: The axis.
        number: The index.
        pick: Does the same for the sources of the array; by default this function. A function with
            a cache is useful for sources that several arrays share.
    """
    pick = pick or picked
    shape = (*x.shape[:axis], *x.shape[axis + 1 :])
    if isinstance(x, Number):
        return Number(shape, x.scalar)
    if isinstance(x, Mapped):
        sources = [
            source if isinstance(source, Number) else pick(source, axis, number)
            for source in x.sources
        ]
        return Mapped(shape, x.element, x.formula, sources, 0)
    if isinstance(x, Joined) and x.axis == axis:
        return pick(x.sources[number], axis, 0)
    if isinstance(x, Reshaped) and x.sources[0].shape == shape and x.shape[axis] == 1:
        return x.sources[0]
    if isinstance(x, Spread):
        [source] = x.sources
        dims = [d - (d > axis) for d in x.dims if d != axis]
        if axis in x.dims:
            own = x.dims.index(axis)
            source = pick(source, own, number if source.shape[own] > 1 else 0)
        return Spread(source, shape, x.element, dims)

    def read(position: Indices, lanes: int | None) -> Scalar:
        if lanes is not None and axis == len(shape):
            return elements_apart(picked(x, axis, number), lanes_of(position, lanes))
        return x.at((*position[:axis], number, *position[axis:]), lanes)

    return Computed(shape, x.element, read, (x,))
