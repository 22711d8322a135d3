"""The module `jaxlib.xla_extension`, the older name of `jaxlib._jax`."""

from __future__ import annotations

from ._jax import Device, PjitFunction

__all__ = ["Device", "PjitFunction"]
