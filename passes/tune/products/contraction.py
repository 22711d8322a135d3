"""Contractions as batches of matrix products: `[batch, rows, k] x [batch, k, columns]`.

Elsewhere: which contractions become kernels (`tile_products.py`), and the kernels.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.kernels import Memory
from axir.dialect.builders.scalars import Scalar
from axir.passes.legalize.attributes import dimension_numbers

BATCH, FREE, CONTRACTED = "b", "f", "k"
_KINDS = BATCH + FREE + CONTRACTED


@dataclasses.dataclass(frozen=True)
class Side:
    """An operand, and its axes by kind; the axes of a kind are in the order of the result.

    Attributes:
        operand: An array.
        axes: The axes of each of the kinds `BATCH`, `FREE` and `CONTRACTED`.
    """

    operand: ir.Value
    axes: dict[str, tuple[int, ...]]

    def extent(self, kind: str) -> int:
        """Returns the product of the extents of a kind's axes."""
        return math.prod(self.operand.type.shape[axis] for axis in self.axes[kind])

    @property
    def order(self) -> str | None:
        """The kinds of axes in the order of memory, each once; None if they are mixed.

        Kinds with only axes of extent 1 come first.
        """
        shape = self.operand.type.shape
        wanted = {kind: [a for a in axes if shape[a] != 1] for kind, axes in self.axes.items()}
        if any(axes != sorted(axes) for axes in wanted.values()):
            return None
        kind_of = {axis: kind for kind, axes in wanted.items() for axis in axes}
        runs = ""
        for axis in sorted(kind_of):
            runs += kind_of[axis] if runs[-1:] != kind_of[axis] else ""
        if len(set(runs)) < len(runs):
            return None
        return "".join(kind for kind in _KINDS if kind not in runs) + runs

    def array(self, element: ir.Type, last: str = _KINDS) -> Array:
        """Returns the operand as an array of rank 3, transposed if its order does not fit.

        Args:
            element: The type of its elements.
            last: Kinds that may be the last axis.
        """
        order = self.order
        value = hlo.convert(self.operand, element)
        if order is None or order[-1] not in last:
            order = BATCH + (FREE + CONTRACTED if CONTRACTED in last else CONTRACTED + FREE)
            value = hlo.transpose(value, [axis for kind in order for axis in self.axes[kind]])
        return Array(hlo.reshape(value, [self.extent(kind) for kind in order]), order)


@dataclasses.dataclass(frozen=True)
class Array:
    """An array of rank 3 with a batch axis, a free axis and a contracted axis, in some order.

    Attributes:
        value: The array.
        order: The kinds of its axes.
    """

    value: ir.Value
    order: str

    def view(self, memory: Memory) -> View:
        """Returns the array as a view of a kernel's memory."""
        return View(memory, self.order)

    def in_words(self, count: int) -> Array:
        """Returns the array with zeros behind the contracted axis, up to a multiple of a number."""
        axis = self.order.index(CONTRACTED)
        lacking = -self.value.type.shape[axis] % count
        if not lacking:
            return self
        high = [lacking if number == axis else 0 for number in range(len(self.order))]
        none = [0] * len(high)
        zero = hlo.full(0, (), hlo.element_type_of(self.value))
        return Array(hlo.pad(self.value, zero, none, high, none), self.order)

    def stride(self, kind: str) -> int:
        """Returns how many elements lie between neighbours along an axis."""
        return _stride(self.value.type.shape, self.order, kind)


@dataclasses.dataclass(frozen=True)
class View:
    """The memory of an `Array`; positions are (batch, free, contracted)."""

    memory: Memory
    order: str

    def __getitem__(self, position: tuple[Scalar | int, ...]) -> Scalar:
        return self.memory[self._place(position)]

    def read(
        self, position: tuple[Scalar | int, ...], width: int, mask: Scalar | None = None
    ) -> Scalar:
        """Returns neighbours along the last axis; see `Memory.read`."""
        return self.memory.read(self._place(position), width, mask)

    def address(self, position: tuple[Scalar | int, ...]) -> Scalar:
        """Returns the address of an element; indices that are Python integers must be zero."""
        place: Scalar | int = 0
        for number, kind in zip(position, _KINDS, strict=True):
            if not isinstance(number, int):
                term = number * self.stride(kind)
                place = term if isinstance(place, int) else term + place
        size = self.memory.element.width // 8
        start = self.memory.address()
        return start if isinstance(place, int) else start + place * size

    def stride(self, kind: str) -> int:
        """Returns how many elements lie between neighbours along an axis."""
        return _stride(self.memory.shape, self.order, kind)

    def _place(self, position: tuple[Scalar | int, ...]) -> tuple[Scalar | int, ...]:
        named = dict(zip(_KINDS, position, strict=True))
        return tuple(named[kind] for kind in self.order)


@dataclasses.dataclass(frozen=True)
class Contraction:
    """A `dot_general`: two sides with matching batch axes and matching contracted axes."""

    lhs: Side
    rhs: Side

    @classmethod
    def read(cls, operation: ir.Operation) -> Contraction:
        """Reads the attributes of an operation."""
        numbers = dimension_numbers(operation.attributes["dot_dimension_numbers"])
        contracted = sorted(
            zip(
                numbers["lhs_contracting_dimensions"],
                numbers["rhs_contracting_dimensions"],
                strict=True,
            )
        )
        lhs, rhs = (
            _side(
                operand, numbers[f"{name}_batching_dimensions"], [pair[at] for pair in contracted]
            )
            for at, (name, operand) in enumerate(
                zip(("lhs", "rhs"), operation.operands, strict=True)
            )
        )
        return cls(lhs, rhs)

    @property
    def extents(self) -> tuple[int, int, int, int]:
        """Batch, rows, columns, and the number of products in a sum."""
        return (
            self.lhs.extent(BATCH),
            self.lhs.extent(FREE),
            self.rhs.extent(FREE),
            self.lhs.extent(CONTRACTED),
        )


def _stride(shape: Sequence[int], order: str, kind: str) -> int:
    return math.prod(shape[order.index(kind) + 1 :])


def _side(operand: ir.Value, batch: Sequence[int], contracted: Sequence[int]) -> Side:
    used = {*batch, *contracted}
    free = tuple(axis for axis in range(operand.type.rank) if axis not in used)
    return Side(operand, {BATCH: tuple(batch), FREE: free, CONTRACTED: tuple(contracted)})
