"""`pad-windows`: padding of windows that IREE compiles wrongly becomes a separate operation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.legalize.rewriting import RewritePass

from .position_select_and_scatter import copied_body, entries


class PadWindows(RewritePass):
    """Pads the operands of a `stablehlo.reduce_window` by `stablehlo.pad`.

    The facts: IREE's compiler crashes on padded windows of complex numbers. It also crashes on a
    complex `stablehlo.pad`, but `split-complex-pad` rewrites that. A single window along a
    dimension must reach to the end ("inferred input/output operand #1 has shape's dimension").
    Running sums and the like, where all windows reach to one end, are compiled in another way and
    do not need this pass. For all others `loop-over-windows` needs windows without padding.

    1. Pad each operand with its initial value, base dilations included. This also cuts off negative
       padding, and the elements behind a single window.
    2. Reduce the windows of the padded operands.

    Before::

        %0 = "stablehlo.reduce_window"(%x, %z) <{padding = dense<[[1, 0]]> …}>
             : (tensor<5xcomplex<f32>>, tensor<complex<f32>>) -> tensor<4xcomplex<f32>>

    After::

        %1 = stablehlo.pad %x, %z, low = [1], high = [0], interior = [0]
        %0 = "stablehlo.reduce_window"(%1, %z) <{…}>
    """

    name: ClassVar[str] = "pad-windows"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.reduce_window",)

    def rewrite(self, operation: ir.Operation) -> list[ir.Value] | None:
        """Builds the pads and the reduction."""
        values = list(operation.operands)
        count = len(values) // 2
        shape = hlo.shape_of(values[0])
        ones = [1] * len(shape)
        window = entries(operation, "window_dimensions", ones)
        strides = entries(operation, "window_strides", ones)
        dilations = entries(operation, "window_dilations", ones)
        base = entries(operation, "base_dilations", ones)
        padding = entries(operation, "padding", [[0, 0]] * len(shape))
        counts = hlo.shape_of(operation.results[0])
        surplus = _surplus(counts, shape, window, padding, base, dilations)
        low, high = [pair[0] for pair in padding], [pair[1] for pair in padding]
        config = (low, high, [dilation - 1 for dilation in base])
        stays = is_running(shape, window, padding) or not any(any(entry) for entry in config)
        if stays and min((*low, *high), default=0) >= 0 and not any(surplus):
            return None
        inits = values[count:]
        high = [pad - extra for pad, extra in zip(high, surplus, strict=True)]
        padded = [
            hlo.pad(x, init, low, high, config[2])
            for x, init in zip(values[:count], inits, strict=True)
        ]
        return hlo.reduce_window(
            padded,
            inits,
            window,
            copied_body(operation.regions[0]),
            window_strides=strides,
            window_dilations=dilations,
        )


def _surplus(
    counts: Sequence[int],
    shape: Sequence[int],
    window: Sequence[int],
    padding: Sequence[Sequence[int]],
    base: Sequence[int],
    dilations: Sequence[int],
) -> list[int]:
    """Returns the number of places behind the window in dimensions with a single window."""
    result = []
    for count, extent, size, pair, by, dilation in zip(
        counts, shape, window, padding, base, dilations, strict=True
    ):
        padded = sum(pair) + ((extent - 1) * by + 1 if extent else 0)
        result.append(padded - (size - 1) * dilation - 1 if count == 1 else 0)
    return result


def is_running(
    shape: Sequence[int], window: Sequence[int], padding: Sequence[Sequence[int]]
) -> bool:
    """Tells whether windows reach from each element to one end, along a single dimension."""
    wide = [axis for axis, size in enumerate(window) if size > 1]
    if len(wide) != 1:
        return False
    extent = shape[wide[0]]
    edge = [pair for axis, pair in enumerate(padding) if axis == wide[0]]
    is_alone = not any(any(p) for axis, p in enumerate(padding) if axis != wide[0])
    ends = ([extent - 1, 0], [0, extent - 1])
    return is_alone and window[wide[0]] == extent and edge[0] in ends
