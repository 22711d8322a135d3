"""`slice-reshaped`: no element of an array gets more axes than the array has."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.framework.base import Pass
from axir.passes.legalize.rewriting import operations_in_order, replace

_SLICE = "stablehlo.slice"
_RESHAPES = ("stablehlo.broadcast_in_dim", "stablehlo.reshape")


@dataclasses.dataclass(frozen=True)
class SliceReshaped(Pass):
    """Takes single elements out of arrays of as many axes as a single element has anywhere.

    The fact: IREE takes an element as a scalar where it computes with it, and where it makes an
    array of it again, reads the axes of that as those of the slice
    (`iree-dispatch-creation-bubble-up-expand-shapes`). Of more axes than what is sliced that is no
    operation: "expected rank to be smaller or equal to the other rank", "Verification failed". What
    stands between the two is often folded away first, as the addition of zero is.

    1. In each function, find the reshape of one element to the most axes.
    2. Give what a slice takes one element of that many axes, and slice that.

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
    """Builds what a slice takes, from an array of that many axes."""
    array = operation.operands[0]
    added = rank - _rank(array)
    widened = hlo.reshape(array, (1,) * added + hlo.shape_of(array))
    starts = [0] * added + list(operation.attributes["start_indices"])
    element = hlo.slice(widened, starts, [start + 1 for start in starts])
    return hlo.reshape(element, hlo.shape_of(operation.results[0]))


def _rank(value: ir.Value) -> int:
    return len(hlo.shape_of(value))
