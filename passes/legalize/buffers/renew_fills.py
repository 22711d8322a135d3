"""`renew-fills`: each operation in place gets its own array filled with a number."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import ClassVar, TypeAlias

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.framework.base import Pass
from axir.passes.legalize.copies import made_alone
from axir.passes.legalize.regions import VIEWS
from axir.passes.legalize.rewriting import (
    defining_operation,
    find_operations,
    innermost_loop_block,
    renewed,
    replace,
)

from .storage import IN_PLACE, overwritten_places

_PAD = "stablehlo.pad"

_COMPLEX = 128
# Stands for the bytes of a number that the program computes: any two may be equal.
_COMPUTED = b"?"
_PADDING = ("edge_padding_low", "edge_padding_high", "interior_padding")

Fill: TypeAlias = tuple[str, bytes, int]
"""A type, the bytes of the number that fills it, and how many bits the number has."""


class RenewFills(Pass):
    """Gives each operation in place its own copy of an array that is filled with one number.

    The facts: IREE fills memory with patterns of up to 32 bits. For a 64-bit number with two
    different halves, and for complex numbers, it makes a dispatch without operands. If an operation
    works in place on such an array and the array has other users, IREE makes one array for each
    user. But it removes common subexpressions after that, so that all use one array. (Or a part of
    the program reads a resource that it does not own: "'stream.yield' op used resource not listed
    in explicit captures".) A pad works in place on an array filled with its padding value.

    Two pads with the same number, of any width, may become one dispatch. The dispatch takes one
    filled array and both pads work in it, so that one result contains the other's elements.

    1. In each function, collect the operations outside of loops that work in place on arrays filled
       with a 64-bit or complex number, and the pads with a number that two or more pads use. A pad
       in a loop with a 64-bit number counts twice. (`renew-loop-operands` handles the other
       operations in loops.) Numbers that the program computes count as equal.
    2. For a 64-bit or complex number, select between the array and zeros by a boolean that is true
       but opaque to the compiler. For any other number, fill an array with a number that is opaque
       to the compiler.
    3. Write a pad as an update of such an array. A pad with negative or interior padding becomes,
       if its number has 64 bits, a select between the operand padded with zeros and the number.

    Before::

        %0 = stablehlo.pad %x, %pi, low = [1], high = [2], interior = [0]
             : (tensor<5xf64>, tensor<f64>) -> tensor<8xf64>

    After::

        %t = util.optimization_barrier %true : tensor<i1>
        %1 = stablehlo.select %t, %all_pi, %zeros : tensor<i1>, tensor<8xf64>
        %0 = stablehlo.dynamic_update_slice %1, %x, %one

    Precondition: the passes that make pads, and those that remove barriers, have run.
    """

    name: ClassVar[str] = "renew-fills"

    def run(self, module: ir.Module) -> None:
        """Changes the module in place."""
        for function in find_operations(module.operation, ("func.func",)):
            _renew(function)


def _renew(function: ir.Operation) -> None:
    pads: list[tuple[ir.Operation, Fill]] = []
    places: list[tuple[ir.Operation, int]] = []
    counts: dict[Fill, int] = {}
    for operation in find_operations(function, (_PAD,)):
        fill = _fill(operation.operands[1], operation.results[0].type)
        if fill is not None and (_is_wide(fill) or _is_update(operation)):
            pads.append((operation, fill))
            is_repeated = _is_wide(fill) and innermost_loop_block(operation) is not None
            counts[fill] = counts.get(fill, 0) + 1 + is_repeated
    for operation in find_operations(function, IN_PLACE):
        for place in () if innermost_loop_block(operation) else overwritten_places(operation):
            fill = _fill(operation.operands[place], operation.operands[place].type)
            if fill is not None and _is_wide(fill):
                places.append((operation, place))
                counts[fill] = counts.get(fill, 0) + 1
    for operation, fill in pads:
        if counts[fill] > 1:
            with ir.InsertionPoint(operation), operation.location:
                replace(operation, _padded(operation))
    for operation, place in places:
        with ir.InsertionPoint(operation), operation.location:
            operation.operands[place] = renewed(operation.operands[place])


def _fill(value: ir.Value, filled: ir.Type) -> Fill | None:
    """Returns the kind of array that a value fills, or is, if all its elements are one number."""
    number, maker = value, defining_operation(value)
    while maker is not None and maker.name in VIEWS:
        number = maker.operands[0]
        maker = defining_operation(number)
    element = hlo.element_type_of(value)
    if maker is not None and maker.name == "stablehlo.complex":
        parts = [_fill(part, part.type) for part in maker.operands]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            return None
        return str(filled), b"".join(pattern for _, pattern, _ in known), _COMPLEX
    if maker is None or maker.name != "stablehlo.constant":
        width = _COMPLEX if hlo.is_complex(value) else element.width
        is_one = hlo.size_of(number) == 1
        return (str(filled), _COMPUTED, width) if is_one else None
    dense = ir.DenseElementsAttr(maker.attributes["value"])
    if not dense.is_splat:
        return None
    if hlo.is_complex(value):
        return str(filled), str(dense).encode(), _COMPLEX
    number = dense.get_splat_value().value
    is_float = isinstance(element, ir.FloatType)
    pattern = struct.pack("<d", number) if is_float else struct.pack("<Q", number % 2**64)
    return str(filled), pattern, element.width


def _is_wide(fill: Fill) -> bool:
    """Tells whether IREE needs a dispatch to fill the array."""
    _, pattern, width = fill
    return width == _COMPLEX or (
        width == 64 and (pattern == _COMPUTED or pattern[:4] != pattern[4:])
    )


def _is_update(pad: ir.Operation) -> bool:
    """Tells whether a pad keeps its operand contiguous and whole."""
    low, high, interior = (list(pad.attributes[name]) for name in _PADDING)
    return not any(interior) and min((*low, *high), default=0) >= 0


def _padded(pad: ir.Operation) -> ir.Value:
    """Builds the result of a pad."""
    operand, value = pad.operands
    low, high, interior = (list(pad.attributes[name]) for name in _PADDING)
    shape = hlo.shape_of(pad.results[0])
    filled = hlo.broadcast_scalar(value, shape)
    if 0 in hlo.shape_of(operand):
        return made_alone(filled)
    if _is_update(pad):
        starts = [hlo.constant(start, "int32") for start in low]
        return hlo.dynamic_update_slice(made_alone(filled), operand, starts)
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
