"""Arrays from buffers and files, and as text: `load`, `save`, `frombuffer`, `array_repr` ..."""

from __future__ import annotations

import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import DTypeLike, Options, UserObject
from axir.dialect.core.array import Array

from .creation import asarray

__all__ = [
    "array_repr", "array_str", "from_dlpack", "frombuffer", "fromfile", "fromiter", "fromstring",
    "get_printoptions", "iterable", "load", "printoptions", "save", "savez", "set_printoptions",
]  # fmt: skip

array_repr = np.array_repr
array_str = np.array_str
get_printoptions = np.get_printoptions
iterable = np.iterable
printoptions = np.printoptions
save = np.save
savez = np.savez
set_printoptions = np.set_printoptions


def load(file: UserObject, *args: Options, **kwargs: Options) -> UserObject:
    """Loads a file of `save` or `savez`, by `numpy.load`.

    >>> import io, axir.numpy as jnp
    >>> file = io.BytesIO()
    >>> jnp.save(file, jnp.arange(2))
    >>> _ = file.seek(0)
    >>> jnp.load(file)
    Array([0, 1], dtype=int32)
    """
    loaded = np.load(file, *args, **kwargs)
    if not isinstance(loaded, np.ndarray):
        return loaded
    # NumPy's format has no name for bfloat16: its elements are written as two bytes each.
    return asarray(loaded.view(dtypes.bfloat16) if loaded.dtype == "V2" else loaded)


def from_dlpack(x: UserObject, /, *, device: object = None, copy: bool | None = None) -> Array:
    """Makes an array of one of another library, through the DLPack protocol.

    Args:
        x: Object with `__dlpack__`, in host memory.
        device: Where to put it.
        copy: Whether its memory must be copied; by default only where that cannot be avoided.

    >>> import numpy, axir.numpy as jnp
    >>> jnp.from_dlpack(numpy.arange(2, dtype="int32"))
    Array([0, 1], dtype=int32)
    """
    host = np.from_dlpack(x)
    return asarray(host.copy() if copy else host, device=device)


def frombuffer(
    buffer: UserObject, dtype: DTypeLike = float, count: int = -1, offset: int = 0
) -> Array:
    """Reads a vector from bytes.

    Args:
        buffer: bytes or another buffer.
        dtype: dtype of the elements.
        count: How many; -1 for all.
        offset: At which byte to begin.

    >>> import axir.numpy as jnp
    >>> jnp.frombuffer(b"ab", dtype="uint8")
    Array([97, 98], dtype=uint8)
    """
    return asarray(np.frombuffer(buffer, _dtype(dtype), count, offset))


def _dtype(dtype: DTypeLike) -> np.dtype:
    return dtypes.canonicalize_dtype(dtypes.float64 if dtype is float else dtype)


def fromfile(*args: Options, **kwargs: Options) -> Array:
    """Reads a vector from a file, by `numpy.fromfile`."""
    return asarray(np.fromfile(*args, **kwargs))


def fromiter(*args: Options, **kwargs: Options) -> Array:
    """Makes a vector of an iterable, by `numpy.fromiter`.

    >>> import axir.numpy as jnp
    >>> jnp.fromiter(range(2), "int32")
    Array([0, 1], dtype=int32)
    """
    return asarray(np.fromiter(*args, **kwargs))


def fromstring(string: str, dtype: DTypeLike = float, count: int = -1, *, sep: str) -> Array:
    """Reads a vector from text.

    >>> import axir.numpy as jnp
    >>> jnp.fromstring("1 2", "int32", sep=" ")
    Array([1, 2], dtype=int32)
    """
    return asarray(np.fromstring(string, _dtype(dtype), count, sep=sep))
