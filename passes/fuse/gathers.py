"""Gathers in a kernel: windows are read at their indices, in vectors where possible.

Elsewhere: slices that start at one index (`views.py`).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence

from iree.compiler import ir

from axir.dialect.builders.kernels import lane
from axir.dialect.builders.kernels import lanes as lane_numbers
from axir.dialect.builders.scalars import (
    Scalar,
    broadcast,
    constant,
    index,
    integer,
    operation,
)
from axir.passes.legalize.attributes import dimension_numbers

from .rearranged import picked
from .values import (
    Computed,
    Index,
    Indices,
    Stored,
    Value,
    clamped,
    elements_apart,
    lanes_of,
    plus,
)


def gather(created: ir.Operation, operands: list[Value]) -> Value:
    """Returns the result of a gather."""
    x, indices = operands
    kind = created.results[0].type
    return Gathered(_Places(created, x.shape, indices), list(kind.shape), x, indices)


class Gathered(Computed):
    """The result of a gather: windows of an array at the places given by indices.

    Args:
        places: The places of the elements in the operand.
        shape: The shape of the result, or of its first axes; the other axes are read at index 0.
        x: The array.
        indices: The indices.
    """

    def __init__(self, places: _Places, shape: Sequence[int], x: Value, indices: Value):
        cost = 0 if places.keeps_last else 4
        super().__init__(shape, x.element, self._read, (x, indices), cost=cost)
        self._places = places

    def without_last(self, count: int, shortened: Callable[[Value, int], Value]) -> Gathered:
        """Returns the array without some last axes, which are only read at index 0.

        Args:
            count: How many.
            shortened: Does the same for an array of indices.
        """
        x, indices = self.sources
        places = self._places.without_last(count, shortened)
        return Gathered(places, self.shape[:-count], x, indices)

    def _read(self, position: Indices, lanes: int | None) -> Scalar:
        x, places = self.sources[0], self._places
        if lanes is None or places.keeps_last:
            return x.at(places.at(position), lanes)
        if places.varies_last and isinstance(x, Stored):
            return _elements_at(x, places.linear(position, lanes), lanes)
        return elements_apart(x, [places.at(p) for p in lanes_of(position, lanes)])


def index_at(x: Value, position: Indices, *, is_unsigned: bool) -> Scalar:
    """Reads an integer as an index."""
    name = "arith.index_castui" if is_unsigned else "arith.index_cast"
    return operation(name, (x.at(position, None),), ir.IndexType.get())


def _elements_at(x: Stored, places: Scalar, lanes: int) -> Scalar:
    row = x.memory.reshaped((x.size,))
    numbers = [
        operation("arith.index_cast", (lane(places, n),), ir.IndexType.get()) for n in range(lanes)
    ]
    singles = [row[number] for number in numbers]
    return operation("vector.from_elements", singles, ir.VectorType.get([lanes], x.element))


class _Places:
    """The places of a gather's elements in its operand.

    Attributes:
        keeps_last: Whether neighbours in the result are neighbours in the operand.
        varies_last: Whether neighbours in the result have different, adjacent indices.
    """

    def __init__(self, created: ir.Operation, shape: tuple[int, ...], indices: Value):
        self._numbers = numbers = dimension_numbers(created.attributes["dimension_numbers"])
        self._sizes = sizes = list(ir.DenseI64ArrayAttr(created.attributes["slice_sizes"]))
        self._shape = shape
        self._vector_dim = numbers["index_vector_dim"][0]
        self._is_unsigned = created.operands[1].type.element_type.is_unsigned
        self._offset_dims = numbers["offset_dims"]
        rank = created.results[0].type.rank
        self._batch_dims = [d for d in range(rank) if d not in self._offset_dims]
        dropped = {*numbers["collapsed_slice_dims"], *numbers["operand_batching_dims"]}
        self._window_dims = [d for d in range(len(sizes)) if d not in dropped]
        is_window = bool(self._offset_dims) and self._offset_dims[-1] == rank - 1
        self.keeps_last = is_window and self._window_dims[-1] == len(sizes) - 1
        self.varies_last = not is_window and rank > 0
        count = len(numbers["start_index_map"])
        has_dim = self._vector_dim < len(indices.shape)
        self._entries = [
            picked(indices, self._vector_dim, n) if has_dim else indices for n in range(count)
        ]

    def without_last(self, count: int, shortened: Callable[[Value, int], Value]) -> _Places:
        """Returns the places of the elements at index 0 along some last axes."""
        found = copy.copy(self)
        rank = len(self._batch_dims) + len(self._offset_dims) - count
        of_batch = sum(rank <= d for d in self._batch_dims)
        found._batch_dims = [d for d in self._batch_dims if d < rank]
        if of_batch:
            found._entries = [shortened(entry, of_batch) for entry in self._entries]
        found.keeps_last = False
        found.varies_last = bool(found._batch_dims) and found._batch_dims[-1] == rank - 1
        return found

    def at(self, position: Indices) -> Indices:
        """Returns the place of an element."""
        batch = tuple(position[d] for d in self._batch_dims)
        found = self._fixed(position, batch)
        for entry, dim in zip(self._entries, self._numbers["start_index_map"], strict=True):
            start = index_at(entry, batch, is_unsigned=self._is_unsigned)
            found[dim] = plus(found[dim], clamped(start, self._shape[dim] - self._sizes[dim]))
        return tuple(found)

    def linear(self, position: Indices, lanes: int) -> Scalar:
        """Returns the places of neighbours, counted in elements from the operand's first on."""
        batch = tuple(position[d] for d in self._batch_dims)
        strides = [math.prod(self._shape[d + 1 :]) for d in range(len(self._shape))]
        wide = integer(64 if math.prod(self._shape) >= 1 << 31 else 32)
        total: Scalar | None = None
        for entry, dim in zip(self._entries, self._numbers["start_index_map"], strict=True):
            starts = self._starts(entry, batch, lanes, wide, self._shape[dim] - self._sizes[dim])
            term = starts if strides[dim] == 1 else starts * strides[dim]
            total = term if total is None else total + term
        for place, stride in zip(self._fixed(position, batch), strides, strict=True):
            if isinstance(place, Scalar) or place:
                number = operation("arith.index_cast", (index(place) * stride,), wide)
                term = broadcast(number, lanes)
                total = term if total is None else total + term
        for dim, source in self._batching():
            if source == len(batch) - 1:
                counted = lane_numbers(lanes)
                term = operation("arith.index_cast", (counted,), counted.like(wide)) * strides[dim]
                total = term if total is None else total + term
        return broadcast(constant(0, wide), lanes) if total is None else total

    def _fixed(self, position: Indices, batch: Indices) -> list[Index]:
        """Returns the offset of each index from the start that is read from the indices."""
        found: list[Index] = [0] * len(self._sizes)
        for dim, source in self._batching():
            found[dim] = batch[source] if source < len(batch) else 0
        for dim, window in zip(self._offset_dims, self._window_dims, strict=True):
            found[window] = position[dim] if dim < len(position) else 0
        return found

    def _batching(self) -> list[tuple[int, int]]:
        """Returns the batch dimensions of the operand, each with the result's batch dimension."""
        names = ("operand_batching_dims", "start_indices_batching_dims")
        pairs = zip(*(self._numbers[name] for name in names), strict=True)
        return [(dim, source - (source > self._vector_dim)) for dim, source in pairs]

    def _starts(
        self, entry: Value, batch: Indices, lanes: int, wide: ir.IntegerType, largest: int
    ) -> Scalar:
        """Returns the starts of neighbours along a dimension, clamped."""
        numbers = entry.at(batch, lanes)
        name = "arith.extui" if self._is_unsigned else "arith.extsi"
        # Clamped in a type that holds both the indices and the bound.
        width = max(32, numbers.element.width * (2 if self._is_unsigned else 1))
        kind = integer(min(64, max(width, wide.width)))
        if numbers.element.width < kind.width:
            numbers = operation(name, (numbers,), numbers.like(kind))
        bounds = (broadcast(constant(n, kind), lanes) for n in (0, max(largest, 0)))
        low, high = bounds
        signs = ("maxui", "minui") if self._is_unsigned else ("maxsi", "minsi")
        for operator, bound in zip(signs, (low, high), strict=True):
            numbers = operation(f"arith.{operator}", (numbers, bound), numbers.type)
        if kind.width > wide.width:
            numbers = operation("arith.trunci", (numbers,), numbers.like(wide))
        return numbers
