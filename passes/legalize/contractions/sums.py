"""Sums and products along axes, in a precision and a form that IREE computes correctly.

Here: products and reductions in a wider precision, and sums of products that are no contractions.
Elsewhere: the operands of contractions (`operands.py`).
"""

from __future__ import annotations

import dataclasses
import math
from typing import ClassVar

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core.types import numpy_dtype
from axir.passes.legalize.numbers.keep_roundings import hidden
from axir.passes.legalize.regions import operations_of
from axir.passes.legalize.rewriting import ELEMENTWISE, RewritePass, defining_operation

_HALF = 16


@dataclasses.dataclass(frozen=True)
class AccumulateInSingle(RewritePass):
    """Sums the products of f16 and bf16 in f32, and rounds once.

    The fact: IREE compiles no contraction with a bf16 result for GPUs ("failed to distribute" for
    CUDA). It sums f16 products in f16, while tensor cores take operands of 16 bits and sum in f32.
    For SPIR-V it does not compile bf16 operands ("failed to legalize operation 'vector.bitcast'").

    1. Give a contraction or convolution with a result of f16 or bf16 an f32 result, and convert
       that.
    2. With the option `widens`, convert bf16 operands to f32, behind a barrier.

    Before::

        %0 = stablehlo.dot_general %x, %y, … -> tensor<4x4xbf16>

    After::

        %1 = stablehlo.dot_general %x, %y, … -> tensor<4x4xf32>
        %0 = stablehlo.convert %1 : (tensor<4x4xf32>) -> tensor<4x4xbf16>
    """

    name: ClassVar[str] = "accumulate-in-single"
    operations: ClassVar[tuple[str, ...]] = (
        "stablehlo.convolution",
        "stablehlo.dot",
        "stablehlo.dot_general",
    )
    widens: bool = False

    def rewrite(self, operation: ir.Operation) -> ir.Value | None:
        """Builds the contraction and the conversion."""
        result = operation.results[0]
        element = hlo.element_type_of(result)
        operands = list(operation.operands)
        is_half = isinstance(element, ir.FloatType) and element.width == _HALF
        is_widened = self.widens and any(map(_is_brain_float, operands))
        if not is_half and not is_widened:
            return None
        if is_widened:
            wide = [hlo.convert(x, np.float32) for x in operands]
            operands = hlo.optimization_barrier(wide)
        contracted = hlo.build(
            operation.name.split(".")[1],
            operation.name,
            operands,
            [hlo.tensor_type(result.type.shape, np.float32 if is_half else element)],
            {name: operation.attributes[name] for name in operation.attributes},
        ).result
        if is_widened:  # nor does it compile results of bf16
            contracted = hlo.optimization_barrier(contracted)[0]
        return hlo.convert(contracted, element) if is_half else contracted


def _is_brain_float(value: ir.Value) -> bool:
    return isinstance(hlo.element_type_of(value), ir.BF16Type)


_BODIES = {
    f"stablehlo.{build.__name__}": build
    for build in (hlo.add, hlo.maximum, hlo.minimum, hlo.multiply)
}


class ReduceInSingle(RewritePass):
    """Reduces bf16 in f32, and converts the results.

    The fact: IREE vectorizes reductions along rows if the extent is a multiple of the subgroup
    size. For SPIR-V it does not compile such reductions of bf16 ("'spirv.Bitcast' op mismatch in
    result type bitwidth 32 and operand type bitwidth 16"). The maximum of a row of 24 failed, and
    so did softmax.

    1. Visit each reduction of one array of bf16 by a sum, a product, a maximum or a minimum.
    2. Convert the array and the initial value to f32, reduce, and convert to bf16. Maxima and
       minima stay equal; sums and products are rounded once.

    Before::

        %0 = stablehlo.reduce(%x init: %z) applies stablehlo.maximum across dimensions = [1]
             : (tensor<4x8xbf16>, tensor<bf16>) -> tensor<4xbf16>

    After::

        %1 = stablehlo.convert %x : (tensor<4x8xbf16>) -> tensor<4x8xf32>
        %2 = stablehlo.convert %z : (tensor<bf16>) -> tensor<f32>
        %3 = stablehlo.reduce(%1 init: %2) applies stablehlo.maximum across dimensions = [1]
        %0 = stablehlo.convert %3 : (tensor<4xf32>) -> tensor<4xbf16>
    """

    name: ClassVar[str] = "reduce-in-single"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.reduce",)

    def rewrite(self, operation: ir.Operation) -> ir.Value | None:
        """Builds the reduction and the conversions."""
        result = operation.results[0]
        element = hlo.element_type_of(result)
        [[first, *others]] = operations_of(operation)
        is_plain = len(others) == 1 and list(others[0].operands) == list(first.results)
        if len(operation.results) > 1 or not is_plain or first.name not in _BODIES:
            return None
        if not isinstance(element, ir.BF16Type):
            return None
        operand, init = (hlo.convert(x, np.float32) for x in operation.operands)
        axes = list(operation.attributes["dimensions"])
        (reduced,) = hlo.reduce([operand], [init], axes, _BODIES[first.name])
        return hlo.convert(reduced, element)


_FEW = 256
_SINGLE = 32


class MultiplyInDouble(RewritePass):
    """Multiplies many numbers in double precision.

    The fact: floats below 1 are twice as dense as floats above 1, so that products near 1 are
    rounded to one side more than to the other. The product of 4 million such numbers was off by 3 %
    in blocks, and by 0.02 % one after the other. Sums are accurate enough in blocks; products are
    not in any order.

    1. Take reductions and window reductions of one array of floats of at most 32 bits by
       `multiply`, of more than 256 elements each.
    2. Convert the array and the initial value to f64, reduce, and convert the result back.

    Before::

        %0 = stablehlo.reduce(%x init: %one) applies stablehlo.multiply across dimensions = [0]
            : (tensor<1000x3xf32>, tensor<f32>) -> tensor<3xf32>

    After::

        %1 = stablehlo.convert %x : (tensor<1000x3xf32>) -> tensor<1000x3xf64>
        %2 = stablehlo.reduce(%1 init: %one_64) applies stablehlo.multiply across dimensions = [0]
        %0 = stablehlo.convert %2 : (tensor<3xf64>) -> tensor<3xf32>

    Only for CPUs: not all GPUs have f64.
    """

    name: ClassVar[str] = "multiply-in-double"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.reduce", "stablehlo.reduce_window")

    def rewrite(self, operation: ir.Operation) -> ir.Value | None:
        """Builds the reduction of the converted array."""
        if len(operation.operands) != 2 or not _is_product(operation):
            return None
        array, init = operation.operands
        shape = hlo.shape_of(array)
        if operation.name == "stablehlo.reduce":
            reduced = [shape[axis] for axis in operation.attributes["dimensions"]]
        else:
            reduced = list(ir.DenseI64ArrayAttr(operation.attributes["window_dimensions"]))
        if math.prod(reduced) <= _FEW:
            return None
        double = ir.F64Type.get()
        result = operation.results[0]
        wide = ir.Operation.create(
            operation.name,
            results=[hlo.tensor_type(hlo.shape_of(result), double)],
            operands=[hlo.convert(x, double) for x in (array, init)],
            attributes={name: operation.attributes[name] for name in operation.attributes},
            regions=1,
        )
        number = hlo.tensor_type((), double)
        block = wide.regions[0].blocks.append(number, number)
        with ir.InsertionPoint(block):
            ir.Operation.create("stablehlo.return", operands=[hlo.multiply(*block.arguments)])
        return hlo.convert(wide.results[0], hlo.element_type_of(result))


def _is_product(operation: ir.Operation) -> bool:
    """Tells whether a reduction multiplies floats of at most 32 bits."""
    array = operation.operands[0]
    if not hlo.is_float(array) or hlo.element_type_of(array).width > _SINGLE:
        return False
    block = operation.regions[0].blocks[0]
    first, *others = (view.operation for view in block.operations)
    return (
        first.name == "stablehlo.multiply"
        and len(others) == 1
        and set(first.operands) == set(block.arguments)
        and list(others[0].operands) == list(first.results)
    )


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
    return hlo.size_of(value) > 1


# Operations through which a negation moves, or stays visible, when IREE fuses loops.
_TRANSPARENT = frozenset(
    f"stablehlo.{name}"
    for name in (
        "broadcast_in_dim", "convert", "divide", "multiply", "negate", "reshape", "transpose"
    )
)  # fmt: skip
_NEGATE, _BROADCAST = "stablehlo.negate", "stablehlo.broadcast_in_dim"
_SEARCHED_FOR_NEGATIONS = 64


class HideNegations(RewritePass):
    """Hides negations from the sums that add their results.

    The fact: IREE simplifies `acc + (-x)` in a sum to `acc - x`. For GPUs it cannot divide a
    reduction by subtraction among threads ("Failed to get an identity value for the reduction
    operation").

    And a sum over several axes of products with an array that is broadcast does not compile for
    CUDA ("failed to distribute").

    1. Visit each reduction by addition. Follow its operand through products, quotients, conversions
       and views; skip the reduction if no negation is found.
    2. Hide floats as `keep-roundings` does. Put a barrier on integers, and on operands that are
       broadcast and then summed over several axes.

    Before::

        %0 = stablehlo.negate %x
        %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [0]

    After::

        %0 = stablehlo.negate %x
        %2 = stablehlo.bitcast_convert %0
        %3 = stablehlo.minimum %2, %c
        %4 = stablehlo.bitcast_convert %3
        %1 = stablehlo.reduce(%4 init: %zero) applies stablehlo.add across dimensions = [0]
    """

    name: ClassVar[str] = "hide-negations"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.reduce",)

    def rewrite(self, operation: ir.Operation) -> None:
        """Changes the operand of a sum in place."""
        body = operation.regions[0].blocks[0].operations
        if len(operation.operands) != 2 or body[0].operation.name != "stablehlo.add":
            return
        operand = operation.operands[0]
        names = _names_before(operand)
        if _NEGATE not in names:
            return
        is_spread = _BROADCAST in names and len(list(operation.attributes["dimensions"])) > 1
        is_stored = is_spread or not hlo.is_float(operand)
        operation.operands[0] = (
            hlo.optimization_barrier(operand)[0] if is_stored else hidden(operand)
        )


def _names_before(operand: ir.Value) -> set[str]:
    """Returns the names of the operations that compute a value, up to a limit."""
    names: set[str] = set()
    pending, looked = [operand], 0
    while pending:
        looked += 1
        if looked > _SEARCHED_FOR_NEGATIONS:  # the unseen operations may be anything
            return {_NEGATE, _BROADCAST}
        operation = defining_operation(pending.pop())
        if operation is not None:
            names.add(operation.name)
            if operation.name in _TRANSPARENT:
                pending += operation.operands
    return names
