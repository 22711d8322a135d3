"""How a matrix product is cut: tiles that fit into registers, blocks that fit into caches.

Elsewhere: the loops over them (`matrix_kernel.py`).
"""

from __future__ import annotations

import dataclasses

from axir.dialect.builders.kernels import STACK_BYTES

# Vectors in a row of a tile, and rows that leave registers for a row of the right operand and an
# element of the left one. The preferred ones come first.
_ROWS = {
    512: {2: 12, 3: 8, 4: 6, 1: 14},  # 32 registers
    256: {2: 6, 3: 4, 1: 8},  # 16 registers
    128: {2: 6, 3: 4, 1: 8},
}
# The cost of a product in a tile with so many vectors: single vectors need a load of a number for
# each product, and tiles of few rows need almost as many loads of vectors.
_COSTS = {1: 1.3, 2: 1.0, 3: 1.08, 4: 1.12}
# The rows of the left operand that stay in the second cache while a block goes through its columns.
_BLOCK_ROWS = 256
_BLOCK_COLUMNS = 256
# Products that are worth another workgroup: 15 us of one core, the cost of a dispatch to several.
_WORKGROUP_PRODUCTS = 1 << 21
_WORKGROUPS = 256
# Blocks are made smaller than the caches allow to get so many blocks, in case cores are busy.
_SPLIT = 32
# Blocks with fewer rows are not cut further: the panel of each is packed again.
_LEAST_BLOCK_ROWS = 48
# Nor are blocks with fewer panels: each block reads the left operand again.
_LEAST_PANELS = 2
# So many products are added in registers, so many such sums in memory, and then the results of so
# many parts (`dialect/builders/kernels/blocks.py` says why).
_LONGEST_SUM = 512
_MOST_DEPTHS = 64
_MOST_PARTS = 1 << 12


@dataclasses.dataclass(frozen=True)
class Tiling:
    """The extents of a product, and the sizes of its tiles and blocks.

    Attributes:
        extents: Batch, rows, columns, products in a sum.
        rows: Rows of a tile.
        lanes: Numbers in a vector.
        vectors: Vectors in a row of a tile.
        depth: Products of a sum before the next rows of a panel are packed.
        block_rows: Rows of a block: full tiles unless it is the only block.
        block_columns: Columns of a block, whole panels.
        workgroups: The number of workgroups, among which the blocks are divided.
        is_packed: Whether panels of the right operand are copied to the stack before their use.
        parts: The number of parts into which long sums are cut; each part has a result.
    """

    extents: tuple[int, int, int, int]
    rows: int
    lanes: int
    vectors: int
    depth: int
    block_rows: int
    block_columns: int
    workgroups: int
    is_packed: bool
    parts: int = 1

    @property
    def width(self) -> int:
        """The columns of a tile and of a panel."""
        return self.lanes * self.vectors

    @property
    def share(self) -> int:
        """The number of products of a sum in a part."""
        return _multiple(-(-self.extents[3] // self.parts), self.depth)

    @property
    def blocks(self) -> tuple[int, int, int]:
        """The numbers of blocks: of the batch, of rows, of columns."""
        batch, rows, columns, _ = self.extents
        return batch, -(-rows // self.block_rows), -(-columns // self.block_columns)

    def with_rows(self, most: int) -> Tiling:
        """Returns the same for one workgroup, and tiles of at most so many rows: shorter code."""
        rows = min(self.rows, most)
        block_rows = _multiple(self.block_rows, rows)
        return dataclasses.replace(self, rows=rows, block_rows=block_rows, workgroups=1)


def tile(
    extents: tuple[int, int, int, int], vector_bits: int, element_bits: int, is_transposed: bool
) -> Tiling:
    """Chooses tiles and blocks.

    Args:
        extents: Batch, rows, columns, products in a sum.
        vector_bits: Width of the vector registers of the CPU.
        element_bits: Width of a number.
        is_transposed: Whether the right operand is stored by columns.
    """
    batch, rows, columns, contracted = extents
    lanes = vector_bits // element_bits
    while lanes // 2 >= max(columns, 2):
        lanes //= 2
    shapes = _ROWS[vector_bits]
    count = _parts(columns, lanes)
    vectors = min(shapes, key=lambda n: _parts(count, n) * n * _COSTS[n])
    width = lanes * vectors
    most = shapes[vectors]
    tile_rows = _parts(rows, _parts(rows, most))
    is_packed = is_transposed or (rows > 2 * most and columns > width)
    unit = vector_bits // 32  # squares of vectors are transposed at a time
    deepest = _LONGEST_SUM
    if is_packed:
        deepest = min(deepest, STACK_BYTES * 8 // (width * element_bits) // unit * unit)
    depth = contracted
    if is_packed or contracted > deepest:
        depth = _multiple(_parts(contracted, _parts(contracted, deepest)), unit)
    parts = min(_parts(contracted, _MOST_DEPTHS * depth), _MOST_PARTS)
    wanted = batch * rows * columns * contracted // _WORKGROUP_PRODUCTS
    split = min(wanted, _SPLIT)
    row_blocks, column_blocks = _parts(rows, _BLOCK_ROWS), _parts(columns, _BLOCK_COLUMNS)
    column_blocks = _more(
        column_blocks, _parts(split, batch * row_blocks), columns // (_LEAST_PANELS * width)
    )
    row_blocks = _more(row_blocks, _parts(split, batch * column_blocks), rows // _LEAST_BLOCK_ROWS)
    block_rows = _multiple(_parts(rows, row_blocks), tile_rows) if row_blocks > 1 else rows
    block_columns = _multiple(_parts(columns, column_blocks), width)
    count = parts * batch * _parts(rows, block_rows) * _parts(columns, block_columns)
    workgroups = min(count, max(1, wanted if wanted > 1 else 1), _WORKGROUPS)
    return Tiling(
        extents,
        tile_rows,
        lanes,
        vectors,
        depth,
        block_rows,
        block_columns,
        workgroups,
        is_packed,
        parts,
    )


def _parts(number: int, size: int) -> int:
    return max(1, -(-number // size))


def _multiple(number: int, of: int) -> int:
    return -(-number // of) * of


def _more(now: int, wanted: int, most: int) -> int:
    return max(now, min(wanted, most))
