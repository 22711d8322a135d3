"""Sorts that need no kernel: ranks of elements on GPUs, exchanges of equal elements undone.

Elsewhere: sorts as kernels (`sort_by_digits.py`), merging (`merging.py`).
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core.context import describe_location
from axir.dialect.core.errors import UnsupportedByDeviceError
from axir.passes.legalize.indices.gathers import read_rows
from axir.passes.legalize.rewriting import RewritePass

from .merging import merge_runs
from .sort_by_digits import SortByDigits
from .sort_kernels import KEY_BITS

# Rows up to this extent are sorted by comparing all pairs of elements. Longer rows are sorted in
# runs of this length, which are then merged.
_SHORT_ROW = 512
_RUN = 256
_SIGN = -(2**63)


class SortByRank(SortByDigits):
    """Sorts by keys that are unsigned integers, with operations that GPUs run in parallel.

    The fact: IREE sorts a row in one thread by exchanging neighbours. On GPUs that takes minutes to
    run and 11 s to compile, and on Vulkan rows of more than 257 elements are wrong.

    1. Read the comparator and make records of keys as `sort-by-digits` does. The sorted records are
       keys with their positions, so that no two are equal; the companions are gathered.
    2. Short rows: the rank of a record is the number of smaller records. The position for a place
       is a sum over all records that selects the position of the record with this rank.
    3. Other rows: pad the row to a power of two, sort runs of it by rank, and merge them in a loop
       that doubles the length of the runs in each iteration. Each place of a merged run finds its
       record independently: a binary search gives how many of the records before it come from the
       first run (O. Green, R. McColl, D. Bader, GPU merge path, 2012).

    Before::

        %0 = "stablehlo.sort"(%x) … : tensor<1000xi32>

    After::

        %1 = … : tensor<1x1024xi64>                               // %x · 2³² + position
        %2 = …                                                    // runs of 256
        %3:2 = stablehlo.while(%length = 256, %row = %2) …        // twice

    Raises:
        UnsupportedByDeviceError: the comparator does not compare functions of single elements.
    """

    name: ClassVar[str] = "sort-by-rank"

    def rewrite(self, operation: ir.Operation) -> list[ir.Value] | None:
        """Builds keys, ranks, merges and gathers."""
        replacement = super().rewrite(operation)
        if replacement is None:
            raise UnsupportedByDeviceError(
                "A sort whose comparator is no comparison of keys (functions of single elements, "
                "one after the other) cannot be compiled for GPUs.",
                "Sort by keys (jnp.argsort, lax.sort with num_keys), or run it on devices('cpu').",
                describe_location(operation.location),
            )
        return replacement

    def sort_records(self, records: ir.Value, width: int, needed: int) -> ir.Value:
        """Returns the lower halves of records, sorted by the upper halves."""
        extent = hlo.shape_of(records)[1]
        if extent <= _SHORT_ROW:
            positions = _ranked(_with_positions(records), needed)
        else:
            positions = _merged(records, needed)
        return read_rows(hlo.convert(records, np.int32), positions)


def _with_positions(records: ir.Value) -> ir.Value:
    """Returns the upper halves combined with positions, as signed integers in unsigned order."""
    upper = hlo.and_(records, hlo.full_like(records, -(2**KEY_BITS)))
    keyed = hlo.or_(upper, hlo.iota(hlo.shape_of(records), 1, np.int64))
    return hlo.xor(keyed, hlo.full_like(keyed, _SIGN))


def _ranked(records: ir.Value, needed: int) -> ir.Value:
    """Returns the positions of the first `needed` records of each row, sorted."""
    number, extent = hlo.shape_of(records)
    wide = (number, extent, extent)
    own = hlo.broadcast_in_dim(records, wide, (0, 1))
    other = hlo.broadcast_in_dim(records, wide, (0, 2))
    rank = _sum(hlo.convert(hlo.compare(other, own, "LT"), np.int32))
    placed = (number, needed, extent)
    is_here = hlo.compare(
        hlo.broadcast_in_dim(rank, placed, (0, 2)), hlo.iota(placed, 1, np.int32), "EQ"
    )
    # Not an iota, because IREE cannot divide a reduction with its indices among threads.
    position = hlo.broadcast_in_dim(hlo.constant(np.arange(extent, dtype=np.int32)), placed, (2,))
    return _sum(hlo.select(is_here, position, hlo.full_like(position, 0)))


def _sum(values: ir.Value) -> ir.Value:
    """Adds 32-bit integers along the last axis."""
    zero = hlo.constant(0, np.int32)
    return hlo.reduce([values], [zero], (2,), lambda x, y: hlo.add(x, y))[0]


def _merged(records: ir.Value, needed: int) -> ir.Value:
    """Returns the positions of the first `needed` records of each row, sorted, for long rows."""
    number, extent = hlo.shape_of(records)
    filled = 1 << (extent - 1).bit_length()
    largest = hlo.constant(-(2**KEY_BITS), hlo.element_type_of(records))
    row = _with_positions(hlo.pad(records, largest, (0, 0), (0, filled - extent)))
    runs = hlo.reshape(row, (number * filled // _RUN, _RUN))
    sorted_runs = hlo.reshape(read_rows(runs, _ranked(runs, _RUN)), (number, filled))

    def is_left(length: ir.Value, _: ir.Value) -> ir.Value:
        return hlo.compare(length, hlo.full_like(length, filled), "LT")

    def merge(length: ir.Value, row: ir.Value) -> list[ir.Value]:
        return [hlo.add(length, length), merge_runs(length, row)]

    _, row = hlo.while_([hlo.constant(_RUN, np.int32), sorted_runs], is_left, merge)
    first = row if needed == filled else hlo.slice(row, (0, 0), (number, needed))
    return hlo.convert(first, np.int32)


class StabilizeSort(RewritePass):
    """Makes a stable `stablehlo.sort` stable.

    The fact: IREE exchanges neighbours unless the comparator says that they are in order, so that
    it also exchanges equal ones: ties are reversed, and `is_stable` is ignored.

    1. For each sort with `is_stable`, let the comparator be c(a, b): a must come before b.
    2. Replace it by not c(b, a): a may stay before b. For a strict order the two differ only in
       ties.
    3. Clear `is_stable`, so that the pass does nothing when it runs again.

    Before::

        ^bb0(%a, %b):
          %0 = stablehlo.compare LT, %a, %b
          stablehlo.return %0

    After::

        ^bb0(%b, %a):
          %0 = stablehlo.compare LT, %a, %b
          %1 = stablehlo.not %0
          stablehlo.return %1
    """

    name: ClassVar[str] = "stabilize-sort"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.sort",)

    def rewrite(self, operation: ir.Operation) -> None:
        """Changes the comparator in place."""
        if not ir.BoolAttr(operation.attributes["is_stable"]).value:
            return
        block = operation.regions[0].blocks[0]
        _exchange_pairs(block)
        terminator = block.operations[len(block.operations) - 1].operation
        with ir.InsertionPoint(terminator):
            terminator.operands[0] = hlo.not_(terminator.operands[0])
        operation.attributes["is_stable"] = ir.BoolAttr.get(False)


def _exchange_pairs(block: ir.Block) -> None:
    """Exchanges the uses of arguments 2i and 2i + 1."""
    arguments = list(block.arguments)
    for lhs, rhs in zip(arguments[::2], arguments[1::2], strict=True):
        uses = [(use.owner, use.operand_number) for use in lhs.uses]
        rhs.replace_all_uses_with(lhs)
        for owner, number in uses:
            owner.operands[number] = rhs
