"""Attention under masks, of the names of JAX's kernel for sparse attention."""

from __future__ import annotations

import dataclasses
import enum
import functools

from axir import vmap
from axir._trees.registration import register_pytree_node_class
from axir.dialect.core.annotations import UserObject
from axir.dialect.core.errors import ShapeError
from axir.dialect.program.rules import Value
from axir.experimental.pallas.ops._attention import DEFAULT_MASK_VALUE, SegmentIds, attend
from axir.numpy import asarray, exp, logaddexp

from .splash_attention_mask import Mask

__all__ = [
    "DEFAULT_MASK_VALUE", "BlockSizes", "QKVLayout", "SegmentIds", "SplashAttentionKernel",
    "attention_reference", "make_attention_reference", "make_masked_mha_reference",
    "make_masked_mqa_reference", "make_splash_mha", "make_splash_mha_single_device",
    "make_splash_mqa", "make_splash_mqa_single_device",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


class QKVLayout(enum.IntEnum):
    """Which axis of an operand is contiguous; kept, and not used."""

    HEAD_DIM_MINOR = 1
    SEQ_MINOR = 2


@dataclasses.dataclass(frozen=True)
class BlockSizes:
    """Sizes of the blocks of a TPU's kernel; kept, and not used."""

    block_q: int
    block_kv: int
    block_kv_compute: int | None = None
    block_q_dkv: int | None = None
    block_kv_dkv: int | None = None
    block_kv_dkv_compute: int | None = None
    block_q_dq: int | None = None
    block_kv_dq: int | None = None
    use_fused_bwd_kernel: bool = False
    q_layout: QKVLayout = QKVLayout.HEAD_DIM_MINOR
    k_layout: QKVLayout = QKVLayout.HEAD_DIM_MINOR
    v_layout: QKVLayout = QKVLayout.HEAD_DIM_MINOR

    @property
    def has_backward_blocks(self) -> bool:
        """Whether there are sizes for the gradient."""
        return None not in (self.block_q_dkv, self.block_kv_dkv)

    @classmethod
    def get_default(cls) -> BlockSizes:
        """Returns sizes for any shape."""
        return cls(*(128,) * 8)


def attention_reference(
    mask: Value,
    q: Value,
    k: Value,
    v: Value,
    segment_ids: SegmentIds | None,
    sinks: Value | None = None,
    *,
    mask_value: float = DEFAULT_MASK_VALUE,
    save_residuals: bool = False,
    custom_type: str = "flash",
    attn_logits_soft_cap: float | None = None,
) -> UserObject:
    """Returns the attention of one head.

    Args:
        mask: Truth values of shape `(queries, keys)`.
        q: Queries, of shape `(queries, width)`, scaled.
        k: Keys, of shape `(keys, width)`.
        v: Values.
        segment_ids: Segments of queries and keys.
        sinks: An extra term of the softmax's denominator, with no value.
        mask_value: The value of masked products.
        save_residuals: Whether to return a pair, with the logarithms of the softmax's sums.
        custom_type: Accepted for compatibility.
        attn_logits_soft_cap: Products are bent to stay below.
    """
    if segment_ids is not None:
        mask = mask & (segment_ids.q[:, None] == segment_ids.kv[None, :])
    out, log = attend(q, k, v, mask=mask, cap=attn_logits_soft_cap, mask_value=mask_value)
    if sinks is not None:
        both = logaddexp(log, sinks)
        out, log = (out * exp(log - both)[..., None]).astype(out.dtype), both
    return (out, (log,)) if save_residuals else out


@register_pytree_node_class
class SplashAttentionKernel:
    """Attention under a mask: a function of queries, keys, values, and segments.

    Args:
        mask: Truth values of shape `(heads, queries, keys)`.
        is_mqa: Whether there is one head of keys and values for all of queries.
        options: Of `attention_reference`.
    """

    def __init__(self, mask: Value, is_mqa: bool, options: dict[str, UserObject]):
        self.mask, self.is_mqa, self.options = mask, is_mqa, options

    def __call__(
        self,
        q: Value,
        k: Value,
        v: Value,
        segment_ids: SegmentIds | None = None,
        sinks: Value | None = None,
    ) -> UserObject:
        """Returns the attention of all heads."""
        if q.ndim != 3 or q.shape[0] != self.mask.shape[0]:
            raise ShapeError(
                f"Attention of queries {q.shape} under a mask {self.mask.shape}.",
                "Queries have the shape (heads, queries, width), one head for each of the mask's.",
            )
        heads = None if self.is_mqa else 0
        if not self.is_mqa and k.shape[0] != q.shape[0]:
            groups = q.shape[0] // k.shape[0]
            k, v = (x.repeat(groups, axis=0) for x in (k, v))
        run = functools.partial(attention_reference, **self.options)
        axes = (0, 0, heads, heads, None, None if sinks is None else 0)
        return vmap(run, in_axes=axes)(self.mask, q, k, v, segment_ids, sinks)

    def manual_sharding_spec(self, sharding: UserObject) -> SplashAttentionKernel:
        """Returns specs of the kernel's arrays for `shard_map`."""
        return SplashAttentionKernel(sharding.spec, self.is_mqa, self.options)

    def tree_flatten(self) -> tuple[tuple[Value], tuple[UserObject, ...]]:
        """Returns the mask, and the static fields."""
        return (self.mask,), (self.is_mqa, tuple(self.options.items()))

    @classmethod
    def tree_unflatten(
        cls, known: tuple[UserObject, ...], children: tuple[Value]
    ) -> SplashAttentionKernel:
        """Returns the kernel from the results of `tree_flatten`."""
        return cls(children[0], known[0], dict(known[1]))


def _make(
    mask: Value | Mask,
    *,
    is_mqa: bool = False,
    block_sizes: BlockSizes | None = None,
    save_residuals: bool = False,
    mask_value: float = DEFAULT_MASK_VALUE,
    attn_logits_soft_cap: float | None = None,
    downcast_smem_data: bool = True,
    head_shards: int = 1,
    q_seq_shards: int = 1,
    residual_checkpoint_name: str | None = None,
    interpret: bool = False,
) -> SplashAttentionKernel:
    if len(mask.shape) != 3:
        raise ShapeError(
            f"A mask for attention of several heads has the shape {mask.shape}.",
            "Pass one of shape (heads, queries, keys): MultiHeadMask([mask, ...]).",
        )
    dense = mask[:, :, :] if isinstance(mask, Mask) else mask
    options: dict[str, UserObject] = {
        "save_residuals": save_residuals,
        "mask_value": mask_value,
        "attn_logits_soft_cap": attn_logits_soft_cap,
    }
    return SplashAttentionKernel(asarray(dense, bool), is_mqa, options)


make_splash_mha = functools.partial(_make, is_mqa=False)
make_splash_mqa = functools.partial(_make, is_mqa=True)
make_splash_mha_single_device = make_splash_mha
make_splash_mqa_single_device = make_splash_mqa


def make_attention_reference(
    mask: Value | Mask, is_mqa: bool, backward_impl: str = "vanilla", **options: object
) -> UserObject:
    """Returns the attention under a mask as a function, with options of `attention_reference`."""
    dense = mask[(slice(None),) * len(mask.shape)] if isinstance(mask, Mask) else mask
    if len(dense.shape) == 2:
        dense = dense[None]
    return SplashAttentionKernel(asarray(dense, bool), is_mqa, options)


make_masked_mha_reference = functools.partial(make_attention_reference, is_mqa=False)
make_masked_mqa_reference = functools.partial(make_attention_reference, is_mqa=True)
