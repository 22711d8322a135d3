"""axir as a stand-in for JAX: modules under JAX's names, and the command that runs programs so.

`axir.as_jax` installs it when it is imported; nothing here does.
"""

from __future__ import annotations

# The version of JAX that axir has the names of.
JAX_VERSION = "0.10.2"

__version__ = JAX_VERSION
__version_info__ = tuple(int(part) for part in JAX_VERSION.split("."))
