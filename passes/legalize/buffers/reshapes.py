"""Reshapes of single elements that IREE compiles wrongly."""

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


_SLICE = "stablehlo.slice"
_RESHAPES = ("stablehlo.broadcast_in_dim", "stablehlo.reshape")


class SliceReshaped(Pass):
    """Slices single elements from arrays of as high a rank as any one-element array has.

    The fact: IREE computes with an element as a scalar. Where it makes an array of the scalar
    again, it moves the axes of that array to the slice
    (`iree-dispatch-creation-bubble-up-expand-shapes`). If the array has more axes than the sliced
    operand, the new slice is invalid: "expected rank to be smaller or equal to the other rank",
    "Verification failed". Operations between the two, such as an addition of zero, are often folded
    away first.

    1. In each function, find the highest rank to which a one-element array is reshaped.
    2. If a slice takes one element, reshape its operand to that rank and slice the reshaped array.

    Before::

        %0 = stablehlo.slice %x [2:3] : (tensor<4xf32>) -> tensor<1xf32>
        %1 = stablehlo.reshape %0 : (tensor<1xf32>) -> tensor<1x1xf32>

    After::

        %0 = stablehlo.reshape %x : (tensor<4xf32>) -> tensor<1x4xf32>
        %1 = stablehlo.slice %0 [0:1, 2:3] : (tensor<1x4xf32>) -> tensor<1x1xf32>
        %2 = stablehlo.reshape %1 : (tensor<1x1xf32>) -> tensor<1xf32>
        %3 = stablehlo.reshape %2 : (tensor<1xf32>) -> tensor<1x1xf32>

    Precondition: the passes that make slices and reshapes have run.
    """

    name: ClassVar[str] = "slice-reshaped"

    def run(self, module: ir.Module) -> None:
        """Slices arrays of more axes."""
        for function in operations_in_order(module.operation, ("func.func",)):
            found = operations_in_order(function, (_SLICE, *_RESHAPES))
            single = [operation for operation in found if hlo.size_of(operation.results[0]) == 1]
            rank = max((_rank(x.results[0]) for x in single if x.name in _RESHAPES), default=0)
            for operation in single:
                if operation.name == _SLICE and _rank(operation.operands[0]) < rank:
                    with ir.InsertionPoint(operation), operation.location:
                        replace(operation, _element(operation, rank))


def _element(operation: ir.Operation, rank: int) -> ir.Value:
    """Builds the result of a one-element slice from an array of that rank."""
    array = operation.operands[0]
    added = rank - _rank(array)
    widened = hlo.reshape(array, (1,) * added + hlo.shape_of(array))
    starts = [0] * added + list(operation.attributes["start_indices"])
    element = hlo.slice(widened, starts, [start + 1 for start in starts])
    return hlo.reshape(element, hlo.shape_of(operation.results[0]))


def _rank(value: ir.Value) -> int:
    return len(hlo.shape_of(value))
