"""`index-scatter-windows`: windows along indexed dimensions become single elements."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.legalize.dimension_numbers import DimensionNumbers, dimension_numbers
from axir.passes.legalize.rewriting import RewritePass

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
