"""`axir.dlpack`: arrays shared with other libraries by the DLPack protocol, without a copy.

>>> import numpy
>>> from axir import dlpack
>>> dlpack.from_dlpack(numpy.arange(3, dtype="int32"))
Array([0, 1, 2], dtype=int32)
"""

from __future__ import annotations

import numpy as np

from axir import numpy as jnp
from axir.dialect.core.annotations import (
    DTypeLike,
    Foreign,
)
from axir.dialect.core.array import Array, ArrayLike, as_array

__all__ = ["from_dlpack", "is_supported_dtype", "to_dlpack"]


def __dir__() -> list[str]:
    return __all__


class _Capsule:
    """A capsule of memory of this host as an object that the protocol knows."""

    def __init__(self, capsule: Foreign):
        self._capsule = capsule

    def __dlpack__(self, **_: object) -> Foreign:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0  # kDLCPU of dlpack.h


def from_dlpack(external_array: Foreign, device: object = None, copy: bool | None = None) -> Array:
    """Returns an array of another library's memory.

    Args:
        external_array: Object with `__dlpack__`, in host memory, or a capsule that `to_dlpack` or
            another library made.
        device: Where the array is to be; None is the default device.
        copy: Whether to copy; None copies if need be.

    >>> import axir.numpy as jnp
    >>> from_dlpack(to_dlpack(jnp.arange(2)))
    Array([0, 1], dtype=int32)
    """
    is_capsule = not hasattr(external_array, "__dlpack__")
    shared = _Capsule(external_array) if is_capsule else external_array
    return jnp.from_dlpack(shared, device=device, copy=copy)


def to_dlpack(x: ArrayLike) -> Foreign:
    """Returns a capsule with an array's memory, for libraries that accept only capsules.

    Other libraries call `x.__dlpack__()`. The name is JAX's of 2020.

    >>> import axir.numpy as jnp
    >>> type(to_dlpack(jnp.ones(2))).__name__
    'PyCapsule'
    """
    return as_array(x).__dlpack__()


def is_supported_dtype(dtype: DTypeLike) -> bool:
    """Tells whether arrays of a dtype can be shared: those that NumPy itself has.

    >>> is_supported_dtype("float32"), is_supported_dtype("bfloat16")
    (True, False)
    """
    kind = np.dtype(dtype)
    return kind.isbuiltin == 1 and kind.kind in "biufc"
