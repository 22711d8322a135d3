"""Questions about dtypes, under the names of `jax.dtypes`.

>>> from axir import dtypes, numpy as jnp
>>> dtypes.issubdtype("bfloat16", jnp.floating)
True
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

from axir._arguments.arguments import type_of
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import DTypeLike, UserObject
from axir.dialect.core.dtypes import as_dtype, float0, is_complex, is_float, promote
from axir.dialect.core.errors import DTypeError as TypePromotionError
from axir.dialect.core.errors import ParameterError
from axir.dialect.core.extended_dtypes import extended, prng_key
from axir.numpy._arrays.scalar_types import _pair, finfo, iinfo
from axir.numpy._arrays.scalar_types import issubdtype as _issubdtype
from axir.numpy._arrays.scalar_types import result_type as _result_type

__all__ = [
    "TypePromotionError", "bfloat16", "canonicalize_dtype", "extended", "finfo", "float0", "iinfo",
    "issubdtype", "itemsize_bits", "prng_key", "result_type", "scalar_type_of",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


bfloat16 = ml_dtypes.bfloat16


def canonicalize_dtype(dtype: DTypeLike, allow_extended_dtype: bool = False) -> np.dtype:
    """Returns a dtype as arrays have it: with 32 bits for 64, unless `jax_enable_x64` is on.

    Args:
        dtype: A dtype, its name, or a scalar type.
        allow_extended_dtype: Whether the dtype of random keys is taken as well.

    Raises:
        ParameterError: for the dtype of random keys, unless it is allowed.

    >>> canonicalize_dtype("float64")
    dtype('float32')
    """
    found = dtypes.canonicalize_dtype(dtype)
    if dtypes.is_key(found) and not allow_extended_dtype:
        raise ParameterError(
            f"canonicalize_dtype: {found} is no dtype of numbers.",
            "Pass allow_extended_dtype=True.",
        )
    return found


def issubdtype(a: object, b: object) -> bool:
    """Tells whether a dtype belongs to a category, or is a given dtype.

    Args:
        a: A dtype or category.
        b: A dtype, or a category such as `jnp.floating`, `extended` or `prng_key`.

    >>> issubdtype("int8", np.integer)
    True
    """
    return _issubdtype(a, b)


def itemsize_bits(dtype: DTypeLike) -> int:
    """Returns the number of bits of an element.

    >>> itemsize_bits("bfloat16")
    16
    """
    found = as_dtype(dtype)
    if dtypes.is_key(found):
        raise ParameterError(f"itemsize_bits: {found} is no dtype of numbers.")
    for info in (finfo, iinfo):
        try:
            return int(info(found).bits) * (2 if is_complex(found) else 1)
        except (TypeError, ValueError):
            continue
    return found.itemsize * 8


def result_type(*args: object, return_weak_type_flag: bool = False) -> UserObject:
    """Returns the dtype that arrays, scalars and dtypes promote to.

    Args:
        *args: As for `axir.numpy.result_type`.
        return_weak_type_flag: Whether to return a pair with whether the type is weak.

    Raises:
        TypePromotionError: if the dtypes do not promote, under strict promotion.

    >>> import axir.numpy as jnp
    >>> result_type(1.0, jnp.int32(1), return_weak_type_flag=True)
    (dtype('float32'), True)
    """
    found = _result_type(*args)
    if not return_weak_type_flag:
        return found
    return found, promote([_pair(arg) for arg in args])[1]


def scalar_type_of(x: object) -> type:
    """Returns the Python scalar type of the kind of a value's dtype.

    >>> import axir.numpy as jnp
    >>> scalar_type_of(jnp.float16(1)), scalar_type_of(3)
    (<class 'float'>, <class 'int'>)
    """
    dtype = type_of(x).dtype
    if dtypes.is_key(dtype):
        raise TypePromotionError(f"{dtype} is not a dtype of numbers.")
    if dtype == np.bool_:
        return bool
    if is_complex(dtype):
        return complex
    return float if is_float(dtype) else int
