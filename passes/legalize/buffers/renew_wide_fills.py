"""`renew-wide-fills`: arrays filled with a 64-bit number, each made for itself."""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Sequence
from typing import ClassVar, TypeAlias

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.framework.base import Pass
from axir.passes.legalize.rewriting import (
    defining_operation,
    find_operations,
    hidden_truths,
    innermost_loop_block,
    replace,
)

from .storage import IN_PLACE, overwritten_places

_PAD = "stablehlo.pad"
_VIEWS = ("stablehlo.broadcast_in_dim", "stablehlo.reshape", "stablehlo.transpose")

Fill: TypeAlias = tuple[str, bytes]
"""A type and the bytes of the number that fills it."""


@dataclasses.dataclass(frozen=True)
class RenewWideFills(Pass):
    """Makes an array that is filled with a number once for each operation that works in it.

    The fact: memory is filled with patterns of up to 32 bits. For a number of 64 bits whose halves
    differ IREE makes a dispatch without operands. Where several operations work in place on such an
    array, it makes one for each; but it removes common subexpressions after that, so that all work
    in one. (Or a part of the program reads what it does not own: "'stream.yield' op used resource
    not listed in explicit captures".) A pad works in place on an array filled with its value.

    1. In each function, collect the pads by such numbers, and the operations outside of loops that
       work in place on arrays filled with one. Go on with arrays of which there are two or more; a
       pad in a loop counts twice. (`renew-loop-operands` does the rest in loops.)
    2. Choose between the array and zeros by a truth value that is true, which the compiler does
       not know.
    3. Write a pad as an update of such an array; one that cuts off or pads between elements as a
       choice between the operand, padded with zeros, and the number.

    Before::

        %0 = stablehlo.pad %x, %pi, low = [1], high = [2], interior = [0]
             : (tensor<5xf64>, tensor<f64>) -> tensor<8xf64>

    After::

        %t = util.optimization_barrier %true : tensor<i1>
        %1 = stablehlo.select %t, %all_pi, %zeros : tensor<i1>, tensor<8xf64>
        %0 = stablehlo.dynamic_update_slice %1, %x, %one

    Precondition: the passes that make pads, and those that remove barriers, have run.
    """

    name: ClassVar[str] = "renew-wide-fills"

    def run(self, module: ir.Module) -> None:
        """Changes the module in place."""
        for function in find_operations(module.operation, ("func.func",)):
            _renew(function)


def _renew(function: ir.Operation) -> None:
    pads: list[tuple[ir.Operation, Fill]] = []
    places: list[tuple[ir.Operation, int, Fill]] = []
    counts: dict[Fill, int] = {}
    for operation in find_operations(function, (_PAD,)):
        fill = _fill(operation.operands[1], operation.results[0].type)
        if fill is not None:
            pads.append((operation, fill))
            counts[fill] = counts.get(fill, 0) + 1 + (innermost_loop_block(operation) is not None)
    for operation in find_operations(function, IN_PLACE):
        for place in () if innermost_loop_block(operation) else overwritten_places(operation):
            fill = _fill(operation.operands[place], operation.operands[place].type)
            if fill is not None:
                places.append((operation, place, fill))
                counts[fill] = counts.get(fill, 0) + 1
    for operation, fill in pads:
        if counts[fill] > 1:
            with ir.InsertionPoint(operation), operation.location:
                replace(operation, _padded(operation))
    for operation, place, fill in places:
        if counts[fill] > 1:
            with ir.InsertionPoint(operation), operation.location:
                operation.operands[place] = _renewed(operation.operands[place])


def _fill(value: ir.Value, filled: ir.Type) -> Fill | None:
    """Returns which array is filled by a value, or is the value, if it takes a dispatch to fill."""
    maker = defining_operation(value)
    while maker is not None and maker.name in _VIEWS:
        maker = defining_operation(maker.operands[0])
    element = hlo.element_type_of(value)
    if maker is None or maker.name != "stablehlo.constant" or _is_narrow(element):
        return None
    dense = ir.DenseElementsAttr(maker.attributes["value"])
    if not dense.is_splat:
        return None
    number = dense.get_splat_value().value
    is_float = isinstance(element, ir.FloatType)
    pattern = struct.pack("<d", number) if is_float else struct.pack("<Q", number % 2**64)
    return None if pattern[:4] == pattern[4:] else (str(filled), pattern)


def _is_narrow(element: ir.Type) -> bool:
    return not isinstance(element, (ir.FloatType, ir.IntegerType)) or element.width != 64


def _renewed(array: ir.Value) -> ir.Value:
    (truth,) = hidden_truths(1)
    return hlo.select(truth, array, hlo.full_like(array, 0))


def _padded(pad: ir.Operation) -> ir.Value:
    """Builds what a pad computes."""
    operand, value = pad.operands
    low, high, interior = (
        list(pad.attributes[name])
        for name in ("edge_padding_low", "edge_padding_high", "interior_padding")
    )
    shape = hlo.shape_of(pad.results[0])
    filled = hlo.broadcast_scalar(value, shape)
    if 0 in hlo.shape_of(operand):
        return _renewed(filled)
    if not any(interior) and min((*low, *high), default=0) >= 0:
        starts = [hlo.constant(start, "int32") for start in low]
        return hlo.dynamic_update_slice(_renewed(filled), operand, starts)
    return hlo.select(_inside(operand, low, high, interior), _zeros_around(pad), filled)


def _inside(
    operand: ir.Value, low: Sequence[int], high: Sequence[int], interior: Sequence[int]
) -> ir.Value:
    """Returns where a padded array has elements of its operand."""
    everywhere = hlo.full(True, hlo.shape_of(operand), "bool")
    return hlo.pad(everywhere, hlo.constant(False), low, high, interior)


def _zeros_around(pad: ir.Operation) -> ir.Value:
    zero = hlo.full_like(pad.operands[1], 0)
    copy = pad.clone()
    copy.operands[1] = zero
    zeros: ir.Value = copy.results[0]
    return zeros
