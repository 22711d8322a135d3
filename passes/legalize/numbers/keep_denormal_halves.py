"""`keep-denormal-halves`: denormal numbers survive the conversion from f64 to f16."""

from __future__ import annotations

from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.expressions import select
from axir.dialect.builders.scalars import Scalar, bitcast, convert_float, float32
from axir.passes.legalize.elementwise_loops import elementwise
from axir.passes.legalize.rewriting import RewritePass


class KeepDenormalHalves(RewritePass):
    """Converts f64 to f16 by way of f32.

    The fact: IREE's conversion from f64 to f16 turns numbers below 6e-5, which are denormal as f16,
    into 0, unless the CPU has arithmetic in f16. Its conversion from f32 to f16 does not.

    1. Round to f32, toward zero; if the result is inexact, set the last bit ("round to odd").
    2. Round to f16. Since f32 has at least two more bits than twice the bits of f16, the result
       equals a single rounding (S. Boldo and G. Melquiond, Emulation of a FMA, 2008).

    Before::

        %0 = stablehlo.convert %x : (tensor<9xf64>) -> tensor<9xf16>

    After::

        %0 = linalg.generic {…} ins(%x : tensor<9xf64>) … { ^bb0(%in: f64, %out: f16): … }
    """

    name: ClassVar[str] = "keep-denormal-halves"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.convert",)

    def rewrite(self, operation: ir.Operation) -> list[ir.Value] | None:
        """Builds the loop, for conversions from f64 to f16."""
        operand, result = operation.operands[0], operation.results[0]
        half = hlo.element_type_of(result)
        if not isinstance(hlo.element_type_of(operand), ir.F64Type):
            return None
        if not isinstance(half, ir.F16Type):
            return None

        def body(x: Scalar) -> Scalar:
            return convert_float(_round_to_odd(x), half)

        return elementwise(self.name, [operand], body, [half])


def _round_to_odd(x: Scalar) -> Scalar:
    """Returns a double as a single, with the last bit set if it is not exact."""
    nearest = convert_float(x, float32())
    back = convert_float(nearest, x.type)
    is_beyond = abs(back) > abs(x)
    toward_zero = nearest.bits() - select(is_beyond, nearest.bits().constant(1), 0)
    is_inexact = back != x
    return bitcast(select(is_inexact, toward_zero | 1, toward_zero), float32())
