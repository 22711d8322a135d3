"""Names that exist only for TPUs, of
`jax.experimental.pallas.ops.tpu.ragged_paged_attention.kernel`.
"""

from __future__ import annotations

from axir.experimental.pallas._accelerators import only_on

__getattr__, __dir__, __all__ = only_on(
    "TPUs",
    __name__,
    "MultiPageAsyncCopyDescriptor dynamic_validate_inputs get_dtype_packing "
    "get_min_heads_per_blk ragged_paged_attention ragged_paged_attention_kernel "
    "ref_ragged_paged_attention static_validate_inputs",
    "Use axir.nn.dot_product_attention, which compiles for the CPU.",
)
