"""Names of `jax._src.flatten_util`."""

from __future__ import annotations

from axir.flatten_util import ravel_pytree

__all__ = ["ravel_pytree"]
