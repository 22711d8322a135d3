"""The matrix product as a kernel that calls a function for its sums, which takes any extents.

The code of tiles takes LLVM longer than all else of a program, so that programs whose first result
is waited for have it once for all products. The sums are added in the same order as in tiles, so
that they are the same. What does not live here: the function
(`runtime/compiler/invocation/product_function.py`), and tiles (`matrix_kernel.py`).
"""

from __future__ import annotations

from axir.dialect.builders.kernels import call_outside, first_lanes, loop
from axir.dialect.builders.scalars import Scalar

from .contraction import BATCH, CONTRACTED, FREE, View
from .epilogue import Place
from .matrix_kernel import Block, MatrixProduct


class CalledProduct(MatrixProduct):
    """The kernel while it is built."""

    def compute(self, block: Block) -> None:
        """Calls the function for a block, and finishes that."""
        lhs, rhs, tiling = self.lhs, self.rhs, self.tiling
        result = View(self.result, BATCH + FREE + CONTRACTED)
        call_outside(
            f"axir_product_{self.result.element}",
            [
                lhs.address((block.batch, block.top, block.first)),
                lhs.stride(FREE),
                lhs.stride(CONTRACTED),
                rhs.address((block.batch, block.left, block.first)),
                rhs.stride(FREE),
                rhs.stride(CONTRACTED),
                result.address((block.slot, block.top, block.left)),
                tiling.extents[2],
                block.bottom - block.top,
                block.right - block.left,
                block.last - block.first,
                tiling.depth,
                tiling.depth < tiling.extents[3],
            ],
        )
        if self.finish is not None:
            loop(block.top, block.bottom, (), lambda row: self._finish_row(block, row))

    def _finish_row(self, block: Block, row: Scalar) -> None:
        finish, lanes, columns = self.finish, self.tiling.lanes, self.tiling.extents[2]
        assert finish is not None

        def vector(column: Scalar) -> None:
            mask = first_lanes(lanes, columns - column) if columns % lanes else None
            place = Place((block.slot, row, column), lanes, mask)
            finish.at(self.result.read(place.position, lanes, mask), place)

        loop(block.left, block.right, (), vector, lanes)
