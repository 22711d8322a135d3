"""Products of groups of rows, under the names of `jax.experimental.pallas.ops.tpu.megablox`."""

from __future__ import annotations

from .ops import gmm

__all__ = ["gmm"]
