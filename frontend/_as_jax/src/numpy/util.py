"""Names of `jax._src.numpy.util`: arguments of functions as arrays of one dtype."""

from __future__ import annotations

from axir.dialect.core.annotations import ArrayLike, UserObject
from axir.dialect.program.rules import Value
from axir.numpy import asarray, result_type

__all__ = ["ensure_arraylike", "promote_dtypes", "promote_dtypes_inexact"]


def promote_dtypes(*args: ArrayLike) -> list[Value]:
    """Returns arguments as arrays of the dtype that they promote to.

    >>> [str(x.dtype) for x in promote_dtypes(1, 2.0)]
    ['float32', 'float32']
    """
    return [asarray(x, result_type(*args)) for x in args]


def promote_dtypes_inexact(*args: ArrayLike) -> list[Value]:
    """Returns arguments as arrays of the floating-point or complex dtype that they promote to.

    >>> [str(x.dtype) for x in promote_dtypes_inexact(1, 2)]
    ['float32', 'float32']
    """
    return [asarray(x, result_type(*args, 1.0)) for x in args]


def ensure_arraylike(name: str, *args: ArrayLike) -> UserObject:
    """Returns arguments as arrays: one, or a tuple of several.

    Raises:
        NonArrayArgumentError: for what is no array.
    """
    arrays = tuple(asarray(x) for x in args)
    return arrays[0] if len(arrays) == 1 else arrays
