"""Names that exist only for TPUs, of
`jax.experimental.pallas.ops.tpu.paged_attention.paged_attention_kernel`.
"""

from __future__ import annotations

from axir.experimental.pallas._accelerators import only_on

__getattr__, __dir__, __all__ = only_on(
    "TPUs",
    __name__,
    "MultiPageAsyncCopyDescriptor paged_attention paged_flash_attention_kernel "
    "paged_flash_attention_kernel_inline_seq_dim",
    "Use axir.nn.dot_product_attention, which compiles for the CPU.",
)
