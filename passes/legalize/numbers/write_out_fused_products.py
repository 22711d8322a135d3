"""`write-out-fused-products`: fused multiply-adds of doubles, rounded once where it matters."""

from __future__ import annotations

from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders.scalars import Scalar, bitcast
from axir.passes.framework.base import Pass
from axir.passes.legalize.rewriting import replace

_LOW_BITS = 27  # of the 53 of a mantissa


class WriteOutFusedProducts(Pass):
    """Writes out `math.fma` of f64.

    The fact: SPIR-V's `Fma` may round twice (lavapipe's does), and functions of doubles use it for
    the rounding error of a product. With two roundings, exponentials are wrong in the last nine
    bits.

    1. Split each factor into its upper 26 bits and the rest. The products of these parts are exact
       (T. J. Dekker 1971); their sum minus the rounded product is the rounding error. The split
       masks bits, because compilers simplify a split by the factor 2^27 + 1 away.
    2. Add the rounded product and the third operand, which cancel where functions need it, and then
       the rounding error of the product.

    Before::

        %0 = math.fma %x, %y, %z : f64

    After::

        %1 = arith.mulf %x, %y : f64
        ...
        %0 = arith.addf %sum, %lack : f64
    """

    name: ClassVar[str] = "write-out-fused-products"

    def run(self, module: ir.Module) -> None:
        """Writes them out, in the bodies of loops over elements."""
        found: list[ir.Operation] = []

        def collect(operation: ir.Operation) -> ir.WalkResult:
            if operation.name == "math.fma" and isinstance(operation.results[0].type, ir.F64Type):
                found.append(operation)
            return ir.WalkResult.ADVANCE

        module.operation.walk(collect)
        for operation in found:
            with ir.InsertionPoint(operation), operation.location:
                replace(operation, [_written_out(*map(Scalar, operation.operands)).value])


def _written_out(x: Scalar, y: Scalar, z: Scalar) -> Scalar:
    """Returns x y + z."""
    product = x * y
    (x_high, x_low), (y_high, y_low) = _halves(x), _halves(y)
    lack = (x_high * y_high - product) + x_high * y_low + x_low * y_high + x_low * y_low
    return (product + z) + lack


def _halves(x: Scalar) -> tuple[Scalar, Scalar]:
    """Returns the upper bits of a double as one double, and the rest as another."""
    high = bitcast((x.bits() >> _LOW_BITS) << _LOW_BITS, x.type)
    return high, x - high
