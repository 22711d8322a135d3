"""`split-complex-dot`: products of complex matrices are products of their parts."""

from __future__ import annotations

from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.legalize.rewriting import RewritePass


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
