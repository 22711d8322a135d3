"""Sparse matrices by rows, and by columns. The names of `jax.experimental.sparse.csr`."""

from __future__ import annotations

from ._matrices import CSC, CSR, csr_fromdense, csr_matmat, csr_matvec, csr_todense
from ._primitives import (
    Shape,
    csr_fromdense_p,
    csr_matmat_p,
    csr_matvec_p,
    csr_todense_p,
)

__all__ = [
    "CSC",
    "CSR",
    "Shape",
    "csr_fromdense",
    "csr_fromdense_p",
    "csr_matmat",
    "csr_matmat_p",
    "csr_matvec",
    "csr_matvec_p",
    "csr_todense",
    "csr_todense_p",
]
