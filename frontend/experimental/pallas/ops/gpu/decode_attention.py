"""Names of `jax.experimental.pallas.ops.gpu.decode_attention`, which exist only for GPUs."""

from __future__ import annotations

from axir.experimental.pallas._accelerators import only_on

__getattr__, __dir__, __all__ = only_on(
    "GPUs",
    __name__,
    "attn_forward_kernel decode_attn_unbatched gqa gqa_reference mha_reference mqa mqa_reference",
    "Use axir.nn.dot_product_attention, which compiles for the CPU.",
)
