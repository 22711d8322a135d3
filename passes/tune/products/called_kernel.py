"""The matrix product as a kernel that calls a function for its sums; it takes any extents.

LLVM compiles the code of tiles longer than the rest of a program. Programs that must run soon
therefore share one function for all products. It adds in the same order as tiles, so that the sums
are equal. Products without an epilogue also share one kernel, which reads its extents from memory:
nothing is compiled for them. Elsewhere: the functions
(`runtime/compiler/invocation/product_function.py`), and tiles (`matrix_kernel.py`).
"""

from __future__ import annotations

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.expressions import minimum
from axir.dialect.builders.kernels import call_outside, dispatch_outside, first_lanes, loop
from axir.dialect.builders.scalars import Scalar, index

from .contraction import BATCH, CONTRACTED, FREE, Array, View
from .epilogue import Place
from .matrix_kernel import MatrixProduct
from .tiling import Tiling


def shared_product(lhs: Array, rhs: Array, tiling: Tiling) -> ir.Value:
    """Returns the products of arrays of the same dtype, of shape `[batch, rows, columns]`.

    Args:
        lhs: An array.
        rhs: An array.
        tiling: How the product is cut; it must have one part.
    """
    element = hlo.element_type_of(lhs.value)
    batch, rows, columns, contracted = tiling.extents
    size = element.width // 8
    words = [
        batch,
        *(number * size for number in (lhs.stride(BATCH), rhs.stride(BATCH), rows * columns)),
        *(array.stride(kind) for array in (lhs, rhs) for kind in (FREE, CONTRACTED)),
        columns,
        rows,
        columns,
        contracted,
        tiling.depth,
        int(tiling.depth < contracted),
    ]
    return dispatch_outside(
        f"axir_products_{element}",
        [lhs.value, rhs.value, hlo.constant(np.array(words, np.int64))],
        [hlo.tensor_type((batch, rows, columns), element)],
    ).results[0]


class CalledProduct(MatrixProduct):
    """The kernel while it is built."""

    def run(self, number: Scalar) -> None:
        """Computes all of the product; there is one workgroup."""
        tiling = self.tiling
        batch, _, _, contracted = tiling.extents
        slots = tiling.parts * batch

        def product(slot: Scalar | int) -> None:
            if tiling.parts > 1:
                at, first = slot % batch, slot // batch * tiling.share
                last = minimum(first + tiling.share, contracted)
                self._sum_up(slot, at, first, last - first)
            else:
                self._sum_up(slot, slot, 0, contracted)
            if self.finish is not None:
                place = index(slot) if isinstance(slot, int) else slot
                loop(0, tiling.extents[1], (), lambda row: self._finish_row(place, row))

        if slots == 1:
            product(0)
        else:
            loop(0, slots, (), product)

    def _sum_up(
        self, slot: Scalar | int, batch: Scalar | int, first: Scalar | int, count: Scalar | int
    ) -> None:
        """Computes a result from a range of the products of each sum."""
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
                count,
                tiling.depth,
                int(tiling.depth < contracted),
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
