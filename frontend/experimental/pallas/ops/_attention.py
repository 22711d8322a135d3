"""Attention as a formula, shared by all attention functions here."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from axir import lax
from axir.dialect.core.annotations import UserObject
from axir.dialect.core.errors import ShapeError
from axir.dialect.program.rules import Value
from axir.numpy import arange, asarray, einsum, exp, float32, tanh, where

DEFAULT_MASK_VALUE = -0.7 * float(np.finfo(np.float32).max)


class SegmentIds(NamedTuple):
    """The segment of each query and each key; only queries and keys of the same segment match.

    Attributes:
        q: Integers, one for each query.
        kv: Integers, one for each key.
    """

    q: Value
    kv: Value


def is_causal(queries: int, keys: int) -> Value:
    """Tells of each pair of a query and a key whether the key is not behind the query."""
    return arange(queries)[:, None] >= arange(keys)[None, :]


def attend(
    q: Value,
    k: Value,
    v: Value,
    *,
    mask: Value | None,
    bias: Value | None = None,
    scale: UserObject = 1.0,
    cap: float | None = None,
    mask_value: float = DEFAULT_MASK_VALUE,
) -> tuple[Value, Value]:
    """Returns the mean of values by the softmax of products, and the logarithms of its sums.

    Args:
        q: Queries, of shape `(..., queries, width)`.
        k: Keys, of shape `(..., keys, width)`.
        v: Values, of shape `(..., keys, other width)`.
        mask: Truth values: which keys a query sees.
        bias: Added to the products.
        scale: Factor of the sums of products and bias.
        cap: Products are bent by a hyperbolic tangent to stay below.
        mask_value: The value of masked products.
    """
    if q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2]:
        raise ShapeError(
            f"Attention of queries {q.shape}, keys {k.shape} and values {v.shape}.",
            "Queries are as wide as keys, and there are as many values as keys.",
        )
    scores = einsum("...qc,...kc->...qk", q, k, preferred_element_type=float32)
    scores = scores if bias is None else scores + bias
    scores = scores * scale
    scores = scores if cap is None else tanh(scores / cap) * cap
    scores = scores if mask is None else where(mask, scores, asarray(mask_value, scores.dtype))
    most = lax.stop_gradient(scores.max(-1, keepdims=True))
    weights = exp(scores - most)
    total = weights.sum(-1, keepdims=True)
    out = einsum("...qk,...kc->...qc", weights / total, v, preferred_element_type=float32)
    return out.astype(q.dtype), (lax.log(total) + most)[..., 0]
