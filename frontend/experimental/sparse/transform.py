"""Functions as functions of sparse arrays. The names of `jax.experimental.sparse.transform`."""

from __future__ import annotations

from ._transform import sparsify

__all__ = ["sparsify"]
