"""`sort-by-digits`: a sort is a kernel, or a few of them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.legalize.indices.gathers import read_rows
from axir.passes.legalize.rewriting import RewritePass

from .sort_kernels import KEY_BITS, sort_records
from .sort_order import Comparator, Key

_LARGEST_EXTENT = 2**31 - 1
_UNROLLED = 3


class SortByDigits(RewritePass):
    """Sorts by keys that are unsigned integers, digit by digit.

    The fact: IREE sorts by exchanging neighbours, which takes 49 s for 1e5 numbers and is not
    stable. It keeps operands with unused results on the stack ("exceeded stack allocation limit").

    1. Read from the comparator which functions of the elements it compares, in order. A sort with
       another kind of comparator does not change (`stabilize-sort`).
    2. Compute these keys for all elements, as unsigned integers in the same order: the sign bit of
       signed integers and of floats is flipped, and for negative floats all other bits, too. If
       floats are not compared in total order, -0.0 becomes 0.0 before, and NaN the largest NaN. For
       a descending order all bits are flipped.
    3. Cut the keys into words of 32 bits, several narrow keys into one.
    4. For each word, the last one first: make records of the word and a companion, and sort them
       with a stable kernel (`sort_kernels.py`). The companion is the position of the element. If
       the sort has one word and one result of at most 32 bits, the companion is the element itself.
    5. Gather the operands at the sorted positions. Where only slices from the front of the results
       are read, only this part of them is computed, and kernels sort only the smallest keys.

    Before::

        %0 = "stablehlo.sort"(%x) … : tensor<1000xi32>

    After::

        %1 = stablehlo.xor %x, %minimum : tensor<1000xi32>
        %2 = … : tensor<1000xi64>                                 // %1 · 2³² + %x
        %3:2 = flow.dispatch @sort_0::@sort_0(%2)                 // the sorted ones, and memory

    Only for CPUs, because each workgroup runs a sequential loop. Figures are in
    `benchmarks/README.md`.
    """

    name: ClassVar[str] = "sort-by-digits"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.sort",)

    def rewrite(self, operation: ir.Operation) -> list[ir.Value] | None:
        """Builds keys, kernels and gathers."""
        operands = list(operation.operands)
        shape = hlo.shape_of(operands[0])
        dimension = ir.IntegerAttr(operation.attributes["dimension"]).value
        if not math.prod(shape) or shape[dimension] == 1:
            return operands
        comparator = Comparator(operation.regions[0].blocks[0])
        keys = comparator.keys()
        if keys is None or shape[dimension] > _LARGEST_EXTENT:
            return None
        lines = _Lines(shape, dimension)
        digits = [_digits(comparator.computed(key, operands), key) for key in keys]
        words = _words([(lines.rows(bits), width) for bits, width in digits])
        used = [number for number, result in enumerate(operation.results) if any(result.uses)]
        needed = _needed(operation, dimension)
        if len(words) == 1 and len(used) == 1 and _fits(operands[used[0]]):
            (number,) = used
            companions = _bits(lines.rows(operands[number]))
            sorted_ = self._sorted_with(*words[0], companions, needed)
            operands[number] = lines.back(_from_bits(sorted_, operands[number]))
        else:
            positions = self._sorted_positions(words, needed)
            for number in used:
                operands[number] = lines.gather(operands[number], positions)
        if needed < shape[dimension]:
            _slice_instead(operation, operands)
            return list(operation.operands)
        return operands

    def sort_records(self, records: ir.Value, width: int, needed: int) -> ir.Value:
        """Returns the lower halves of records, `i32`, sorted by the upper halves.

        Args:
            records: `i64[rows, extent]`; equal ones keep their order.
            width: Bits of the upper halves that count.
            needed: The number of records to return from the front of each row.
        """
        return sort_records(records, width, needed)

    def _sorted_with(
        self, word: ir.Value, width: int, companions: ir.Value, needed: int
    ) -> ir.Value:
        """Returns the companions of a word, as `i32`, in the order of the word.

        Returns only the first `needed` ones of each row.
        """
        above = hlo.shift_left(word, hlo.full_like(word, KEY_BITS))
        return self.sort_records(hlo.or_(above, _unsigned(companions)), width, needed)

    def _sorted_positions(self, words: Sequence[tuple[ir.Value, int]], needed: int) -> ir.Value:
        """Returns the positions of elements sorted by several words, the last word first.

        The result `[rows, needed]` has the first `needed` positions of each row.
        """
        shape = hlo.shape_of(words[0][0])
        positions = hlo.iota(shape, 1, np.int32)
        *later, (first, first_width) = words
        if len(later) > _UNROLLED:
            positions = self._sorted_in_loop(later, positions)
        else:
            for word, width in later:
                positions = self._by_word(word, width, positions, shape[1])
        return self._by_word(first, first_width, positions, needed)

    def _by_word(self, word: ir.Value, width: int, positions: ir.Value, needed: int) -> ir.Value:
        """Returns positions, sorted by the word at each position."""
        is_first = isinstance(positions, ir.OpResult) and positions.owner.name == "stablehlo.iota"
        moved = word if is_first else read_rows(word, positions)
        return self._sorted_with(moved, width, positions, needed)

    def _sorted_in_loop(
        self, words: Sequence[tuple[ir.Value, int]], positions: ir.Value
    ) -> ir.Value:
        """Returns positions sorted by words, in a loop of one kernel to save compile time."""
        shape = hlo.shape_of(positions)
        width = max(width for _, width in words)
        narrow = [hlo.reshape(hlo.convert(word, np.int32), (1, *shape)) for word, _ in words]
        stacked = hlo.concatenate(narrow, 0)

        def is_left(number: ir.Value, _: ir.Value) -> ir.Value:
            return hlo.compare(number, hlo.full_like(number, len(words)), "LT")

        def by_word(number: ir.Value, positions: ir.Value) -> list[ir.Value]:
            zero = hlo.full_like(number, 0)
            word = hlo.reshape(hlo.dynamic_slice(stacked, [number, zero, zero], (1, *shape)), shape)
            next_number = hlo.add(number, hlo.full_like(number, 1))
            return [next_number, self._by_word(_unsigned(word), width, positions, shape[1])]

        return hlo.while_([hlo.constant(0, np.int32), positions], is_left, by_word)[1]


@dataclasses.dataclass(frozen=True)
class _Lines:
    """The lines along a dimension, as rows `[number, extent]`."""

    shape: tuple[int, ...]
    dimension: int

    @property
    def _others(self) -> list[int]:
        return [axis for axis in range(len(self.shape)) if axis != self.dimension]

    def rows(self, array: ir.Value) -> ir.Value:
        """Reshapes an array to rows."""
        order = [*self._others, self.dimension]
        moved = array if order == sorted(order) else hlo.transpose(array, order)
        extent = self.shape[self.dimension]
        return hlo.reshape(moved, (math.prod(self.shape) // extent, extent))

    def back(self, rows: ir.Value) -> ir.Value:
        """Undoes `rows`; lines may have become shorter."""
        order = [*self._others, self.dimension]
        extent = hlo.shape_of(rows)[1]
        moved = hlo.reshape(rows, [*(self.shape[axis] for axis in self._others), extent])
        if order == sorted(order):
            return moved
        return hlo.transpose(moved, [order.index(axis) for axis in range(len(order))])

    def gather(self, array: ir.Value, positions: ir.Value) -> ir.Value:
        """Reads each line of an array at positions in it, given as rows."""
        if self._counts(array):
            return self.back(hlo.convert(positions, hlo.element_type_of(array)))
        return self.back(read_rows(self.rows(array), positions))

    def _counts(self, array: ir.Value) -> bool:
        """Tells whether the elements of an array are their positions."""
        if isinstance(array, ir.BlockArgument) or array.owner.name != "stablehlo.iota":
            return False
        return ir.IntegerAttr(array.owner.attributes["iota_dimension"]).value == self.dimension


def _digits(array: ir.Value, key: Key) -> tuple[ir.Value, int]:
    """Returns signless integers that, as unsigned ones, have the key's order, and their width."""
    if hlo.is_float(array):
        array = array if key.is_total else _canonical(array)
        bits = _bits(array)
        width = hlo.element_type_of(bits).width
        sign = hlo.shift_right_arithmetic(bits, hlo.full_like(bits, width - 1))
        bits = hlo.xor(bits, hlo.or_(sign, hlo.full_like(bits, -(2 ** (width - 1)))))
    else:
        bits = _bits(array)
        width = hlo.element_type_of(bits).width
        if width > 1 and not hlo.is_unsigned(array):
            bits = hlo.xor(bits, hlo.full_like(bits, -(2 ** (width - 1))))
    return (hlo.not_(bits) if key.is_descending else bits), width


def _canonical(array: ir.Value) -> ir.Value:
    """Returns floats with equal bits for equal numbers, and with NaN as the largest."""
    zero, nan = hlo.full_like(array, 0), hlo.full_like(array, np.nan)
    array = hlo.select(hlo.compare(array, zero, "EQ"), zero, array)
    return hlo.select(hlo.compare(array, array, "NE"), nan, array)


def _fits(array: ir.Value) -> bool:
    return not hlo.is_complex(array) and hlo.element_type_of(array).width <= KEY_BITS


def _bits(array: ir.Value) -> ir.Value:
    """Returns the bits of numbers as signless integers."""
    return hlo.bitcast_convert(array, _integer(hlo.element_type_of(array).width))


def _from_bits(bits: ir.Value, like: ir.Value) -> ir.Value:
    """Inverts `_bits`, for bits that were the companion of a key."""
    element = hlo.element_type_of(like)
    return hlo.bitcast_convert(hlo.convert(bits, _integer(element.width)), element)


def _integer(width: int) -> ir.Type:
    return ir.IntegerType.get_signless(width)


def _words(digits: Sequence[tuple[ir.Value, int]]) -> list[tuple[ir.Value, int]]:
    """Packs keys, given in the order in which they decide, into words, the last word first.

    A word is an `i64` that is not negative, and less than two to the power of its width.
    """
    words: list[tuple[ir.Value, int]] = []
    for bits, width in reversed(digits):
        wide = _unsigned(bits)
        if width > KEY_BITS:
            low = hlo.and_(wide, hlo.full_like(wide, 2**KEY_BITS - 1))
            high = hlo.shift_right_logical(wide, hlo.full_like(wide, KEY_BITS))
            words += [(low, KEY_BITS), (high, width - KEY_BITS)]
        elif words and words[-1][1] + width <= KEY_BITS:
            word, below = words.pop()
            shifted = hlo.shift_left(wide, hlo.full_like(wide, below))
            words.append((hlo.or_(word, shifted), below + width))
        else:
            words.append((wide, width))
    return words


def _unsigned(bits: ir.Value) -> ir.Value:
    """Returns integers of any width as `i64`, extended by zeros."""
    width = hlo.element_type_of(bits).width
    if width == 1:
        return hlo.convert(bits, _integer(64))  # booleans are 0 and 1
    wide = hlo.convert(bits, _integer(64))
    return hlo.and_(wide, hlo.full_like(wide, 2**width - 1)) if width < 64 else wide


def _needed(operation: ir.Operation, dimension: int) -> int:
    """Returns how many of the first elements along a dimension the users of a sort read."""
    extent = hlo.shape_of(operation.operands[0])[dimension]
    limits = [0]
    for result in operation.results:
        for use in result.uses:
            user = use.owner.operation
            if user.name != "stablehlo.slice":
                return extent
            limits.append(user.attributes["limit_indices"][dimension])
    return max(limits) or extent


def _slice_instead(operation: ir.Operation, parts: Sequence[ir.Value]) -> None:
    """Replaces slices of a sort's results by slices of their computed parts."""
    for result, part in zip(operation.results, parts, strict=True):
        for use in list(result.uses):
            use.owner.operands[use.operand_number] = part
