"""Kernels as Mosaic has them for GPUs, under the names of `jax.experimental.pallas.mosaic_gpu`.

Libraries import them. Names that generate GPU code raise `AcceleratorOnlyError` when used;
`atomic_add` and similar functions work.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from axir import ShapeDtypeStruct

from ._accelerators import only_on
from ._access import atomic_add, atomic_and, atomic_max, atomic_min, atomic_or, atomic_xor, load
from ._memory import Space
from ._semaphores import semaphore_signal, semaphore_wait
from ._specs import BlockSpec

__getattr__, _, _names = only_on(
    "GPUs",
    __name__,
    "ACC Barrier ClusterBarrier CopyPartition Layout LoweringSemantics Mesh NDLoopInfo OOBFillMode "
    "PeerMemRef PipelinePipeline RefType RefUnion Replicated SemaphoreSignal SemaphoreType "
    "SwizzleTransform TMEMLayout Tiling TilingTransform TraceScope Transform "
    "TryClusterCancelResult WGMMAAccumulatorRef WarpMesh as_torch_kernel async_copy_scales_to_tmem "
    "async_copy_smem_to_tmem async_copy_sparse_metadata_to_tmem async_load_tmem async_prefetch "
    "async_store_smem async_store_tmem barrier_arrive barrier_test barrier_wait broadcasted_iota "
    "cluster_ref commit_smem commit_smem_to_gmem_group commit_tmem copy_gmem_to_smem "
    "copy_smem_to_gmem dynamic_scheduling_loop emit_pipeline emit_pipeline_warp_specialized "
    "find_swizzle format_tcgen05_sparse_metadata griddepcontrol_launch_dependents "
    "griddepcontrol_wait inline_mgpu kernel layout_cast multicast_ref multimem_load_reduce "
    "multimem_store nd_loop planar_snake print_layout query_cluster_cancel remote_ref "
    "semaphore_signal_multicast semaphore_signal_parallel set_max_registers "
    "tcgen05_commit_arrive tcgen05_mma transform_ref transpose_ref try_cluster_cancel "
    "wait_load_tmem wait_smem_to_gmem warp_map wgmma wgmma_accumulator_load wgmma_wait",
    "Write the kernel with pl.pallas_call, whose operations are those of axir.numpy.",
)

__all__ = [
    "GMEM", "REGS", "SMEM", "TMEM", "BlockSpec", "CompilerParams", "MemorySpace",
    "ShapeDtypeStruct", "atomic_add", "atomic_and", "atomic_max", "atomic_min", "atomic_or",
    "atomic_xor", "load", "semaphore_signal", "semaphore_wait", *_names,
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


class MemorySpace(Space):
    """Memories of a GPU, which name the one that there is."""

    GMEM = "gmem"
    SMEM = "smem"
    TMEM = "tmem"
    REGS = "regs"


GMEM, SMEM = MemorySpace.GMEM, MemorySpace.SMEM
TMEM, REGS = MemorySpace.TMEM, MemorySpace.REGS


@dataclasses.dataclass(frozen=True, kw_only=True)
class CompilerParams:
    """Options of Mosaic's GPU compiler; stored, and not used."""

    approx_math: bool = False
    dimension_semantics: Sequence[str] | None = None
    max_concurrent_steps: int = 1
    unsafe_no_auto_barriers: bool = False
    reduction_scratch_bytes: int = 6144
    profile_space: int = 0
    profile_dir: str = ""
