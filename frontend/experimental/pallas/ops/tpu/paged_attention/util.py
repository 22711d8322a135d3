"""Names of `jax.experimental.pallas.ops.tpu.paged_attention.util`, which exist only for TPUs."""

from __future__ import annotations

from axir.experimental.pallas._accelerators import only_on

__getattr__, __dir__, __all__ = only_on(
    "TPUs",
    __name__,
    "grouped_query_attention_reference",
    "Use axir.nn.dot_product_attention, which compiles for the CPU.",
)
