"""Attention, under the names of `jax.experimental.pallas.ops.gpu.attention`."""

from __future__ import annotations

import dataclasses

from axir.dialect.core.annotations import UserObject
from axir.dialect.program.rules import Value
from axir.experimental.pallas.ops._attention import DEFAULT_MASK_VALUE, attend, is_causal

__all__ = ["DEFAULT_MASK_VALUE", "BlockSizes", "mha", "mha_reference", "segment_mask"]


def __dir__() -> list[str]:
    return __all__


@dataclasses.dataclass(frozen=True)
class BlockSizes:
    """Sizes of the blocks of a GPU's kernel; kept, and not used."""

    block_q: int
    block_k: int
    block_q_dkv: int | None = None
    block_kv_dkv: int | None = None
    block_q_dq: int | None = None
    block_kv_dq: int | None = None

    @classmethod
    def get_default(cls) -> BlockSizes:
        """Returns sizes for any shape."""
        return cls(128, 128, 32, 32, 32, 32)

    @property
    def has_backward_blocks(self) -> bool:
        """Whether there are sizes for the gradient."""
        return None not in (self.block_q_dkv, self.block_kv_dkv)


def segment_mask(q_segment_ids: Value, kv_segment_ids: Value) -> Value:
    """Tells of each pair of a query and a key whether they are of one segment."""
    return q_segment_ids[..., :, None] == kv_segment_ids[..., None, :]


def mha(
    q: Value,
    k: Value,
    v: Value,
    segment_ids: Value | None,
    sm_scale: float = 1.0,
    causal: bool = False,
    block_sizes: BlockSizes | None = None,
    backward_pass_impl: str = "triton",
    num_warps: int | None = None,
    num_stages: int = 2,
    grid: tuple[int, ...] | None = None,
    interpret: bool = False,
    debug: bool = False,
    return_residuals: bool = False,
) -> UserObject:
    """Returns the attention of queries to keys.

    Args:
        q: Queries, of shape `(batch, queries, heads, width)`.
        k: Keys, of shape `(batch, keys, heads, width)`.
        v: Values, shaped like the keys.
        segment_ids: Segments, of shape `(batch, length)`; only queries and keys of the same segment
            match.
        sm_scale: Factor of the products.
        causal: Whether a query sees only the keys that are not behind it.
        block_sizes: Accepted for compatibility, as all of the next six.
        backward_pass_impl: Accepted for compatibility.
        num_warps: Accepted for compatibility.
        num_stages: Accepted for compatibility.
        grid: Accepted for compatibility.
        interpret: Accepted for compatibility.
        debug: Accepted for compatibility.
        return_residuals: Whether to return a pair, with the logarithms of the softmax's sums.
    """
    mask: UserObject = is_causal(q.shape[1], k.shape[1]) if causal else None
    if segment_ids is not None:
        same = segment_mask(segment_ids, segment_ids)[:, None]
        mask = same if mask is None else same & mask
    out, log = attend(*(x.swapaxes(1, 2) for x in (q, k, v)), mask=mask, scale=sm_scale)
    out = out.swapaxes(1, 2)
    return (out, log) if return_residuals else out


def mha_reference(
    q: Value,
    k: Value,
    v: Value,
    segment_ids: Value | None,
    sm_scale: float = 1.0,
    causal: bool = False,
) -> Value:
    """Computes the same as `mha`, in float32."""
    return mha(q, k, v, segment_ids, sm_scale, causal).astype("float32")
