"""Attention masks that are computed on demand."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Sequence
from typing import TypeAlias

import numpy as np

from axir.dialect.core.annotations import HostArray, IndexLike
from axir.dialect.core.errors import ParameterError, ShapeError

__all__ = [
    "CausalMask", "ChunkedCausalMask", "FullMask", "LocalMask", "LogicalAnd", "LogicalOr", "Mask",
    "MultiHeadMask", "NumpyMask", "make_causal_mask", "make_chunk_attention_mask",
    "make_local_attention_mask", "make_random_mask",
]  # fmt: skip

Shape: TypeAlias = tuple[int, ...]
Window: TypeAlias = tuple[int | None, int | None]
Rule: TypeAlias = Callable[[HostArray, HostArray], HostArray]


def __dir__() -> list[str]:
    return __all__


class Mask:
    """Which keys a query sees: `mask[queries, keys]` are truth values.

    Attributes:
        shape: How many queries and keys, with the heads in front if these differ.
    """

    shape: Shape

    def __getitem__(self, idx: IndexLike) -> HostArray:
        raise NotImplementedError

    def __bool__(self) -> bool:
        raise ParameterError(
            "A mask of attention has no truth value.", "Combine masks by & and |, not by and, or."
        )

    def __or__(self, other: Mask) -> Mask:
        return LogicalOr(self, other)

    def __and__(self, other: Mask) -> Mask:
        return LogicalAnd(self, other)


class _Combined(Mask):
    """Two masks of one shape."""

    def __init__(self, left: Mask, right: Mask):
        if left.shape != right.shape:
            raise ShapeError(
                f"Masks of shapes {left.shape} and {right.shape} are combined.",
                "Make both for as many queries and keys.",
            )
        self.left, self.right, self.shape = left, right, left.shape

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    def __hash__(self) -> int:
        return hash((type(self), self.left, self.right))


class LogicalOr(_Combined):
    """The union of two masks."""

    def __getitem__(self, idx: IndexLike) -> HostArray:
        return self.left[idx] | self.right[idx]


class LogicalAnd(_Combined):
    """The intersection of two masks."""

    def __getitem__(self, idx: IndexLike) -> HostArray:
        return self.left[idx] & self.right[idx]


@dataclasses.dataclass(eq=True, unsafe_hash=True)
class MultiHeadMask(Mask):
    """A mask for each head.

    Attributes:
        masks: The masks.
    """

    masks: Sequence[Mask]

    def __post_init__(self) -> None:
        self.masks = tuple(self.masks)
        if not self.masks or len({mask.shape for mask in self.masks}) > 1:
            raise ShapeError(
                f"MultiHeadMask of masks of shapes {[mask.shape for mask in self.masks]}.",
                "Pass at least one mask, all of one shape.",
            )
        self.shape = (len(self.masks), *self.masks[0].shape)

    def __getitem__(self, idx: IndexLike) -> HostArray:
        head, *rest = idx
        if isinstance(head, int):
            return self.masks[head][tuple(rest)]
        return np.stack([mask[tuple(rest)] for mask in self.masks[head]])


class _Computed(Mask):
    """A mask computed by a rule; two masks are equal if their fields are equal."""

    def __init__(self, shape: tuple[int, int], rule: Rule, *key: Hashable):
        self.shape = tuple(shape)
        self.mask_function = rule
        self.q_sequence = np.arange(shape[0], dtype=np.int32)
        self._key = (self.shape, *key)

    def __getitem__(self, idx: IndexLike) -> HostArray:
        queries, keys = idx
        columns = np.arange(self.shape[1], dtype=np.int32)[keys]
        return self.mask_function(self.q_sequence[queries][:, None], columns[None, :])

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._key == self._key

    def __hash__(self) -> int:
        return hash((type(self), self._key))


class CausalMask(_Computed):
    """Keys that are not behind the query.

    >>> CausalMask((2, 3))[:, :].astype(int).tolist()
    [[1, 0, 0], [1, 1, 0]]
    """

    def __init__(self, shape: tuple[int, int], offset: int = 0, shard_count: int = 1):
        self.offset = offset
        super().__init__(shape, lambda q, kv: q + offset >= kv, offset)


class ChunkedCausalMask(_Computed):
    """Keys of the query's chunk that are not behind it."""

    def __init__(self, shape: tuple[int, int], chunk_size: int, shard_count: int = 1):
        if chunk_size <= 0:
            raise ParameterError(f"chunk_size must be positive, not {chunk_size}.")
        self.chunk_size = chunk_size
        super().__init__(
            shape, lambda q, kv: (q // chunk_size == kv // chunk_size) & (q >= kv), chunk_size
        )


class LocalMask(_Computed):
    """Keys in a window around the query; None is no limit."""

    def __init__(
        self, shape: tuple[int, int], window_size: Window, offset: int, shard_count: int = 1
    ):
        self.window_size, self.offset = window_size, offset
        left, right = window_size

        def rule(q: HostArray, kv: HostArray) -> HostArray:
            seen = np.ones(np.broadcast_shapes(q.shape, kv.shape), bool)
            seen = seen if left is None else seen & (q + offset - left <= kv)
            return seen if right is None else seen & (q + offset + right >= kv)

        super().__init__(shape, rule, window_size, offset)


class FullMask(_Computed):
    """All keys."""

    def __init__(self, shape: tuple[int, int]):
        super().__init__(shape, lambda q, kv: np.ones(np.broadcast_shapes(q.shape, kv.shape), bool))


class NumpyMask(Mask):
    """An array of truth values."""

    def __init__(self, array: HostArray):
        if array.ndim != 2 or array.dtype != np.bool_:
            raise ShapeError(
                f"NumpyMask of an array of shape {array.shape} and {array.dtype}.",
                "Pass a matrix of truth values.",
            )
        self.array, self.shape = array, array.shape

    def __getitem__(self, idx: IndexLike) -> HostArray:
        return self.array[idx]

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and np.array_equal(self.array, other.array)

    def __hash__(self) -> int:
        return hash((type(self), self.array.tobytes()))


def make_causal_mask(shape: tuple[int, int], offset: int = 0) -> HostArray:
    """Returns a causal mask as an array."""
    return CausalMask(shape, offset)[:, :]


def make_local_attention_mask(
    shape: tuple[int, int], window_size: Window, *, offset: int = 0
) -> HostArray:
    """Returns a mask of windows as an array."""
    return LocalMask(shape, window_size, offset)[:, :]


def make_chunk_attention_mask(shape: tuple[int, int], chunk_size: int) -> HostArray:
    """Returns a causal mask of chunks as an array."""
    return ChunkedCausalMask(shape, chunk_size)[:, :]


def make_random_mask(shape: tuple[int, int], sparsity: float, seed: int) -> HostArray:
    """Returns a mask drawn at random.

    Args:
        shape: Its shape.
        sparsity: The probability of False.
        seed: Where the generator begins.
    """
    generator = np.random.RandomState(seed)
    return generator.binomial(1, 1.0 - sparsity, shape).astype(bool)
