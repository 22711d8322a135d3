"""Names of `jax.experimental.pallas.ops.gpu.collective_matmul_mgpu`, which exist only for GPUs."""

from __future__ import annotations

from axir.experimental.pallas._accelerators import only_on

__getattr__, __dir__, __all__ = only_on(
    "GPUs",
    __name__,
    "MatmulDimension TuningConfig all_gather_lhs_matmul is_nvshmem_used",
    "Use axir.lax's collectives in axir.shard_map.",
)
