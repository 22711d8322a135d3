"""`jax._src.dtypes`: dtypes, their promotion, and the dtypes that are not NumPy's."""

from __future__ import annotations

import numpy as np

from axir.dialect.core.annotations import DTypeLike
from axir.dialect.core.extended_dtypes import KeyDtype
from axir.dtypes import (
    TypePromotionError,
    bfloat16,
    canonicalize_dtype,
    extended,
    finfo,
    float0,
    iinfo,
    issubdtype,
    prng_key,
    result_type,
    scalar_type_of,
)
from axir.numpy._arguments.promotion import inexact_dtype

__all__ = [
    "DType",
    "ExtendedDType",
    "TypePromotionError",
    "bfloat16",
    "canonicalize_dtype",
    "default_float_dtype",
    "default_int_dtype",
    "dtype",
    "extended",
    "finfo",
    "float0",
    "iinfo",
    "issubdtype",
    "itemsize_bits",
    "prng_key",
    "result_type",
    "scalar_type_of",
    "supports_inf",
    "to_complex_dtype",
    "to_inexact_dtype",
    "to_numeric_dtype",
]

DType = np.dtype
ExtendedDType = KeyDtype


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
