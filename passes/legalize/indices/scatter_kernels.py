"""The code of scatters: loops over updates, which are combined with windows of an array.

Elsewhere: which scatters become kernels, and which memory they write (`scatter_by_kernel.py`).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.kernels import Memory, loop, when, workspace
from axir.dialect.builders.scalars import (
    Scalar,
    constant,
    convert_float,
    extend_unsigned,
    float64,
    index,
    integer,
    operation,
    to_index,
)
from axir.passes.legalize.attributes import DimensionNumbers, dimension_numbers
from axir.passes.legalize.copies import Columns
from axir.passes.legalize.lanes import Lanes

from .drop_scatter import window_sizes

_Place: TypeAlias = tuple[Scalar, ...]
_Step: TypeAlias = Callable[[_Place, _Place, int], None]

# The neutral elements of addition and multiplication.
_NEUTRAL = {"stablehlo.add": -0.0, "stablehlo.multiply": 1.0}
# Updates of an element after which a block of a long sum ends, a power of two and at most 64; the
# count of a place has a byte.
_BLOCK = 64
# Windows of fewer elements are not worth a count: they are summed in f64 directly.
_COUNTED = 16
# A scatter is a long sum with more updates than `_FEW`, and with more than `_TWICE` (or `_OFTEN`)
# times as many updates as elements. `_TWICE` is for up to `_NEAR` elements, which fit into the
# cache as f64, and for sums in blocks; `_OFTEN` is for the others.
_FEW = 1 << 10
_TWICE = 2
_OFTEN = 8
_NEAR = 1 << 15
_SINGLE = 32


@dataclasses.dataclass(frozen=True)
class Scatter:
    """The data of a scatter that its kernel needs.

    Attributes:
        combine: The function that combines an element with an update.
        body: The name of that operation, if it is a single one.
        element: The type of the elements, or of their parts.
        numbers: The dimension numbers.
        shape: The shape of the operand.
        windows: The extents of a window in the operand's dimensions.
        update_shape: The shape of the updates.
        index_shape: The shape of the indices.
        is_unsigned: Whether the indices are unsigned.
    """

    combine: Lanes
    body: str
    element: ir.Type
    numbers: DimensionNumbers
    shape: tuple[int, ...]
    windows: list[int]
    update_shape: tuple[int, ...]
    index_shape: tuple[int, ...]
    is_unsigned: bool

    @classmethod
    def read(cls, operation: ir.Operation, combine: Lanes) -> Scatter:
        """Reads a scatter of one array."""
        body = [made.operation.name for made in operation.regions[0].blocks[0].operations]
        kind = hlo.element_type_of(operation.operands[0])
        element = kind.element_type if isinstance(kind, ir.ComplexType) else kind
        numbers = dimension_numbers(operation.attributes["scatter_dimension_numbers"])
        shape, index_shape, update_shape = map(hlo.shape_of, operation.operands)
        windows = window_sizes(len(shape), update_shape, numbers)
        is_unsigned = hlo.is_unsigned(operation.operands[1])
        return cls(
            combine,
            body[0] if len(body) <= 2 else "",
            element,
            numbers,
            shape,
            windows,
            update_shape,
            index_shape,
            is_unsigned,
        )

    def of_pairs(self) -> Scatter:
        """Returns the scatter of arrays with one more dimension, of two, in all windows."""
        window = (*self.numbers["update_window_dims"], len(self.update_shape))
        return dataclasses.replace(
            self,
            numbers=DimensionNumbers({**self.numbers, "update_window_dims": window}),
            shape=(*self.shape, 2),
            windows=[*self.windows, 2],
            update_shape=(*self.update_shape, 2),
        )

    @property
    def is_long_sum(self) -> bool:
        """Whether much is added to, or multiplied into, few elements that are not double."""
        is_float = isinstance(self.element, ir.FloatType) and self.element.width <= _SINGLE
        updates = math.prod(self.update_shape[axis] for axis in self.scattered)
        size = math.prod(self.shape)
        is_cheap = size <= _NEAR or self._is_counted
        is_many = math.prod(self.update_shape) > (_TWICE if is_cheap else _OFTEN) * size
        return is_float and updates > _FEW and is_many and self.body in _NEUTRAL

    @property
    def has_totals(self) -> bool:
        """Whether its updates are summed in blocks."""
        return self.is_long_sum and self._is_counted

    @property
    def _is_counted(self) -> bool:
        """Whether windows are worth a count, and are either equal or disjoint."""
        is_alone = all(self.windows[axis] == 1 for axis in self.chosen_axes)
        return is_alone and math.prod(self.windows) >= _COUNTED

    @property
    def neutral(self) -> float:
        """The neutral element of the body's operation."""
        return _NEUTRAL[self.body]

    @property
    def chosen_axes(self) -> list[int]:
        """The dimensions of the operand in which windows begin at different places."""
        numbers = self.numbers
        return [*numbers["scatter_dims_to_operand_dims"], *numbers["input_batching_dims"]]

    @property
    def scattered(self) -> list[int]:
        """The dimensions of the updates that number them."""
        window = self.numbers["update_window_dims"]
        return [axis for axis in range(len(self.update_shape)) if axis not in window]

    @property
    def window_axes(self) -> list[int]:
        """The dimensions of the operand that a window has, in the order of the updates'."""
        missing = {*self.numbers["inserted_window_dims"], *self.numbers["input_batching_dims"]}
        return [axis for axis in range(len(self.shape)) if axis not in missing]

    @property
    def row(self) -> int:
        """The number of neighbours of an update that are also neighbours in the operand."""
        window = self.numbers["update_window_dims"]
        is_row = bool(window) and window[-1] == len(self.update_shape) - 1
        if not is_row or self.window_axes[-1] != len(self.shape) - 1:
            return 1
        return self.update_shape[-1]


class ScatterKernel:
    """The code of a scatter."""

    def __init__(
        self,
        scatter: Scatter,
        target: Memory,
        indices: Sequence[Memory],
        updates: Memory,
        columns: Columns,
    ):
        self.scatter = scatter
        self.target = target
        self.indices = indices
        self.updates = updates
        self.columns = columns
        self.totals = _Totals(self) if scatter.has_totals else None

    def run(self) -> None:
        """Writes a loop for each dimension that numbers updates."""
        self._each_update(self.scatter.scattered, [])
        if self.totals is not None:
            self.totals.add_up()

    def _each_update(self, axes: list[int], places: list[Scalar]) -> None:
        if axes:
            extent = self.scatter.update_shape[axes[0]]
            loop(0, extent, (), lambda i: self._each_update(axes[1:], [*places, i]))
            return
        starts, fits = self._starts(places)
        if fits is None:
            self._combine_window(places, starts)
        else:
            when(fits)(lambda: self._combine_window(places, starts))

    def _starts(self, places: list[Scalar]) -> tuple[list[Scalar], Scalar | None]:
        """Returns where a window begins, and whether it fits."""
        numbers = self.scatter.numbers
        starts = [index(0)] * len(self.scatter.shape)
        vector_dim = numbers["index_vector_dim"][0]
        fits: Scalar | None = None
        for number, axis in enumerate(numbers["scatter_dims_to_operand_dims"]):
            position = list(places)
            is_apart = len(self.indices) > 1
            if vector_dim < len(self.scatter.index_shape):
                position.insert(vector_dim, index(0 if is_apart else number))
            components = self.indices[number if is_apart else 0]
            start = self._number(components[tuple(position)])
            limit = self.scatter.shape[axis] - self.scatter.windows[axis]
            inside = (start >= 0) & (start <= limit)
            fits = inside if fits is None else fits & inside
            starts[axis] = to_index(start)
        batches = zip(
            numbers["input_batching_dims"], numbers["scatter_indices_batching_dims"], strict=True
        )
        for axis, batch in batches:
            starts[axis] = places[batch - (batch > vector_dim)]
        return starts, fits

    def _number(self, x: Scalar) -> Scalar:
        if self.scatter.is_unsigned or x.width == 64:
            return extend_unsigned(x, 64)
        return operation("arith.extsi", (x,), ir.IntegerType.get_signless(64))

    def _combine_window(self, places: list[Scalar], starts: list[Scalar]) -> None:
        """Combines one window and its update."""
        update = [index(0)] * len(self.scatter.update_shape)
        for axis, place in zip(self.scatter.scattered, places, strict=True):
            update[axis] = place
        self.each_of_window(starts, update, self._combine)
        if self.totals is not None:
            self.totals.count(starts)

    def each_of_window(self, starts: list[Scalar], update: list[Scalar], step: _Step) -> None:
        """Runs `step(place, update, width)` for the elements of a window, and of its update.

        Args:
            starts: Where the window begins.
            update: Where the update begins.
            step: Takes the places of so many neighbours in both.
        """
        scatter = self.scatter
        axes = list(zip(scatter.window_axes, scatter.numbers["update_window_dims"], strict=True))

        def nest(axes: list[tuple[int, int]], start: list[Scalar], update: list[Scalar]) -> None:
            if not axes:
                step(tuple(start), tuple(update), 1)
            elif len(axes) == 1 and scatter.row > 1:
                last = len(start) - 1, len(update) - 1

                def neighbours(i: Scalar, width: int) -> None:
                    step(tuple(_moved(start, last[0], i)), tuple(_moved(update, last[1], i)), width)

                self.columns.each(neighbours)
            else:
                axis, own = axes[0]

                def deeper(i: Scalar) -> None:
                    nest(axes[1:], _moved(start, axis, i), _moved(update, own, i))

                loop(0, scatter.update_shape[own], (), deeper)

        nest(axes, starts, update)

    def _combine(self, place: _Place, update: _Place, width: int) -> None:
        new = _converted(_read(self.updates, update, width), self.target.element)
        combined = self.scatter.combine(_read(self.target, place, width), new)
        _write(self.target, place, combined)


class _Totals:
    """The f64 sums of complete blocks of updates; the kernel's target holds incomplete blocks.

    A byte for each place where windows begin counts the updates since the last block ended there;
    one of its bits tells whether any block has ended there.
    """

    def __init__(self, kernel: ScatterKernel):
        scatter, columns = kernel.scatter, kernel.columns
        self.kernel = kernel
        self.axes = scatter.chosen_axes
        self.totals = workspace(scatter.shape, float64())
        extents = [scatter.shape[axis] for axis in self.axes]
        counts = workspace((columns.workgroups, math.prod(extents)), integer(8))
        loop(0, math.prod(extents), (), lambda i: _write(counts, (columns.workgroup, i), _zero()))
        self.counts = counts.reshaped((columns.workgroups, *extents))

    def count(self, starts: list[Scalar]) -> None:
        """Counts an update, and ends the block if that was the last one."""
        place = (self.kernel.columns.workgroup, *(starts[axis] for axis in self.axes))
        count = self.counts[place] + 1
        ends = (count & (_BLOCK - 1)) == 0
        self.counts[place] = ends.choose(count.constant(_BLOCK), count)
        when(ends)(lambda: self._end_block(starts, count == _BLOCK))

    def _end_block(self, starts: list[Scalar], is_first: Scalar) -> None:
        neutral = self.kernel.scatter.neutral

        def step(place: _Place, _: _Place, width: int) -> None:
            total = self._total(place, width)
            before = is_first.choose(constant(neutral, total.type), total)
            block = _read(self.kernel.target, place, width)
            self._put(self.totals, place, before, block)
            _write(self.kernel.target, place, constant(neutral, block.type))

        self._each(starts, step)

    def add_up(self) -> None:
        """Adds the sums of the complete blocks to the target."""

        def add(place: _Place, _: _Place, width: int) -> None:
            last = _read(self.kernel.target, place, width)
            self._put(self.kernel.target, place, self._total(place, width), last)

        def nest(axes: list[int], starts: list[Scalar]) -> None:
            if axes:
                extent = self.kernel.scatter.shape[axes[0]]
                loop(0, extent, (), lambda i: nest(axes[1:], _moved(starts, axes[0], i)))
                return
            place = (self.kernel.columns.workgroup, *(starts[axis] for axis in self.axes))
            when(self.counts[place] >= _BLOCK)(lambda: self._each(starts, add))

        nest(self.axes, [index(0)] * len(self.kernel.scatter.shape))

    def _each(self, starts: list[Scalar], step: _Step) -> None:
        update = [index(0)] * len(self.kernel.scatter.update_shape)
        self.kernel.each_of_window(starts, update, step)

    def _total(self, place: _Place, width: int) -> Scalar:
        return _read(self.totals, place, width)

    def _put(self, memory: Memory, place: _Place, total: Scalar, block: Scalar) -> None:
        combined = self.kernel.scatter.combine(total, _converted(block, total.element))
        _write(memory, place, _converted(combined, memory.element))


def _read(memory: Memory, place: _Place, width: int) -> Scalar:
    return memory[place] if width == 1 else memory.read(place, width)


def _write(memory: Memory, place: _Place, x: Scalar) -> None:
    if x.lanes is None:
        memory[place] = x
    else:
        memory.write(place, x)


def _converted(x: Scalar, element: ir.Type) -> Scalar:
    return convert_float(x, element) if x.is_float else x


def _zero() -> Scalar:
    return constant(0, integer(8))


def _moved(position: list[Scalar], axis: int, by: Scalar) -> list[Scalar]:
    return [x + by if number == axis else x for number, x in enumerate(position)]
