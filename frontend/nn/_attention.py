"""`dot_product_attention`."""

from __future__ import annotations

import math

import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import UserObject
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import ParameterError, ShapeError
from axir.dialect.ops.elementwise.arithmetic import add, mul, sub
from axir.dialect.ops.elementwise.comparison import and_, ge, le, lt, select_n
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.ops.shape.broadcasting import broadcast_in_dim, broadcast_shapes
from axir.dialect.ops.shape.constants import broadcasted_iota
from axir.dialect.ops.shape.rearranging import reshape
from axir.dialect.program.rules import Value
from axir.numpy._arguments.promotion import array_argument, constant
from axir.numpy._products.einsum import einsum
from axir.numpy._reductions.logsumexp import logsumexp
from axir.numpy._shape.joining import repeat

from ._normalization import softmax

_NAME = "nn.dot_product_attention"


def dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: object,
    bias: ArrayLike | None = None,
    mask: UserObject = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    query_seq_lengths: object = None,
    key_value_seq_lengths: object = None,
    local_window_size: object = None,
    implementation: str | None = None,
    return_residual: bool = False,
) -> UserObject:
    """Returns averages of values, weighted by the softmax of the products of queries and keys.

    Args:
        query: Array of shape (B, T, N, H), or (T, N, H) without a batch.
        key: Array of shape (B, S, K, H), where K divides N: several query heads share one head of
            key and value.
        value: Array of the shape of `key`.
        bias: Array to add to the logits, which broadcasts to (B, N, T, S).
        mask: Bool array of the logits that take part, which broadcasts to (B, N, T, S).
        scale: What to multiply the logits by; 1 / sqrt(H) by default.
        is_causal: Whether a query looks only at keys that are not behind it.
        query_seq_lengths: Integers of shape (B,): the length of each sequence of queries.
        key_value_seq_lengths: The same for keys and values.
        local_window_size: How many keys before and behind a query it looks at: a number or a pair.
        implementation: Accepted for compatibility; must be None or 'xla'.
        return_residual: Whether to return the logsumexp of the logits, of shape (B, T, N), too.

    Returns:
        An array of the shape of `query`.

    Raises:
        ShapeError: if the shapes do not fit.
        ParameterError: for another implementation.

    Source: Vaswani et al., "Attention Is All You Need", 2017.

    >>> import axir, axir.numpy as jnp
    >>> x = jnp.ones((2, 3, 1, 4))
    >>> axir.nn.dot_product_attention(x, x, x).shape
    (2, 3, 1, 4)
    """
    if implementation not in (None, "xla"):
        raise ParameterError(
            f"{_NAME}: implementation {implementation!r} is not available.", "Pass None."
        )
    arrays = [array_argument(_NAME, x, i) for i, x in enumerate((query, key, value))]
    shape = arrays[0].shape
    arrays = [reshape(x, (1, *x.shape)) if x.ndim == 3 else x for x in arrays]
    query, key, value = _checked(*arrays)
    groups = query.shape[2] // key.shape[2]
    if groups > 1:
        key, value = repeat(key, groups, axis=2), repeat(value, groups, axis=2)
    logits = einsum("BTNH,BSNH->BNTS", query, key, preferred_element_type=np.float32)
    logits = mul(logits, constant(scale or 1 / math.sqrt(query.shape[-1]), logits.dtype))
    if bias is not None:
        logits = add(logits, convert_element_type(_spread(bias, logits.shape), logits.dtype))
    chosen = _mask(
        logits.shape, mask, is_causal, query_seq_lengths, key_value_seq_lengths, local_window_size
    )
    if chosen is not None:
        # Not -inf, so that rows without any logit are averages and not NaN.
        lowest = constant(-0.7 * float(np.finfo(np.float32).max), logits.dtype)
        logits = select_n(chosen, lowest, logits)
    weights = convert_element_type(softmax(logits), value.dtype)
    result = einsum("BNTS,BSNH->BTNH", weights, value)
    result = reshape(_zero_behind(result, query_seq_lengths), shape)
    if not return_residual:
        return result
    residual = einsum("BNT->BTN", logsumexp(logits, -1))
    residual = convert_element_type(residual, query.dtype)
    return result, reshape(residual, shape[:-1])


def _checked(query: Value, key: Value, value: Value) -> tuple[Value, Value, Value]:
    fits = query.ndim == key.ndim == value.ndim == 4 and key.shape == value.shape
    if (
        not fits
        or query.shape[0] != key.shape[0]
        or query.shape[-1] != key.shape[-1]
        or query.shape[2] % key.shape[2]
    ):
        raise ShapeError(
            f"{_NAME}: query {query.shape}, key {key.shape} and value {value.shape} do not fit.",
            "They have shapes (B, T, N, H), (B, S, K, H) and (B, S, K, H), where N must be a "
            "multiple of K.",
        )
    return query, key, value


def _spread(x: ArrayLike, shape: tuple[int, ...]) -> Value:
    x = array_argument(_NAME, x)
    if broadcast_shapes(x.shape, shape) != shape:
        raise ShapeError(f"{_NAME}: {x.aval} does not broadcast to {shape}.")
    return broadcast_in_dim(x, shape, tuple(range(len(shape) - x.ndim, len(shape))))


def _mask(
    shape: tuple[int, ...],
    mask: ArrayLike,
    is_causal: bool,
    query_lengths: UserObject,
    key_lengths: UserObject,
    window: UserObject,
) -> Value | None:
    """Combines all masks of the logits."""
    parts = [] if mask is None else [_spread(mask, shape)]
    queries = broadcasted_iota(np.int32, shape, 2)
    keys = broadcasted_iota(np.int32, shape, 3)
    if is_causal:
        parts.append(ge(queries, keys))
    if window is not None:
        before, behind = (window, window) if isinstance(window, int) else window
        parts.append(le(sub(queries, keys), constant(before, dtypes.int32)))
        parts.append(le(sub(keys, queries), constant(behind, dtypes.int32)))
    for places, lengths in ((queries, query_lengths), (keys, key_lengths)):
        if lengths is not None:
            lengths = convert_element_type(array_argument(_NAME, lengths), np.int32)
            parts.append(lt(places, broadcast_in_dim(lengths, shape, (0,))))
    combined = None
    for part in parts:
        combined = part if combined is None else and_(combined, part)
    return combined


def _zero_behind(result: Value, lengths: object) -> Value:
    """Clears the results of queries behind the end of their sequence."""
    if lengths is None:
        return result
    lengths = convert_element_type(array_argument(_NAME, lengths), np.int32)
    places = broadcasted_iota(np.int32, result.shape, 1)
    limits = broadcast_in_dim(lengths, result.shape, (0,))
    return select_n(lt(places, limits), constant(0, result.dtype), result)
