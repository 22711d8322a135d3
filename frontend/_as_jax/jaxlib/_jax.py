"""The module `jaxlib._jax` where axir stands in for JAX: classes that libraries annotate with."""

from __future__ import annotations

from axir import Device
from axir._transforms.jit import JitFunction as PjitFunction

__all__ = ["Device", "PjitFunction"]
