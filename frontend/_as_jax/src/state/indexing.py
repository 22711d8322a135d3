"""Names of `jax._src.state.indexing`: slices with a computed start."""

from __future__ import annotations

from axir.numpy._indexing.dynamic_slices import Slice, dslice

__all__ = ["Slice", "ds", "dslice"]

ds = dslice
