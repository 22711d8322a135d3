"""Statistics of samples: `mode`, `rankdata`, `sem` (found in `axir.scipy.stats`)."""

from __future__ import annotations

import math
from typing import NamedTuple

import axir.numpy as jnp
from axir.dialect.core import dtypes
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import ParameterError
from axir.dialect.program.rules import Value
from axir.lax import cummax, cummin
from axir.numpy._arguments.checks import canonical_axis
from axir.numpy._arguments.promotion import array_argument, promote_inexact

__all__ = ["ModeResult", "mode", "rankdata", "sem"]

_METHODS = ("average", "min", "max", "dense", "ordinal")
_POLICIES = ("propagate", "omit", "raise")


class ModeResult(NamedTuple):
    """The result of `mode`.

    Attributes:
        mode: The most frequent values.
        count: How often they occur.
    """

    mode: Value
    count: Value  # type: ignore[assignment] # SciPy's name, which tuples have as well


def mode(
    a: ArrayLike, axis: int | None = 0, nan_policy: str = "propagate", keepdims: bool = False
) -> ModeResult:
    """Returns the most frequent values along an axis, the least of equally frequent ones.

    Args:
        a: Array.
        axis: Which axis; None for all elements.
        nan_policy: Must be 'propagate': nan is a value like others, the greatest.
        keepdims: Whether the axis stays, with extent 1.

    Returns:
        Values of the dtype of `a` (nan of an empty array) and integers, how often they occur.

    Raises:
        ParameterError: for an unknown policy; NotImplementedError for 'omit' and 'raise'.

    >>> import axir.numpy as jnp
    >>> mode(jnp.array([4, 1, 4, 1, 2]))
    ModeResult(mode=Array(1, dtype=int32), count=Array(2, dtype=int32))
    """
    _check_policy("mode", nan_policy, ("propagate",))
    x = jnp.atleast_1d(array_argument("mode", a))
    rank = x.ndim
    x, axis = _along_last("mode", x, axis)
    if not x.shape[-1]:
        dtype = dtypes.canonicalize_dtype(float)
        values = jnp.full(x.shape[:-1], math.nan, dtype)
        counts = jnp.zeros(x.shape[:-1], dtype)
    else:
        x = jnp.sort(x, axis=-1)
        starts, _ = _runs(x, is_nan_equal=True)
        lengths = jnp.arange(x.shape[-1]) - starts + 1
        position = jnp.argmax(lengths, axis=-1, keepdims=True)
        values = jnp.take_along_axis(x, position, axis=-1)[..., 0]
        counts = jnp.max(lengths, axis=-1)
    if keepdims:
        axes = tuple(range(rank)) if axis is None else axis
        values, counts = jnp.expand_dims(values, axes), jnp.expand_dims(counts, axes)
    return ModeResult(values, counts)


def rankdata(
    a: ArrayLike, method: str = "average", *, axis: int | None = None, nan_policy: str = "propagate"
) -> Value:
    """Returns the ranks of elements, from 1 on.

    Args:
        a: Array.
        method: What equal elements get: 'average', 'min' or 'max' of the ranks that they share,
            'ordinal' for different ranks in their order, 'dense' for 'min' without gaps.
        axis: Along which axis they are ranked; None for all elements, as a vector.
        nan_policy: Must be 'propagate': all ranks are nan where there is nan.

    Returns:
        Floats of the default dtype.

    Raises:
        ParameterError: for another method; NotImplementedError for the policies 'omit' and 'raise'.

    >>> import axir.numpy as jnp
    >>> rankdata(jnp.array([10, 30, 20, 30]))
    Array([1. , 3.5, 2. , 3.5], dtype=float32)
    """
    _check_policy("rankdata", nan_policy, ("propagate",))
    if method not in _METHODS:
        raise ParameterError(
            f"rankdata: method {method!r} is not one of {_METHODS}.", "Pass one of them."
        )
    x, position = _along_last("rankdata", jnp.atleast_1d(array_argument("rankdata", a)), axis)
    order = jnp.argsort(x, axis=-1, stable=True)
    places = jnp.argsort(order, axis=-1)
    if method == "ordinal":
        ranks = places + 1
    else:
        ranks = jnp.take_along_axis(_ranks_in_order(x, order, method), places, axis=-1)
    ranks = ranks.astype(dtypes.canonicalize_dtype(float))
    if dtypes.is_float(x.dtype):
        ranks = jnp.where(jnp.any(x != x, axis=-1, keepdims=True), math.nan, ranks)
    return ranks if position is None else jnp.moveaxis(ranks, -1, position)


def sem(
    a: ArrayLike,
    axis: int | None = 0,
    ddof: int = 1,
    nan_policy: str = "propagate",
    *,
    keepdims: bool = False,
) -> Value:
    """Returns the standard error of the mean: the standard deviation over the root of the size.

    Args:
        a: Array; integers become floats.
        axis: Along which axis; None for all elements.
        ddof: Subtracted from the size for the mean of squares.
        nan_policy: 'propagate', or 'omit' to leave nan out.
        keepdims: Whether the axis stays, with extent 1.

    Raises:
        ParameterError: for another policy.

    >>> import axir.numpy as jnp
    >>> sem(jnp.array([1.0, 3.0]))
    Array(1., dtype=float32)
    """
    _check_policy("sem", nan_policy, ("propagate", "omit"))
    (x,) = promote_inexact("sem", a)
    if nan_policy == "omit":
        count = jnp.sum(x == x, axis=axis, keepdims=keepdims)
        deviation = jnp.nanstd(x, axis=axis, ddof=ddof, keepdims=keepdims)
        return deviation / jnp.sqrt(count).astype(x.dtype)
    size = x.size if axis is None else x.shape[canonical_axis("sem", axis, x.ndim)]
    return jnp.std(x, axis=axis, ddof=ddof, keepdims=keepdims) / size**0.5


def _check_policy(name: str, policy: str, known: tuple[str, ...]) -> None:
    if policy not in _POLICIES:
        raise ParameterError(
            f"{name}: nan_policy {policy!r} is not one of {_POLICIES}.", "Pass one of them."
        )
    if policy not in known:
        raise NotImplementedError(
            f"{name}: what nan_policy={policy!r} asks for depends on the elements, which a traced "
            f"function does not know; {name} takes {' and '.join(map(repr, known))}."
        )


def _along_last(name: str, x: Value, axis: int | None) -> tuple[Value, int | None]:
    """Returns an array with an axis moved to the end, or flattened, and the axis from 0 on."""
    if axis is None:
        return jnp.ravel(x), None
    axis = canonical_axis(name, axis, x.ndim)
    return jnp.moveaxis(x, axis, -1), axis


def _runs(x: Value, is_nan_equal: bool) -> tuple[Value, Value]:
    """Returns where the runs of equal elements begin and end that elements in order belong to."""
    size, last = x.shape[-1], x.ndim - 1
    is_new = x[..., 1:] != x[..., :-1]
    if is_nan_equal and dtypes.is_inexact(x.dtype):
        is_new = is_new & ~((x[..., 1:] != x[..., 1:]) & (x[..., :-1] != x[..., :-1]))
    edge = jnp.ones((*x.shape[:-1], 1), bool)
    positions = jnp.arange(size)
    begins = jnp.concatenate([edge, is_new], axis=-1)
    ends = jnp.concatenate([is_new, edge], axis=-1)
    starts = cummax(jnp.where(begins, positions, 0), axis=last)
    return starts, cummin(jnp.where(ends, positions, size - 1), axis=last, reverse=True)


def _ranks_in_order(x: Value, order: Value, method: str) -> Value:
    x = jnp.take_along_axis(x, order, axis=-1)
    starts, ends = _runs(x, is_nan_equal=False)
    if method == "dense":
        return jnp.cumsum(starts == jnp.arange(x.shape[-1]), axis=-1)
    if method == "average":
        return 0.5 * (starts + ends).astype(dtypes.canonicalize_dtype(float)) + 1
    return (starts if method == "min" else ends) + 1
