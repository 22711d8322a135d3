"""Kernels for the sparse cores of TPUs, under the names of `jax.experimental.pallas.tpu_sc`."""

from __future__ import annotations

from ._accelerators import only_on

__getattr__, __dir__, __all__ = only_on(
    "the sparse cores of TPUs",
    __name__,
    "Indices PackFormat ScalarSubcoreMesh SparseCorePushStreamWarning VectorSubcoreMesh "
    "addupdate addupdate_compressed addupdate_scatter all_reduce_ffs "
    "all_reduce_population_count bitcast cummax cumsum fetch_and_add get_sparse_core_info "
    "load_expanded load_gather pack parallel_loop scan_count slice_subcore_vmem_from_shared "
    "sort_key_val store_compressed store_scatter subcore_barrier unpack",
    "Index with arrays (x[indices], x.at[indices].add), which works in kernels.",
)
