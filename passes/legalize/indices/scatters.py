"""The form of scatters that IREE compiles: windows of the dimensions that no index names.

Here: windows that cover these dimensions, windows along indexed dimensions as single elements, and
indexed dimensions first.
Elsewhere: updates out of bounds (`drop_scatter.py`), scatters as kernels (`scatter_by_kernel.py`).
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.legalize.attributes import DimensionNumbers, dimension_numbers
from axir.passes.legalize.rewriting import RewritePass

from .drop_scatter import window_sizes


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


_NARROW = 16


class IndexScatterWindows(RewritePass):
    """Gives each position that a window covers in the indexed dimensions a separate index.

    The fact: IREE compiles hardly any `stablehlo.scatter` with windows that extend along indexed
    dimensions: "expected indices to be equal to batch rank or batch rank + 1", "mismatch in shape
    of indices and update value". The gradient of a `dynamic_slice`, and each batched
    `dynamic_update_slice`, is such a scatter.

    1. Take a scatter with indexed dimensions that are not inserted ones.
    2. Broadcast its indices along new dimensions, one for each of these with the window's extent,
       and add the position in the window.
    3. Transpose the updates so that these dimensions follow the dimensions of the indices.
    4. All indexed dimensions are now inserted ones.

    Before::

        %0 = "stablehlo.scatter"(%x, %i, %u) … update_window_dims = [1, 2],
             scatter_dims_to_operand_dims = [0, 1]
             : (tensor<4x5xf32>, tensor<7x2xi32>, tensor<7x2x3xf32>)

    After::

        %1 = stablehlo.broadcast_in_dim %i, dims = [0, 3] : tensor<7x2x3x2xi32>
        %2 = stablehlo.add %1, %offsets : tensor<7x2x3x2xi32>
        %3 = "stablehlo.scatter"(%x, %2, %u) … inserted_window_dims = [0, 1],
             scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 3
             : (tensor<4x5xf32>, tensor<7x2x3x2xi32>, tensor<7x2x3xf32>)

    Precondition: `drop-scatter` has run, because a window that does not fit must be dropped as a
    whole.
    """

    name: ClassVar[str] = "index-scatter-windows"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.scatter",)

    def rewrite(self, operation: ir.Operation) -> list[ir.Value] | None:
        """Builds the scatter of single elements."""
        numbers = dimension_numbers(operation.attributes["scatter_dimension_numbers"])
        indexed = numbers["scatter_dims_to_operand_dims"]
        windowed = sorted(set(indexed) - set(numbers["inserted_window_dims"]))
        if not windowed:
            return None
        count = (len(operation.operands) - 1) // 2
        values = list(operation.operands)
        operands, indices, updates = values[:count], values[count], values[count + 1 :]
        place = _window_places(len(hlo.shape_of(operands[0])), numbers)
        extents = [hlo.shape_of(updates[0])[place[axis]] for axis in windowed]
        wide = _spread(_vectors_last(indices, numbers), indexed, windowed, extents)
        moved = [place[axis] for axis in windowed]
        updates = [_behind_indices(update, numbers, moved) for update in updates]
        depth = len(hlo.shape_of(wide)) - 1
        rank = len(hlo.shape_of(updates[0]))
        new_numbers = {
            "update_window_dims": list(range(depth, rank)),
            "inserted_window_dims": sorted({*numbers["inserted_window_dims"], *windowed}),
            "input_batching_dims": list(numbers["input_batching_dims"]),
            "scatter_indices_batching_dims": _without_vector(numbers),
            "scatter_dims_to_operand_dims": list(indexed),
            "index_vector_dim": depth,
        }
        return scatter_like(operation, [*operands, wide, *updates], new_numbers)


def _window_places(rank: int, numbers: DimensionNumbers) -> dict[int, int]:
    """Returns the update dimension of each operand dimension that a window has."""
    missing = {*numbers["inserted_window_dims"], *numbers["input_batching_dims"]}
    kept = [axis for axis in range(rank) if axis not in missing]
    return dict(zip(kept, numbers["update_window_dims"], strict=True))


def _vectors_last(indices: ir.Value, numbers: DimensionNumbers) -> ir.Value:
    vector_dim = numbers["index_vector_dim"][0]
    shape = hlo.shape_of(indices)
    rank = len(shape)
    if vector_dim == rank:  # each index is a scalar
        return hlo.reshape(indices, (*shape, 1))
    order = [axis for axis in range(rank) if axis != vector_dim]
    return hlo.transpose(indices, [*order, vector_dim]) if vector_dim < rank - 1 else indices


def _without_vector(numbers: DimensionNumbers) -> list[int]:
    """Returns the batching dimensions of the indices after the vectors' dimension is moved last."""
    vector_dim = numbers["index_vector_dim"][0]
    return [axis - (axis > vector_dim) for axis in numbers["scatter_indices_batching_dims"]]


def _spread(
    indices: ir.Value, indexed: tuple[int, ...], windowed: list[int], extents: list[int]
) -> ir.Value:
    """Returns the index of each position in each window: [indices..., extents..., vector]."""
    shape = hlo.shape_of(indices)
    if hlo.element_type_of(indices).width <= _NARROW:
        indices = hlo.convert(indices, np.int32)  # start plus position may be too large
    offsets = np.zeros((*extents, len(indexed)), np.int64)
    for number, axis in enumerate(windowed):
        steps = np.arange(extents[number]).reshape([-1] + [1] * (len(extents) - 1 - number))
        offsets[..., indexed.index(axis)] = steps
    full = (*shape[:-1], *extents, shape[-1])
    lead = len(shape) - 1
    repeated = hlo.broadcast_in_dim(indices, full, [*range(lead), len(full) - 1])
    positions = hlo.constant(offsets, hlo.element_type_of(indices))
    return hlo.add(repeated, hlo.broadcast_in_dim(positions, full, list(range(lead, len(full)))))


def _behind_indices(update: ir.Value, numbers: DimensionNumbers, moved: list[int]) -> ir.Value:
    """Transposes an update to the order indices, positions in the window, rest of the window."""
    window = numbers["update_window_dims"]
    scattered = [axis for axis in range(len(hlo.shape_of(update))) if axis not in window]
    order = [*scattered, *moved, *(axis for axis in window if axis not in moved)]
    return update if order == sorted(order) else hlo.transpose(update, order)


def scatter_like(
    operation: ir.Operation, values: list[ir.Value], numbers: dict[str, object]
) -> list[ir.Value]:
    """Returns a scatter with another's body and attributes, except for its dimension numbers."""
    entries = ", ".join(f"{name} = {value}" for name, value in numbers.items())
    attributes = {name: operation.attributes[name] for name in operation.attributes}
    attributes["scatter_dimension_numbers"] = ir.Attribute.parse(f"#stablehlo.scatter<{entries}>")
    attributes["indices_are_sorted"] = ir.BoolAttr.get(False)
    made = ir.Operation.create(
        operation.name,
        results=[value.type for value in values[: len(operation.results)]],
        operands=values,
        attributes=attributes,
        regions=1,
    )
    operation.regions[0].blocks[0].append_to(made.regions[0])
    return list(made.results)


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
