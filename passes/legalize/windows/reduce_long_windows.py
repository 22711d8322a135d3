"""`reduce-long-windows`: long windows side by side, as a plain reduction."""

from __future__ import annotations

import dataclasses
import math
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.legalize.rewriting import RewritePass

from .position_select_and_scatter import copied_body, entries


@dataclasses.dataclass(frozen=True)
class ReduceLongWindows(RewritePass):
    """Writes reductions of long windows that do not overlap as reductions of dimensions.

    The facts: IREE goes through a window one element after the other, so that a sum of a million
    elements has an error of hundreds of roundings. It goes through the windows one after the other,
    on one core. Reductions, in contrast, run in blocks and on several cores (`fuse-rows`,
    `split-reductions`).

    1. Visit window reductions without padding and dilations, and with windows of more than `places`
       places. In each dimension the windows must be adjacent without overlap, or there must be one.
    2. Cut off elements that are in no window, and split each dimension into two: over windows, and
       within a window.
    3. Reduce the dimensions within windows. Sums are reduced by one dimension after the other, the
       last one first, because reductions of adjacent dimensions are fast; other reductions by all
       at once.

    Before::

        %0 = "stablehlo.reduce_window"(%x, %z) <{window_dimensions = [1000], window_strides =
             [1000]}> … stablehlo.add … : (tensor<5000xf32>, tensor<f32>) -> tensor<5xf32>

    After::

        %1 = stablehlo.reshape %x : (tensor<5000xf32>) -> tensor<5x1000xf32>
        %0 = stablehlo.reduce(%1 init: %z) applies stablehlo.add across dimensions = [1]
    """

    name: ClassVar[str] = "reduce-long-windows"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.reduce_window",)
    places: int = 256

    def rewrite(self, operation: ir.Operation) -> list[ir.Value] | None:
        """Builds the reduction."""
        values = list(operation.operands)
        count = len(values) // 2
        shape, counts = hlo.shape_of(values[0]), hlo.shape_of(operation.results[0])
        ones = [1] * len(shape)
        window = entries(operation, "window_dimensions", ones)
        strides = entries(operation, "window_strides", ones)
        padding = entries(operation, "padding", [[0, 0]] * len(shape))
        is_plain = not any(map(any, padding)) and all(
            entries(operation, name, ones) == ones
            for name in ("base_dilations", "window_dilations")
        )
        are_apart = all(
            n == 1 or size == stride
            for n, size, stride in zip(counts, window, strides, strict=True)
        )
        if math.prod(window) <= self.places or not (is_plain and are_apart) or 0 in counts:
            return None
        kept = [n * size for n, size in zip(counts, window, strict=True)]
        pairs = [extent for pair in zip(counts, window, strict=True) for extent in pair]
        arrays = [hlo.reshape(_cut(x, kept), pairs) for x in values[:count]]
        axes = [2 * axis + 1 for axis, size in enumerate(window) if size > 1]
        inits = values[count:]
        *inner, _ = operation.regions[0].blocks[0].operations
        if count == 1 and [made.operation.name for made in inner] == ["stablehlo.add"]:
            zero = hlo.full(0, (), hlo.element_type_of(arrays[0]))
            for axis in reversed(axes[1:]):
                arrays = hlo.reduce(arrays, [zero], [axis], hlo.add)
            axes = axes[:1]
        found = hlo.reduce(arrays, inits, axes, copied_body(operation.regions[0]))
        return [hlo.reshape(x, counts) for x in found]


def _cut(x: ir.Value, limits: list[int]) -> ir.Value:
    shape = hlo.shape_of(x)
    return x if list(shape) == limits else hlo.slice(x, [0] * len(shape), limits)
