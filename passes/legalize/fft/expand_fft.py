"""`expand-fft`: Fourier transforms of any length, dtype and number of axes."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.legalize.rewriting import RewritePass

from . import products
from .axes import (
    given,
    has_kernels,
    has_real_kernels,
    is_returned,
    taken,
    transform_axes,
    transform_reals,
    transform_to_reals,
)


@dataclasses.dataclass(frozen=True)
class ExpandFft(RewritePass):
    """Writes Fourier transforms out, as kernels or as matrix products.

    The fact: IREE transforms only one axis of f32 with a power of two as its length. It takes five
    times as long for that as matrix products (64 x 1024: 2,700 us and 470 us; kernels take 70 us).

    1. On CPUs, for 512 numbers and more: a kernel for each axis, the last one first. Columns are
       transformed side by side in vectors (`columns.py`). A row is viewed as a matrix: its columns
       are transformed, transposed and transformed again (`rows.py`). Arguments and results of
       functions are read and written as pairs, as they are in memory; other arrays as real and
       imaginary parts.
    2. A length with a prime factor above 127 is a convolution of a smooth length. Real numbers of
       even length n are n / 2 complex numbers; symmetry gives the real spectrum from theirs (RFFT),
       or theirs from the real one (IRFFT) (`halves.py`). Real numbers of odd length are converted
       to complex numbers.
    3. Elsewhere, and where no vector would be full: matrix products, which IREE fuses with other
       operations (`products.py`). An axis of length n = r m is brought to the front, multiplied by
       the r x r matrix of the transform of length r, then by twiddle factors while transposing;
       then the same for m.

    Precondition: none; the pass builds real operations, except for the first and the last.

    Before::

        %0 = stablehlo.fft %x, type = FFT, length = [1024] : tensor<3x1024xcomplex<f32>> -> …

    After::

        %1 = flow.tensor.bitcast %x : tensor<3x1024xcomplex<f32>> -> tensor<3x1024x2xf32>
        %2:2 = flow.dispatch @fft_…::@fft_…(%1, %factors) : … -> (tensor<3x64x32xf32>, …)
        %0 = flow.tensor.bitcast %2#0 : tensor<3x1024x2xf32> -> tensor<3x1024xcomplex<f32>>
    """

    name: ClassVar[str] = "expand-fft"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.fft",)
    platform: str = "cpu"

    def rewrite(self, operation: ir.Operation) -> ir.Value:
        """Builds the transforms of all axes."""
        (operand,), (result,) = operation.operands, operation.results
        if 0 in result.type.shape:
            return hlo.full_like(result, 0)
        kind = str(operation.attributes["fft_type"]).rstrip(">").split()[-1]
        lengths = tuple(operation.attributes["fft_length"])
        may_dispatch = self.platform == "cpu"
        if kind == "RFFT":
            return _of_reals(operand, result, lengths, may_dispatch)
        if kind == "IRFFT":
            return _to_reals(operand, lengths, may_dispatch)
        sign, shape = (1 if kind == "IFFT" else -1), hlo.shape_of(operand)
        axes = range(len(shape) - len(lengths), len(shape))
        element = hlo.element_type_of(operand).element_type
        if not (may_dispatch and has_kernels(shape, axes, element)):
            return products.by_products(operand, axes, sign)
        is_paired = is_returned(result)
        return given(transform_axes(taken(operand), axes, sign, is_paired=is_paired))


def _of_reals(
    x: ir.Value, result: ir.Value, lengths: Sequence[int], may_dispatch: bool
) -> ir.Value:
    shape, length = hlo.shape_of(x), lengths[-1]
    half, rows = hlo.shape_of(result), math.prod(shape[:-1])
    element = hlo.element_type_of(x)
    outer = range(len(shape) - len(lengths), len(shape) - 1)
    if not (
        may_dispatch
        and has_real_kernels(rows, length, element)
        and has_kernels(half, outer, element)
    ):
        return products.of_reals(x, lengths)
    is_paired = is_returned(result)
    found = transform_reals(hlo.reshape(x, (rows, length)), is_paired=is_paired and not outer)
    return given(transform_axes(found.viewed(half), outer, -1, is_paired=is_paired))


def _to_reals(x: ir.Value, lengths: Sequence[int], may_dispatch: bool) -> ir.Value:
    shape, length = hlo.shape_of(x), lengths[-1]
    rows = math.prod(shape[:-1])
    element = hlo.element_type_of(x).element_type
    outer = range(len(shape) - len(lengths), len(shape) - 1)
    if not (
        may_dispatch
        and has_real_kernels(rows, length, element)
        and has_kernels(shape, outer, element)
    ):
        return products.to_reals(x, lengths)
    found = transform_axes(taken(x), outer, 1).viewed((rows, shape[-1]))
    return hlo.reshape(transform_to_reals(found, length), (*shape[:-1], length))
