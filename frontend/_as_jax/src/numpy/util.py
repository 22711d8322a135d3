"""Names of `jax._src.numpy.util`: arguments of functions as arrays of one dtype."""

from __future__ import annotations

from axir.dialect.core.annotations import UserObject
from axir.dialect.core.array import ArrayLike
from axir.dialect.program.rules import Value
from axir.numpy import asarray, broadcast_arrays, complex64, result_type
from axir.numpy._arguments.promotion import promote_arguments as promote_args
from axir.numpy._arguments.promotion import promote_inexact as promote_args_inexact
from axir.numpy._arguments.promotion import promote_numeric as promote_args_numeric

__all__ = [
    "check_arraylike", "ensure_arraylike", "promote_args", "promote_args_inexact",
    "promote_args_numeric", "promote_dtypes", "promote_dtypes_complex", "promote_dtypes_inexact",
    "promote_shapes",
]  # fmt: skip


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


def promote_dtypes_complex(*args: ArrayLike) -> list[Value]:
    """Returns arguments as arrays of the complex dtype that they promote to.

    >>> [str(x.dtype) for x in promote_dtypes_complex(1, 2)]
    ['complex64', 'complex64']
    """
    return [asarray(x, result_type(*args, complex64)) for x in args]


def promote_shapes(fun_name: str, *args: ArrayLike) -> list[Value]:
    """Returns arguments as arrays of the shape that they broadcast to.

    >>> [x.shape for x in promote_shapes("add", [1, 2], 3)]
    [(2,), (2,)]
    """
    return list(broadcast_arrays(*map(asarray, args)))


def check_arraylike(fun_name: str, *args: ArrayLike) -> None:
    """Raises an error that names a function, if one of its arguments is no array or scalar."""
    promote_args(fun_name, *args)


def ensure_arraylike(name: str, *args: ArrayLike) -> UserObject:
    """Returns arguments as arrays: one, or a tuple of several.

    Raises:
        NonArrayArgumentError: if an argument is not an array.
    """
    arrays = tuple(asarray(x) for x in args)
    return arrays[0] if len(arrays) == 1 else arrays
