"""`scan-by-doubling`: running sums of complex numbers and their like, in a few steps."""

from __future__ import annotations

from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.legalize.rewriting import RewritePass

from .pad_windows import is_running
from .position_select_and_scatter import entries
from .unfold_windows import apply_to_arrays


class ScanByDoubling(RewritePass):
    """Computes running reductions of complex numbers from windows of 1, 2, 4, … elements.

    The fact: IREE converts running window reductions to scans, and for SPIR-V its compiler crashes
    on scans of complex numbers.

    1. Visit each running reduction along one dimension with a complex operand.
    2. Begin with the arrays: windows of one element. While windows of `n` elements are shorter than
       the dimension, combine each with the window `n` places before it (or behind it, if windows
       reach to the end): these are windows of `2 n`. Windows that reach beyond the first (or last)
       element do not change. They are not combined with the initial value, because `(1 + 0i) x` is
       not `x` if `x` has an infinite part.

    Before::

        %0 = "stablehlo.reduce_window"(%x, %z) <{padding = dense<[[2, 0]]> …}>
             … stablehlo.add … : (tensor<3xcomplex<f32>>, tensor<complex<f32>>) -> …

    After::

        %1 = stablehlo.slice %x [0:2]
        %2 = stablehlo.slice %x [1:3]
        %3 = stablehlo.add %1, %2
        %4 = stablehlo.slice %x [0:1]
        %5 = stablehlo.concatenate %4, %3, dim = 0
        …   // the same with [0:1], [2:3] and [0:2] of %5

    Precondition: initial values are neutral elements, as StableHLO requires.
    """

    name: ClassVar[str] = "scan-by-doubling"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.reduce_window",)

    def rewrite(self, operation: ir.Operation) -> list[ir.Value] | None:
        """Builds the steps in front of the operation."""
        arrays = list(operation.operands)[: len(operation.results)]
        shape = hlo.shape_of(arrays[0])
        window = entries(operation, "window_dimensions", [1] * len(shape))
        padding = entries(operation, "padding", [[0, 0]] * len(shape))
        if not any(map(hlo.is_complex, arrays)) or not is_running(shape, window, padding):
            return None
        (axis,) = (axis for axis, size in enumerate(window) if size > 1)
        is_from_start = padding[axis][0] > 0
        extent, distance = shape[axis], 1
        while distance < extent:
            earlier = [_part(x, axis, 0, extent - distance) for x in arrays]
            later = [_part(x, axis, distance, extent) for x in arrays]
            combined = apply_to_arrays(
                operation.regions[0], [*earlier, *later], hlo.shape_of(later[0])
            )
            arrays = [
                hlo.concatenate([_part(x, axis, 0, distance), made], axis)
                if is_from_start
                else hlo.concatenate([made, _part(x, axis, extent - distance, extent)], axis)
                for x, made in zip(arrays, combined, strict=True)
            ]
            distance *= 2
        return arrays


def _part(x: ir.Value, axis: int, start: int, limit: int) -> ir.Value:
    """Returns the elements between two places along an axis."""
    starts, limits = [0] * len(hlo.shape_of(x)), list(hlo.shape_of(x))
    starts[axis], limits[axis] = start, limit
    return hlo.slice(x, starts, limits)
