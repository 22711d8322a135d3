"""Attention, under the names of `jax.experimental.pallas.ops.tpu.flash_attention`."""

from __future__ import annotations

import dataclasses

from axir.dialect.core.annotations import UserObject
from axir.dialect.core.errors import ShapeError
from axir.dialect.program.rules import Value
from axir.experimental.pallas.ops._attention import (
    DEFAULT_MASK_VALUE,
    SegmentIds,
    attend,
    is_causal,
)

__all__ = [
    "DEFAULT_MASK_VALUE", "BlockSizes", "SegmentIds", "flash_attention", "mha_reference",
    "mha_reference_no_custom_vjp",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


@dataclasses.dataclass(frozen=True)
class BlockSizes:
    """Sizes of the blocks of a TPU's kernel; kept, and not used."""

    block_q: int
    block_k_major: int
    block_k: int
    block_b: int
    block_q_major_dkv: int | None = None
    block_k_major_dkv: int | None = None
    block_k_dkv: int | None = None
    block_q_dkv: int | None = None
    block_k_major_dq: int | None = None
    block_k_dq: int | None = None
    block_q_dq: int | None = None

    @classmethod
    def get_default(cls, *shape: int) -> BlockSizes:
        """Returns sizes for any shape."""
        return cls(128, 128, 128, 1)


def flash_attention(
    q: Value,
    k: Value,
    v: Value,
    ab: Value | None = None,
    segment_ids: SegmentIds | None = None,
    *,
    causal: bool = False,
    sm_scale: float = 1.0,
    block_sizes: BlockSizes | None = None,
    debug: bool = False,
) -> Value:
    """Returns the attention of queries to keys.

    Args:
        q: Queries, of shape `(batch, heads, queries, width)`.
        k: Keys, of shape `(batch, heads, keys, width)`.
        v: Values, shaped like the keys.
        ab: The attention bias, added to the products.
        segment_ids: Segments of queries and keys, of shapes `(batch, queries)`, `(batch, keys)`.
        causal: Whether a query sees only the keys that are not behind it.
        sm_scale: Factor of the products.
        block_sizes: Accepted for compatibility.
        debug: Accepted for compatibility.

    >>> import axir.numpy as jnp
    >>> x = jnp.eye(2)[None, None]
    >>> flash_attention(x, x, x, causal=True)[0, 0].round(3)
    Array([[1.   , 0.   ],
           [0.269, 0.731]], dtype=float32)
    """
    return mha_reference_no_custom_vjp(q, k, v, ab, segment_ids, causal=causal, sm_scale=sm_scale)


def mha_reference_no_custom_vjp(
    q: Value,
    k: Value,
    v: Value,
    ab: Value | None = None,
    segment_ids: SegmentIds | None = None,
    *,
    causal: bool = False,
    mask_value: float = DEFAULT_MASK_VALUE,
    sm_scale: float = 1.0,
) -> Value:
    """Computes the same as `flash_attention`.

    Raises:
        ShapeError: unless all have one batch and one number of heads.
    """
    if q.ndim != 4 or q.shape[:2] != k.shape[:2] or k.shape[:2] != v.shape[:2]:
        raise ShapeError(
            f"flash_attention of queries {q.shape}, keys {k.shape} and values {v.shape}.",
            "All have the shape (batch, heads, length, width), with one batch and one number of "
            "heads.",
        )
    mask: UserObject = is_causal(q.shape[2], k.shape[2]) if causal else None
    if segment_ids is not None:
        same = segment_ids.q[:, None, :, None] == segment_ids.kv[:, None, None, :]
        mask = same if mask is None else same & mask
    return attend(q, k, v, mask=mask, bias=ab, scale=sm_scale, mask_value=mask_value)[0]


mha_reference = mha_reference_no_custom_vjp
