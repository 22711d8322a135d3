"""The common code of Fourier kernels.

A kernel reads and writes either two arrays of parts, or one array of pairs, which is how complex
numbers are stored. It transforms as many adjacent columns at a time as a vector has lanes. The last
vector ends with the last column, so it may compute some columns again.

Elsewhere: the code for a vector of columns (`columns.py`), and the kernels (`transform.py`,
`rows.py`, `halves.py`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.expressions import minimum
from axir.dialect.builders.kernels import Memory, dispatch, each, rows_of, workspace
from axir.dialect.builders.scalars import Scalar
from axir.dialect.core.annotations import HostArray

from .numbers import Numbers, Row, product

LONGEST_COLUMN = 2048
"""How long columns are at most: their buffers stay in the caches."""

MOST_ROOTS = 1 << 14
"""How many roots of unity a table has at most; more are products of some in smaller tables."""

_VECTOR_BYTES = 64
# How many numbers a workgroup should have, and the largest number of workgroups.
_SHARE = 1 << 14
MOST_WORKGROUPS = 16

Task: TypeAlias = Callable[[Row, Row], None]
Body: TypeAlias = Callable[[Scalar, Numbers, Memory, Numbers], None]
"""Takes the number of a workgroup, the operand, the table, and the result."""


def lanes_of(element: ir.Type) -> int:
    """Returns how many numbers of a type a vector has."""
    return _VECTOR_BYTES * 8 // element.width


@dataclasses.dataclass(frozen=True)
class Arrays:
    """Complex numbers as arrays: two of the parts, or one of pairs.

    Attributes:
        values: The arrays.
        shape: The shape of the complex array; the arrays in memory may have another one.
    """

    values: tuple[ir.Value, ...]
    shape: tuple[int, ...]

    @property
    def element(self) -> ir.Type:
        """The type of the parts."""
        return hlo.element_type_of(self.values[0])

    def viewed(self, shape: Sequence[int]) -> Arrays:
        """Returns the same numbers in another shape."""
        stored = stored_shape(shape, is_paired=len(self.values) == 1)
        return Arrays(tuple(hlo.reshape(x, stored) for x in self.values), tuple(shape))


def stored_shape(shape: Sequence[int], *, is_paired: bool) -> tuple[int, ...]:
    """Returns the shape of an array of parts, or of pairs."""
    return (*shape[:-1], 2 * shape[-1]) if is_paired else tuple(shape)


class Table:
    """Constants that a kernel reads, several kinds one after the other."""

    def __init__(self) -> None:
        self._parts = [np.zeros(1)]
        self._length = 1

    def put(self, numbers: HostArray) -> int:
        """Appends numbers, and returns where they begin."""
        start = self._length
        self._parts.append(numbers.ravel())
        self._length += numbers.size
        return start

    def constant(self, element: ir.Type) -> ir.Value:
        """Returns them as an array."""
        return hlo.constant(np.concatenate(self._parts), element)


def run_kernel(
    body: Body, x: Arrays, table: ir.Value, shape: Sequence[int], *,
    is_paired: bool, lanes: int, workgroups: int, identity: str,
    swaps: tuple[bool, bool] = (False, False),
) -> Arrays:  # fmt: skip
    """Runs a kernel on complex numbers, and returns an array of complex numbers.

    Args:
        body: The kernel.
        x: The operand.
        table: The constants that it also reads.
        shape: The shape of the result.
        is_paired: Whether the result is one array of pairs.
        lanes: How long vectors are.
        workgroups: How many workgroups there are.
        identity: A text that identifies the kernel's code, together with the types.
        swaps: Whether pairs of the operand, and of the result, have their parts exchanged.
    """
    taken = len(x.values)

    def kernel(workgroup: Scalar, *memories: Memory) -> None:
        source, target = memories[:taken], memories[taken + 1 :]
        body(
            workgroup,
            Numbers(source, lanes, swaps=swaps[0]),
            memories[taken],
            Numbers(target, lanes, swaps=swaps[1]),
        )

    kind = hlo.tensor_type(stored_shape(shape, is_paired=is_paired), x.element)
    made = dispatch(
        kernel, [*x.values, table], [kind] * (1 if is_paired else 2),
        workgroups=workgroups, name="fft", identity=f"{identity} {taken} {lanes} {swaps}",
    )  # fmt: skip
    return Arrays(tuple(made), tuple(shape))


def workgroups_of(tasks: int, size: int) -> int:
    """Returns the number of workgroups for tasks on so many numbers in total."""
    return max(1, min(MOST_WORKGROUPS, tasks, size // _SHARE))


def buffers(
    workgroup: Scalar, workgroups: int, count: int, rows: int, lanes: int, element: ir.Type
) -> list[Numbers]:
    """Returns memory of a workgroup for vectors of columns of so many rows."""
    if not count:
        return []
    space = workspace((workgroups, count, 2, rows, lanes), element)
    return [
        Numbers([space.at(workgroup, number, part) for part in (0, 1)], lanes)
        for number in range(count)
    ]


@dataclasses.dataclass(frozen=True)
class Vectors:
    """The vectors of columns of matrices.

    Attributes:
        width: How many columns a matrix has.
        lanes: How many of them a vector has.
    """

    width: int
    lanes: int

    @property
    def count(self) -> int:
        """How many vectors a matrix has."""
        return -(-self.width // self.lanes)

    def starts(self) -> HostArray:
        """Returns the first columns of the vectors."""
        return np.minimum(np.arange(self.count) * self.lanes, self.width - self.lanes)

    def start(self, number: Row) -> Row:
        """Returns the first column of a vector."""
        if self.count == 1:
            return 0
        place = product(number, self.lanes)
        return place if self.width % self.lanes == 0 else minimum(place, self.width - self.lanes)

    def each(self, step: Task) -> None:
        """Runs a function with the number and the first column of each vector of a matrix."""
        if self.count == 1:
            step(0, 0)
        else:
            each(0, self.count)(lambda number: step(number, self.start(number)))

    def share(self, matrices: int, workgroup: Scalar, workgroups: int, task: Task) -> None:
        """Runs a function with matrix and first column of each vector of a workgroup."""

        def one(number: Scalar) -> None:
            if self.count == 1:
                task(number, 0)
            else:
                task(number // self.count, self.start(number % self.count))

        each(*rows_of(workgroup, matrices * self.count, workgroups))(one)
