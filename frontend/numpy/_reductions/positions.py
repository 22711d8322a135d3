"""Positions of extreme elements along an axis: `argmax`, `argmin`, `nanargmax`, `nanargmin`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Axes
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import ParameterError
from axir.dialect.ops.elementwise.comparison import eq, not_, select_n
from axir.dialect.ops.reductions import arg_reduce
from axir.dialect.ops.reductions.folding import greatest, least
from axir.dialect.ops.shape.rearranging import reshape
from axir.dialect.program.rules import Value
from axir.numpy._arguments.checks import all_axes, canonical_axis, reject_out
from axir.numpy._arguments.promotion import array_argument, constant

from . import reductions
from .nan_reductions import without_nans

__all__ = ["argmax", "argmin", "nanargmax", "nanargmin"]


def argmax(
    a: ArrayLike, axis: Axes = None, out: None = None, keepdims: bool | None = None
) -> Value:
    """Returns the position of the largest element along an axis; the first of equal ones.

    Args:
        a: Array of real numbers or bools. NaN counts as the largest.
        axis: The axis; by default the position is that in the flattened array.
        out: Not supported.
        keepdims: Whether the axis stays, with extent 1.

    Returns:
        Positions of the default integer dtype.

    Raises:
        ParameterError: if the axis is empty.
        AxisError: if it is out of range.
        DTypeError: for complex numbers.

    >>> import axir.numpy as jnp
    >>> jnp.argmax(jnp.array([[1, 4], [3, 2]]), axis=1)
    Array([1, 0], dtype=int32)
    """
    return _position("argmax", arg_reduce.argmax, a, axis, out, keepdims)


def argmin(
    a: ArrayLike, axis: Axes = None, out: None = None, keepdims: bool | None = None
) -> Value:
    """Returns the position of the smallest element along an axis; see `argmax`.

    >>> import axir.numpy as jnp
    >>> jnp.argmin(jnp.array([[1, 4], [3, 2]]), axis=1)
    Array([0, 1], dtype=int32)
    """
    return _position("argmin", arg_reduce.argmin, a, axis, out, keepdims)


def _position(
    name: str,
    find: Callable[..., Value],
    a: ArrayLike,
    axis: Axes,
    out: object,
    keepdims: bool | None,
) -> Value:
    """Finds positions along an axis, or in the flattened array."""
    reject_out(name, out)
    a = array_argument(name, a)
    shape = a.shape
    if axis is None:
        flat, along = (a if a.ndim == 1 else reshape(a, (a.size,))), 0
    else:
        flat, along = a, canonical_axis(name, axis, a.ndim)
    if flat.shape[along] == 0:
        raise ParameterError(
            f"jnp.{name}: attempt to get {name} of an empty sequence; the shape is {shape}.",
            "There must be at least one element.",
        )
    result = find(flat, along, dtypes.canonicalize_dtype(np.int64))
    if not keepdims:
        return result
    return reductions.keep_axes(result, shape, all_axes(len(shape)) if axis is None else (along,))


def nanargmax(
    a: ArrayLike, axis: Axes = None, out: None = None, keepdims: bool | None = None
) -> Value:
    """Returns the position of the largest element that is not NaN; see `argmax`.

    The result is -1 where there are only NaNs.

    >>> import axir.numpy as jnp
    >>> jnp.nanargmax(jnp.array([1.0, jnp.nan, 2.0]))
    Array(2, dtype=int32)
    """
    return _position_of_number("nanargmax", arg_reduce.argmax, least, a, axis, out, keepdims)


def nanargmin(
    a: ArrayLike, axis: Axes = None, out: None = None, keepdims: bool | None = None
) -> Value:
    """Returns the position of the smallest element that is not NaN; see `nanargmax`.

    >>> import axir.numpy as jnp
    >>> jnp.nanargmin(jnp.array([1.0, jnp.nan, 2.0]))
    Array(0, dtype=int32)
    """
    return _position_of_number("nanargmin", arg_reduce.argmin, greatest, a, axis, out, keepdims)


def _position_of_number(
    name: str,
    find: Callable[..., Value],
    identity: Callable[[np.dtype], object],
    a: ArrayLike,
    axis: Axes,
    out: object,
    keepdims: bool | None,
) -> Value:
    reject_out(name, out)
    a = array_argument(name, a)
    if not dtypes.is_inexact(a.dtype):
        return _position(name, find, a, axis, out, keepdims)
    numbers = without_nans(a, identity(a.dtype))
    result = _position(name, find, numbers, axis, None, keepdims)
    has_number = reductions.any(eq(a, a), axis, keepdims=bool(keepdims))
    return select_n(not_(has_number), result, constant(-1, result.dtype))
