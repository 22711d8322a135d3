"""Kernels on blocks of arrays, under the names of `jax.experimental.pallas`.

A kernel is a function of refs, and it uses the operations of `axir.numpy` and `axir.lax`. It is
compiled for the CPU with the program that calls it. `docs/kernels.md` is a course.

>>> import axir, axir.numpy as jnp
>>> from axir.experimental import pallas as pl
>>> def softmax(x_ref, o_ref):
...     e = jnp.exp(x_ref[...] - x_ref[...].max())
...     o_ref[...] = e / e.sum()
>>> row = pl.BlockSpec((None, 2), lambda i: (i, 0))
>>> x = jnp.log(jnp.array([[1.0, 3.0], [1.0, 1.0]]))
>>> call = pl.pallas_call(softmax, x, grid=2, in_specs=[row], out_specs=row)
>>> axir.jit(call)(x).round(3)
Array([[0.25, 0.75],
       [0.5 , 0.5 ]], dtype=float32)
"""

from __future__ import annotations

from axir.numpy._indexing.dynamic_slices import Slice, dslice

from ._accelerators import AcceleratorOnlyError, modules_only_on, only_on
from ._access import (
    atomic_add,
    atomic_and,
    atomic_cas,
    atomic_max,
    atomic_min,
    atomic_or,
    atomic_xchg,
    atomic_xor,
    load,
    store,
    swap,
)
from ._call import KernelResultError, pallas_call
from ._inside import (
    align_to,
    cdiv,
    debug_print,
    delay,
    dot,
    loop,
    max_contiguous,
    multiple_of,
    next_power_of_2,
    num_programs,
    program_id,
    reciprocal,
    run_scoped,
    strides_from_shape,
    when,
    with_scoped,
)
from ._memory import MemoryRef, MemorySpace
from ._semaphores import DeviceIdType, semaphore_read, semaphore_signal, semaphore_wait
from ._specs import (
    BlockDim,
    Blocked,
    BlockSpec,
    BlockSpecError,
    BoundedSlice,
    Buffered,
    CostEstimate,
    Element,
    GridSpec,
    Indirect,
    RevisitMode,
    Squeezed,
    get_block_size,
    no_block_spec,
    squeezed,
)
from ._state import (
    broadcast_to,
    debug_check,
    debug_checks_enabled,
    empty,
    empty_like,
    empty_ref_like,
    enable_debug_checks,
    estimate_cost,
    run_state,
)

ds = dslice
ANY = MemorySpace.ANY
HOST = MemorySpace.HOST

__getattr__, _, _names = only_on(
    "accelerators",
    __name__,
    "CompilerParams core_map get_global kernel lower_as_mlir pallas_call_p select_ref semaphore "
    "pallas_export_experimental enable_poison_buffers",
    "Use pl.pallas_call, which runs a kernel for each place of a grid.",
)

__all__ = [
    "ANY", "AcceleratorOnlyError", "BlockDim", "BlockSpec", "BlockSpecError", "Blocked",
    "BoundedSlice", "Buffered", "CostEstimate", "DeviceIdType", "Element", "GridSpec", "HOST",
    "Indirect", "KernelResultError", "MemoryRef", "MemorySpace", "RevisitMode", "Slice", "Squeezed",
    "align_to", "atomic_add", "atomic_and", "atomic_cas", "atomic_max", "atomic_min", "atomic_or",
    "atomic_xchg", "atomic_xor", "broadcast_to", "cdiv", "debug_check", "debug_checks_enabled",
    "debug_print", "delay", "dot", "ds", "dslice", "empty", "empty_like", "empty_ref_like",
    "enable_debug_checks", "estimate_cost", "get_block_size", "load", "loop", "max_contiguous",
    "multiple_of", "next_power_of_2", "no_block_spec", "num_programs", "pallas_call", "program_id",
    "reciprocal", "run_scoped", "run_state", "semaphore_read", "semaphore_signal", "semaphore_wait",
    "squeezed", "store", "strides_from_shape", "swap", "when", "with_scoped", *_names,
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


modules_only_on(
    "the compilers of accelerators",
    __name__,
    {
        "fuser": (
            "Compile the whole with axir.jit, which fuses by itself.",
            "BlockIndexTransform Fusion block_spec_with_prefetch custom_evaluate custom_fusion "
            "evaluate filter_no_block_specs fuse fusible push_pull_block_spec get_fusion_values "
            "get_stateful_input_fusion_values get_stateful_output_fusion_values "
            "make_scalar_prefetch_handler pull_block_spec push_block_spec",
        )
    },
)
modules_only_on(
    "the sparse cores of TPUs",
    __name__,
    {
        "tpu_sc": (
            "Index with arrays (x[indices], x.at[indices].add), which works in kernels.",
            "Indices PackFormat ScalarSubcoreMesh SparseCorePushStreamWarning VectorSubcoreMesh "
            "addupdate addupdate_compressed addupdate_scatter all_reduce_ffs "
            "all_reduce_population_count bitcast cummax cumsum fetch_and_add get_sparse_core_info "
            "load_expanded load_gather pack parallel_loop scan_count "
            "slice_subcore_vmem_from_shared sort_key_val store_compressed store_scatter "
            "subcore_barrier unpack",
        )
    },
)
