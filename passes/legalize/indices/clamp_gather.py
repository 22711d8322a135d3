"""`clamp-gather`: indices of a gather stay inside the operand."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core.types import numpy_dtype
from axir.passes.legalize.dimension_numbers import dimension_numbers
from axir.passes.legalize.rewriting import RewritePass

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
