"""Index vectors of gathers and scatters in StableHLO.

Elsewhere: their arithmetic in NumPy (`indexed_windows.py`), and clamping for backends without
clamping (`passes/legalize/`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core import dtypes
from axir.dialect.core.symbolic_dims import symbolic_dim_bounds
from axir.dialect.core.types import ShapedArray

_LARGEST_INT32 = 2**31 - 1


class LoweredIndices:
    """Index vectors in StableHLO: wide enough signed integers, and marks of windows that fit.

    Args:
        indices: The index vectors, along the last axis.
        indices_type: Their type.
        limits: For each entry, the largest start where the window fits.
    """

    def __init__(self, indices: ir.Value, indices_type: ShapedArray, limits: Sequence[int]):
        is_small = all(symbolic_dim_bounds(limit)[1] < _LARGEST_INT32 for limit in limits)
        self._dtype = np.dtype(np.int32 if is_small else np.int64)
        self._limits = limits
        self.shape = indices_type.shape
        if indices_type.dtype.itemsize < 4:
            indices = hlo.convert(indices, self._dtype)
            indices_type = ShapedArray(self.shape, self._dtype)
        self._given, self._given_type = indices, indices_type

    def _row(self, offset: int = 0) -> ir.Value:
        row = hlo.extents([limit + offset for limit in self._limits], self._given_type.dtype)
        return hlo.broadcast_in_dim(row, self.shape, (len(self.shape) - 1,))

    def _zeros(self) -> ir.Value:
        return hlo.full(0, self.shape, self._given_type.dtype)

    def inside(self) -> ir.Value:
        """Tells for each entry whether the window fits, as i1 of the shape of the indices."""
        inside = hlo.compare(self._given, self._row(), "LE")
        if dtypes.is_unsigned(self._given_type.dtype):
            return inside
        return hlo.and_(hlo.compare(self._given, self._zeros(), "GE"), inside)

    def fits(self) -> ir.Value:
        """Tells for each index vector whether its window fits, as i1 of the batch shape."""
        inside, batch_shape = self.inside(), self.shape[:-1]
        if self.shape[-1] == 1:
            return hlo.reshape(inside, batch_shape)
        true = hlo.constant(True)
        return hlo.reduce([inside], [true], [len(batch_shape)], hlo.and_)[0]

    def for_gather(self) -> ir.Value:
        """Returns the indices in a signed type; a gather clamps them as in their own type."""
        if self._given_type.dtype == self._dtype:
            return self._given
        return self.clipped()

    def for_scatter(self) -> ir.Value:
        """Returns the indices in a signed type; indices out of bounds stay out of bounds."""
        if self._given_type.dtype == self._dtype:
            return self._given
        return hlo.convert(hlo.select(self.inside(), self._given, self._row(1)), self._dtype)

    def clipped(self) -> ir.Value:
        """Returns the indices, moved so that the windows fit."""
        clipped = hlo.clamp(self._zeros(), self._given, self._row())
        return hlo.convert(clipped, self._dtype)

    def outside_unless(self, fits: object, extents: Sequence[int]) -> ir.Value:
        """Returns the indices; moves vectors with windows that do not fit beyond every end."""
        fits = hlo.broadcast_in_dim(fits, self.shape, tuple(range(len(self.shape) - 1)))
        row = hlo.extents(extents, self._dtype)
        beyond = hlo.broadcast_in_dim(row, self.shape, (len(self.shape) - 1,))
        return hlo.select(fits, self.clipped(), beyond)
