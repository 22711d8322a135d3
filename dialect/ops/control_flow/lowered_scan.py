"""StableHLO of `scan`: a loop, a loop of loops, or all passes written out.

A compiled loop copies what it stacks in each pass, because IREE does not update a carried buffer in
place. Long stacks are therefore built from pieces: an inner loop fills a piece of about the square
root of the length, and an outer one puts the pieces together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import stablehlo as hlo
from ...types import ShapedArray

Advance = Callable[[Sequence[Any], Sequence[Any]], tuple[list[Any], list[Any]]]

_INDEX = np.dtype(np.int32)
# Stacks of more bytes, and of more passes, are built from pieces.
_LARGE_STACK = 16384
_MANY_PASSES = 64


def lowered_loop(
    advance: Advance,
    carry: list[Any],
    xs: list[Any],
    types: list[ShapedArray],
    length: int,
    reverse: bool,
    unroll: int,
) -> list[Any]:
    """Writes the loop of a scan.

    Args:
        advance: Writes one pass: from the carry and the slices to the carry and the results.
        carry: The first carry.
        xs: What is scanned.
        types: Of what a pass adds to the stacks.
        length: Number of passes.
        reverse: Whether to go from the last slice to the first.
        unroll: How many passes to write out in one.

    Returns:
        The last carry, then the stacks.
    """
    loop = _Loop(advance, xs, types, length, reverse, len(carry))
    if length <= unroll:
        return loop.written_out(carry)
    whole = length - length % unroll
    size = sum(length * t.size * t.dtype.itemsize for t in types)
    if size > _LARGE_STACK and length > _MANY_PASSES:
        values = loop.in_pieces(carry, whole, unroll)
    else:
        values = loop.at_once(carry, whole, unroll)
    for place in range(whole, length):
        values = loop.step(_constant(place), values, _constant(loop.place_of(place)))
    return values


class _Loop:
    """What the forms of the loop share."""

    def __init__(
        self,
        advance: Advance,
        xs: list[Any],
        types: list[ShapedArray],
        length: int,
        reverse: bool,
        count: int,
    ):
        self.advance = advance
        self.xs = xs
        self.types = types
        self.length = length
        self.reverse = reverse
        self.count = count

    def place_of(self, index: int) -> int:
        """Returns which slice a pass takes."""
        return self.length - 1 - index if self.reverse else index

    def written_out(self, carry: list[Any]) -> list[Any]:
        """Writes every pass, without a loop."""
        stacks: list[list[Any]] = [[] for _ in self.types]
        for index in range(self.length):
            place = self.place_of(index)
            slices = []
            for x in self.xs:
                extents = hlo.shape_of(x)[1:]
                starts, limits = [place, *(0 for _ in extents)], [place + 1, *extents]
                slices.append(hlo.reshape(hlo.slice(x, starts, limits), extents))
            carry, results = self.advance(carry, slices)
            for stack, result, t in zip(stacks, results, self.types, strict=True):
                stack.append(hlo.reshape(result, (1, *t.shape)))
        return [*carry, *map(self._joined, stacks, self.types)]

    def _joined(self, stack: list[Any], entry: ShapedArray) -> Any:
        if not stack:
            return hlo.full(0, (0, *entry.shape), entry.dtype)
        ordered = stack[::-1] if self.reverse else stack
        return ordered[0] if len(stack) == 1 else hlo.concatenate(ordered, 0)

    def step(self, index: Any, values: list[Any], place: Any) -> list[Any]:
        """Writes one pass.

        Args:
            index: Number of the pass.
            values: The carry, then the stacks.
            place: Where in the stacks its results go.
        """
        carry, stacks = values[: self.count], values[self.count :]
        source = hlo.subtract(_constant(self.length - 1), index) if self.reverse else index
        zero = _constant(0)
        slices = []
        for x in self.xs:
            extents = hlo.shape_of(x)[1:]
            piece = hlo.dynamic_slice(x, [source, *(zero for _ in extents)], (1, *extents))
            slices.append(hlo.reshape(piece, extents))
        carry, results = self.advance(carry, slices)
        stacks = [
            hlo.dynamic_update_slice(
                stack, hlo.reshape(result, (1, *t.shape)), [place, *(zero for _ in t.shape)]
            )
            for stack, result, t in zip(stacks, results, self.types, strict=True)
        ]
        return [*carry, *stacks]

    def stacks(self, length: int) -> list[Any]:
        """Returns empty stacks."""
        return [hlo.full(0, (length, *t.shape), t.dtype) for t in self.types]

    def passes(
        self, start: Any, values: list[Any], count: Any, capacity: int, unroll: int
    ) -> list[Any]:
        """Writes a loop of `count` passes from number `start` that fills stacks of a capacity."""

        def body(index: Any, *carried: Any) -> list[Any]:
            values = list(carried)
            for distance in range(unroll):
                local = _later(index, distance)
                place = hlo.subtract(_constant(capacity - 1), local) if self.reverse else local
                number = local if start is None else hlo.add(start, local)
                values = self.step(number, values, place)
            return [_later(index, unroll), *values]

        return hlo.while_(
            [_constant(0), *values], lambda index, *_: hlo.compare(index, count, "LT"), body
        )[1:]

    def at_once(self, carry: list[Any], whole: int, unroll: int) -> list[Any]:
        """Writes one loop of the first passes."""
        values = [*carry, *self.stacks(self.length)]
        return self.passes(None, values, _constant(whole), self.length, unroll)

    def in_pieces(self, carry: list[Any], whole: int, unroll: int) -> list[Any]:
        """Writes a loop of loops of the first passes."""
        capacity = unroll * math.ceil(math.sqrt(whole) / unroll)
        pieces = math.ceil(whole / capacity)
        rest = self.length - whole
        total = pieces * capacity + rest
        zero = _constant(0)

        def body(start: Any, *carried: Any) -> list[Any]:
            count = hlo.minimum(_constant(capacity), hlo.subtract(_constant(whole), start))
            inner = [*carried[: self.count], *self.stacks(capacity)]
            values = self.passes(start, inner, count, capacity, unroll)
            first = start
            if self.reverse:
                first = hlo.subtract(_constant(total - capacity), start)
            stacks = [
                hlo.dynamic_update_slice(stack, piece, [first, *(zero for _ in t.shape)])
                for stack, piece, t in zip(
                    carried[self.count :], values[self.count :], self.types, strict=True
                )
            ]
            return [_later(start, capacity), *values[: self.count], *stacks]

        values = hlo.while_(
            [zero, *carry, *self.stacks(total)],
            lambda start, *_: hlo.compare(start, _constant(whole), "LT"),
            body,
        )[1:]
        offset = total - self.length if self.reverse else 0
        kept = [
            hlo.slice(
                stack,
                [offset, *(0 for _ in t.shape)],
                [offset + self.length, *t.shape],
            )
            for stack, t in zip(values[self.count :], self.types, strict=True)
        ]
        return [*values[: self.count], *kept]


def _constant(value: int) -> Any:
    return hlo.constant(value, _INDEX)


def _later(index: Any, distance: int) -> Any:
    return hlo.add(index, _constant(distance)) if distance else index
