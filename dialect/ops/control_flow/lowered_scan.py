"""StableHLO of `scan`: a loop, a loop of loops, or all passes written out.

A compiled loop copies its stacked results in each pass, because IREE does not update a carried
buffer in place. Long stacks are therefore built from pieces: an inner loop fills a piece of about
the square root of the length, and an outer one puts the pieces together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core.symbolic_dims import is_symbolic_dim
from axir.dialect.core.types import ShapedArray
from axir.dialect.program.rules import Value

Advance = Callable[[Sequence[Any], Sequence[Any]], tuple[list[Any], list[Any]]]

_INDEX = np.dtype(np.int32)
# Stacks with more bytes and more passes than these are built from pieces.
_LARGE_STACK = 16384
_MANY_PASSES = 64


@dataclass(frozen=True)
class LoweredScan:
    """The loop of a scan, ready to be written in StableHLO.

    Attributes:
        advance: Writes one pass: from the carry and the slices to the carry and the results.
        count: Number of carried values.
        xs: The scanned arrays.
        types: Types of the values that a pass adds to the stacks.
        length: Number of passes.
        reverse: Whether to go from the last slice to the first.
        unroll: The number of passes to write out in one.
    """

    advance: Advance
    count: int
    xs: Sequence[Value]
    types: Sequence[ShapedArray]
    length: int
    reverse: bool
    unroll: int

    def write(self, carry: Sequence[Value]) -> list[Value]:
        """Writes the loop from an initial carry; returns the last carry, then the stacks."""
        if is_symbolic_dim(self.length):
            loop = replace(self, unroll=1)
            return loop._passes(None, carry, _constant(self.length), self.length)
        if self.length <= self.unroll:
            return self._written_out(carry)
        whole = self.length - self.length % self.unroll
        size = sum(self.length * t.size * t.dtype.itemsize for t in self.types)
        if size > _LARGE_STACK and self.length > _MANY_PASSES:
            values = self._in_pieces(carry, whole)
        else:
            values = self._passes(None, carry, _constant(whole), self.length)
        for index in range(whole, self.length):
            place = self.length - 1 - index if self.reverse else index
            values = self._step(_constant(index), values, _constant(place))
        return values

    def _written_out(self, carry: Sequence[ir.Value]) -> list[ir.Value]:
        """Writes every pass, without a loop."""
        order = range(self.length)
        entries: list[list[Any]] = []
        for place in reversed(order) if self.reverse else order:
            slices = []
            for x in self.xs:
                extents = hlo.shape_of(x)[1:]
                starts, limits = [place, *(0 for _ in extents)], [place + 1, *extents]
                slices.append(hlo.reshape(hlo.slice(x, starts, limits), extents))
            carry, results = self.advance(carry, slices)
            entries.append(list(map(_entry, results, self.types)))
        if not entries:
            return [*carry, *self._stacks(0)]
        ordered = entries[::-1] if self.reverse else entries
        stacks = zip(*ordered, strict=True)
        return [*carry, *(hlo.concatenate(s, 0) if len(s) > 1 else s[0] for s in stacks)]

    def _step(self, index: ir.Value, values: Sequence[ir.Value], place: object) -> list[ir.Value]:
        """Writes one pass.

        Args:
            index: Number of the pass.
            values: The carry, then the stacks.
            place: The place of its results in the stacks.
        """
        source = hlo.subtract(_constant(self.length - 1), index) if self.reverse else index
        zero = _constant(0)
        slices = []
        for x in self.xs:
            extents = hlo.shape_of(x)[1:]
            piece = hlo.dynamic_slice(x, [source, *(zero for _ in extents)], (1, *extents))
            slices.append(hlo.reshape(piece, extents))
        carry, results = self.advance(values[: self.count], slices)
        pieces = map(_entry, results, self.types)
        return [*carry, *map(partial(_put, place, zero), values[self.count :], pieces)]

    def _stacks(self, length: int) -> list[ir.Value]:
        """Returns empty stacks."""
        return [hlo.full(0, (length, *t.shape), t.dtype) for t in self.types]

    def _passes(
        self, start: ir.Value, carry: Sequence[ir.Value], count: object, capacity: int
    ) -> list[ir.Value]:
        """Writes a loop of `count` passes from number `start` that fills stacks of a capacity."""

        def body(index: ir.Value, *values: ir.Value) -> list[ir.Value]:
            carried: Sequence[Any] = values
            for distance in range(self.unroll):
                local = _later(index, distance)
                place = hlo.subtract(_constant(capacity - 1), local) if self.reverse else local
                number = local if start is None else hlo.add(start, local)
                carried = self._step(number, carried, place)
            return [_later(index, self.unroll), *carried]

        init = [_constant(0), *carry, *self._stacks(capacity)]
        return hlo.while_(init, lambda index, *_: hlo.compare(index, count, "LT"), body)[1:]

    def _in_pieces(self, carry: Sequence[ir.Value], whole: int) -> list[ir.Value]:
        """Writes a loop of loops of the first passes."""
        capacity = self.unroll * math.ceil(math.sqrt(whole) / self.unroll)
        total = capacity * math.ceil(whole / capacity) + self.length - whole
        zero = _constant(0)

        def body(start: ir.Value, *values: ir.Value) -> list[ir.Value]:
            count = hlo.minimum(_constant(capacity), hlo.subtract(_constant(whole), start))
            inner = self._passes(start, values[: self.count], count, capacity)
            first = start
            if self.reverse:
                first = hlo.subtract(_constant(total - capacity), start)
            stacks = map(partial(_put, first, zero), values[self.count :], inner[self.count :])
            return [_later(start, capacity), *inner[: self.count], *stacks]

        values = hlo.while_(
            [zero, *carry, *self._stacks(total)],
            lambda start, *_: hlo.compare(start, _constant(whole), "LT"),
            body,
        )[1:]
        offset = total - self.length if self.reverse else 0
        kept = [
            hlo.slice(x, [offset, *(0 for _ in t.shape)], [offset + self.length, *t.shape])
            for x, t in zip(values[self.count :], self.types, strict=True)
        ]
        return [*values[: self.count], *kept]


def _entry(result: ir.Value, like: ShapedArray) -> ir.Value:
    return hlo.reshape(result, (1, *like.shape))


def _put(place: object, zero: object, stack: object, piece: object) -> ir.Value:
    """Writes a piece into a stack, from a place on."""
    rank = len(hlo.shape_of(stack))
    return hlo.dynamic_update_slice(stack, piece, [place, *(zero for _ in range(rank - 1))])


def _constant(value: int) -> ir.Value:
    return hlo.extent(value, _INDEX)


def _later(index: ir.Value, distance: int) -> ir.Value:
    return hlo.add(index, _constant(distance)) if distance else index
