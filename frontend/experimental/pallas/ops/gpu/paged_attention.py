"""Names of `jax.experimental.pallas.ops.gpu.paged_attention`, which exist only for GPUs."""

from __future__ import annotations

from axir.experimental.pallas._accelerators import only_on

__getattr__, __dir__, __all__ = only_on(
    "GPUs",
    __name__,
    "paged_attention paged_attention_kernel paged_attention_reference paged_attention_unbatched",
    "Use axir.nn.dot_product_attention, which compiles for the CPU.",
)
