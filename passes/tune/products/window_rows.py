"""The rows of an input that the windows of one row of a convolution cover, with their padding.

A workgroup copies them before it computes the row, and they stay in the first or second cache.
Padding the whole input would move it through memory twice. Elsewhere: the computation on them
(`convolution_kernel.py`).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence

from axir.dialect.builders.expressions import minimum
from axir.dialect.builders.kernels import Memory, loop, workspace
from axir.dialect.builders.scalars import Scalar, broadcast, constant, index, operation

_MOST_BYTES = 1 << 24


@dataclasses.dataclass(frozen=True)
class Padding:
    """How an input is padded.

    Attributes:
        low: The padding before it, by spatial dimensions; negative padding cuts elements off.
        covered: The number of positions of the last spatial dimension that windows cover, with
            padding.
    """

    low: tuple[int, ...]
    covered: int

    def fits(self, windows: Sequence[int], features: int, workgroups: int, width: int) -> bool:
        """Tells whether the rows of all workgroups fit into memory.

        Args:
            windows: Extents of the window along the spatial dimensions.
            features: Features of the input.
            workgroups: How many there are.
            width: Bits of a number.
        """
        numbers = workgroups * math.prod(windows[:-1]) * self.covered * features
        return numbers * width // 8 <= _MOST_BYTES


class WindowRows:
    """The copies of a workgroup while its kernel is built.

    Args:
        workgroup: Its number.
        workgroups: How many there are.
        lhs: The input, [batch, *spatial, features].
        windows: Extents of the window along the spatial dimensions.
        strides: Of the window.
        dilation: Of the window.
        padding: Of the input.
        lanes: How many numbers a vector has.
    """

    def __init__(
        self,
        workgroup: Scalar,
        workgroups: int,
        lhs: Memory,
        windows: Sequence[int],
        strides: Sequence[int],
        dilation: Sequence[int],
        padding: Padding,
        lanes: int,
    ):
        *leading, extent, features = lhs.shape
        self._input = lhs.reshaped((*leading, extent * features))
        self._rows = leading[1:]
        self._windows = list(windows[:-1])
        self._steps = list(zip(strides, dilation, padding.low, strict=True))[:-1]
        self._features, self._lanes = features, lanes
        low = padding.low[-1]
        self._begin = min(max(0, low), padding.covered)
        self._end = max(self._begin, min(padding.covered, extent + low))
        self._first = self._begin - low
        self._length = padding.covered * features
        self._workgroup = workgroup
        self._memory = workspace((workgroups, *self._windows, self._length), lhs)

    def clear(self) -> None:
        """Writes the zeros at both ends of the rows, once for all copies."""
        begin, end = self._begin * self._features, self._end * self._features

        def row(window: tuple[Scalar, ...]) -> None:
            def before(i: Scalar, lanes: int) -> None:
                self._write(window, i, lanes, self._zeros(lanes))

            def behind(i: Scalar, lanes: int) -> None:
                self._write(window, i + end, lanes, self._zeros(lanes))

            self._along(begin, before)
            self._along(self._length - end, behind)

        self._each_window((), row)

    def copy(self, place: Sequence[Scalar]) -> None:
        """Copies the rows for a row of the result, given by its batch and leading spatial indices.

        Rows outside of the input are zeros.
        """
        batch, *above = place

        def row(window: tuple[Scalar, ...]) -> None:
            is_inside: Scalar | None = None
            rows = []
            for p, w, extent, (stride, dilation, low) in zip(
                above, window, self._rows, self._steps, strict=True
            ):
                number = p * stride + w * dilation - low
                nearest = operation("arith.maxsi", (number, index(0)))
                nearest = operation("arith.minsi", (nearest, index(extent - 1)))
                rows.append(nearest)
                is_same = number.compare("EQ", nearest)
                if is_inside is not None:
                    is_same = operation("arith.andi", (is_inside, is_same))
                is_inside = is_same

            def part(i: Scalar, lanes: int) -> None:
                x = self._read((batch, *rows), i + self._first * self._features, lanes)
                if is_inside is not None:
                    x = operation("arith.select", (is_inside, x, self._zeros(lanes)), x.type)
                self._write(window, i + self._begin * self._features, lanes, x)

            self._along((self._end - self._begin) * self._features, part)

        self._each_window((), row)

    def at(
        self, window: Sequence[Scalar | int], position: Scalar | int, feature: Scalar | int
    ) -> Scalar:
        """Returns the number at a row, at a position of the padded row, and at a feature."""
        where = (self._workgroup, *window, index(position) * self._features + feature)
        return self._memory[where]

    def _each_window(
        self, outer: tuple[Scalar, ...], body: Callable[[tuple[Scalar, ...]], None]
    ) -> None:
        if len(outer) == len(self._windows):
            body(outer)
        else:
            extent = self._windows[len(outer)]
            loop(0, extent, (), lambda w: self._each_window((*outer, w), body))

    def _along(self, count: int, body: Callable[[Scalar, int], None]) -> None:
        """Runs `body(start, lanes)` for so many numbers; the last ones may be written twice."""
        if not count:
            return
        lanes = min(self._lanes, 1 << (count.bit_length() - 1))

        def part(i: Scalar) -> None:
            body(minimum(i, index(count - lanes)) if count % lanes else i, lanes)

        loop(0, count, (), part, lanes)

    def _read(self, row: tuple[Scalar, ...], i: Scalar, lanes: int) -> Scalar:
        place = (*row, i)
        return self._input[place] if lanes == 1 else self._input.read(place, lanes)

    def _write(self, window: tuple[Scalar, ...], i: Scalar, lanes: int, x: Scalar) -> None:
        place = (self._workgroup, *window, i)
        if lanes == 1:
            self._memory[place] = x
        else:
            self._memory.write(place, x)

    def _zeros(self, lanes: int) -> Scalar:
        zero = constant(0, self._memory.element)
        return zero if lanes == 1 else broadcast(zero, lanes)
