"""Names that exist only for TPUs, of
`jax.experimental.pallas.ops.tpu.paged_attention.quantization_utils`.
"""

from __future__ import annotations

from axir.experimental.pallas._accelerators import only_on

__getattr__, __dir__, __all__ = only_on(
    "TPUs",
    __name__,
    "QuantizedTensor from_int8 get_quantization_scales quantize_to_int8 to_int8 "
    "unquantize_from_int8",
    "Use axir.nn.dot_product_attention, which compiles for the CPU.",
)
