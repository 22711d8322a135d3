"""Sparse matrices by coordinates. The names of `jax.experimental.sparse.coo`."""

from __future__ import annotations

from ._matrices import COO, coo_fromdense, coo_matmat, coo_matvec, coo_todense

__all__ = ["COO", "coo_fromdense", "coo_matmat", "coo_matvec", "coo_todense"]
