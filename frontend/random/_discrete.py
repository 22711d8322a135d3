"""Discrete distributions: trials, signs, counts, categories."""

from __future__ import annotations

import math
from collections.abc import Sequence

import ml_dtypes
import numpy as np

from axir._devices.placement import lies_where_told
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import DTypeLike, UserObject
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import DTypeError, ParameterError
from axir.dialect.ops.elementwise.arithmetic import add, div, floor, mul, neg, sub
from axir.dialect.ops.elementwise.comparison import eq, lt, select_n
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.ops.elementwise.transcendental import log, log1p
from axir.dialect.ops.indexing.static_slicing import index_in_dim
from axir.dialect.ops.reductions.arg_reduce import argmax
from axir.dialect.ops.shape.broadcasting import expand_dims
from axir.dialect.ops.shape.movement import canonical_axis
from axir.dialect.ops.shape.rearranging import moveaxis, reshape
from axir.dialect.ops.sorting.sort import top_k
from axir.dialect.program.rules import Value

from ._gumbel import draw_gumbel
from ._parameters import (
    check_key,
    check_shape,
    constant,
    integer_dtype,
    result_shape,
    spread,
    to_value,
)
from ._ranges import draw_uniform


@lies_where_told
def bernoulli(
    key: ArrayLike,
    p: UserObject = 0.5,
    shape: Sequence[int] | None = None,
    mode: str = "low",
    *,
    out_sharding: object = None,
) -> Value:
    """Draws bools that are true with probability p.

    Args:
        key: The key.
        p: The probability, a float or an array of floats.
        shape: Shape of the result; by default the shape of p.
        mode: "low" takes as many random bits as p has, which in float32 is wrong for p below 1e-7;
            "high" takes twice as many.
        out_sharding: Placement of the result: a sharding, or a `PartitionSpec`.

    Raises:
        DTypeError: if p is no float.
        ParameterError: for another mode, or if p does not broadcast to the shape.

    >>> from axir import random
    >>> random.bernoulli(random.PRNGKey(0), 0.5, (4,))
    Array([False,  True, False,  True], dtype=bool)
    """
    if mode not in ("low", "high"):
        raise ParameterError(
            f"random.bernoulli: there is no mode {mode!r}.", 'Pass "low" or "high".'
        )
    key = check_key("bernoulli", key)
    p = to_value("bernoulli", "p", p)
    if not dtypes.is_float(p.dtype):
        raise DTypeError(
            f"random.bernoulli: the probability p must be of a float dtype, not {p.type}.",
            "Write 1.0 instead of 1, or cast with x.astype('float32').",
        )
    extents = result_shape("bernoulli", shape, p.shape)
    dtype = p.dtype
    p = spread(convert_element_type(p, dtype), extents)
    if mode == "low":
        return lt(draw_uniform("bernoulli", key, extents, dtype), p)
    pair = draw_uniform("bernoulli", key, (2, *extents), dtype)
    coarse, fine = (index_in_dim(pair, i, keepdims=False) for i in (0, 1))
    fine = mul(fine, constant(2.0 ** -ml_dtypes.finfo(dtype).nmant, dtype))
    return lt(fine, sub(p, coarse))


@lies_where_told
def rademacher(
    key: ArrayLike,
    shape: Sequence[int] = (),
    dtype: DTypeLike = None,
    *,
    out_sharding: object = None,
) -> Value:
    """Draws 1 or -1, each with probability 1/2.

    Args:
        key: The key.
        shape: Shape of the result.
        dtype: dtype of the result; int32 by default, int64 with `jax_enable_x64`.
        out_sharding: Placement of the result: a sharding, or a `PartitionSpec`.
    """
    key = check_key("rademacher", key)
    extents = check_shape("rademacher", shape)
    canonical = dtypes.canonicalize_dtype(int if dtype is None else dtype)
    heads = convert_element_type(bernoulli(key, 0.5, extents), np.int32)
    return convert_element_type(sub(mul(heads, 2), 1), canonical)


@lies_where_told
def geometric(
    key: ArrayLike,
    p: UserObject,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike = None,
    *,
    out_sharding: object = None,
) -> Value:
    """Draws the number of trials of success probability p up to the first success.

    Args:
        key: The key.
        p: The probability, in (0, 1).
        shape: Shape of the result; by default the shape of p.
        dtype: Integer dtype of the result; int32 by default, int64 with `jax_enable_x64`.
        out_sharding: Placement of the result: a sharding, or a `PartitionSpec`.

    Raises:
        ParameterError: for a dtype that is not an integer type, or if p does not broadcast.
    """
    key = check_key("geometric", key)
    result_dtype = integer_dtype("geometric", dtype)
    p = to_value("geometric", "p", p)
    p_dtype = p.dtype if dtypes.is_float(p.dtype) else dtypes.canonicalize_dtype(float)
    extents = result_shape("geometric", shape, p.shape)
    p = spread(convert_element_type(p, p_dtype), extents)
    u = draw_uniform("geometric", key, extents, p_dtype)
    u = select_n(eq(u, 0), u, constant(1, p_dtype))
    trials = add(floor(div(log(u), log1p(neg(p)))), 1)
    return convert_element_type(trials, result_dtype)


@lies_where_told
def categorical(
    key: ArrayLike,
    logits: ArrayLike,
    axis: int = -1,
    shape: Sequence[int] | None = None,
    replace: bool = True,
    mode: str | None = None,
    *,
    out_sharding: object = None,
) -> Value:
    """Draws categories of the probabilities softmax(logits).

    A category is where the sum of logits and Gumbel noise is largest; without replacement, the
    categories of the k largest sums (Kool, van Hoof and Welling, ICML 2019).

    Args:
        key: The key.
        logits: Logarithms of the probabilities, up to a constant.
        axis: The axis along which the categories lie.
        shape: Shape of the result: any shape in front of the logits' shape without the axis, which
            is the default.
        replace: Whether the draws that the dimensions in front count are independent; otherwise
            they are distinct.
        mode: How far the tail of the noise reaches, see `gumbel`.
        out_sharding: Placement of the result: a sharding, or a `PartitionSpec`.

    Returns:
        Integers, indices along the axis.

    Raises:
        DTypeError: for logits that are no floats.
        ParameterError: if the shape does not fit, or there are fewer categories than draws without
            replacement.

    >>> import numpy as np
    >>> from axir import random
    >>> random.categorical(random.PRNGKey(0), np.zeros(3, np.float32), shape=(5,))
    Array([1, 0, 0, 2, 0], dtype=int32)
    """
    key = check_key("categorical", key)
    logits = to_value("categorical", "logits", logits)
    if not dtypes.is_float(logits.dtype):
        raise DTypeError(f"random.categorical: logits must be floats, not {logits.type}.")
    axis = canonical_axis("random.categorical", axis, logits.ndim)
    batch = logits.shape[:axis] + logits.shape[axis + 1 :]
    extents = result_shape("categorical", batch if shape is None else shape, batch)
    prefix = extents[: len(extents) - len(batch)]
    if not replace:
        return _distinct_categories(key, logits, axis, extents, math.prod(prefix), mode)
    own = extents[len(prefix) :]
    noise_shape = (*prefix, *own[:axis], logits.shape[axis], *own[axis:])
    noise = draw_gumbel("categorical", key, noise_shape, logits.dtype, mode)
    logits = spread(expand_dims(logits, range(len(prefix))), noise_shape)
    return argmax(add(noise, logits), len(prefix) + axis, int)


def _distinct_categories(
    key: Value, logits: Value, axis: int, shape: tuple[int, ...], count: int, mode: str | None
) -> Value:
    if count > logits.shape[axis]:
        raise ParameterError(
            f"random.categorical: {count} draws without replacement from {logits.shape[axis]} "
            "categories.",
            "Draw fewer, or pass replace=True.",
        )
    batch = logits.shape[:axis] + logits.shape[axis + 1 :]
    if shape[len(shape) - len(batch) :] != batch:
        raise ParameterError(
            f"random.categorical: without replacement, shape {shape} must end with {batch}, the "
            "shape of the logits without their axis.",
            "Broadcast the logits first.",
        )
    noisy = add(logits, draw_gumbel("categorical", key, logits.shape, logits.dtype, mode))
    _, indices = top_k(moveaxis(noisy, axis, logits.ndim - 1), count)
    return reshape(indices, shape, (indices.ndim - 1, *range(indices.ndim - 1)))
