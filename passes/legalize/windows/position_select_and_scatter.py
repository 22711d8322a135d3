"""`position-select-and-scatter`: the chosen positions, then a scatter."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core.annotations import Returning
from axir.passes.legalize.rewriting import RewritePass

_LARGEST_I32 = 2**31 - 1


class PositionSelectAndScatter(RewritePass):
    """Rewrites `stablehlo.select_and_scatter` as `reduce_window` and `scatter`.

    The fact: IREE compiles it only where windows neither overlap nor reach into padding ("explicitly
    marked illegal").

    1. Number the elements of the operand.
    2. Reduce the windows of elements and numbers: of two elements keep the one that `select`
       prefers. A negative number marks the padding, which is never preferred.
    3. Scatter the source, flat, at these numbers into an array of the initial value; a window that
       lies in the padding has a negative number, and its source element is dropped.

    Before::

        %0 = "stablehlo.select_and_scatter"(%x, %source, %init) ({select}, {scatter}) …
             : (tensor<6xf32>, tensor<5xf32>, tensor<f32>) -> tensor<6xf32>

    After::

        %1 = stablehlo.iota dim = 0 : tensor<6xi32>
        %2:2 = "stablehlo.reduce_window"(%x, %1, %init, %minus_one) …
               : (tensor<6xf32>, tensor<6xi32>, …) -> (tensor<5xf32>, tensor<5xi32>)
        %3 = stablehlo.broadcast_in_dim %init, dims = [] : tensor<6xf32>
        %4 = stablehlo.reshape %2#1 : (tensor<5xi32>) -> tensor<5x1xi32>
        %5 = "stablehlo.scatter"(%3, %4, %source) ({scatter}) …

    Precondition: scatters still drop updates that lie outside (`drop-scatter` runs later).
    """  # noqa: E501

    name: ClassVar[str] = "position-select-and-scatter"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.select_and_scatter",)

    def rewrite(self, operation: ir.Operation) -> ir.Value:
        """Builds the reduction and the scatter."""
        operand, source, init = operation.operands
        shape, count = hlo.shape_of(operand), hlo.size_of(source)
        size = math.prod(shape)
        if not size or not count:
            return hlo.broadcast_in_dim(init, shape, ())
        dtype = np.dtype(np.int32 if size <= _LARGEST_I32 else np.int64)
        numbers = hlo.reshape(hlo.iota((size,), 0, dtype), shape)
        chosen = _chosen(operation, operand, numbers, init)
        empty = hlo.broadcast_in_dim(init, (size,), ())
        (flat,) = hlo.scatter(
            [empty],
            hlo.reshape(chosen, (count, 1)),
            [hlo.reshape(source, (count,))],
            copied_body(operation.regions[1]),
            update_window_dims=(),
            inserted_window_dims=(0,),
            scatter_dims_to_operand_dims=(0,),
            index_vector_dim=1,
        )
        return hlo.reshape(flat, shape)


def _chosen(
    operation: ir.Operation, operand: ir.Value, numbers: ir.Value, init: ir.Value
) -> ir.Value:
    """Returns the number of the element chosen in each window; negative if in the padding."""
    select = copied_body(operation.regions[0])
    rank = len(hlo.shape_of(operand))

    def body(a: ir.Value, first: ir.Value, b: ir.Value, second: ir.Value) -> list[ir.Value]:
        zero = hlo.full_like(first, 0)
        (is_preferred,) = select(a, b)
        keeps = hlo.or_(is_preferred, hlo.compare(second, zero, "LT"))
        keeps = hlo.and_(keeps, hlo.compare(first, zero, "GE"))
        return [hlo.select(keeps, a, b), hlo.select(keeps, first, second)]

    nowhere = hlo.constant(-1, hlo.element_type_of(numbers))
    return hlo.reduce_window(
        [operand, numbers],
        [init, nowhere],
        entries(operation, "window_dimensions", [1] * rank),
        body,
        window_strides=entries(operation, "window_strides", [1] * rank),
        padding=entries(operation, "padding", [[0, 0]] * rank),
    )[1]


def entries(operation: ir.Operation, name: str, default: list) -> list:
    """Returns the entries of an attribute, or a default where it is absent."""
    if name not in operation.attributes or not default:
        return default
    attribute = operation.attributes[name]
    if isinstance(attribute, ir.DenseI64ArrayAttr):
        return list(attribute)
    shape = np.shape(default)
    if attribute.is_splat:
        return np.full(shape, attribute.get_splat_value().value).tolist()
    return np.array(attribute).reshape(shape).tolist()


def copied_body(region: ir.Region) -> Returning[list[ir.Value]]:
    """Returns a function that builds a region's computation on other arguments."""
    block = region.blocks[0]

    def body(*arguments: ir.Value) -> list[ir.Value]:
        copies: dict[ir.Value, ir.Value] = dict(zip(block.arguments, arguments, strict=True))
        *inner, terminator = [operation.operation for operation in block.operations]
        for operation in inner:
            clone = operation.clone()
            for index, operand in enumerate(operation.operands):
                clone.operands[index] = copies.get(operand, operand)
            results: Sequence[ir.Value] = clone.results
            copies.update(zip(operation.results, results, strict=True))
        return [copies.get(value, value) for value in terminator.operands]

    return body
