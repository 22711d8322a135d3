"""Names of `jax.experimental.pallas.ops.gpu.reduce_scatter_mgpu`, which exist only for GPUs."""

from __future__ import annotations

from axir.experimental.pallas._accelerators import only_on

__getattr__, __dir__, __all__ = only_on(
    "GPUs",
    __name__,
    "reduce_scatter",
    "Use axir.lax's collectives in axir.shard_map.",
)
