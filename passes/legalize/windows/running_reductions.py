"""Running sums and their like: by a kernel on CPUs, in a few steps on SPIR-V."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.kernels import Memory, dispatch, loop, rows_of, scan_in_blocks
from axir.dialect.builders.scalars import Scalar, broadcast, constant, index, signless
from axir.passes.legalize.copies import Columns, uniform_number
from axir.passes.legalize.lanes import Lanes, combination
from axir.passes.legalize.rewriting import RewritePass

from .pad_windows import is_running
from .position_select_and_scatter import entries
from .whole_arrays import apply_to_arrays

_SHARE_BYTES = 1 << 18
_MOST_WORKGROUPS = 8
# The largest number of neighbours in a vector.
_WIDE = 64


@dataclasses.dataclass(frozen=True)
class RunByKernel(RewritePass):
    """Computes running reductions by a kernel.

    The fact: IREE accumulates one number along the whole dimension, so that running sums of
    millions lose digits: the running sum of 2^25 ones ends at 2^24.

    1. Take window reductions that run along a dimension of at least `extent` elements, of one array
       of real numbers, with an elementwise body and a known initial value. A sum of complex numbers
       becomes two sums of their parts.
    2. Go along the dimension in blocks. The result so far within a block is combined with the
       result of all blocks before it; `scan_in_blocks` says why. Neighbours in later dimensions
       form vectors.
    3. Workgroups share the columns of later dimensions, or else the earlier dimensions.

    Before::

        %0 = "stablehlo.reduce_window"(%x, %z) <{padding = dense<[[999999, 0]]> …}>
             … stablehlo.add … : (tensor<1000000xf32>, tensor<f32>) -> tensor<1000000xf32>

    After::

        %0 = flow.dispatch @running_0::@running_0(%x) : (tensor<1000000xf32>) -> …

    Only for CPUs. `pad-windows` and the passes behind it handle the other reductions.
    """

    name: ClassVar[str] = "run-by-kernel"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.reduce_window",)
    extent: int = 64

    def rewrite(self, operation: ir.Operation) -> ir.Value | None:
        """Builds the kernel."""
        found = running_axis(operation)
        if len(operation.operands) != 2 or found is None:
            return None
        array, init = operation.operands
        axis, is_from_start = found
        block = operation.regions[0].blocks[0]
        if hlo.shape_of(array)[axis] < self.extent:
            return None
        if hlo.is_complex(array) and block.operations[0].operation.name == "stablehlo.add":
            parts = [
                _running(part(array), lambda x, y: x + y, 0, axis, is_from_start=is_from_start)
                for part in (hlo.real, hlo.imag)
            ]
            return hlo.complex(*parts)
        combine, start = combination(block), uniform_number(init)
        if hlo.is_complex(array) or combine is None or start is None:
            return None
        return _running(array, combine, start, axis, is_from_start=is_from_start)


def running_axis(created: ir.Operation) -> tuple[int, bool] | None:
    """Returns the axis along which windows run, and whether from its beginning; None if not."""
    shape = hlo.shape_of(created.operands[0])
    ones = [1] * len(shape)
    window = entries(created, "window_dimensions", ones)
    padding = entries(created, "padding", [[0, 0]] * len(shape))
    is_plain = all(
        entries(created, name, ones) == ones
        for name in ("window_strides", "base_dilations", "window_dilations")
    )
    if not is_plain or not is_running(shape, window, padding):
        return None
    (axis,) = (axis for axis, size in enumerate(window) if size > 1)
    return axis, padding[axis][0] > 0


def _running(
    array: ir.Value, combine: Lanes, start: float, axis: int, *, is_from_start: bool
) -> ir.Value:
    """Returns the combination of the elements up to each one, or from each one on."""
    shape, element = hlo.shape_of(array), hlo.element_type_of(array)
    outer, count, inner = math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])
    size = math.prod(shape) * hlo.element_bytes(element)
    wanted = max(1, min(_MOST_WORKGROUPS, size // _SHARE_BYTES))
    by_columns = inner >= wanted * _WIDE
    workgroups = wanted if by_columns else min(wanted, outer)

    def kernel(workgroup: Scalar, source: Memory, target: Memory) -> None:
        rows = rows_of(workgroup, outer, workgroups)
        first, end = (index(0), index(outer)) if by_columns else rows
        share = (workgroup, workgroups) if by_columns else (index(0), 1)

        def along(row: Scalar, column: Scalar, width: int) -> None:
            def place(i: Scalar) -> tuple[Scalar, Scalar, Scalar]:
                return row, i if is_from_start else (count - 1) - i, column

            def step(i: Scalar, numbers: Sequence[Scalar]) -> list[Scalar]:
                at = place(i)
                return [combine(numbers[0], source.read(at, width) if width > 1 else source[at])]

            def write(i: Scalar, numbers: Sequence[Scalar]) -> None:
                if width > 1:
                    target.write(place(i), numbers[0])
                else:
                    target[place(i)] = numbers[0]

            begin = constant(start, signless(element))
            starts = [begin if width == 1 else broadcast(begin, width)]
            scan_in_blocks(count, starts, step, write, lambda x, y: [combine(x[0], y[0])])

        columns = Columns(inner, target, *share)
        loop(first, end, (), lambda row: columns.each(lambda i, width: along(row, i, width)))

    line = hlo.reshape(array, (outer, count, inner))
    [made] = dispatch(kernel, [line], [line.type], workgroups=workgroups, name="running")
    return hlo.reshape(made, shape)


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
