"""Names that exist only for GPUs, of
`jax.experimental.pallas.ops.gpu.blackwell_ragged_dot_mgpu`.
"""

from __future__ import annotations

from axir.experimental.pallas._accelerators import only_on

__getattr__, __dir__, __all__ = only_on(
    "GPUs",
    __name__,
    "TuningConfig do_matmul ragged_dot_kernel ragged_dot_reference sample_group_sizes",
    "Use axir.lax.ragged_dot, which compiles for the CPU.",
)
