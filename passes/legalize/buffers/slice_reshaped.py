"""`slice-reshaped`: single elements come from arrays as they were, and of enough axes."""

from __future__ import annotations

import dataclasses
import math
from typing import ClassVar

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.framework.base import Pass
from axir.passes.legalize.rewriting import defining_operation, operations_in_order, replace

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

    Another fact: an element of an array that is computed, and then reshaped to fewer axes, is put
    into one dispatch with the array and with what reads the element, for which the compiler never
    finds an end (`iree-codegen-tile-and-distribute-to-workgroups-using-forall-op`).

    1. Take single elements of reshaped arrays from what was reshaped, unless to more axes.
    2. In each function, find the reshape of one element to the most axes.
    3. Give what a slice takes one element of that many axes, and slice that.

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
            for operation in operations_in_order(function, (_SLICE,)):
                source = _source(operation.operands[0])
                if _size(operation.results[0]) == 1 and source is not None:
                    with ir.InsertionPoint(operation), operation.location:
                        replace(operation, _element_of(source, operation))
            found = operations_in_order(function, (_SLICE, *_RESHAPES))
            single = [operation for operation in found if _size(operation.results[0]) == 1]
            rank = max((_rank(x.results[0]) for x in single if x.name in _RESHAPES), default=0)
            for operation in single:
                if operation.name == _SLICE and _rank(operation.operands[0]) < rank:
                    with ir.InsertionPoint(operation), operation.location:
                        replace(operation, _element(operation, rank))


def _source(array: ir.Value) -> ir.Value | None:
    """Returns what an array was before reshapes, if any of them is not one to more axes."""
    source, is_joined = array, False
    while (maker := defining_operation(source)) is not None and maker.name == _RESHAPES[1]:
        is_joined = is_joined or _rank(maker.operands[0]) >= _rank(source)
        source = maker.operands[0]
    return source if is_joined else None


def _element_of(array: ir.Value, operation: ir.Operation) -> ir.Value:
    """Builds what a slice takes of a reshaped array, from the array before."""
    starts = list(operation.attributes["start_indices"])
    place = int(np.ravel_multi_index(starts, hlo.shape_of(operation.operands[0])))
    starts = [int(start) for start in np.unravel_index(place, hlo.shape_of(array))]
    element = hlo.slice(array, starts, [start + 1 for start in starts])
    return hlo.reshape(element, hlo.shape_of(operation.results[0]))


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


def _size(value: ir.Value) -> int:
    return math.prod(hlo.shape_of(value))
