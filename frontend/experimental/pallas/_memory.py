"""Kinds of memory, all the same on a CPU, and requests for memory.

A kernel says where its arrays should lie; here they lie in the memory that there is. Elsewhere: the
refs that a kernel sees (`axir.ref`).
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import AnyDtype, DTypeLike, ShapeLike, UserObject
from axir.dialect.core.errors import ParameterError
from axir.dialect.core.types import ShapedArray
from axir.dialect.program.rules import Value
from axir.numpy import full, iinfo

SEMAPHORE_DTYPE = np.dtype(np.int16)


@dataclass(frozen=True)
class MemoryRef:
    """A request for a ref of some type: `pltpu.VMEM((8, 128), "float32")` makes one.

    Attributes:
        inner_aval: The type of the array.
        memory_space: Where it should lie.
    """

    inner_aval: ShapedArray
    memory_space: UserObject

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the axes."""
        return self.inner_aval.shape

    @property
    def dtype(self) -> AnyDtype:
        """dtype of the elements."""
        return self.inner_aval.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)


class Space(enum.Enum):
    """Base of the enumerations of memories; a member asks for a ref: `SMEM((1,), "int32")`."""

    def __call__(self, shape: ShapeLike, dtype: DTypeLike) -> MemoryRef:
        extents = (shape,) if isinstance(shape, int) else tuple(shape)
        return MemoryRef(ShapedArray(extents, dtypes.as_dtype(dtype)), self)

    def from_type(self, type: ShapedArray) -> MemoryRef:
        """Returns the request for a ref of an array's type."""
        return MemoryRef(type, self)

    def __str__(self) -> str:
        return str(self.value)


class MemorySpace(Space):
    """Memories that every device has."""

    ANY = "any"
    DEFAULT = "default"
    ERROR = "error"
    INDEX = "index"
    KEY = "key"
    HOST = "host"


def uninitialized(shape: tuple[int, ...], dtype: AnyDtype) -> Value:
    """Returns an array for unwritten memory: nan, or the least integer.

    Values that are easy to see show the mistake of using them.
    """
    kind = dtypes.kind(dtype)
    if dtype == SEMAPHORE_DTYPE or kind in "bu":
        return full(shape, 0, dtype)
    if kind == "i":
        return full(shape, iinfo(dtype).min, dtype)
    return full(shape, np.nan, dtype)


def wanted_type(x: object, what: str) -> ShapedArray:
    """Returns the type of the array that something asks for.

    Raises:
        ParameterError: if it has no shape and dtype.
    """
    x = getattr(x, "memory_type", x)
    if not (hasattr(x, "shape") and hasattr(x, "dtype")):
        raise ParameterError(
            f"{what} holds {x!r} of type {type(x).__name__!r}, which has no shape and dtype.",
            "Use a memory space, such as pltpu.VMEM(shape, dtype), or "
            "axir.ShapeDtypeStruct(shape, dtype).",
        )
    return ShapedArray(tuple(x.shape), dtypes.as_dtype(x.dtype))


def available(type: ShapedArray) -> ShapedArray:
    """Returns the type that an array of a type has now: 64-bit numbers may have 32 bits."""
    return ShapedArray(type.shape, dtypes.canonicalize_dtype(type.dtype))
