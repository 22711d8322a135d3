"""The matrix product as a kernel that calls a function for its sums, which takes any extents.

The code of tiles takes LLVM longer than all else of a program, so that programs whose first result
is waited for have it once for all products. The sums are added in the same order as in tiles, so
that they are the same. What does not live here: the function
(`runtime/compiler/invocation/product_function.py`), and tiles (`matrix_kernel.py`).
"""

from __future__ import annotations

from axir.dialect.builders.expressions import minimum
from axir.dialect.builders.kernels import call_outside, first_lanes, loop
from axir.dialect.builders.scalars import Scalar, index

from .contraction import BATCH, CONTRACTED, FREE, View
from .epilogue import Place
from .matrix_kernel import MatrixProduct


class CalledProduct(MatrixProduct):
    """The kernel while it is built."""

    def run(self, number: Scalar) -> None:
        """Computes all of the product; there is one workgroup."""
        tiling = self.tiling
        batch, _, _, contracted = tiling.extents
        slots = tiling.parts * batch

        def product(slot: Scalar) -> None:
            at, first, last = slot, index(0), index(contracted)
            if tiling.parts > 1:
                at, first = slot % batch, slot // batch * tiling.share
                last = minimum(first + tiling.share, contracted)
            self._sum_up(slot, at, first, last)
            if self.finish is not None:
                loop(0, tiling.extents[1], (), lambda row: self._finish_row(slot, row))

        if slots == 1:
            product(index(0))
        else:
            loop(0, slots, (), product)

    def _sum_up(self, slot: Scalar, batch: Scalar, first: Scalar, last: Scalar) -> None:
        """Computes a result: so many of the products of a sum."""
        lhs, rhs, tiling = self.lhs, self.rhs, self.tiling
        _, rows, columns, contracted = tiling.extents
        result = View(self.result, BATCH + FREE + CONTRACTED)
        call_outside(
            f"axir_product_{self.result.element}",
            [
                lhs.address((batch, 0, first)),
                lhs.stride(FREE),
                lhs.stride(CONTRACTED),
                rhs.address((batch, 0, first)),
                rhs.stride(FREE),
                rhs.stride(CONTRACTED),
                result.address((slot, 0, 0)),
                columns,
                rows,
                columns,
                last - first,
                tiling.depth,
                tiling.depth < contracted,
            ],
        )

    def _finish_row(self, slot: Scalar, row: Scalar) -> None:
        finish, lanes, columns = self.finish, self.tiling.lanes, self.tiling.extents[2]
        assert finish is not None

        def vector(column: Scalar) -> None:
            mask = first_lanes(lanes, columns - column) if columns % lanes else None
            place = Place((slot, row, column), lanes, mask)
            finish.at(self.result.read(place.position, lanes, mask), place)

        loop(0, columns, (), vector, lanes)
