"""The module `jaxlib.xla_client` where axir stands in for JAX: the same as `jax.lib`'s."""

from __future__ import annotations

from axir._as_jax.lib.xla_client import Device, ops

__all__ = ["Device", "ops"]
