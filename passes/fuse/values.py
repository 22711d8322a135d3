"""Arrays in a kernel: numbers, memory, and formulas that are computed when they are read.

A value of the program is one of three. A `Number` has one element, which is in a register. A
`Stored` array is in memory. A `Computed` array is a formula for the elements at a position: no code
is built until it is read, so that chains of elementwise operations, slices and broadcasts become
one loop.

Elements are read by `at(position, lanes)`: `position` is a tuple of indices, and `lanes` the number
of neighbours along the last axis from there on; None for a single element.

Elsewhere: which arrays are stored (`emitter.py`), and the formulas of operations (`elementwise.py`,
`views.py`).
"""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

from iree.compiler import ir

from axir.dialect.builders.kernels import Memory
from axir.dialect.builders.scalars import Scalar, broadcast, index, operation
from axir.dialect.core.annotations import Returning

Index: TypeAlias = Scalar | int
Indices: TypeAlias = tuple[Index, ...]
Reader: TypeAlias = Callable[[Indices, int | None], Scalar]

VECTOR_BYTES = 64
"""The width of the vectors of a kernel."""


class Value(abc.ABC):
    """An array of a kernel.

    Attributes:
        shape: Its extents.
        element: The type of its elements, signless.
        sources: Other values that are read when it is read.
        holders: The number of later operations and of other values that still read it.
        cost: The arithmetic of an element; 0 for stored arrays, and for their parts and
            reorderings.
        length: The number of computed values that it reads, itself included, counted once for each
            path to them.
    """

    def __init__(
        self, shape: Sequence[int], element: ir.Type, sources: Sequence[Value] = (), cost: int = 0
    ):
        self.shape = tuple(shape)
        self.element = element
        self.sources = tuple(sources)
        self.holders = 0
        self.cost: int = cost + sum(x.cost for x in self.sources)
        self.length: int = 1 + sum(x.length for x in self.sources if isinstance(x, Computed))
        for source in self.sources:
            source.holders += 1

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    def repeats_after(self, lead: int) -> bool:
        """Tells whether elements depend on the first `lead` indices of their position only."""
        return False

    @abc.abstractmethod
    def at(self, position: Indices, lanes: int | None) -> Scalar:
        """Builds the elements at a position."""


class Number(Value):
    """An array with one element."""

    def __init__(self, shape: Sequence[int], scalar: Scalar):
        super().__init__(shape, scalar.type)
        self.scalar = scalar

    def repeats_after(self, lead: int) -> bool:
        """Returns True."""
        return True

    def at(self, position: Indices, lanes: int | None) -> Scalar:
        """Returns the element, in each lane."""
        return broadcast(self.scalar, lanes)


class Stored(Value):
    """An array in memory.

    Attributes:
        memory: The memory, row by row.
        is_own: Whether the kernel may write to it.
        is_temporary: Whether the memory is free again when the array has no more holders.
    """

    def __init__(
        self,
        memory: Memory,
        *,
        is_own: bool,
        is_temporary: bool = False,
        sources: Sequence[Value] = (),
    ):
        super().__init__(memory.shape, memory.element, sources)
        self.memory = memory
        self.is_own = is_own
        self.is_temporary = is_temporary

    def at(self, position: Indices, lanes: int | None) -> Scalar:
        """Reads elements."""
        return self.memory[position] if lanes is None else self.memory.read(position, lanes)


class Computed(Value):
    """An array with elements that are computed where they are read.

    Attributes:
        keeps_order: Whether the elements are the elements of its only source, in the same order.
    """

    keeps_order = False

    def __init__(
        self,
        shape: Sequence[int],
        element: ir.Type,
        read: Reader,
        sources: Sequence[Value] = (),
        cost: int = 0,
    ):
        super().__init__(shape, element, sources, cost)
        self.read = read

    def at(self, position: Indices, lanes: int | None) -> Scalar:
        """Computes elements."""
        return self.read(position, lanes)


class Mapped(Computed):
    """An array computed elementwise from others at the same position, and from numbers.

    Attributes:
        formula: Computes an element from the sources' elements.
        own_cost: The arithmetic of the formula.
    """

    def __init__(
        self,
        shape: Sequence[int],
        element: ir.Type,
        formula: Returning[Scalar],
        sources: Sequence[Value],
        cost: int,
    ):
        super().__init__(shape, element, self._read, sources, cost)
        self.formula = formula
        self.own_cost = cost

    def repeats_after(self, lead: int) -> bool:
        """Tells whether all sources do."""
        return all(x.repeats_after(lead) for x in self.sources)

    def _read(self, position: Indices, lanes: int | None) -> Scalar:
        return self.formula(*(x.at(position, lanes) for x in self.sources))


def flat(x: Value, lead: int = 0) -> Value | None:
    """Returns an array as one row, valid until memory changes; None if it is not contiguous.

    Args:
        x: The array.
        lead: The number of leading axes that stay. Each of their indices has a row.
    """
    shape = (*x.shape[:lead], math.prod(x.shape[lead:]))
    if isinstance(x, Number):
        return x
    if isinstance(x, Stored):
        return Stored(x.memory.reshaped(shape), is_own=False)
    if lead and x.repeats_after(lead):
        return _repeated(x, lead, shape)
    if isinstance(x, Computed) and x.keeps_order:
        return flat(x.sources[0], lead) if x.sources[0].shape[:lead] == x.shape[:lead] else None
    if not isinstance(x, Mapped):
        return None
    sources = [row for row in (flat(source, lead) for source in x.sources) if row is not None]
    if len(sources) < len(x.sources):
        return None
    return Mapped(shape, x.element, x.formula, sources, x.own_cost)


def flat_together(
    values: Sequence[Value], shape: Sequence[int]
) -> tuple[list[Value], tuple[int, ...]]:
    """Returns arrays of a shape with as few axes as all of them allow, and their new shape.

    An array that repeats elements of its leading axes keeps these axes, such as a condition of
    each row. The axes after them become one.
    """
    for lead in range(len(shape) - 1):
        rows = [row for row in (flat(x, lead) for x in values) if row is not None]
        if len(rows) == len(values):
            return rows, (*shape[:lead], math.prod(shape[lead:]))
    return list(values), tuple(shape)


def _repeated(x: Value, lead: int, shape: Sequence[int]) -> Value:
    zeros = (0,) * (len(x.shape) - lead)

    def read(position: Indices, lanes: int | None) -> Scalar:
        return broadcast(x.at((*position[:lead], *zeros), None), lanes)

    return Computed(shape, x.element, read)


def reads(x: Value, memory: Memory) -> bool:
    """Tells whether an array is in some memory, or is computed from it."""
    if isinstance(x, Stored) and x.memory.value == memory.value:
        return True
    return any(reads(source, memory) for source in x.sources)


def may_replace(x: Value, memory: Memory) -> bool:
    """Tells whether elements of `x` may be written to the memory while they are read, in order."""
    if isinstance(x, Mapped):
        return all(may_replace(source, memory) for source in x.sources)
    if isinstance(x, Stored):
        return x.memory.value == memory.value or not reads(x, memory)
    return not reads(x, memory)


def elements_apart(x: Value, positions: Sequence[Indices]) -> Scalar:
    """Reads the lanes of a vector one by one, each at its position."""
    singles = [x.at(position, None) for position in positions]
    kind = ir.VectorType.get([len(singles)], x.element)
    return operation("vector.from_elements", singles, kind)


def lanes_of(position: Indices, lanes: int) -> list[Indices]:
    """Returns the positions of the lanes of a vector."""
    *leading, last = position
    return [(*leading, plus(last, lane)) for lane in range(lanes)]


# Indices; known ones are Python integers --------------------------------------------------------


def plus(x: Index, y: Index) -> Index:
    """Returns `x + y`."""
    if isinstance(x, int) and isinstance(y, int):
        return x + y
    if isinstance(y, int):
        return x if y == 0 else index(x) + y
    return y if isinstance(x, int) and x == 0 else index(x) + y


def times(x: Index, factor: int) -> Index:
    """Returns `x * factor`."""
    return x * factor if isinstance(x, int) or factor != 1 else x


def clamped(x: Scalar, largest: int) -> Index:
    """Returns an index that is at least 0 and at most `largest`."""
    if largest <= 0:
        return 0
    low = operation("arith.maxsi", (x, index(0)))
    return operation("arith.minsi", (low, index(largest)))
