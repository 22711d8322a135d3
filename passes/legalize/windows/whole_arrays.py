"""Windows as operations on whole arrays: long windows, and windows of several arrays."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence
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


_ELEMENTWISE = frozenset(
    f"stablehlo.{name}"
    for name in (
        "abs add and ceil clamp compare convert divide exponential floor log maximum minimum "
        "multiply negate not or power remainder select shift_left shift_right_arithmetic "
        "shift_right_logical sign sqrt subtract xor"
    ).split()
)
_SAME = "stablehlo.broadcast_in_dim"


@dataclasses.dataclass(frozen=True)
class UnfoldWindows(RewritePass):
    """Replaces a window reduction of several arrays by operations on shifted arrays.

    The fact: IREE vectorizes loops over windows with several results badly. The gradient of a
    max-pooling of 2 x 2 in 16 x 56 x 56 x 32 takes 7.2 ms with `loop-over-windows` and 3.8 ms with
    this pass.

    1. Visit each window reduction of two or more arrays with windows of at most `positions` places
       and a body of only elementwise operations on real numbers.
    2. Pad each array with its initial value.
    3. Begin with the initial values; for each place of the window, in row-major order, apply the
       body to the results so far and the strided slices of the arrays at that place.

    Before::

        %0:2 = "stablehlo.reduce_window"(%x, %y, %a, %b) <{window_dimensions = [2]}> …
               // compares, selects
    After::

        %1 = stablehlo.slice %x [0:3]
        %2 = stablehlo.slice %y [0:3]
        …    // compares, selects with %a, %b
        %8 = stablehlo.slice %x [1:4]
        %9 = stablehlo.slice %y [1:4]
        …    // compares, selects

    Precondition: the passes that expand functions of numbers have run.
    """

    name: ClassVar[str] = "unfold-windows"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.reduce_window",)
    positions: int = 32

    def rewrite(self, operation: ir.Operation) -> list[ir.Value] | None:
        """Builds the operations on shifted arrays."""
        values = list(operation.operands)
        count = len(values) // 2
        shape = list(hlo.shape_of(operation.results[0]))
        ones = [1] * len(shape)
        window = entries(operation, "window_dimensions", ones)
        is_small = math.prod(window) <= self.positions and 0 not in shape
        if count < 2 or not is_small or not _is_elementwise(operation):
            return None
        strides = entries(operation, "window_strides", ones)
        dilations = entries(operation, "window_dilations", ones)
        interior = [by - 1 for by in entries(operation, "base_dilations", ones)]
        padding = entries(operation, "padding", [[0, 0]] * len(shape))
        low, high = [pair[0] for pair in padding], [pair[1] for pair in padding]
        arrays = [
            hlo.pad(x, init, low, high, interior) if any((*low, *high, *interior)) else x
            for x, init in zip(values[:count], values[count:], strict=True)
        ]
        results = [hlo.broadcast_scalar(init, shape) for init in values[count:]]
        for place in itertools.product(*map(range, window)):
            start = [index * by for index, by in zip(place, dilations, strict=True)]
            limit = [
                begin + (n - 1) * by + 1 for begin, n, by in zip(start, shape, strides, strict=True)
            ]
            slices = [hlo.slice(array, start, limit, strides) for array in arrays]
            results = apply_to_arrays(operation.regions[0], [*results, *slices], shape)
        return results


def _is_elementwise(operation: ir.Operation) -> bool:
    if any(map(hlo.is_complex, operation.operands)):
        return False
    *inner, _ = operation.regions[0].blocks[0].operations
    allowed = _ELEMENTWISE | {_SAME, "stablehlo.constant"}
    return all(o.operation.name in allowed for o in inner)


def apply_to_arrays(
    region: ir.Region, arguments: Sequence[ir.Value], shape: Sequence[int]
) -> list[ir.Value]:
    """Applies a computation of rank-0 values to each element of arrays of one shape."""
    block = region.blocks[0]
    arrays: dict[ir.Value, ir.Value] = dict(zip(block.arguments, arguments, strict=True))

    def array(value: ir.Value) -> ir.Value:
        if value not in arrays:  # from outside the region
            arrays[value] = hlo.broadcast_scalar(value, shape)
        return arrays[value]

    *inner, terminator = [operation.operation for operation in block.operations]
    for operation in inner:
        result = operation.results[0]
        if operation.name == "stablehlo.constant":
            arrays[result] = hlo.broadcast_scalar(operation.clone().results[0], shape)
        elif operation.name == _SAME:
            arrays[result] = array(operation.operands[0])
        else:
            arrays[result] = ir.Operation.create(
                operation.name,
                results=[ir.RankedTensorType.get(shape, hlo.element_type_of(result))],
                operands=[array(operand) for operand in operation.operands],
                attributes={name: operation.attributes[name] for name in operation.attributes},
            ).result
    return [array(value) for value in terminator.operands]
