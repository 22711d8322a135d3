"""`split-complex-pad`: complex numbers are padded as their two parts."""

from __future__ import annotations

from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.legalize.rewriting import RewritePass


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
