"""Kernels between spectra of real numbers and spectra of half as many complex numbers.

Even and odd elements of 2 m real numbers are the real and imaginary parts of m complex numbers; Z
is their spectrum. Let E[k] = (Z[k] + conj Z[m - k]) / 2, O[k] = (Z[k] - conj Z[m - k]) / 2 and w =
exp(-2 pi i / 2 m). The spectrum of the real numbers is X[k] = E[k] - i w^k O[k], and Z[k] = (X[k] +
conj X[m - k]) / 2 + i w^-k (X[k] - conj X[m - k]) / 2.

Elsewhere: the transforms (`rows.py`), and rows of an odd number of reals (`axes.py`).
"""

from __future__ import annotations

import dataclasses

import numpy as np
from iree.compiler import ir

from axir.dialect.builders.kernels import Memory, each, rows_of, shuffle
from axir.dialect.builders.scalars import Scalar, broadcast
from axir.dialect.core.annotations import HostArray

from . import tables
from .butterflies import Complex, minus, plus, times
from .columns import as_pairs
from .kernels import MOST_ROOTS, Arrays, Table, Vectors, lanes_of, run_kernel, workgroups_of
from .numbers import Numbers, Row, product, total


def fits_halves(half: int, element: ir.Type) -> bool:
    """Tells whether such kernels exist for twice as many real numbers."""
    return half > lanes_of(element)


def unfold_halves(z: Arrays, *, is_paired: bool = False) -> Arrays:
    """Returns the spectra [rows, m + 1] of 2 m real numbers from the spectra of m complex ones.

    Args:
        z: The spectra [rows, m].
        is_paired: Whether the result is one array of pairs.
    """
    return _Halves.build(z, -1, is_paired)


def fold_halves(x: Arrays) -> Arrays:
    """Inverts `unfold_halves`; imaginary parts of the first and last number are ignored."""
    return _Halves.build(x, 1, False)


@dataclasses.dataclass(frozen=True)
class _Halves:
    """The kernel that computes X for sign -1, and Z for sign 1.

    Attributes:
        half: m.
        sign: The sign of the exponent of roots.
        lanes: The length of vectors.
        roots: Where -i w^k / 2, for Z i w^-k / 2, begin in the table: real and imaginary parts if
            they are few. Else each root is the product of a root for the vector and a root for the
            lane, and both tables begin here.
    """

    half: int
    sign: int
    lanes: int
    roots: tuple[int, int]

    @classmethod
    def build(cls, x: Arrays, sign: int, is_paired: bool) -> Arrays:
        """Builds the kernel."""
        rows, length = x.shape
        half = length if sign < 0 else length - 1
        lanes, table = lanes_of(x.element), Table()
        vectors = Vectors(half - 1, lanes)
        halves = cls(half, sign, lanes, _put_roots(table, half, sign, vectors))
        workgroups = workgroups_of(rows, rows * length)

        def body(workgroup: Scalar, source: Numbers, roots: Memory, target: Numbers) -> None:
            @each(*rows_of(workgroup, rows, workgroups))
            def row(number: Scalar) -> None:
                numbers, found = source.at(number), target.at(number)
                halves.run_ends(numbers, found)

                @vectors.each
                def vector(number: Row, place: Row) -> None:
                    halves.run(numbers, found, roots, number, total(place, 1))

        return run_kernel(
            body, x, table.constant(x.element), (rows, half + (sign < 0)), is_paired=is_paired,
            lanes=lanes, workgroups=workgroups, identity=f"halves {half} {sign}",
        )  # fmt: skip

    def run(self, source: Numbers, target: Numbers, roots: Memory, number: Row, place: Row) -> None:
        """Computes a vector from the numbers k and m - k."""
        here = source.read(place)
        back = range(self.lanes - 1, -1, -1)
        facing = source.read((self.half - self.lanes + 1) - place)
        real, imag = (shuffle(part, part, back) for part in facing)
        mirrored = real, -imag
        odd = times(minus(here, mirrored), self._root(roots, number, place))
        even = plus(here, mirrored)
        target.write((place,), plus((even[0] * 0.5, even[1] * 0.5), odd))

    def _root(self, table: Memory, number: Row, place: Row) -> Complex:
        first, second = self.roots
        if self.half <= MOST_ROOTS:
            real, imag = (table.read(total(place, start), self.lanes) for start in self.roots)
            return real, imag
        at = total(product(number, 2), first)
        coarse = broadcast(table[at], self.lanes), broadcast(table[total(at, 1)], self.lanes)
        real, imag = (table.read(second + part * self.lanes, self.lanes) for part in (0, 1))
        return times((real, imag), coarse)

    def run_ends(self, source: Numbers, target: Numbers) -> None:
        """Computes the first and the last number, which have no counterpart."""
        if self.sign < 0:
            real, imag = source.element(0)
            zero = real.constant(0.0)
            target.set_element(0, (real + imag, zero))
            target.set_element(self.half, (real - imag, zero))
        else:
            first, last = source.element(0)[0], source.element(self.half)[0]
            target.set_element(0, ((first + last) * 0.5, (first - last) * 0.5))


def _put_roots(table: Table, half: int, sign: int, vectors: Vectors) -> tuple[int, int]:
    def roots(places: HostArray) -> HostArray:
        return tables.unit_roots(sign * places, 2 * half)

    if half <= MOST_ROOTS:
        few = 0.5j * sign * roots(np.arange(half))
        return table.put(few.real), table.put(few.imag)
    coarse = 0.5j * sign * roots(1 + vectors.starts())
    fine = roots(np.arange(vectors.lanes))
    return table.put(as_pairs(coarse)), table.put(np.concatenate([fine.real, fine.imag]))
