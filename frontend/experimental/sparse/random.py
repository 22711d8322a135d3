"""Random sparse arrays. The names of `jax.experimental.sparse.random`."""

from __future__ import annotations

from ._creation import random_bcoo

__all__ = ["random_bcoo"]
