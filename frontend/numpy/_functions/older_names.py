"""Names of NumPy's functions that older programs use; each has a newer one.

They are deprecated: NumPy 2 has dropped them. No warning is given, so that older documents run
unchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from axir.dialect.core.annotations import UserObject
from axir.dialect.core.array import ArrayLike
from axir.dialect.program.rules import Value
from axir.numpy._arrays.scalar_types import issubdtype
from axir.numpy._reductions.cumulative import cumprod
from axir.numpy._reductions.differences import trapezoid
from axir.numpy._reductions.reductions import all as every
from axir.numpy._reductions.reductions import any as some
from axir.numpy._reductions.reductions import prod
from axir.numpy._shape.joining import vstack
from axir.numpy._sorting.set_operations import isin
from axir.numpy._sorting.sorting import sort

__all__ = [
    "alltrue", "cumproduct", "in1d", "issubsctype", "msort", "product", "row_stack", "sometrue",
    "trapz",
]  # fmt: skip


def _older(name: str, function: Callable[..., object]) -> Callable[..., object]:
    """Returns a function under an older name."""

    @wraps(function)
    def apply(*args: object, **kwargs: object) -> UserObject:
        return function(*args, **kwargs)

    apply.__name__ = apply.__qualname__ = name
    apply.__doc__ = f"The older name of `axir.numpy.{function.__name__}`; deprecated."
    return apply


alltrue = _older("alltrue", every)
cumproduct = _older("cumproduct", cumprod)
product = _older("product", prod)
row_stack = _older("row_stack", vstack)
sometrue = _older("sometrue", some)
trapz = _older("trapz", trapezoid)


def in1d(
    ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False, invert: bool = False
) -> Value:
    """Tells of each element whether it is among others, as a vector; deprecated.

    `isin` is the newer function, which keeps the shape.

    >>> import axir.numpy as jnp
    >>> jnp.in1d(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 4]))
    Array([ True, False, False,  True], dtype=bool)
    """
    return isin(ar1, ar2, assume_unique=assume_unique, invert=invert).reshape(-1)


def msort(a: ArrayLike) -> Value:
    """Sorts along the first axis; deprecated, as `sort(a, axis=0)` says the same.

    >>> import axir.numpy as jnp
    >>> jnp.msort(jnp.array([[3, 1], [2, 4]]))
    Array([[2, 1],
           [3, 4]], dtype=int32)
    """
    return sort(a, axis=0)


def issubsctype(arg1: object, arg2: object) -> bool:
    """Tells whether a dtype, or an array's dtype, belongs to a category; deprecated.

    `issubdtype` is the newer function, which takes dtypes only.

    >>> import axir.numpy as jnp
    >>> jnp.issubsctype(jnp.ones(2), jnp.floating)
    True
    """
    first, second = (
        arg if isinstance(arg, type) else getattr(arg, "dtype", arg) for arg in (arg1, arg2)
    )
    return issubdtype(first, second)
