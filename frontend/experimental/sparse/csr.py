"""Sparse matrices by rows, and by columns. The names of `jax.experimental.sparse.csr`."""

from __future__ import annotations

from ._matrices import CSC, CSR, csr_fromdense, csr_matmat, csr_matvec, csr_todense

__all__ = ["CSC", "CSR", "csr_fromdense", "csr_matmat", "csr_matvec", "csr_todense"]
