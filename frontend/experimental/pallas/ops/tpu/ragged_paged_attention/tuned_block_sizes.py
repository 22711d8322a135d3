"""Names that exist only for TPUs, of
`jax.experimental.pallas.ops.tpu.ragged_paged_attention.tuned_block_sizes`.
"""

from __future__ import annotations

from axir.experimental.pallas._accelerators import only_on

__getattr__, __dir__, __all__ = only_on(
    "TPUs",
    __name__,
    "get_device_name get_min_page_size get_tpu_version get_tuned_block_sizes next_power_of_2 "
    "simplify_key",
    "Use axir.nn.dot_product_attention, which compiles for the CPU.",
)
