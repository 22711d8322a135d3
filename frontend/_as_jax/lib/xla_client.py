"""The module `jax.lib.xla_client` where axir stands in for JAX: `ops`, for translation rules."""

from __future__ import annotations

from axir.interpreters import _xla_ops as ops

__all__ = ["ops"]
