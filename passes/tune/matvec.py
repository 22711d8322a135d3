"""`spread-matvecs`: the product of a large matrix and a vector is a loop over the matrix."""

from __future__ import annotations

import dataclasses
import math
from typing import ClassVar

from iree.compiler import ir

from axir.dialect import stablehlo as hlo
from axir.passes.legalize.dimensions import dimension_numbers
from axir.passes.legalize.rewriting import RewritePass


@dataclasses.dataclass(frozen=True)
class SpreadMatvecs(RewritePass):
    """Computes the product of a large matrix and a vector as a sum of elementwise products.

    The facts: such a product takes the time of reading the matrix. IREE computes it in blocks of 32
    rows at a time, which need twice as many registers as there are; of xᵀ A it reads a strip of
    columns at a time, across memory. The tiles of a plain sum fit, and `split-reductions` knows
    what to do with columns. But IREE recognizes a sum of products in any form, unless something
    stands between.

    1. Take contractions to f32 or f64 without batch dimensions, of which one operand has nothing but
       the contracted dimensions (or extents of 1), and the other `elements` elements or more.
    2. Convert both to the result's type, and multiply the matrix by the vector, broadcast to its
       shape.
    3. Where an element of the matrix is not a number, take that instead of the product: the same,
       but no product.
    4. Sum over the contracted dimensions.

    Before::

        %0 = stablehlo.dot_general %a, %x, contracting_dims = [1] x [0]
            : (tensor<4096x4096xf32>, tensor<4096xf32>) -> tensor<4096xf32>

    After::

        %1 = stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<4096xf32>) -> tensor<4096x4096xf32>
        %2 = stablehlo.multiply %a, %1
        %3 = stablehlo.compare NE, %a, %a
        %4 = stablehlo.select %3, %a, %2
        %5 = stablehlo.reduce(%4 init: %zero) applies stablehlo.add across dimensions = [1]

    Measured on 4096x4096, processor time relative to JAX: A x 2.2 before, 1.07 after.
    """

    name: ClassVar[str] = "spread-matvecs"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.dot_general",)
    elements: int = 1 << 14

    def rewrite(self, operation: ir.Operation) -> ir.Value | None:
        """Builds the sum of products."""
        result = operation.results[0]
        # Narrower sums would lose what the contraction keeps while it adds.
        is_wide = hlo.element_type_of(result) in (ir.F32Type.get(), ir.F64Type.get())
        if not is_wide or not all(map(hlo.is_float, operation.operands)):
            return None
        numbers = dimension_numbers(operation.attributes["dot_dimension_numbers"])
        if numbers["lhs_batching_dimensions"]:
            return None
        sides = [
            (operand, numbers[f"{side}_contracting_dimensions"])
            for side, operand in zip(("lhs", "rhs"), operation.operands, strict=True)
        ]
        sizes = [math.prod(hlo.shape_of(operand)) for operand, _ in sides]
        contracted = math.prod(sides[0][0].type.shape[axis] for axis in sides[0][1])
        if min(sizes) != contracted or max(sizes) < max(self.elements, 2 * contracted):
            return None
        (vector, vector_axes), (matrix, axes) = sides if sizes[0] < sizes[1] else sides[::-1]
        total = _sum_of_products(vector, vector_axes, matrix, axes, hlo.element_type_of(result))
        return hlo.reshape(total, hlo.shape_of(result))


def _sum_of_products(
    vector: ir.Value,
    vector_axes: tuple[int, ...],
    matrix: ir.Value,
    axes: tuple[int, ...],
    element: ir.Type,
) -> ir.Value:
    shape = hlo.shape_of(matrix)
    # In the order of the vector's own dimensions, extents of 1 left out.
    order = sorted(range(len(axes)), key=lambda index: vector_axes[index])
    extents = [shape[axes[index]] for index in order]
    line = hlo.reshape(hlo.convert(vector, element), extents)
    place = [axes[index] for index in order]
    if place != sorted(place):
        places = sorted(range(len(place)), key=lambda index: place[index])
        line, place = hlo.transpose(line, places), sorted(place)
    matrix = hlo.convert(matrix, element)
    product = hlo.multiply(matrix, hlo.broadcast_in_dim(line, shape, place))
    is_nan = hlo.compare(matrix, matrix, "NE")
    terms = hlo.select(is_nan, matrix, product)
    zero = hlo.full(0, (), element)
    return hlo.reduce([terms], [zero], sorted(axes), hlo.add)[0]
