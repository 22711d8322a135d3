"""Convolutions of parts of arrays: the elements of its neighbours that a part needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from axir.dialect.core.types import ShapedArray
from axir.dialect.program.parameters import Ints

from .types import ConvDimensionNumbers, Padding


class Edge(NamedTuple):
    """The cut of a spatial dimension.

    Attributes:
        extent: The largest number of parts.
        before: Number of elements that a part needs of the preceding part.
        after: Number of elements that a part needs of the following part.
        is_summed: Whether rhs is cut, too, and the results of parts are summed. Else the result is
            cut.
    """

    extent: int
    before: int
    after: int
    is_summed: bool


def edges_of(
    operands: Sequence[ShapedArray],
    results: Sequence[ShapedArray],
    numbers: ConvDimensionNumbers,
    *,
    window_strides: Ints,
    padding: Padding,
    lhs_dilation: Ints,
    rhs_dilation: Ints,
    **params: object,
) -> list[Edge | None]:
    """Returns the possible cut of each spatial dimension; None if it must be whole.

    With n elements, windows that reach over k, steps of s, and padding (l, h), there are n/s
    results if n is a multiple of s and l + h = k - s. A part of the results then needs the same
    part of lhs, and l elements before it and h behind it. Beyond the ends these are the zeros of
    the padding. The derivative by rhs is a convolution with a rhs as large as lhs; there, the same
    holds for the summed elements.
    """
    lhs, rhs = operands
    (out,) = results
    found: list[Edge | None] = []
    for place, (step, (low, high), base, dilation) in enumerate(
        zip(window_strides, padding, lhs_dilation, rhs_dilation, strict=True)
    ):
        extent = lhs.shape[numbers[0][2 + place]]
        size = rhs.shape[numbers[1][2 + place]]
        count = out.shape[numbers[2][2 + place]]
        reach = (size - 1) * dilation + 1
        if base != 1 or min(low, high) < 0 or not extent:
            found.append(None)
        elif extent % step == 0 and low + high == reach - step:
            found.append(Edge(extent // step, low, high, False))
        elif step == 1 and size * dilation == extent and count == low + high + dilation:
            found.append(Edge(size, low, high, True))
        else:
            found.append(None)
    return found
