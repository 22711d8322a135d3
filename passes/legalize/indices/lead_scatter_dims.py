"""`lead-scatter-dims`: the dimensions that a scatter indexes come first."""

from __future__ import annotations

from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.legalize.dimension_numbers import DimensionNumbers, dimension_numbers
from axir.passes.legalize.rewriting import RewritePass

from .index_scatter_windows import scatter_like


class LeadScatterDims(RewritePass):
    """Transposes the operand of a scatter so that its indexed dimensions lead.

    The fact: IREE compiles no `stablehlo.scatter` of indices in several dimensions, batching
    dimensions included, unless these are the first ones of the operand: "expected indices to be
    equal to batch rank or batch rank + 1". `x.at[rows, :, columns].add(y)` is such a scatter. A
    single indexed dimension may be any dimension.

    1. Take a scatter with two indexed or batching dimensions or more, which do not lead.
    2. Transpose its operands: first these dimensions, then the others, each in their order. The
       updates do not change, because their window dimensions are the others.
    3. Transpose the results back.

    Before::

        %0 = "stablehlo.scatter"(%x, %i, %u) … update_window_dims = [1],
             inserted_window_dims = [0, 2], scatter_dims_to_operand_dims = [0, 2]
             : (tensor<2x3x4xf32>, tensor<7x2xi32>, tensor<7x3xf32>)

    After::

        %1 = stablehlo.transpose %x, dims = [0, 2, 1] : tensor<2x4x3xf32>
        %2 = "stablehlo.scatter"(%1, %i, %u) … update_window_dims = [1],
             inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1]
             : (tensor<2x4x3xf32>, tensor<7x2xi32>, tensor<7x3xf32>)
        %3 = stablehlo.transpose %2, dims = [0, 2, 1] : tensor<2x3x4xf32>

    Precondition: such a scatter has no window along indexed dimensions (`index-scatter-windows`).
    """

    name: ClassVar[str] = "lead-scatter-dims"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.scatter",)

    def rewrite(self, operation: ir.Operation) -> list[ir.Value] | None:
        """Builds the scatter between the transpositions."""
        numbers = dimension_numbers(operation.attributes["scatter_dimension_numbers"])
        leading = sorted(
            {*numbers["scatter_dims_to_operand_dims"], *numbers["input_batching_dims"]}
        )
        if len(leading) < 2 or leading == list(range(len(leading))):
            return None
        count = (len(operation.operands) - 1) // 2
        values = list(operation.operands)
        rank = len(hlo.shape_of(values[0]))
        order = [*leading, *(axis for axis in range(rank) if axis not in leading)]
        place = {axis: position for position, axis in enumerate(order)}
        operands = [hlo.transpose(operand, order) for operand in values[:count]]
        results = scatter_like(operation, [*operands, *values[count:]], _moved(numbers, place))
        return [hlo.transpose(result, [place[axis] for axis in range(rank)]) for result in results]


def _moved(numbers: DimensionNumbers, place: dict[int, int]) -> dict[str, object]:
    """Returns the dimension numbers after each dimension of the operand has moved to its place."""
    return {
        "update_window_dims": list(numbers["update_window_dims"]),
        "inserted_window_dims": sorted(place[axis] for axis in numbers["inserted_window_dims"]),
        "input_batching_dims": [place[axis] for axis in numbers["input_batching_dims"]],
        "scatter_indices_batching_dims": list(numbers["scatter_indices_batching_dims"]),
        "scatter_dims_to_operand_dims": [
            place[axis] for axis in numbers["scatter_dims_to_operand_dims"]
        ],
        "index_vector_dim": numbers["index_vector_dim"][0],
    }
