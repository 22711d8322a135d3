"""The version of JAX that axir's names follow, under the names of `jax.version`."""

from __future__ import annotations

JAX_VERSION = "0.10.2"

__version__ = JAX_VERSION
__version_info__ = tuple(int(part) for part in JAX_VERSION.split("."))
