"""`store-complex-numbers`: what becomes a complex number is not read out of it again."""

from __future__ import annotations

import dataclasses
import math
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.legalize.rewriting import RewritePass


@dataclasses.dataclass(frozen=True)
class StoreComplexNumbers(RewritePass):
    """Puts a barrier behind single complex numbers that are made of real ones.

    The fact: IREE computes single numbers that stand side by side in one dispatch. It finds that
    the real part of what was made of `x` is `x`, and if both are results of the dispatch, it drops
    one of them, and then reads another result in its place: the compiler fails ("op expected type
    of bb argument to match element type of the corresponding operand").

    1. Take conversions of real numbers to complex ones, and complex numbers made of two parts, of
       one element, unless all of it is constant.
    2. Put an optimization barrier behind them.

    Before::

        %0 = stablehlo.subtract %a, %b : tensor<f64>
        %1 = stablehlo.convert %0 : (tensor<f64>) -> tensor<complex<f64>>
        %2 = stablehlo.multiply %1, %z : tensor<complex<f64>>
        return %0, %2

    After::

        %1 = stablehlo.convert %0 : (tensor<f64>) -> tensor<complex<f64>>
        %3 = stablehlo.optimization_barrier %1 : tensor<complex<f64>>
        %2 = stablehlo.multiply %3, %z : tensor<complex<f64>>
    """

    name: ClassVar[str] = "store-complex-numbers"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.complex", "stablehlo.convert")

    def rewrite(self, operation: ir.Operation) -> ir.Value | None:
        """Builds the number again, and the barrier."""
        operands = list(operation.operands)
        kind = operation.results[0].type
        is_single = hlo.is_complex(operation.results[0]) and math.prod(kind.shape) == 1
        if not is_single or hlo.is_complex(operands[0]) or all(map(_is_constant, operands)):
            return None
        made = (
            hlo.complex(*operands)
            if operation.name == "stablehlo.complex"
            else hlo.convert(operands[0], kind.element_type)
        )
        return hlo.optimization_barrier(made)[0]


def _is_constant(x: ir.Value) -> bool:
    return not isinstance(x.owner, ir.Block) and x.owner.name == "stablehlo.constant"
