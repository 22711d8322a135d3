"""Indices of gathers: inside the operand, and with each component in a separate row.

Elsewhere: scatters (`drop_scatter.py`, `scatters.py`, `scatter_by_kernel.py`).
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core.types import numpy_dtype
from axir.passes.legalize.attributes import DimensionNumbers, dimension_numbers
from axir.passes.legalize.rewriting import RewritePass, replace

IN_BOUNDS = "axir.in_bounds"
"""Attribute by which a gather or scatter promises that its indices are in bounds."""


class ClampGather(RewritePass):
    """Clamps the start indices of `stablehlo.gather`, as StableHLO prescribes.

    The fact: IREE reads at the given indices, even outside of the operand's buffer.

    1. The start index of dimension d must lie in [0, size of d - slice size of d].
    2. Build these limits as a constant vector along the index vector dimension, in the indices'
       type (limits that the type cannot reach are its largest value).
    3. Clamp the indices; a gather that carries `axir.in_bounds` only loses this attribute.

    Before::

        %0 = "stablehlo.gather"(%x, %i) {slice_sizes = array<i64: 1, 5>, …}

    After::

        %1 = stablehlo.clamp %zero, %i, %limit : tensor<3x1xi32>
        %2 = "stablehlo.gather"(%x, %1) {slice_sizes = array<i64: 1, 5>, …}
    """

    name: ClassVar[str] = "clamp-gather"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.gather",)

    def rewrite(self, operation: ir.Operation) -> None:
        """Changes the operand of the gather in place."""
        if IN_BOUNDS in operation.attributes:
            del operation.attributes[IN_BOUNDS]
            return
        operand, indices = operation.operands
        numbers = dimension_numbers(operation.attributes["dimension_numbers"])
        slice_sizes = list(operation.attributes["slice_sizes"])
        limits = [
            max(operand.type.shape[axis] - slice_sizes[axis], 0)
            for axis in numbers["start_index_map"]
        ]
        operation.operands[1] = clamp_indices(indices, limits, numbers["index_vector_dim"][0])


def index_limits(indices: ir.Value, limits: list[int], vector_dim: int) -> ir.Value:
    """Returns the limits of each component of an index vector, in the shape and type of the
    indices.
    """
    dtype = numpy_dtype(hlo.element_type_of(indices))
    reachable = np.minimum(np.array(limits, object), np.iinfo(dtype).max).astype(dtype)
    shape = hlo.shape_of(indices)
    if vector_dim == len(shape):  # each index is a scalar
        return hlo.full(reachable[0], shape, dtype)
    return hlo.broadcast_in_dim(hlo.constant(reachable), shape, (vector_dim,))


def clamp_indices(indices: ir.Value, limits: list[int], vector_dim: int) -> ir.Value:
    """Returns the indices within [0, limit]."""
    if not limits:
        return indices
    limit = index_limits(indices, limits, vector_dim)
    return hlo.clamp(hlo.full_like(indices, 0), indices, limit)


class LeadIndexComponents(RewritePass):
    """Concatenates the components of index vectors along the first dimension behind the batches.

    The facts: components that are concatenated along the last dimension are written and read number
    by number, which takes longer than the gather itself. Rows are read and written in vectors. IREE
    also numbers batching dimensions of indices with the index vector's dimension included, but
    looks them up without it: if the vector's dimension comes first, the compiler crashes (SIGSEGV).

    1. If the indices are a concatenation of single components along their last dimension, and this
       is the dimension of the index vectors, make it the first dimension behind all batching
       dimensions.
    2. If the dimension of other index vectors comes before a batching dimension, transpose the
       indices, so that it is the last one.

    Before::

        %i = stablehlo.concatenate %a, %b, dim = 1 : (tensor<9x1xi32>, tensor<9x1xi32>) -> …
        %0 = "stablehlo.gather"(%x, %i) {… index_vector_dim = 1 …} : … tensor<9x2xi32>

    After::

        %i = stablehlo.concatenate %row_a, %row_b, dim = 0 : (tensor<1x9xi32>, tensor<1x9xi32>) -> …
        %0 = "stablehlo.gather"(%x, %i) {… index_vector_dim = 0 …} : … tensor<2x9xi32>
    """

    name: ClassVar[str] = "lead-index-components"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.gather",)

    def rewrite(self, operation: ir.Operation) -> None:
        """Builds another gather in the place of one with such indices."""
        operand, indices = operation.operands
        numbers = dimension_numbers(operation.attributes["dimension_numbers"])
        vector_dim = numbers["index_vector_dim"][0]
        last = len(hlo.shape_of(indices)) - 1
        batching = numbers["start_indices_batching_dims"]
        first = max(batching, default=-1) + 1
        parts = components(indices, vector_dim)
        if first > vector_dim:
            order = [axis for axis in range(last + 1) if axis != vector_dim]
            moved, place = hlo.transpose(indices, [*order, vector_dim]), last
        elif len(parts) > 1 and first < vector_dim == last:
            rows = [hlo.reshape(x, _led_shape(hlo.shape_of(x), first)) for x in parts]
            moved, place = hlo.concatenate(rows, first), first
        else:
            return
        attributes = {name: operation.attributes[name] for name in operation.attributes}
        attributes["dimension_numbers"] = _with_vectors_along(place, numbers)
        kinds = [operation.results[0].type]
        built = hlo.build("gather", operation.name, (operand, moved), kinds, attributes)
        replace(operation, built.result)


def _led_shape(shape: tuple[int, ...], place: int) -> tuple[int, ...]:
    """Returns a component's shape after its last dimension, of extent 1, moves to a place."""
    return (*shape[:place], 1, *shape[place:-1])


def _with_vectors_along(place: int, numbers: DimensionNumbers) -> ir.Attribute:
    """Returns dimension numbers for index vectors along a dimension behind the batches."""
    vector_dim = numbers["index_vector_dim"][0]
    batching = [axis - (axis > vector_dim) for axis in numbers["start_indices_batching_dims"]]
    return hlo.GatherDimensionNumbers.get(
        offset_dims=numbers["offset_dims"],
        collapsed_slice_dims=numbers["collapsed_slice_dims"],
        operand_batching_dims=numbers["operand_batching_dims"],
        start_indices_batching_dims=batching,
        start_index_map=numbers["start_index_map"],
        index_vector_dim=place,
    )


def components(indices: ir.Value, vector_dim: int) -> list[ir.Value]:
    """Returns the components of index vectors, if they are single arrays that were concatenated.

    Args:
        indices: The index vectors.
        vector_dim: The dimension of `indices` that the vectors lie along.

    Returns:
        The components, of extent 1 along `vector_dim`; else only `indices`.
    """
    if isinstance(indices, ir.BlockArgument) or indices.owner.name != "stablehlo.concatenate":
        return [indices]
    parts = list(indices.owner.operands)
    dimension = ir.IntegerAttr(indices.owner.attributes["dimension"]).value
    if dimension != vector_dim or any(hlo.shape_of(x)[vector_dim] != 1 for x in parts):
        return [indices]
    return parts


def read_rows(rows: ir.Value, positions: ir.Value) -> ir.Value:
    """Reads the rows of a matrix at positions in each, which are inside."""
    number, extent = hlo.shape_of(positions)
    gathered = hlo.gather(
        rows,
        hlo.reshape(positions, (number, extent, 1)),
        offset_dims=(),
        collapsed_slice_dims=(1,),
        operand_batching_dims=(0,),
        start_indices_batching_dims=(0,),
        start_index_map=(1,),
        index_vector_dim=2,
        slice_sizes=(1, 1),
    )
    gathered.owner.attributes[IN_BOUNDS] = ir.UnitAttr.get()
    return gathered
