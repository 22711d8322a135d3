"""Transforms along an axis as dispatches, and the transform of columns.

Where the library of transforms (`library.py`) serves, a transform is first a dispatch of its
kernel, which programs without IREE call. For IREE, `write-transforms` replaces that by a dispatch
of a kernel for this length. Both read the same table, and compute the same bits. So the kernel,
which takes longer to write than the rest of a program, is written only if IREE compiles it.

Elsewhere: the code for a vector of columns (`columns.py`), rows (`rows.py`).
"""

from __future__ import annotations

import abc
import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.kernels import Memory, dispatch_outside
from axir.dialect.builders.scalars import Scalar, broadcast, index
from axir.dialect.core.annotations import HostArray
from axir.passes.legalize.regions import TRANSFORM, WORKGROUPS

from .butterflies import Complex
from .columns import Columns, has_columns
from .kernels import (
    LONGEST_COLUMN,
    Arrays,
    Body,
    Table,
    Vectors,
    buffers,
    lanes_of,
    run_kernel,
    stored_shape,
    workgroups_of,
)
from .library import PLAN, RADICES, symbol_of
from .numbers import Numbers, Row


@dataclasses.dataclass(frozen=True)
class Transform(abc.ABC):
    """A kernel that transforms along an axis, by exp(-2 pi i j k / n).

    Subclasses have sides of matrices as fields.

    Attributes:
        kind: Distinguishes the subclasses.
        lanes: The length of vectors.
        scale: A factor for the results.
        pairs: 1 if the operand is one array of pairs, 2 if their parts are exchanged, else 0.
        to_pairs: The same of the result.
    """

    kind: ClassVar[str]

    lanes: int
    scale: float
    pairs: int
    to_pairs: int

    @property
    @abc.abstractmethod
    def shape(self) -> tuple[int, ...]:
        """The shape of the result."""

    @property
    @abc.abstractmethod
    def columns(self) -> Mapping[str, Columns]:
        """The columns that each step of the library's kernel transforms."""

    @property
    @abc.abstractmethod
    def workgroups(self) -> int:
        """How many workgroups the kernel for this length has."""

    @abc.abstractmethod
    def put(self, table: Table) -> dict[str, int]:
        """Puts the factors into a table, and returns words of the plan: where they begin."""

    @abc.abstractmethod
    def sides(self) -> dict[str, int]:
        """Returns words of the plan: the sides of matrices."""

    @abc.abstractmethod
    def body(self, element: ir.Type) -> Body:
        """Returns the kernel for this length."""

    def run_alone(self, x: Arrays, table: ir.Value) -> Arrays:
        """Dispatches the kernel for this length."""
        return run_kernel(
            self.body(x.element), x, table, self.shape, is_paired=self.to_pairs > 0,
            lanes=self.lanes, workgroups=self.workgroups, identity=f"{self.kind} {self.sides()}",
            swaps=self.swaps,
        )  # fmt: skip

    def write(self, operands: Sequence[Memory], results: Sequence[Memory]) -> None:
        """Writes the kernel for this length into another kernel, if it has one workgroup.

        Args:
            operands: As for the library's kernel: plan, table and numbers.
            results: As for that kernel, but for the working memory.
        """
        _, table, *taken = operands
        source, target = (
            Numbers(arrays, self.lanes, swaps=swaps)
            for arrays, swaps in zip((taken, results), self.swaps, strict=True)
        )
        self.body(table.element)(index(0), source, table, target)

    @property
    def is_shared(self) -> bool:
        """Whether the library's kernel serves."""
        columns = self.columns.values()
        return bool(columns) and all(r in RADICES for x in columns for r in x.radices)

    def run(self, x: Arrays) -> Arrays:
        """Dispatches the library's kernel, or one for this length."""
        table = Table()
        words = self.put(table)
        constant = table.constant(x.element)
        if not self.is_shared:
            return self.run_alone(x, constant)
        taken, given = len(x.values), 1 if self.to_pairs else 2
        size = math.prod(self.shape[1:])
        part = self.lanes * max(columns.length for columns in self.columns.values())
        words |= self.sides() | {
            **{"size": size, "table": 1, "real": 2, "imag": 1 + taken, "part": part},
            **{"to_real": 2 + taken, "to_imag": 1 + taken + given, "space": 2 + taken + given},
            **{"pairs": self.pairs, "to_pairs": self.to_pairs},
        }
        kind = hlo.tensor_type(stored_shape(self.shape, is_paired=given == 1), x.element)
        numbers = 6 * part + (2 * size if len(self.columns) > 1 else 0)
        space = hlo.tensor_type((numbers * x.element.width // 8,), ir.IntegerType.get_signless(8))
        called = dispatch_outside(
            symbol_of(str(x.element), self.lanes),
            [hlo.constant(self._plan(words)), constant, *x.values],
            [*[kind] * given, space],
        )
        called.attributes[TRANSFORM] = ir.StringAttr.get(str(self))
        called.attributes[WORKGROUPS] = ir.IntegerAttr.get(ir.IndexType.get(), self.workgroups)
        return Arrays(tuple(called.results)[:given], self.shape)

    def _plan(self, words: dict[str, int]) -> HostArray:
        radices: list[int] = []
        for step, columns in self.columns.items():
            words[f"{step}_radices"] = len(PLAN) + len(radices)
            words[f"{step}_stages"] = len(columns.radices)
            radices += columns.radices
        return np.array([*(words.get(name, 0) for name in PLAN), *radices], np.int64)

    def __str__(self) -> str:
        """Returns the transform as text: see `transform_of`."""
        return " ".join([self.kind, *map(repr, dataclasses.astuple(self))])

    @property
    def swaps(self) -> tuple[bool, bool]:
        """Whether the pairs of the operand and of the result are exchanged."""
        return self.pairs == 2, self.to_pairs == 2


def run_signed(
    run: Callable[[Arrays, int, int], Arrays], x: Arrays, sign: int, *, is_paired: bool
) -> Arrays:
    """Transforms by exp(sign 2 pi i j k / n): for the other sign, all parts are exchanged.

    Args:
        run: Transforms for the sign -1, given the numbers, and `pairs` and `to_pairs`.
        x: The numbers.
        sign: Of the exponent.
        is_paired: Whether the result is one array of pairs.
    """
    order = 1 if sign < 0 else 2
    is_apart = len(x.values) == 2
    if is_apart and sign > 0:
        x = Arrays(x.values[::-1], x.shape)
    found = run(x, 0 if is_apart else order, order if is_paired else 0)
    return Arrays(found.values[::-1], found.shape) if sign > 0 else found


# Columns ----------------------------------------------------------------------------------------


def fits_columns(length: int, width: int, element: ir.Type) -> bool:
    """Tells whether a kernel exists along an axis that is not the last."""
    return width >= lanes_of(element) and 1 < length <= LONGEST_COLUMN and has_columns(length)


def transform_columns(x: Arrays, sign: int, scale: float, *, is_paired: bool) -> Arrays:
    """Transforms [matrices, length, width] along `length`.

    Args:
        x: The numbers.
        sign: Of the exponent.
        scale: A factor for the results.
        is_paired: Whether the result is one array of pairs.
    """
    lanes = lanes_of(x.element)

    def run(x: Arrays, pairs: int, to_pairs: int) -> Arrays:
        return TransformColumns(lanes, scale, pairs, to_pairs, *x.shape).run(x)

    return run_signed(run, x, sign, is_paired=is_paired)


@dataclasses.dataclass(frozen=True)
class TransformColumns(Transform):
    """Transforms matrices [length, width] along `length`."""

    kind: ClassVar[str] = "columns"

    matrices: int
    length: int
    width: int

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of operand and result."""
        return self.matrices, self.length, self.width

    @property
    def columns(self) -> Mapping[str, Columns]:
        """All columns."""
        return {"across": Columns(self.length)}

    @property
    def workgroups(self) -> int:
        """How many workgroups the kernel for this length has."""
        tasks = self.matrices * Vectors(self.width, self.lanes).count
        return workgroups_of(tasks, math.prod(self.shape))

    def sides(self) -> dict[str, int]:
        """Returns words of the plan."""
        return {"matrices": self.matrices, "length": self.length, "width": self.width}

    def put(self, table: Table) -> dict[str, int]:
        """Puts the factors into a table."""
        factors = table.put(Columns(self.length).factors())
        return {"across_factors": factors, "scale": table.put(np.array([self.scale]))}

    def body(self, element: ir.Type) -> Body:
        """Returns the kernel for this length."""
        columns, vectors, lanes = Columns(self.length), Vectors(self.width, self.lanes), self.lanes
        words = self.put(Table())
        workgroups = self.workgroups

        def body(workgroup: Scalar, source: Numbers, factors: Memory, target: Numbers) -> None:
            count = columns.buffers(is_kept=False)
            own = buffers(workgroup, workgroups, count, self.length, lanes, element)
            factor = broadcast(factors[words["scale"]], lanes)

            def task(row: Row, column: Row) -> None:
                matrix, found = source.at(row), target.at(row)
                columns.run(
                    lambda number: matrix.read(number, column),
                    lambda number, y: found.write((number, column), scaled(y, factor)),
                    own, factors, words["across_factors"],
                )  # fmt: skip

            vectors.share(self.matrices, workgroup, workgroups, task)

        return body


def scaled(x: Complex, factor: Scalar) -> Complex:
    """Returns a complex number times a real one."""
    return x[0] * factor, x[1] * factor
