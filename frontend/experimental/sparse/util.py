"""Errors and warnings of sparse arrays. The names of `jax.experimental.sparse.util`."""

from __future__ import annotations

from ._base import CuSparseEfficiencyWarning, SparseEfficiencyError, SparseEfficiencyWarning
from ._primitives import (
    Shape,
    SparseInfo,
)

__all__ = [
    "CuSparseEfficiencyWarning",
    "Shape",
    "SparseEfficiencyError",
    "SparseEfficiencyWarning",
    "SparseInfo",
]
