"""Names that exist only for GPUs, of
`jax.experimental.pallas.ops.gpu.transposed_ragged_dot_mgpu`.
"""

from __future__ import annotations

from axir.experimental.pallas._accelerators import only_on

__getattr__, __dir__, __all__ = only_on(
    "GPUs",
    __name__,
    "ref_transposed_ragged_dot transposed_ragged_dot",
    "Use axir.lax.ragged_dot, which compiles for the CPU.",
)
