"""Parts of `jax._src.dtypes`, `jax._src.numpy.util` and `jax._src.literals`: dtypes and promotion.

Literals in tracing are of the class of all arrays here, so no object is an instance of the classes
of `jax._src.literals`. Libraries have rules for them.
"""

from __future__ import annotations

import numpy as np

from axir.dialect.core.annotations import DTypeLike, UserObject
from axir.dialect.core.array import ArrayLike
from axir.dialect.program.rules import Value
from axir.dtypes import canonicalize_dtype, result_type
from axir.numpy import asarray, broadcast_arrays, complex64
from axir.numpy import result_type as promoted
from axir.numpy._arguments.promotion import inexact_dtype, promote_arguments


def dtype(x: object, canonicalize: bool = False) -> np.dtype:
    """Returns the dtype of an array or of a scalar, or a dtype itself.

    >>> dtype(1.0), dtype(np.ones(1, np.int8))
    (dtype('float32'), dtype('int8'))
    """
    return result_type(x)


def to_numeric_dtype(dtype: DTypeLike) -> np.dtype:
    """Returns a dtype of numbers: for bools the default integer, else the dtype.

    >>> to_numeric_dtype(bool)
    dtype('int32')
    """
    kind = np.dtype(dtype)
    return default_int_dtype() if kind == np.bool_ else kind


def to_inexact_dtype(dtype: DTypeLike) -> np.dtype:
    """Returns the dtype of floats or complex numbers that integers are converted to.

    >>> to_inexact_dtype("int8"), to_inexact_dtype("float16")
    (dtype('float32'), dtype('float16'))
    """
    return inexact_dtype(np.dtype(dtype))


def to_complex_dtype(dtype: DTypeLike) -> np.dtype:
    """Returns the complex dtype with parts that hold the values of a dtype.

    >>> to_complex_dtype("int8")
    dtype('complex64')
    """
    wide = to_inexact_dtype(dtype) in (np.dtype(np.float64), np.dtype(np.complex128))
    return np.dtype(np.complex128 if wide else np.complex64)


def supports_inf(dtype: DTypeLike) -> bool:
    """Tells whether a dtype of floats has infinities.

    >>> supports_inf("float32"), supports_inf("float8_e4m3fn")
    (True, False)
    """
    return bool(np.isinf(np.asarray(np.inf, canonicalize_dtype(dtype)).astype(np.float32)))


def default_int_dtype() -> np.dtype:
    """Returns the dtype of Python's integers as arrays.

    >>> default_int_dtype()
    dtype('int32')
    """
    return canonicalize_dtype(np.int64)


def default_float_dtype() -> np.dtype:
    """Returns the dtype of Python's floats as arrays.

    >>> default_float_dtype()
    dtype('float32')
    """
    return canonicalize_dtype(np.float64)


def itemsize_bits(dtype: DTypeLike) -> int:
    """Returns the number of bits of a dtype.

    >>> itemsize_bits("int4"), itemsize_bits("float32")
    (4, 32)
    """
    kind = np.dtype(canonicalize_dtype(dtype))
    for narrow, bits in (("int4", 4), ("int2", 2), ("float4", 4), ("int1", 1)):
        if narrow in kind.name:
            return bits
    return kind.itemsize * 8


# Arguments of functions ---------------------------------------------------------------------------


def promote_dtypes(*args: ArrayLike) -> list[Value]:
    """Returns arguments as arrays of the dtype that they promote to.

    >>> [str(x.dtype) for x in promote_dtypes(1, 2.0)]
    ['float32', 'float32']
    """
    return [asarray(x, promoted(*args)) for x in args]


def promote_dtypes_inexact(*args: ArrayLike) -> list[Value]:
    """Returns arguments as arrays of the floating-point or complex dtype that they promote to.

    >>> [str(x.dtype) for x in promote_dtypes_inexact(1, 2)]
    ['float32', 'float32']
    """
    return [asarray(x, promoted(*args, 1.0)) for x in args]


def promote_dtypes_complex(*args: ArrayLike) -> list[Value]:
    """Returns arguments as arrays of the complex dtype that they promote to.

    >>> [str(x.dtype) for x in promote_dtypes_complex(1, 2)]
    ['complex64', 'complex64']
    """
    return [asarray(x, promoted(*args, complex64)) for x in args]


def promote_shapes(fun_name: str, *args: ArrayLike) -> list[Value]:
    """Returns arguments as arrays of the shape that they broadcast to.

    >>> [x.shape for x in promote_shapes("add", [1, 2], 3)]
    [(2,), (2,)]
    """
    return list(broadcast_arrays(*map(asarray, args)))


def check_arraylike(fun_name: str, *args: ArrayLike) -> None:
    """Raises an error that names a function, if one of its arguments is no array or scalar."""
    promote_arguments(fun_name, *args)


def ensure_arraylike(name: str, *args: ArrayLike) -> UserObject:
    """Returns arguments as arrays: one, or a tuple of several.

    Raises:
        NonArrayArgumentError: if an argument is not an array.
    """
    arrays = tuple(asarray(x) for x in args)
    return arrays[0] if len(arrays) == 1 else arrays


# Classes of literals ------------------------------------------------------------------------------


class TypedNdArray:
    """An array of NumPy's that knows whether its dtype is weak; no array is one."""


class TypedInt(int):
    """An integer that knows its dtype; none is one."""


class TypedFloat(float):
    """A float that knows its dtype; none is one."""


class TypedComplex(complex):
    """A complex number that knows its dtype; none is one."""
