"""Convolutions of parts of arrays: what a part needs of its neighbours along a dimension."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from axir.dialect.core.types import ShapedArray
from axir.dialect.program.parameters import Ints

from .types import ConvDimensionNumbers, Padding


class Edge(NamedTuple):
    """How a spatial dimension is cut.

    Attributes:
        extent: How many parts there may be.
        before: How many places a part needs of the one before.
        after: How many of the one behind.
        is_summed: Whether rhs is cut, too, and parts are to be summed. Else the result is cut.
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
    """Returns for each spatial dimension how it may be cut; None if it may not.

    With n places, windows that reach over k, steps of s, and padding (l, h), there are n/s results
    if n is a multiple of s and l + h = k - s. A part of the results then needs the same part of
    lhs, l places before it and h behind it; beyond the ends these are the zeros of the padding. In
    the derivative by rhs, which is a convolution with a rhs as large as lhs, the same holds of the
    places that are summed over.
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
