"""`negate-products`: a sum over several axes is no contraction with a broadcast array."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core.types import numpy_dtype
from axir.passes.legalize.rewriting import ELEMENTWISE, RewritePass, defining_operation

_PRODUCTS = frozenset(("stablehlo.multiply", "linalg.generic"))
# Operations that IREE looks through when it fuses a product into the loops of a sum.
_VIEWS = frozenset(("stablehlo.reshape", "stablehlo.transpose"))
# How many values are looked at to find a broadcast.
_SEARCHED = 256


class NegateProducts(RewritePass):
    """Sums the negatives of products, and negates the sum.

    The fact: IREE turns a sum of products into a `vector.contract`, and one over two or more axes
    into an invalid one ("invalid accumulator/result vector shape") if a factor does not vary along
    all axes, as in the sum of all elements of a matrix times a vector. A sum of negatives of
    products stays a sum; negation is exact, and costs almost nothing.

    1. Visit every sum of one array, of any dtype but complex ones, that is computed by a product
       (reshaped or transposed or not) from an array that is broadcast, or may be.
    2. Sum the negatives, from the negative of the initial value.
    3. Subtract the result from zero: negation would turn a sum of 0.0 into -0.0.

    Before::

        %0 = stablehlo.multiply %x, %broadcast
        %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [0, 1]

    After::

        %0 = stablehlo.multiply %x, %broadcast
        %1 = stablehlo.negate %0
        %2 = stablehlo.negate %zero
        %3 = stablehlo.reduce(%1 init: %2) applies stablehlo.add across dimensions = [0, 1]
        %4 = stablehlo.subtract %zeros, %3

    Precondition: the passes that expand functions of numbers into products have run.
    """

    name: ClassVar[str] = "negate-products"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.reduce",)

    def rewrite(self, operation: ir.Operation) -> ir.Value | None:
        """Builds the sum of negatives."""
        if len(operation.operands) != 2 or not _is_sum(operation):
            return None
        operand, init = operation.operands
        if hlo.is_complex(operand) or not _is_broadcast_product(operand, operation):
            return None
        dimensions = list(operation.attributes["dimensions"])
        (total,) = hlo.reduce([hlo.negate(operand)], [hlo.negate(init)], dimensions, hlo.add)
        return hlo.subtract(hlo.full_like(total, 0), total)


def _is_sum(operation: ir.Operation) -> bool:
    dtype = numpy_dtype(hlo.element_type_of(operation.operands[0]))
    body = operation.regions[0].blocks[0].operations
    is_addition = len(body) == 2 and body[0].operation.name == "stablehlo.add"
    return is_addition and dtype != np.dtype(bool)


def _is_broadcast_product(operand: ir.Value, operation: ir.Operation) -> bool:
    if len(list(operation.attributes["dimensions"])) < 2:
        return False
    owner = defining_operation(operand)
    while owner is not None and owner.name in _VIEWS:
        owner = defining_operation(owner.operands[0])
    return owner is not None and owner.name in _PRODUCTS and _reads_broadcast(owner)


def _reads_broadcast(product: ir.Operation) -> bool:
    """Tells whether an array that varies along some axes only is an input of a fused product."""
    pending, seen = [product], set[ir.Value]()
    while pending:
        operation = pending.pop()
        if len(seen) > _SEARCHED:
            return True
        if operation.name == "stablehlo.broadcast_in_dim" and _varies(operation.operands[0]):
            return True
        if operation.name in ELEMENTWISE:
            new = [x for x in operation.operands if x not in seen]
            seen.update(new)
            pending += [x for x in map(defining_operation, new) if x is not None]
    return False


def _varies(value: ir.Value) -> bool:
    return math.prod(hlo.shape_of(value)) > 1
