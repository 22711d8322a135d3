"""Kernels that sort rows of records, each as one dispatch.

A record is an `i64`: the upper half holds the key, an unsigned number, and the lower half its
companion. Rows are sorted by their keys; the sort is stable. Long rows are sorted digit by digit
from the last one (Knuth, The Art of Computer Programming, volume 3, 5.2.5). Short rows are sorted
by counting the records before each record (5.2, algorithm C). Where only the first few records are
needed, the records with the smallest first digits are selected first; up to sixteen are inserted
into a list one by one (5.2.1, algorithm S). Rows are divided among workgroups. Each workgroup has
memory for one row, twice: it is an additional, unused result of the kernel, because the stack is
too small. Elsewhere: making records (`sort_by_digits.py`).

Microseconds for a row, without threads, and a row's extent:

| extent         | 8     | 16    | 32   | 64   | 128 | 256 | 512 | 1000 | 100,000 |
| -------------- | ----- | ----- | ---- | ---- | --- | --- | --- | ---- | ------- |
| counting       | 0.023 | 0.090 | 0.48 | 1.9  | 7.6 | 47  | 118 |      |         |
| digits, 6 bits |       |       | 0.60 | 0.85 | 1.8 | 5.0 | 5.7 |      |         |
| 8 bits         |       |       | 1.3  | 1.3  | 2.4 | 2.5 | 4.4 | 8.9  | 640     |
| 11 bits        |       |       |      |      |     |     |     |      | 560     |
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TypeAlias

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.expressions import select
from axir.dialect.builders.kernels import (
    Memory,
    any_lane,
    branch,
    dispatch,
    each,
    loop,
    repeat_while,
    rows_of,
    scratch,
    when,
)
from axir.dialect.builders.scalars import (
    Scalar,
    broadcast,
    index,
    integer,
    to_index,
    to_integer,
    truncate,
)
from axir.dialect.core.annotations import Returning

KEY_BITS = 32
"""The width of a key, and of what goes with it."""

_SHORT_ROW = 32
_DIGIT_BITS = ((128, 6), (4096, 8))
_LARGEST_DIGIT = 11
_RECORDS_OF_A_WORKGROUP = 1 << 13
_WORKGROUPS = 64

# If at most one record in `_SMALL_SHARE` is needed, the smallest records are found before they are
# sorted. Up to `_FEW` are inserted one by one, which is slower than sorting by digits only for
# descending rows.
_SMALL_SHARE = 8
_FEW = 16
_LANES = 16
_DIGITS_OF_FEW = 8

Row: TypeAlias = Returning[None]
"""Takes the memory of a row's records, of its result, and what else a row needs."""

Read: TypeAlias = Callable[[Scalar], Scalar]
Write: TypeAlias = Callable[[Scalar, Scalar], None]
"""From and to the place of a record."""


def sort_records(records: ir.Value, width: int, needed: int) -> ir.Value:
    """Sorts each row of `[rows, extent]` records by keys that are less than `2**width`.

    Returns the companions of the first `needed` keys of each row, as `i32`.
    """
    rows, extent = hlo.shape_of(records)
    workgroups = max(1, min(_WORKGROUPS, rows, rows * extent // _RECORDS_OF_A_WORKGROUP))
    result = hlo.tensor_type((rows, needed), integer(KEY_BITS))
    halves = hlo.tensor_type((workgroups, 2, extent), hlo.element_type_of(records))
    is_few = needed <= _FEW and needed * _SMALL_SHARE <= extent
    has_no_half = is_few or extent <= _SHORT_ROW
    sort: Row = (
        _inserted if is_few else _counted if has_no_half else _by_digits(extent, width, needed)
    )

    def kernel(workgroup: Scalar, records: Memory, output: Memory, *own: Memory) -> None:
        @each(*rows_of(workgroup, rows, workgroups))
        def row(number: Scalar) -> None:
            sort(records.at(number), output.at(number), *(x.at(workgroup) for x in own))

    types = [result] if has_no_half else [result, halves]
    return dispatch(kernel, [records], types, workgroups=workgroups, name="sort")[0]


def _by_digits(extent: int, width: int, needed: int) -> Row:
    if needed * _SMALL_SHARE > extent:
        digits = _Digits.of(width, _digit_bits(extent))
        return lambda records, output, halves: digits.sort(records, index(extent), output, halves)
    digits = _Digits.of(width, _DIGITS_OF_FEW)

    def sort(records: Memory, output: Memory, halves: Memory) -> None:
        smallest = halves.at(1)
        length = _smallest(records, smallest, width, needed)
        digits.sort(smallest, length, output, halves)

    return sort


def _digit_bits(extent: int) -> int:
    return next((bits for end, bits in _DIGIT_BITS if extent <= end), _LARGEST_DIGIT)


def _key(record: Scalar) -> Scalar:
    return record >> KEY_BITS


def _companion(record: Scalar) -> Scalar:
    return truncate(record, KEY_BITS)


def _counted(records: Memory, output: Memory) -> None:
    """Puts each record at the place given by the number of records before it."""
    extent = records.shape[0]
    put = _put_companion_into(output, extent)

    @each(0, extent)
    def place(number: Scalar) -> None:
        record = records[number]
        key = _key(record)

        def count_equal(other: Scalar, before: Scalar) -> Scalar:
            return select(_key(records[other]) > key, before, before + 1)

        def count_less(other: Scalar, before: Scalar) -> Scalar:
            return select(_key(records[other]) < key, before + 1, before)

        before = loop(0, number, records.constant(0), count_equal)
        before = loop(number + 1, extent, before, count_less)
        put(to_index(before), record)


def _inserted(records: Memory, output: Memory) -> None:
    """Keeps the smallest records so far in order, and inserts each smaller record."""
    extent, needed = records.shape[0], output.shape[0]
    kept = scratch((needed,), integer(2 * KEY_BITS))

    def insert(last: Scalar | int, record: Scalar) -> None:
        def is_before(place: Scalar) -> Scalar:
            # The place before the first one is read at the first one, which does no harm.
            below = kept[select(place > 0, place - 1, place)]
            return (place > 0) & (_key(record) < _key(below))

        def make_room(place: Scalar) -> Scalar:
            kept[place] = kept[place - 1]
            return place - 1

        kept[repeat_while(index(0) + last, is_before, make_room)] = record

    @each(0, needed)
    def begin(number: Scalar) -> None:
        insert(number, records[number])

    def insert_if_smaller(number: Scalar) -> None:
        record = records[number]
        is_smaller = _key(record) < _key(kept[needed - 1])
        when(is_smaller)(lambda: insert(needed - 1, record))

    def look(start: Scalar) -> None:
        bound = broadcast(_key(kept[needed - 1]), _LANES)
        is_any = any_lane(_key(records.read(start, _LANES)) < bound)
        when(is_any)(lambda: each(start, start + _LANES)(insert_if_smaller))

    whole = needed + (extent - needed) // _LANES * _LANES
    if whole > needed:
        each(needed, whole, _LANES)(look)
    each(whole, extent)(insert_if_smaller)

    @each(0, needed)
    def write(number: Scalar) -> None:
        output[number] = _companion(kept[number])


def _smallest(records: Memory, kept: Memory, width: int, needed: int) -> Scalar:
    """Copies the records with the smallest first digits, and returns their number."""
    extent = records.shape[0]
    bits = min(width, _LARGEST_DIGIT)
    counts = scratch((2**bits,), integer(32))

    def value(record: Scalar) -> Scalar:
        return to_index(record >> (KEY_BITS + width - bits))

    @each(0, 2**bits)
    def clear(number: Scalar) -> None:
        counts[number] = 0

    @each(0, extent)
    def count(number: Scalar) -> None:
        at = value(records[number])
        counts[at] = counts[at] + 1

    def find(number: Scalar, bound: Scalar, total: Scalar) -> tuple[Scalar, Scalar]:
        return select(total < needed, number, bound), total + counts[number]

    bound, _ = loop(0, 2**bits, (index(0), counts.constant(0)), find)

    def keep(number: Scalar, length: Scalar) -> Scalar:
        record = records[number]
        kept[length] = record
        return select(value(record) > bound, length, length + 1)

    return loop(0, extent, index(0), keep)


def _put_into(half: Memory) -> Write:
    return half.__setitem__


def _put_companion_into(output: Memory, extent: int) -> Write:
    """Returns a function that writes a record's companion to the output if its place is needed."""
    needed = output.shape[0]

    def write(place: Scalar, record: Scalar) -> None:
        output[place] = _companion(record)

    def write_first(place: Scalar, record: Scalar) -> None:
        when(place < needed)(lambda: write(place, record))

    return write if needed == extent else write_first


@dataclasses.dataclass(frozen=True)
class _Digits:
    """The digits into which keys are cut, all of the same width; number 0 is the last digit."""

    count: int
    bits: int

    @classmethod
    def of(cls, width: int, largest: int) -> _Digits:
        """Returns the fewest digits of at most so many bits."""
        count = -(-width // largest)
        return cls(count, -(-width // count))

    def sort(self, records: Memory, length: Scalar, output: Memory, halves: Memory) -> None:
        """Sorts `length` records through two buffers; the second buffer may hold the records.

        Writes the companions of the first ones to the output.
        """
        counts, last = scratch((self.count, 2**self.bits), integer(32)), self.count - 1
        self._count(records, length, counts)
        put = _put_companion_into(output, records.shape[0])

        def finish(read: Read) -> None:
            self._by_digit(index(last), counts, length, read, put)

        if not last:
            return finish(lambda number: records[number])
        first = halves.at(0)
        self._by_digit(index(0), counts, length, lambda number: records[number], _put_into(first))

        def middle(digit: Scalar, source: Scalar) -> Scalar:
            here, there = halves.at(source), halves.at(source ^ 1)
            self._by_digit(digit, counts, length, lambda number: here[number], _put_into(there))
            return source ^ 1

        source = loop(1, last, index(0), middle)
        return finish(lambda number: halves[source, number])

    def _by_digit(
        self, digit: Scalar, counts: Memory, length: Scalar, read: Read, write: Write
    ) -> None:
        """Moves records to their places by a digit."""
        most = self._starts(counts, digit)

        def move() -> None:
            @each(0, length)
            def one(number: Scalar) -> None:
                record = read(number)
                at = (digit, self._value(record, digit))
                place = counts[at]
                counts[at] = place + 1
                write(to_index(place), record)

        def copy() -> None:
            each(0, length)(lambda number: write(number, read(number)))

        branch(to_index(most) < length, move, copy)

    def _value(self, record: Scalar, digit: Scalar) -> Scalar:
        """Returns the value of a digit, as an index."""
        shift = to_integer(digit * self.bits + KEY_BITS, 64)
        return to_index((record >> shift) & (2**self.bits - 1))

    def _count(self, records: Memory, length: Scalar, counts: Memory) -> None:
        """Counts how often each value of each digit occurs, `[digit, value]`."""

        @each(0, self.count)
        def clear(digit: Scalar) -> None:
            @each(0, 2**self.bits)
            def one(value: Scalar) -> None:
                counts[digit, value] = 0

        @each(0, length)
        def read(number: Scalar) -> None:
            record = records[number]

            @each(0, self.count)
            def count(digit: Scalar) -> None:
                at = (digit, self._value(record, digit))
                counts[at] = counts[at] + 1

    def _starts(self, counts: Memory, digit: Scalar) -> Scalar:
        """Replaces counts by the place of each value's first record; returns the largest count."""

        def add(value: Scalar, total: Scalar, most: Scalar) -> tuple[Scalar, Scalar]:
            count = counts[digit, value]
            counts[digit, value] = total
            return total + count, select(count > most, count, most)

        zero = counts.constant(0)
        return loop(0, 2**self.bits, (zero, zero), add)[1]
