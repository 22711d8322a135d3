"""`expand-complex`: functions of complex numbers as formulas on their parts."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.scalars import Scalar, convert_float, float64, operation
from axir.passes.legalize.elementwise_loops import elementwise
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
