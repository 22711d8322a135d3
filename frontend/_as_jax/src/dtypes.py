"""Names of `jax._src.dtypes`: dtypes, how they promote, and those that are not NumPy's."""

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

__all__ = [
    "DType",
    "ExtendedDType",
    "TypePromotionError",
    "bfloat16",
    "canonicalize_dtype",
    "default_float_dtype",
    "default_int_dtype",
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
]

DType = np.dtype
ExtendedDType = KeyDtype


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
    """Returns how many bits a number of a dtype has.

    >>> itemsize_bits("int4"), itemsize_bits("float32")
    (4, 32)
    """
    kind = np.dtype(canonicalize_dtype(dtype))
    for narrow, bits in (("int4", 4), ("int2", 2), ("float4", 4), ("int1", 1)):
        if narrow in kind.name:
            return bits
    return kind.itemsize * 8
