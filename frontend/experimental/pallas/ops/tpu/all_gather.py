"""Names of `jax.experimental.pallas.ops.tpu.all_gather`, which exist only for TPUs."""

from __future__ import annotations

from axir.experimental.pallas._accelerators import only_on

__getattr__, __dir__, __all__ = only_on(
    "TPUs",
    __name__,
    "ag_kernel all_gather get_neighbor",
    "Use axir.lax's collectives in axir.shard_map.",
)
