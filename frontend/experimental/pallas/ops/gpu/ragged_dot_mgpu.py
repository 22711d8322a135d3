"""Names of `jax.experimental.pallas.ops.gpu.ragged_dot_mgpu`, which exist only for GPUs."""

from __future__ import annotations

from axir.experimental.pallas._accelerators import only_on

__getattr__, __dir__, __all__ = only_on(
    "GPUs",
    __name__,
    "GroupInfo ragged_dot",
    "Use axir.lax.ragged_dot, which compiles for the CPU.",
)
