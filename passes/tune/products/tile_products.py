"""`tile-products`: matrix products become kernels with tiles in registers."""

from __future__ import annotations

import dataclasses
import math
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.framework.base import Pass
from axir.passes.legalize.rewriting import find_operations, replace

from .called_kernel import CalledProduct, shared_product
from .contraction import BATCH, CONTRACTED, FREE, Array, Contraction, Side
from .epilogue import Epilogue, splat
from .matrix_kernel import matrix_product
from .tiling import Tiling, tile
from .vector_kernel import vector_product

# A left operand stored by columns is transposed beforehand if the right operand has so many
# columns, and its sums run over so many pages.
_MANY_COLUMNS, _LONG_SUM = 256, 512
# The largest product of two bytes is 2^14, and f32 represents all integers up to 2^24.
_BYTE, _EXACT_PRODUCTS = 8, 1 << 10
# Longer sums have at most so many parts.
_MOST_PARTS = 8
# A row of a matrix that is worth several vectors.
_LONG_ROW = 64
# IREE adds products with a matrix of equal elements one after the other; sums from this length on
# are computed by axir.
_LONG_UNIFORM = 1 << 10


@dataclasses.dataclass(frozen=True)
class TileProducts(Pass):
    """Computes products of matrices by a kernel, with the elementwise operations behind them.

    The facts: IREE's matrix product is as fast as any where the extents are powers of two and the
    right operand is stored by rows. It takes twice the time for odd extents, and for f64. A right
    operand stored by columns costs another pass over memory. Large products need packed operands,
    and IREE packs them as a whole.

    1. Take contractions of real floating-point numbers with several rows and columns, and at
       least `products` multiplications. Sums are computed in f32, or in f64 if an operand or the
       result is f64; their order differs from IREE's.
    2. Read operands without a transpose if the batch, free and contracted dimensions are each
       adjacent, in any order. Transpose other operands, and a large left operand that is stored by
       columns.
    3. Find the elementwise operations on the product (biases, activations, scales, the update of a
       parameter), as far as their other operands are available before it.
    4. Choose a tile of as many sums as the registers hold, for vectors of `vector_bits`, blocks of
       rows and columns that fit into the caches, and a workgroup for each 2 million products.
    5. Write the kernel, which packs panels of a large right operand on the stack, transposed if
       necessary. Equal kernels are written once.
    6. Products of bytes are computed as products of f32, which are exact for sums of up to 1,024
       products. Sums of up to 8,192 products are added from parts of 1,024.
    7. Where all elements of an operand are the same number, and sums are long, sum the other
       operand's elements times that number.
    8. Take the products of a vector and a matrix of at least `elements` elements that is in memory:
       a kernel reads the matrix once in its order, several rows side by side. Where the sums run
       down the columns, each workgroup sums some of the rows, and the results are added.
    9. With `calls`, for programs that run without IREE: kernels of two matrices call a function for
       their sums, in the same order, instead of containing tiles.

    Before::

        %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
            : (tensor<128x784xf32>, tensor<784x512xf32>) -> tensor<128x512xf32>
        %1 = stablehlo.maximum %0, %zeros : tensor<128x512xf32>

    After::

        %1 = flow.dispatch @matrix_product_…(%x, %w) : … -> tensor<1x128x512xf32>
        %2 = stablehlo.reshape %1 : (tensor<1x128x512xf32>) -> tensor<128x512xf32>

    Measured with vectors of 512 bits on a busy machine, processor time relative to JAX before and
    after, single runs: 1024x1024 1.5 and 1.1 to 1.3, 500x500 2.1 and 0.95, 100x100 0.65 and 0.37,
    4x1024 times the transposed 1024x1024 1.9 and 0.6, the weight gradient 64x8192 times 8192x64 of
    a convolution 0.74 and 0.33, attention of 32 heads of 250x64 2.1 and 0.86; f64 of 300x300 takes
    half the time; bytes of 512x512 2.0 and 1.2 to 1.4. A x of 4096x4096 1.2 and 0.94 to 1.2, x A
    2.0 and 0.83.
    """

    name: ClassVar[str] = "tile-products"
    vector_bits: int = 128
    products: int = 1 << 15
    elements: int = 1 << 19
    calls: bool = False

    def run(self, module: ir.Module) -> None:
        """Replaces the products of the module, and the elementwise operations on them."""
        for operation in find_operations(module.operation, ("stablehlo.dot_general",)):
            fits = self._fits_single(operation)
            for made in _in_single(operation) if fits else [operation]:
                with ir.InsertionPoint(made), made.location:
                    self._rewrite(made)

    def _rewrite(self, operation: ir.Operation) -> None:
        element = _accumulator(operation)
        if element is None:
            return
        contraction = Contraction.read(operation)
        extents = contraction.extents
        if min(extents[1:3]) == 1 and math.prod(extents) >= self.elements:
            self._rewrite_vector(operation, contraction, element)
            return
        # IREE handles a matrix of equal elements well if sums are short.
        is_constant = any(splat(x) is not None for x in operation.operands)
        if is_constant and extents[3] >= _LONG_UNIFORM:
            replace(operation, _sum_with_number(operation, contraction, element))
            return
        if min(extents[1:3]) < 2 or math.prod(extents) < self.products or is_constant:
            return
        [result] = operation.results
        is_large = extents[2] >= _MANY_COLUMNS and extents[3] >= _LONG_SUM
        in_rows = is_large and not self.calls  # a transposition would be additional code
        lhs = contraction.lhs.array(
            element, last=CONTRACTED if in_rows else BATCH + FREE + CONTRACTED
        )
        rhs = contraction.rhs.array(element, last=FREE + CONTRACTED)
        tiling = tile(extents, self.vector_bits, element.width, rhs.order[-1] == CONTRACTED)
        if hlo.element_type_of(result) == element and tiling.parts == 1:
            groups = [len(contraction.lhs.axes[kind]) for kind in (BATCH, FREE)]
            epilogue = Epilogue.of(operation, groups)
        else:
            epilogue = Epilogue.none(result)
        made = self._product(lhs, rhs, tiling, epilogue)
        epilogue.replace(
            [
                hlo.convert(hlo.reshape(x, hlo.shape_of(result)), hlo.element_type_of(output))
                for x, output in zip(made, epilogue.outputs, strict=True)
            ]
        )
        operation.erase()

    def _product(
        self, lhs: Array, rhs: Array, tiling: Tiling, epilogue: Epilogue
    ) -> list[ir.Value]:
        if not self.calls:
            return matrix_product(lhs, rhs, tiling, epilogue)
        if tiling.parts == 1 and not epilogue.operations:
            return [shared_product(lhs, rhs, tiling)]
        tiling = dataclasses.replace(tiling, workgroups=1)
        return matrix_product(lhs, rhs, tiling, epilogue, CalledProduct)

    def _fits_single(self, operation: ir.Operation) -> bool:
        """Tells whether a product of bytes is large, and its sums are exact in f32."""
        elements = [hlo.element_type_of(x) for x in (*operation.operands, operation.results[0])]
        *factors, result = (x.width if isinstance(x, ir.IntegerType) else 0 for x in elements)
        is_signed = not any(hlo.is_unsigned(x) for x in operation.operands)
        is_known = all(x.type.has_static_shape for x in operation.operands)
        if factors != [_BYTE, _BYTE] or result <= 2 * _BYTE or not (is_signed and is_known):
            return False
        contraction = Contraction.read(operation)
        extents = contraction.extents
        is_large = min(extents[1:3]) > 1 and math.prod(extents) >= self.products
        sides = (contraction.lhs, contraction.rhs)
        is_simple = all(len(side.axes[CONTRACTED]) == 1 for side in sides)
        longest = _EXACT_PRODUCTS * (_MOST_PARTS if is_simple else 1)
        return is_large and extents[3] <= longest

    def _rewrite_vector(
        self, operation: ir.Operation, contraction: Contraction, element: ir.Type
    ) -> None:
        vector, matrix = sorted(
            (contraction.lhs, contraction.rhs), key=lambda side: side.extent(FREE)
        )
        order = matrix.order
        [result] = operation.results
        is_plain = all(hlo.element_type_of(x) == element for x in (result, *operation.operands))
        if not is_plain or order is None or order[-1] == BATCH:
            return
        if matrix.extent(order[-1]) < _LONG_ROW or not _is_stored(matrix.operand):
            return
        taken = vector.array(element, last=CONTRACTED)
        sums = vector_product(matrix.array(element), taken, self.vector_bits)
        replace(operation, hlo.reshape(sums, hlo.shape_of(result)))


def _sum_with_number(
    operation: ir.Operation, contraction: Contraction, element: ir.Type
) -> ir.Value:
    """Returns the product with a matrix of equal elements: sums of the other operand."""
    [result] = operation.results
    lhs, rhs = contraction.lhs, contraction.rhs
    is_left = splat(lhs.operand) is not None
    side = rhs if is_left else lhs
    number = ir.FloatAttr(splat(lhs.operand if is_left else rhs.operand)).value
    shape = hlo.shape_of(side.operand)
    terms = hlo.multiply(hlo.convert(side.operand, element), hlo.full(number, shape, element))
    zero = hlo.full(0, (), element)
    [total] = hlo.reduce([terms], [zero], sorted(side.axes[CONTRACTED]), hlo.add)
    kept = [axis for axis in range(len(shape)) if axis not in side.axes[CONTRACTED]]
    order = [kept.index(axis) for axis in (*side.axes[BATCH], *side.axes[FREE])]
    if order != sorted(order):
        total = hlo.transpose(total, order)
    batches = len(side.axes[BATCH])
    first = batches + (len(lhs.axes[FREE]) if is_left else 0)
    places = [*range(batches), *range(first, first + len(side.axes[FREE]))]
    wide = hlo.broadcast_in_dim(total, hlo.shape_of(result), places)
    return hlo.convert(wide, hlo.element_type_of(result))


def _in_single(operation: ir.Operation) -> list[ir.Operation]:
    """Replaces a product of bytes by a sum of products of f32; returns these products."""
    contraction = Contraction.read(operation)
    sides = (contraction.lhs, contraction.rhs)
    count = contraction.extents[3]
    [result] = operation.results
    single = ir.F32Type.get()
    attributes = {name: operation.attributes[name] for name in operation.attributes}
    made: list[ir.Operation] = []
    total = None
    with ir.InsertionPoint(operation), operation.location:
        for first in range(0, count, _EXACT_PRODUCTS):
            last = min(first + _EXACT_PRODUCTS, count)
            is_whole = last - first == count
            parts = [side.operand if is_whole else _part(side, first, last) for side in sides]
            product = ir.Operation.create(
                operation.name,
                results=[hlo.tensor_type(hlo.shape_of(result), single)],
                operands=[hlo.convert(x, single) for x in parts],
                attributes=attributes,
            )
            made.append(product)
            sums = hlo.convert(product.result, hlo.element_type_of(result))
            total = sums if total is None else hlo.add(total, sums)
        replace(operation, total)
    return made


def _part(side: Side, first: int, last: int) -> ir.Value:
    """Returns the part of an operand in a range of the contracted axis."""
    [summed] = side.axes[CONTRACTED]
    shape = hlo.shape_of(side.operand)
    starts = [first if axis == summed else 0 for axis in range(len(shape))]
    ends = [last if axis == summed else extent for axis, extent in enumerate(shape)]
    return hlo.slice(side.operand, starts, ends)


def _is_stored(value: ir.Value) -> bool:
    """Tells whether a value is in memory, and not computed by IREE while it is read."""
    while not isinstance(value, ir.BlockArgument):
        owner = value.owner
        if owner.name in ("flow.dispatch", "stablehlo.dot_general"):
            return True
        if owner.name != "stablehlo.reshape":
            return False
        value = owner.operands[0]
    return True


def _accumulator(operation: ir.Operation) -> ir.Type | None:
    """Returns the type in which sums are computed; None for products that get no kernel."""
    values = (*operation.operands, operation.results[0])
    is_known = all(x.type.has_static_shape and hlo.is_float(x) for x in values)
    if "algorithm" in operation.attributes or not is_known:
        return None
    width = max(hlo.element_type_of(x).width for x in values)
    return {64: ir.F64Type.get(), 32: ir.F32Type.get(), 16: ir.F32Type.get()}.get(width)
