"""Sparse matrices by coordinates. The names of `jax.experimental.sparse.coo`."""

from __future__ import annotations

from ._matrices import COO, coo_fromdense, coo_matmat, coo_matvec, coo_todense
from ._primitives import (
    COOInfo,
    Shape,
    coo_fromdense_p,
    coo_matmat_p,
    coo_matvec_p,
    coo_todense_p,
)

__all__ = [
    "COO",
    "COOInfo",
    "Shape",
    "coo_fromdense",
    "coo_fromdense_p",
    "coo_matmat",
    "coo_matmat_p",
    "coo_matvec",
    "coo_matvec_p",
    "coo_todense",
    "coo_todense_p",
]
