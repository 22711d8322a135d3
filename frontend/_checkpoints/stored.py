"""Conversion of elements to dtypes that tensor files support, and back.

Complex numbers are stored as pairs, random keys as their words, and less common dtypes as bytes.
Elsewhere: the files (`axir._bundles.tensors`).
"""

from __future__ import annotations

import numpy as np

from axir._bundles.tensors import STORED_DTYPES
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import AnyDtype, HostArray
from axir.dialect.core.extended_dtypes import key_dtype, keys_of, words_of

_KEY = "key<"
_BYTE = np.dtype(np.uint8)


def to_stored(host: HostArray) -> HostArray:
    """Returns an array in a dtype that files support, perhaps with one more axis.

    >>> to_stored(np.array([1 + 2j], np.complex64))
    array([[1., 2.]], dtype=float32)
    """
    host = words_of(host)
    inner = _element(host.dtype)
    if inner == host.dtype:
        return host
    flat = np.ascontiguousarray(host).reshape(-1).view(inner)
    return flat.reshape((*host.shape, host.dtype.itemsize // inner.itemsize))


def from_stored(stored: HostArray, dtype: AnyDtype) -> HostArray:
    """Returns the array that `to_stored` converted; a view if possible."""
    if dtypes.is_key(dtype):
        return keys_of(stored, dtype)
    if stored.dtype == dtype:
        return stored
    return np.ascontiguousarray(stored).view(dtype)[..., 0]


def stored_type(shape: tuple[int, ...], dtype: AnyDtype) -> tuple[tuple[int, ...], np.dtype]:
    """Returns the shape and dtype in which elements are stored."""
    if dtypes.is_key(dtype):
        return (*shape, dtype.words), np.dtype(np.uint32)
    inner = _element(dtype)
    return (shape if inner == dtype else (*shape, dtype.itemsize // inner.itemsize)), inner


def dtype_named(name: str) -> AnyDtype:
    """Returns the dtype for a name in a manifest.

    Raises:
        TypeError: if the dtype is unknown, or arrays cannot have it.
    """
    if name.startswith(_KEY):
        return key_dtype(name[len(_KEY) : -1])
    found = np.dtype(name)
    dtypes.kind(found)
    return found


def _element(dtype: np.dtype) -> np.dtype:
    if dtype in STORED_DTYPES:
        return dtype
    return dtypes.real_dtype(dtype) if dtypes.is_complex(dtype) else _BYTE
