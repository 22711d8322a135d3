"""`split-complex-conv`: complex numbers are convolved as their two parts."""

from __future__ import annotations

from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.legalize.rewriting import RewritePass


class SplitComplexConv(RewritePass):
    """Convolves the real and the imaginary part of complex tensors.

    The fact: IREE pads the left operand of a convolution with a complex zero, and crashes on it as
    on every complex pad; with data tiling its compiler rejects any complex convolution.

    1. Take the parts of both operands.
    2. Convolve each part of one with each of the other: (a + bi) * (c + di) has the parts
       a * c - b * d and a * d + b * c.
    3. Join the parts.

    Before::

        %0 = stablehlo.convolution(%x, %k) … -> tensor<1x2x5xcomplex<f32>>

    After::

        %5 = stablehlo.convolution(%real_x, %real_k) … -> tensor<1x2x5xf32>    // and 3 more
        %9 = stablehlo.subtract %5, %6
        %10 = stablehlo.add %7, %8
        %11 = stablehlo.complex %9, %10
    """

    name: ClassVar[str] = "split-complex-conv"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.convolution",)

    def rewrite(self, operation: ir.Operation) -> ir.Value | None:
        """Builds the four convolutions."""
        result = operation.results[0]
        if not hlo.is_complex(result):
            return None
        part_type = hlo.tensor_type(
            result.type.shape, ir.ComplexType(hlo.element_type_of(result)).element_type
        )
        attributes = {name: operation.attributes[name] for name in operation.attributes}

        def convolve(lhs: ir.Value, rhs: ir.Value) -> ir.Value:
            name = "convolution"
            return hlo.build(name, operation.name, (lhs, rhs), [part_type], attributes).result

        (lhs_real, lhs_imag), (rhs_real, rhs_imag) = (
            (hlo.real(operand), hlo.imag(operand)) for operand in operation.operands
        )
        return hlo.complex(
            hlo.subtract(convolve(lhs_real, rhs_real), convolve(lhs_imag, rhs_imag)),
            hlo.add(convolve(lhs_real, rhs_imag), convolve(lhs_imag, rhs_real)),
        )
