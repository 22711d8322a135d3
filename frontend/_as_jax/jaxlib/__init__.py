"""The module `jaxlib` where axir stands in for JAX: its version, for libraries that query it."""

from __future__ import annotations

from axir._as_jax.version import __version__, __version_info__

__all__ = ["__version__", "__version_info__"]
