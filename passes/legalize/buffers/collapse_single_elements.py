"""`collapse-single-elements`: scalars from arrays of one element, by an operation on shapes."""

from __future__ import annotations

from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.framework.base import Pass
from axir.passes.legalize.rewriting import operations_in_order, replace

_RESHAPE = "stablehlo.reshape"
_COLLAPSE = "tensor.collapse_shape"


class CollapseSingleElements(Pass):
    """Makes scalars of arrays of one element by `tensor.collapse_shape`.

    The fact: IREE's conversion of StableHLO (`iree-stablehlo-to-iree-input`) computes elementwise
    operations before the reshape of their operand. If that reshape makes a scalar and another
    operation reads the result, the reader gets the array instead, and is no valid operation:
    "failed to legalize operation 'stablehlo.compare' that was explicitly marked illegal". IREE's
    earlier passes remove most such operations, unless they have moved one of them there last.

    1. Find reshapes of arrays of one element to scalars.
    2. Build the operation that the conversion makes of them.

    Before::

        %0 = stablehlo.reshape %x : (tensor<1xf32>) -> tensor<f32>

    After::

        %0 = tensor.collapse_shape %x [] : tensor<1xf32> into tensor<f32>

    Precondition: no later pass looks for reshapes.
    """

    name: ClassVar[str] = "collapse-single-elements"

    def run(self, module: ir.Module) -> None:
        """Replaces the reshapes."""
        for operation in operations_in_order(module.operation, (_RESHAPE,)):
            [operand], [result] = operation.operands, operation.results
            if hlo.shape_of(operand) and not hlo.shape_of(result) and not hlo.is_complex(result):
                with ir.InsertionPoint(operation), operation.location:
                    created = ir.Operation.create(
                        _COLLAPSE,
                        results=[result.type],
                        operands=[operand],
                        attributes={"reassociation": ir.ArrayAttr.get([])},
                    )
                    replace(operation, created.results[0])
