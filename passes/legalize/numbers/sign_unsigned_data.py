"""`sign-unsigned-data`: operations that IREE supports only on signless integers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core.annotations import Returning
from axir.passes.legalize.rewriting import RewritePass


class SignUnsignedData(RewritePass):
    """Runs reverse, reduce_window and convert of unsigned integers on signless ones.

    The fact: IREE's conversion of unsigned to signless integers does not handle the first two
    ("unresolved materialization" from ui32 to i32). It turns a conversion of a host scalar from
    signless to unsigned integers, as `branch-loops` makes them, into `arith` on ui32, which does
    not exist ("'tensor.from_elements' op failed to verify that operand types match").

    1. Bitcast the unsigned operands to signless integers of the same width.
    2. Build the operation on those; a reduction's body bitcasts its arguments back, so that it
       still compares and divides without a sign.
    3. Bitcast the results back.
    4. Convert signless integers to signless ones of the result's width, and bitcast these.

    Before::

        %0 = stablehlo.reverse %x, dims = [0] : tensor<4xui8>

    After::

        %1 = stablehlo.bitcast_convert %x : (tensor<4xui8>) -> tensor<4xi8>
        %2 = stablehlo.reverse %1, dims = [0] : tensor<4xi8>
        %3 = stablehlo.bitcast_convert %2 : (tensor<4xi8>) -> tensor<4xui8>
    """

    name: ClassVar[str] = "sign-unsigned-data"
    operations: ClassVar[tuple[str, ...]] = (
        "stablehlo.reverse",
        "stablehlo.reduce_window",
        "stablehlo.convert",
    )

    def rewrite(self, operation: ir.Operation) -> list[ir.Value] | None:
        """Builds the operation on signless integers."""
        if operation.name == "stablehlo.convert":
            return _converted(operation)
        if not any(map(hlo.is_unsigned, operation.operands)):
            return None
        operands = [_signless(operand) for operand in operation.operands]
        results = [_signless_type(result) for result in operation.results]
        bodies = [
            ([_signless_type(a) for a in region.blocks[0].arguments], _signless_body(region))
            for region in operation.regions
        ]
        name = operation.name
        attributes = {key: operation.attributes[key] for key in operation.attributes}
        made = hlo.build(name.split(".")[1], name, operands, results, attributes, bodies)
        return [
            hlo.bitcast_convert(new, hlo.element_type_of(old))
            for new, old in zip(made.results, operation.results, strict=True)
        ]


def _converted(operation: ir.Operation) -> list[ir.Value] | None:
    """Converts signless integers to the bits of unsigned ones."""
    (operand,), (result,) = operation.operands, operation.results
    is_signless = isinstance(hlo.element_type_of(operand), ir.IntegerType)
    if not is_signless or hlo.is_unsigned(operand) or not hlo.is_unsigned(result):
        return None
    bits = hlo.convert(operand, _signless_type(result).element_type)
    return [hlo.bitcast_convert(bits, hlo.element_type_of(result))]


def _signless_type(value: ir.Value) -> ir.Type:
    if not hlo.is_unsigned(value):
        return value.type
    width = hlo.element_type_of(value).width
    return hlo.tensor_type(value.type.shape, ir.IntegerType.get_signless(width))


def _signless(value: ir.Value) -> ir.Value:
    return hlo.bitcast_convert(value, _signless_type(value).element_type)


def _signless_body(region: ir.Region) -> Returning[list[ir.Value]]:
    """Copies a body behind bitcasts of its arguments."""
    block = region.blocks[0]

    def body(*arguments: ir.Value) -> list[ir.Value]:
        copies: dict[ir.Value, ir.Value] = {
            old: hlo.bitcast_convert(new, hlo.element_type_of(old))
            for old, new in zip(block.arguments, arguments, strict=True)
        }
        *inner, terminator = [operation.operation for operation in block.operations]
        for operation in inner:
            _copy(operation, copies)
        return [_signless(copies.get(value, value)) for value in terminator.operands]

    return body


def _copy(operation: ir.Operation, copies: dict[ir.Value, ir.Value]) -> None:
    """Clones an operation on the copies of its operands, and records the copies of its results."""
    clone = operation.clone()
    for index, operand in enumerate(operation.operands):
        clone.operands[index] = copies.get(operand, operand)
    results: Sequence[ir.Value] = clone.results
    copies.update(zip(operation.results, results, strict=True))
