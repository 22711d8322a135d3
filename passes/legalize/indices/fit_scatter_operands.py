"""`fit-scatter-operands`: a scatter's windows cover the dimensions that it does not index."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.legalize.dimension_numbers import DimensionNumbers, dimension_numbers
from axir.passes.legalize.rewriting import RewritePass

from .drop_scatter import window_sizes
from .index_scatter_windows import scatter_like


class FitScatterOperands(RewritePass):
    """Gives a scatter only the part of its operand that windows can reach, and at least one index.

    The fact: IREE compiles no `stablehlo.scatter` without indexed dimensions ("dimension map must
    have at least one element"). Nor does it compile windows that are smaller than the operand in a
    dimension that is not indexed ("shape of update value must match original value"). Windows begin
    at 0 there.

    1. Treat batching dimensions of extent 1 as inserted ones, because IREE fails on them, too
       ("expected rank to be smaller or equal to the other rank").
    2. Take a scatter with no index, or with windows that are smaller than the operand in dimensions
       that are neither indexed nor batching ones, or with inserted ones among these.
    3. Slice the operands to the windows' sizes in these dimensions.
    4. Reshape the operands: remove the inserted dimensions among these; if no dimension is indexed,
       add a first dimension of extent 1 with the index 0.
    5. Write the results into the whole operands.

    Before::

        %0 = "stablehlo.scatter"(%x, %i, %u) … update_window_dims = [1], inserted_window_dims = [0],
             scatter_dims_to_operand_dims = [0]
             : (tensor<4x5xf32>, tensor<7x1xi32>, tensor<7x3xf32>)

    After::

        %1 = stablehlo.slice %x [0:4, 0:3] : tensor<4x3xf32>
        %2 = "stablehlo.scatter"(%1, %i, %u) … : (tensor<4x3xf32>, …)
        %3 = stablehlo.dynamic_update_slice %x, %2, %c0, %c0
    """

    name: ClassVar[str] = "fit-scatter-operands"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.scatter",)

    def rewrite(self, operation: ir.Operation) -> list[ir.Value] | None:
        """Builds the scatter into slices."""
        numbers = dimension_numbers(operation.attributes["scatter_dimension_numbers"])
        count = (len(operation.operands) - 1) // 2
        values = list(operation.operands)
        operands, indices, updates = values[:count], values[count], values[count + 1 :]
        shape = hlo.shape_of(operands[0])
        indexed = numbers["scatter_dims_to_operand_dims"]
        numbers = _without_single_batches(numbers, shape)
        sizes = window_sizes(len(shape), hlo.shape_of(updates[0]), numbers)
        reached = [*shape]
        for axis in range(len(shape)):
            if axis not in (*indexed, *numbers["input_batching_dims"]):
                reached[axis] = min(sizes[axis], shape[axis])
        gone = [axis for axis in numbers["inserted_window_dims"] if axis not in indexed]
        if indexed and not gone and reached == [*shape]:
            return None
        slices = [hlo.slice(x, [0] * len(shape), reached) for x in operands]
        results = _scatter(operation, [*slices, indices, *updates], numbers, gone)
        return [_put_back(*pair) for pair in zip(operands, results, strict=True)]


def _without_single_batches(numbers: DimensionNumbers, shape: tuple[int, ...]) -> DimensionNumbers:
    """Makes batching dimensions of extent 1 inserted ones, and plain ones in the indices."""
    batching = numbers["input_batching_dims"], numbers["scatter_indices_batching_dims"]
    kept = [pair for pair in zip(*batching, strict=True) if shape[pair[0]] != 1]
    single = [axis for axis in batching[0] if shape[axis] == 1]
    return DimensionNumbers(
        numbers,
        input_batching_dims=tuple(axis for axis, _ in kept),
        scatter_indices_batching_dims=tuple(axis for _, axis in kept),
        inserted_window_dims=tuple(sorted([*numbers["inserted_window_dims"], *single])),
    )


def _scatter(
    operation: ir.Operation, values: list[ir.Value], numbers: DimensionNumbers, gone: list[int]
) -> list[ir.Value]:
    """Returns the scatter without some inserted dimensions of extent 1, and with an index."""
    count = len(operation.results)
    shape = hlo.shape_of(values[0])
    kept = [axis for axis in range(len(shape)) if axis not in gone]
    has_index = bool(numbers["scatter_dims_to_operand_dims"])
    place = {axis: number + (not has_index) for number, axis in enumerate(kept)}
    inner = [*([] if has_index else [1]), *(shape[axis] for axis in kept)]
    operands = [hlo.reshape(x, inner) for x in values[:count]]
    indices = values[count] if has_index else _zeros_instead(values[count], numbers)
    added = [] if has_index else [0]
    new_numbers: dict[str, object] = {
        **{name: list(entry) for name, entry in numbers.items()},
        "inserted_window_dims": added
        + [place[axis] for axis in numbers["inserted_window_dims"] if axis in place],
        "input_batching_dims": [place[axis] for axis in numbers["input_batching_dims"]],
        "scatter_dims_to_operand_dims": added
        + [place[axis] for axis in numbers["scatter_dims_to_operand_dims"]],
        "index_vector_dim": numbers["index_vector_dim"][0],
    }
    results = scatter_like(operation, [*operands, indices, *values[count + 1 :]], new_numbers)
    return [hlo.reshape(result, shape) for result in results]


def _zeros_instead(indices: ir.Value, numbers: DimensionNumbers) -> ir.Value:
    """Returns index vectors with the single entry 0 in place of empty ones."""
    shape = [*hlo.shape_of(indices)]
    shape[numbers["index_vector_dim"][0]] = 1
    return hlo.full(0, shape, np.int32)


def _put_back(operand: ir.Value, part: ir.Value) -> ir.Value:
    if operand.type == part.type:
        return part
    zero = hlo.constant(0, np.int32)
    return hlo.dynamic_update_slice(operand, part, [zero] * len(hlo.shape_of(operand)))
