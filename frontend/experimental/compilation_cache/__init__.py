"""The cache of compiled programs on disk, under the names of `jax.experimental`."""

from __future__ import annotations

from . import compilation_cache

__all__ = ["compilation_cache"]
