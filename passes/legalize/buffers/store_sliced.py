"""`store-sliced`: arrays computed from narrower elements are stored before they are sliced."""

from __future__ import annotations

import dataclasses
import math
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.framework.base import Pass
from axir.passes.legalize.rewriting import (
    ELEMENTWISE,
    constant_behind,
    defining_operation,
    operations_in_order,
)

_SLICES = frozenset(("stablehlo.slice", "stablehlo.dynamic_slice"))
_WIDEST = 1 << 16


@dataclasses.dataclass(frozen=True)
class StoreSliced(Pass):
    """Keeps arrays that are computed from narrower elements in memory before they are sliced.

    The fact: if an elementwise operation has a result with wider elements than its operands, IREE
    repeats it in each dispatch that uses the result, even behind a slice. Such a dispatch has loops
    over the whole array and over the slice, and is tiled by one of them. Let `y` be
    `x.astype(float64)` of five int32: `2 * y[::2]` put into a longer array was silently wrong, and
    the compiler did not terminate on `y.reshape(10)[5] * z`.

    1. In each function, find the narrowest elements from which elementwise operations compute each
       array; scalars and constants do not count.
    2. Visit the slices, and follow the operand back through reshapes to an array. If it is computed
       from narrower elements, put an optimization barrier on it, for all its readers.

    Before::

        %y = stablehlo.convert %x : (tensor<5xi32>) -> tensor<5xf64>
        %0 = stablehlo.slice %y [0:5:2] : (tensor<5xf64>) -> tensor<3xf64>

    After::

        %y = stablehlo.convert %x : (tensor<5xi32>) -> tensor<5xf64>
        %b = stablehlo.optimization_barrier %y
        %0 = stablehlo.slice %b [0:5:2] : (tensor<5xf64>) -> tensor<3xf64>

    Precondition: `protect-inputs` has run, because it would remove the barriers.
    """

    name: ClassVar[str] = "store-sliced"

    def run(self, module: ir.Module) -> None:
        """Inserts the barriers."""
        narrowest: dict[ir.Value, int] = {}
        for operation in operations_in_order(module.operation, (*ELEMENTWISE, *_SLICES)):
            read = operation.operands
            if operation.name in _SLICES:
                array = _unshaped(read[0])
                if narrowest.get(array, _WIDEST) < _bits(array):
                    narrowest[_stored(array)] = _WIDEST
                    del narrowest[array]
                    array = _unshaped(operation.operands[0])
                read = [array]
            least = min((narrowest.get(x, _bits_read(x)) for x in read), default=_WIDEST)
            narrowest.update((result, least) for result in operation.results)


def _unshaped(array: ir.Value) -> ir.Value:
    """Returns the array that was reshaped to this one; the array itself if none was."""
    while (maker := defining_operation(array)) is not None and maker.name == "stablehlo.reshape":
        array = maker.operands[0]
    return array


def _stored(array: ir.Value) -> ir.Value:
    """Puts a barrier behind an array, and lets all its readers read the barrier's result."""
    maker = array.owner.operation
    with ir.InsertionPoint.after(maker), maker.location:
        (stored,) = hlo.optimization_barrier(array)
    array.replace_all_uses_except(stored, stored.owner.operation)
    return stored


def _bits_read(array: ir.Value) -> int:
    """Returns the width of an input array's elements; scalars and constants count as the widest."""
    if math.prod(hlo.shape_of(array)) == 1 or constant_behind(array) is not None:
        return _WIDEST
    return _bits(array)


def _bits(array: ir.Value) -> int:
    element = hlo.element_type_of(array)
    if isinstance(element, ir.ComplexType):
        return 2 * element.element_type.width
    return element.width
