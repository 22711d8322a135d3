"""Attention under masks, under the names of `jax.experimental.pallas.ops.tpu.splash_attention`.

>>> import axir.numpy as jnp
>>> x = jnp.eye(2)[None]
>>> kernel = make_splash_mha(MultiHeadMask([CausalMask((2, 2))]), head_shards=1, q_seq_shards=1)
>>> kernel(x, x, x)[0].round(3)
Array([[1.   , 0.   ],
       [0.269, 0.731]], dtype=float32)
"""

from __future__ import annotations

from axir.experimental.pallas._accelerators import modules_only_on

from .splash_attention_kernel import (
    BlockSizes,
    QKVLayout,
    SegmentIds,
    make_masked_mha_reference,
    make_masked_mqa_reference,
    make_splash_mha,
    make_splash_mha_single_device,
    make_splash_mqa,
    make_splash_mqa_single_device,
)
from .splash_attention_mask import (
    CausalMask,
    FullMask,
    LocalMask,
    Mask,
    MultiHeadMask,
    NumpyMask,
    make_causal_mask,
    make_local_attention_mask,
    make_random_mask,
)

__all__ = [
    "BlockSizes", "CausalMask", "FullMask", "LocalMask", "Mask", "MultiHeadMask", "NumpyMask",
    "QKVLayout", "SegmentIds", "make_causal_mask", "make_local_attention_mask",
    "make_masked_mha_reference", "make_masked_mqa_reference", "make_random_mask", "make_splash_mha",
    "make_splash_mha_single_device", "make_splash_mqa", "make_splash_mqa_single_device",
]  # fmt: skip

modules_only_on(
    "TPUs",
    __name__,
    {
        "splash_attention_mask_info": (
            "Masks need no preparation here: pass one to make_splash_mha.",
            "MaskInfo process_mask process_mask_dkv process_dynamic_mask process_dynamic_mask_dkv",
        )
    },
)


def __dir__() -> list[str]:
    return [*__all__, *(f"splash_attention_{part}" for part in ("kernel", "mask", "mask_info"))]
