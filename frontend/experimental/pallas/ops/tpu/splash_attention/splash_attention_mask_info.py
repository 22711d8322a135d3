"""Names that exist only for TPUs, of
`jax.experimental.pallas.ops.tpu.splash_attention.splash_attention_mask_info`.
"""

from __future__ import annotations

from axir.experimental.pallas._accelerators import only_on

__getattr__, __dir__, __all__ = only_on(
    "TPUs",
    __name__,
    "MaskInfo process_mask process_mask_dkv process_dynamic_mask process_dynamic_mask_dkv",
    "Masks need no preparation here: pass one to make_splash_mha.",
)
