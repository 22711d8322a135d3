"""Names of `jax._src.state.indexing`: slices whose start is computed."""

from __future__ import annotations

from axir.numpy._indexing.dynamic_slices import Slice, dslice

__all__ = ["Slice", "ds", "dslice"]

ds = dslice
