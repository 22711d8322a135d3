"""Errors and warnings of sparse arrays. The names of `jax.experimental.sparse.util`."""

from __future__ import annotations

from ._base import CuSparseEfficiencyWarning, SparseEfficiencyError, SparseEfficiencyWarning

__all__ = ["CuSparseEfficiencyWarning", "SparseEfficiencyError", "SparseEfficiencyWarning"]
