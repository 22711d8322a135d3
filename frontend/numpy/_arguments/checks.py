"""Checks of arguments that many functions of `axir.numpy` share, and the parsing of axes.

Elsewhere: turning arguments into arrays of one dtype (`promotion.py`).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import lru_cache, wraps
from operator import index
from typing import TypeVar

import numpy as np

from axir.dialect.core.annotations import UserFunction, UserObject
from axir.dialect.core.errors import AxirError, AxisError, axis_error
from axir.dialect.ops.shape.broadcasting import broadcast_in_dim

Function = TypeVar("Function", bound=UserFunction)


class OutArgumentError(AxirError, NotImplementedError):
    """An `out` array was passed; arrays are immutable."""


def reject_out(name: str, out: object) -> None:
    """Raises `OutArgumentError` unless `out` is None."""
    if out is not None:
        raise OutArgumentError(
            f"jnp.{name}: the argument 'out' is not supported, since arrays are immutable.",
            "Use the returned array.",
        )


def accepts_older_keyword(
    old: str, new: str, translate: Callable[[UserObject], UserObject] = lambda value: value
) -> Callable[[Function], Function]:
    """Returns a decorator: the function also takes a keyword under the name it once had.

    Args:
        old: The older name; using it is a `DeprecationWarning`.
        new: The name of today.
        translate: Converts a value of the older keyword to a value of today's keyword.
    """

    def decorate(function: Function) -> Function:
        @wraps(function)
        def accepting(*args: object, **kwargs: object) -> object:
            if old in kwargs:
                message = f"{function.__name__}: the argument {old!r} is now {new!r}."
                warnings.warn(message, DeprecationWarning, stacklevel=2)
                kwargs[new] = translate(kwargs.pop(old))
            return function(*args, **kwargs)

        return accepting  # type: ignore[return-value]

    return decorate


@lru_cache(maxsize=256)
def all_axes(ndim: int) -> tuple[int, ...]:
    """Returns (0, ..., ndim - 1)."""
    return tuple(range(ndim))


def canonical_axis(name: str, axis: UserObject, ndim: int) -> int:
    """Returns an axis counted from the front.

    Raises:
        AxisError: if the array has no such axis.
        TypeError: if it is not an integer.
    """
    axis = index(axis)
    if not -ndim <= axis < ndim:
        raise axis_error(f"jnp.{name}", axis, ndim)
    return axis + ndim if axis < 0 else axis


def is_sequence(numbers: object) -> bool:
    """Tells several numbers, of whatever sequence or NumPy array, from a single one."""
    if type(numbers) is np.ndarray:
        return numbers.ndim > 0
    return isinstance(numbers, Sequence)


def canonical_axes(name: str, axis: UserObject, ndim: int) -> tuple[int, ...]:
    """Returns an `axis` argument (None, an integer or a sequence) as axes counted from the front.

    Raises:
        AxisError: if the array has no such axis, or one is named twice.
        TypeError: if one is not an integer.
    """
    if axis is None:
        return all_axes(ndim)
    if type(axis) is int and -ndim <= axis < ndim:
        return (axis % ndim,)
    if not is_sequence(axis):
        return (canonical_axis(name, axis, ndim),)
    axes = tuple([canonical_axis(name, entry, ndim) for entry in axis])
    if len(set(axes)) != len(axes):
        raise AxisError(f"jnp.{name}: axes {axis} name an axis twice.", "Name each axis once.")
    return axes


def spread(x: UserObject, shape: tuple[int, ...]) -> UserObject:
    """Broadcasts a value to a shape that NumPy's rules allow it."""
    if x.shape == shape:
        return x
    return broadcast_in_dim(x, shape, tuple(range(len(shape) - x.ndim, len(shape))))
