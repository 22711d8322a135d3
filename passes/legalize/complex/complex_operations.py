"""Single operations on complex numbers that become operations on their parts.

Here: elementwise functions, constants, convolutions, products, pads and small sums.
Elsewhere: the formulas (`complex_functions.py`), loops and whole programs on parts
(`paired_programs.py`).
"""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.scalars import Scalar, convert_float, float64, operation
from axir.dialect.core.attributes import dense_to_numpy
from axir.dialect.core.dtypes import complex64, complex128
from axir.passes.legalize.elementwise_loops import elementwise
from axir.passes.legalize.regions import operations_of
from axir.passes.legalize.rewriting import RewritePass

from .complex_functions import BINARY, UNARY, Complex, magnitude

_MAGNITUDE = "stablehlo.abs"


@dataclasses.dataclass(frozen=True)
class ExpandComplex(RewritePass):
    """Writes out division, roots, exponentials, logarithms and trigonometry of complex numbers.

    The fact: IREE's own formulas overflow (|1e30 + 1e30i| = inf, x / 1e30 = nan), lose all digits
    next to branch cuts and zeros, and give nan for infinities.

    1. Split c64 and c128 into parts, as doubles. For c64 no square leaves their range.
    2. Apply the formula (`complex_functions.py`), which scales numbers that may overflow and
       follows C99 for zeros, infinities and nan.
    3. Round the parts and join them.

    `fuses` is as for `expand-trigonometry`.

    Sums, products and comparisons are right already.

    Before::

        %0 = stablehlo.divide %x, %y : tensor<9xcomplex<f32>>

    After::

        %0 = linalg.generic {…} ins(%x, %y : …) { … complex.re … complex.create … }
    """

    name: ClassVar[str] = "expand-complex"
    operations: ClassVar[tuple[str, ...]] = (*UNARY, *BINARY, _MAGNITUDE)
    fuses: bool = True

    def rewrite(self, operation: ir.Operation) -> list[ir.Value] | None:
        """Builds the loop, for complex numbers."""
        if not hlo.is_complex(operation.operands[0]):
            return None
        name = operation.name
        element = hlo.element_type_of(operation.results[0])

        def body(*operands: Scalar) -> Scalar:
            numbers = [_split(operand, self.fuses) for operand in operands]
            if name == _MAGNITUDE:
                return convert_float(magnitude(numbers[0]), element)
            function = UNARY[name] if name in UNARY else BINARY[name]
            return _join(function(*numbers), element)

        label = f"{name} fuses={self.fuses}"
        return elementwise(label, operation.operands, body, [element])


def _split(z: Scalar, fuses: bool) -> Complex:
    part = ir.ComplexType(z.type).element_type
    real, imag = (operation(f"complex.{name}", (z,), part) for name in ("re", "im"))
    wide = (convert_float(real, float64()), convert_float(imag, float64()))
    return Complex(*wide, is_single=real.width == 32, fuses=fuses)


def _join(z: Complex, element: ir.Type) -> Scalar:
    part = ir.ComplexType(element).element_type
    parts = (convert_float(z.real, part), convert_float(z.imag, part))
    return operation("complex.create", parts, element)


_CONTROL_FLOW = ("func.func", "stablehlo.while", "stablehlo.if", "stablehlo.case")


class SplitComplexConstants(RewritePass):
    """Builds uniform complex constants, and all of `complex<f64>`, from their parts.

    The facts: where an operation works in place on a uniform complex constant, as an update of a
    slice of zeros does, IREE writes a constant that its own verifier refuses ("'arith.constant' op
    attribute 'value' failed to satisfy constraint: TypedAttr instance"). And it fills buffers with
    elements of at most 64 bits. Where a constant of `complex<f64>` becomes a buffer (a result, the
    operand of a scatter), a uniform one does not compile ("'stream.async.splat' op operand #0 must
    be 8-bit ... but got 'i128'"), and any other one crashes the compiler.

    1. Visit the constants of these types, but not those in the bodies of reductions and the like,
       which never become buffers.
    2. Replace each by `complex` of its parts.

    Before::

        %0 = stablehlo.constant dense<(1.0, 2.0)> : tensor<3xcomplex<f64>>

    After::

        %1 = stablehlo.constant dense<1.0> : tensor<3xf64>
        %2 = stablehlo.constant dense<2.0> : tensor<3xf64>
        %0 = stablehlo.complex %1, %2 : tensor<3xcomplex<f64>>
    """

    name: ClassVar[str] = "split-complex-constants"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.constant",)

    def rewrite(self, operation: ir.Operation) -> ir.Value | None:
        """Builds the two constants."""
        element = operation.result.type.element_type
        if not isinstance(element, ir.ComplexType) or operation.parent.name not in _CONTROL_FLOW:
            return None
        value = operation.attributes["value"]
        is_wide = element.element_type == ir.F64Type.get()
        if not is_wide and not value.is_splat:
            return None
        host = dense_to_numpy(value).astype(complex128 if is_wide else complex64, copy=False)
        return hlo.complex(hlo.constant(host.real), hlo.constant(host.imag))


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


class SplitComplexDot(RewritePass):
    """Multiplies the real and the imaginary parts of complex tensors.

    The fact: IREE makes real products of complex ones itself, after all passes of axir. Made here
    they become axir's kernels, as other real products do.

    1. Take the parts of both operands.
    2. Contract each part of one with each of the other.
    3. Join the parts: (a + bi) (c + di) = (ac - bd) + (ad + bc)i.

    Before::

        %0 = stablehlo.dot_general %x, %y, … -> tensor<4xcomplex<f32>>

    After::

        %5 = stablehlo.dot_general %real_x, %real_y, … -> tensor<4xf32>    // and 3 more
        %9 = stablehlo.subtract %5, %6
        %10 = stablehlo.add %7, %8
        %11 = stablehlo.complex %9, %10
    """

    name: ClassVar[str] = "split-complex-dot"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.dot_general",)

    def rewrite(self, operation: ir.Operation) -> ir.Value | None:
        """Builds the four products."""
        result = operation.results[0]
        if not hlo.is_complex(result) or not all(map(hlo.is_complex, operation.operands)):
            return None
        element = ir.ComplexType(hlo.element_type_of(result)).element_type
        part_type = hlo.tensor_type(result.type.shape, element)
        attributes = {name: operation.attributes[name] for name in operation.attributes}

        def contract(lhs: ir.Value, rhs: ir.Value) -> ir.Value:
            name = "dot_general"
            return hlo.build(name, operation.name, (lhs, rhs), [part_type], attributes).result

        (a, b), (c, d) = ((hlo.real(x), hlo.imag(x)) for x in operation.operands)
        return hlo.complex(
            hlo.subtract(contract(a, c), contract(b, d)), hlo.add(contract(a, d), contract(b, c))
        )


class SplitComplexPad(RewritePass):
    """Pads the real and the imaginary part of complex tensors.

    The fact: filling a buffer with a complex number crashes IREE's compiler if the number is a
    constant, and is rejected (`stream.async.splat`) if it is a c128.

    Before::

        %0 = stablehlo.pad %x, %z, low = [1], high = [0], interior = [0] : … complex<f32>

    After::

        %1 = stablehlo.pad %real_x, %real_z, low = [1], high = [0], interior = [0] : … f32
        %2 = stablehlo.pad %imag_x, %imag_z, low = [1], high = [0], interior = [0] : … f32
        %3 = stablehlo.complex %1, %2
    """

    name: ClassVar[str] = "split-complex-pad"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.pad",)

    def rewrite(self, operation: ir.Operation) -> ir.Value | None:
        """Builds the two pads."""
        operand, value = operation.operands
        if not hlo.is_complex(operand):
            return None
        low, high, interior = (
            list(operation.attributes[name])
            for name in ("edge_padding_low", "edge_padding_high", "interior_padding")
        )
        return hlo.complex(
            *(
                hlo.pad(part(operand), part(value), low, high, interior)
                for part in (hlo.real, hlo.imag)
            )
        )


@dataclasses.dataclass(frozen=True)
class SplitComplexSums(RewritePass):
    """Sums the real and the imaginary parts of few complex numbers separately.

    The fact: kernels have no complex numbers. Sums of their parts become kernels
    (`fuse-small-sums`). So a program with such sums can consist only of kernels, which compile
    faster, and it computes the same numbers with IREE and without it. For many numbers, the parts
    would be written to memory and read once more.

    1. Take sums of at most `elements` complex numbers.
    2. Sum each part; join the two sums.

    Before::

        %1 = stablehlo.reduce(%x init: %zero) applies stablehlo.add … -> tensor<4xcomplex<f32>>

    After::

        %3 = stablehlo.reduce(%real init: %a) applies stablehlo.add … -> tensor<4xf32>
        %4 = stablehlo.reduce(%imag init: %b) applies stablehlo.add … -> tensor<4xf32>
        %5 = stablehlo.complex %3, %4
    """

    name: ClassVar[str] = "split-complex-sums"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.reduce",)
    elements: int = 1 << 14

    def rewrite(self, operation: ir.Operation) -> ir.Value | None:
        """Builds the two sums."""
        if len(operation.results) != 1 or not hlo.is_complex(operation.results[0]):
            return None
        x, init = operation.operands
        [body] = operations_of(operation)
        is_sum = [inner.name for inner in body] == ["stablehlo.add", "stablehlo.return"]
        if not is_sum or hlo.size_of(x) > self.elements:
            return None
        dimensions = list(ir.DenseI64ArrayAttr(operation.attributes["dimensions"]))

        def total(part: ir.Value, start: ir.Value) -> ir.Value:
            return hlo.reduce([part], [start], dimensions, hlo.add)[0]

        return hlo.complex(total(hlo.real(x), hlo.real(init)), total(hlo.imag(x), hlo.imag(init)))
