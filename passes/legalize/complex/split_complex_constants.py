"""`split-complex-constants`: complex constants are made from two real ones."""

from __future__ import annotations

from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core.attributes import dense_to_numpy
from axir.dialect.core.dtypes import complex64, complex128
from axir.passes.legalize.rewriting import RewritePass

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
