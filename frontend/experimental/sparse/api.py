"""Sparse arrays of all formats. The names of `jax.experimental.sparse.api`."""

from __future__ import annotations

from ._creation import empty, eye
from ._primitives import (
    todense_p,
)
from ._transform import todense

__all__ = [
    "empty",
    "eye",
    "todense",
    "todense_p",
]
