"""Kernels that sort rows of records, each as one dispatch.

A record is an `i64`: the upper half holds the key, an unsigned number, the lower half what goes
with it. Rows are sorted by their keys, equal keys in the order in which they came. Long rows are
sorted digit by digit from the last one (Knuth, The Art of Computer Programming, volume 3, 5.2.5),
short ones by counting for each record what goes before it (5.2, algorithm C). Where a few of the
first are enough, those with the smallest first digits are found before. What does not live here:
what records are made of (`sort_by_digits.py`).

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

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.dispatch import Tensor, dispatch_rows, loop, scratch
from axir.dialect.builders.expressions import select
from axir.dialect.builders.scalars import Scalar, index, to_index, to_integer

KEY_BITS = 32
"""The width of a key, and of what goes with it."""

_SHORT_ROW = 32
_DIGIT_BITS = ((128, 6), (4096, 8))
_LARGEST_DIGIT = 11
_RECORDS_OF_A_WORKGROUP = 1 << 13
_WORKGROUPS = 64

# Of what share of a row the smallest records are found before they are sorted, and how.
_SMALL_SHARE = 8
_DIGITS_OF_FEW = 8

Row = Callable[[Tensor, Tensor], Tensor]


def sort_records(records: ir.Value, width: int, needed: int) -> ir.Value:
    """Sorts each row of `[rows, extent]` records by keys that are less than `2**width`.

    Returns the first `needed` records of each row.
    """
    rows, extent = hlo.shape_of(records)
    # IREE draws a conversion to wider integers into the kernel, where whole arrays do not compile.
    (records,) = hlo.optimization_barrier(records)
    workgroups = max(1, min(_WORKGROUPS, rows * extent // _RECORDS_OF_A_WORKGROUP))
    if extent <= _SHORT_ROW:
        whole = _sort_rows(_counted, records, records.type, workgroups)
        return hlo.slice(whole, (0, 0), (rows, needed)) if needed < extent else whole
    halves = hlo.tensor_type((rows, 2, extent), hlo.element_type_of(records))
    both = _sort_rows(_by_digits(extent, width, needed), records, halves, workgroups)
    first = hlo.slice(both, (0, 0, 0), (rows, 1, needed))
    return hlo.reshape(first, (rows, needed))


def _by_digits(extent: int, width: int, needed: int) -> Row:
    if needed * _SMALL_SHARE > extent:
        digits = _Digits.of(width, _digit_bits(extent))
        return lambda records, halves: digits.sort(
            lambda _, number: records[number], index(extent), halves
        )
    digits = _Digits.of(width, _DIGITS_OF_FEW)

    def sort(records: Tensor, halves: Tensor) -> Tensor:
        half = 1 - digits.start
        halves, length = _smallest(records, halves, half, width, needed)
        return digits.sort(lambda halves, number: halves[half, number], length, halves)

    return sort


def _digit_bits(extent: int) -> int:
    return next((bits for end, bits in _DIGIT_BITS if extent <= end), _LARGEST_DIGIT)


def _sort_rows(sort: Row, records: ir.Value, result: ir.Type, workgroups: int) -> ir.Value:
    def kernel(first: Scalar, rows: Scalar, records: Tensor, output: Tensor) -> Tensor:
        def step(number: Scalar, output: Tensor) -> Tensor:
            return sort(records.at(first + number), output.at(number)).whole()

        sorted_rows: Tensor = loop(0, rows, output, step)
        return sorted_rows

    return dispatch_rows(kernel, [records], result, workgroups)


def _key(record: Scalar) -> Scalar:
    return record >> KEY_BITS


def _counted(records: Tensor, output: Tensor) -> Tensor:
    """Puts each record where the number of those before it says."""
    extent = records.shape[-1]

    def place(number: Scalar, output: Tensor) -> Tensor:
        record = records[number]
        key = _key(record)

        def count_equal(other: Scalar, before: Scalar) -> Scalar:
            return select(_key(records[other]) > key, before, before + 1)

        def count_less(other: Scalar, before: Scalar) -> Scalar:
            return select(_key(records[other]) < key, before + 1, before)

        before = loop(0, number, records.constant(0), count_equal)
        before = loop(number + 1, extent, before, count_less)
        return output.set(to_index(before), record)

    placed: Tensor = loop(0, extent, output, place)
    return placed


def _smallest(
    records: Tensor, halves: Tensor, half: int, width: int, needed: int
) -> tuple[Tensor, Scalar]:
    """Copies the records with the smallest first digits to a half, and tells how many they are."""
    extent = records.shape[-1]
    bits = min(width, _LARGEST_DIGIT)

    def value(record: Scalar) -> Scalar:
        return to_index(record >> (KEY_BITS + width - bits))

    def count(number: Scalar, counts: Tensor) -> Tensor:
        at = value(records[number])
        return counts.set(at, counts[at] + 1)

    memory = scratch((2**bits,), ir.IntegerType.get_signless(32))
    cleared = loop(0, 2**bits, memory, lambda i, counts: counts.set(i, 0))
    counts = loop(0, extent, cleared, count)

    def find(number: Scalar, bound: Scalar, total: Scalar) -> tuple[Scalar, Scalar]:
        return select(total < needed, number, bound), total + counts[number]

    bound, _ = loop(0, 2**bits, (index(0), counts.constant(0)), find)

    def keep(number: Scalar, halves: Tensor, kept: Scalar) -> tuple[Tensor, Scalar]:
        record = records[number]
        after = select(value(record) > bound, kept, kept + 1)
        return halves.set((half, kept), record), after

    kept: tuple[Tensor, Scalar] = loop(0, extent, (halves, index(0)), keep)
    return kept


@dataclasses.dataclass(frozen=True)
class _Digits:
    """How keys are cut into digits, the last of which is number 0, all of the same width."""

    count: int
    bits: int

    @classmethod
    def of(cls, width: int, largest: int) -> _Digits:
        """As few digits as can be, of at most so many bits."""
        count = -(-width // largest)
        return cls(count, -(-width // count))

    @property
    def start(self) -> int:
        """The half where the records are at first."""
        return self.count % 2

    def sort(
        self, record_at: Callable[[Tensor, Scalar], Scalar], length: Scalar, halves: Tensor
    ) -> Tensor:
        """Sorts a row to and fro between two halves, of which the first gets the result.

        `record_at(halves, number)` gives the records; there are `length`.
        """
        counts, halves = self._read(record_at, length, halves)

        def by_digit(
            digit: Scalar, counts: Tensor, halves: Tensor, source: Scalar
        ) -> tuple[Tensor, Tensor, Scalar]:
            counts, most = self._starts(counts, digit)
            is_mixed = to_index(most) < length  # else there is nothing to do
            moved = select(is_mixed, length, 0)
            target = select(is_mixed, source ^ 1, source)

            def move(number: Scalar, counts: Tensor, halves: Tensor) -> tuple[Tensor, Tensor]:
                record = halves[source, number]
                at = (digit, self._value(record, digit))
                place = counts[at]
                return counts.set(at, place + 1), halves.set((target, to_index(place)), record)

            return (*loop(0, moved, (counts, halves), move), target)

        carried = (counts, halves, index(self.start))
        _, halves, source = loop(0, self.count, carried, by_digit)
        return _into_first(halves, source, length)

    def _value(self, record: Scalar, digit: Scalar) -> Scalar:
        """Returns the value of a digit, as an index."""
        shift = to_integer(digit * self.bits + KEY_BITS, 64)
        return to_index((record >> shift) & (2**self.bits - 1))

    def _read(
        self, record_at: Callable[[Tensor, Scalar], Scalar], length: Scalar, halves: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Counts how often each value occurs, `[digit, value]`, and copies the records."""

        def clear(digit: Scalar, counts: Tensor) -> Tensor:
            row: Tensor = loop(0, 2**self.bits, counts, lambda i, row: row.set((digit, i), 0))
            return row

        def read(number: Scalar, counts: Tensor, halves: Tensor) -> tuple[Tensor, Tensor]:
            record = record_at(halves, number)

            def count(digit: Scalar, counts: Tensor) -> Tensor:
                at = (digit, self._value(record, digit))
                return counts.set(at, counts[at] + 1)

            return loop(0, self.count, counts, count), halves.set((self.start, number), record)

        memory = scratch((self.count, 2**self.bits), ir.IntegerType.get_signless(32))
        counts = loop(0, self.count, memory, clear)
        return loop(0, length, (counts, halves), read)

    def _starts(self, counts: Tensor, digit: Scalar) -> tuple[Tensor, Scalar]:
        """Replaces counts by where the first record of each value goes; also the largest count."""

        def add(
            value: Scalar, counts: Tensor, total: Scalar, most: Scalar
        ) -> tuple[Tensor, Scalar, Scalar]:
            count = counts[digit, value]
            larger = select(count > most, count, most)
            return counts.set((digit, value), total), total + count, larger

        zero = counts.constant(0)
        counts, _, most = loop(0, 2**self.bits, (counts, zero, zero), add)
        return counts, most


def _into_first(halves: Tensor, half: Scalar, length: Scalar) -> Tensor:
    """Copies a half to the first one, if it is another."""
    copied: Tensor = loop(
        0, half * length, halves, lambda i, halves: halves.set((0, i), halves[half, i])
    )
    return copied
