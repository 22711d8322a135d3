"""Products of groups of rows, under the names of `jax.experimental.pallas.ops.tpu.megablox.ops`."""

from __future__ import annotations

from .gmm import gmm

__all__ = ["gmm"]
