"""`multiply-in-double`: long products of single-precision numbers, in double precision."""

from __future__ import annotations

import math
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.legalize.rewriting import RewritePass

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
