"""`split-complex-sums`: small sums of complex numbers are sums of their parts."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.legalize.regions import operations_of
from axir.passes.legalize.rewriting import RewritePass


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
