"""Device memory: `Buffer`, and host memory that devices can use without a copy.

A buffer is a reference to an IREE buffer view plus the type it shares with all buffers of that
shape, dtype and device, so that making one costs a fraction of a microsecond. IREE counts the
references: memory lives as long as a buffer, a running program or a NumPy view needs it. A result
of a program may share its memory with an argument (a program that returns its argument copies
nothing), so memory may only be overwritten if it has no other references. IREE's archives of
parameters, `.irpa`, are read here, too. Elsewhere: devices
(`devices.py`), calls (`runtime/calls/executable.py`).
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Protocol

import iree.runtime
import ml_dtypes
import numpy as np
from iree import runtime as iree_runtime

from axir.dialect.core.annotations import Dtype, DTypeLike, HostArray
from axir.dialect.core.errors import DeletedArrayError, DTypeError, WeightsError
from axir.dialect.core.timeline import span, timeline
from axir.dialect.text.resources import UNTYPED

HalBufferView = iree_runtime.HalBufferView
_Element = iree_runtime.HalElementType

# Kernels load with aligned vector instructions: a misaligned buffer is a crash, not a slow load.
ALIGNMENT = 64

# In IREE's declaration of a program, types are signless, so i32 is INT_32 rather than SINT_32.
ELEMENT_TYPES: dict[Dtype, iree_runtime.HalElementType] = {
    np.dtype(np.bool_): _Element.BOOL_8,
    np.dtype(np.int8): _Element.INT_8,
    np.dtype(np.int16): _Element.INT_16,
    np.dtype(np.int32): _Element.INT_32,
    np.dtype(np.int64): _Element.INT_64,
    np.dtype(np.uint8): _Element.UINT_8,
    np.dtype(np.uint16): _Element.UINT_16,
    np.dtype(np.uint32): _Element.UINT_32,
    np.dtype(np.uint64): _Element.UINT_64,
    np.dtype(np.float16): _Element.FLOAT_16,
    np.dtype(ml_dtypes.bfloat16): _Element.BFLOAT_16,
    np.dtype(np.float32): _Element.FLOAT_32,
    np.dtype(np.float64): _Element.FLOAT_64,
    np.dtype(np.complex64): _Element.COMPLEX_64,
    np.dtype(np.complex128): _Element.COMPLEX_128,
}
_DTYPES = {int(element): dtype for dtype, element in ELEMENT_TYPES.items()} | {
    int(_Element.SINT_8): np.dtype(np.int8),
    int(_Element.SINT_16): np.dtype(np.int16),
    int(_Element.SINT_32): np.dtype(np.int32),
    int(_Element.SINT_64): np.dtype(np.int64),
}


def element_type(dtype: Dtype) -> iree_runtime.HalElementType:
    """Returns IREE's element type of a dtype; raises DTypeError if IREE lacks it."""
    try:
        return ELEMENT_TYPES[dtype]
    except KeyError:
        raise DTypeError(
            f"Devices have no elements of dtype {dtype}.",
            f"Use one of {', '.join(map(str, ELEMENT_TYPES))}.",
        ) from None


class BufferDevice(Protocol):
    """The interface of `Device` that buffers use."""

    @property
    def platform(self) -> str:
        """The platform."""
        ...

    def put(self, array: HostArray) -> Buffer:
        """Returns a buffer with the elements of an array."""
        ...

    def to_numpy(
        self, view: iree_runtime.HalBufferView, shape: tuple[int, ...], dtype: Dtype
    ) -> HostArray:
        """Returns the elements of a view."""
        ...


class BufferType:
    """The common properties of buffers of a kind: shape, dtype and device.

    `is_borrowed` tells that the memory also belongs to a host array, which others may still read.
    """

    __slots__ = ("_borrowed", "device", "dtype", "is_borrowed", "shape")

    def __init__(
        self, shape: tuple[int, ...], dtype: Dtype, device: BufferDevice, is_borrowed: bool = False
    ):
        self.shape = shape
        self.dtype = dtype
        self.device = device
        self.is_borrowed = is_borrowed
        self._borrowed: BufferType | None = None

    def borrowed(self) -> BufferType:
        """Returns the type of buffers that share their memory with host arrays."""
        if self.is_borrowed:
            return self
        if self._borrowed is None:
            self._borrowed = BufferType(self.shape, self.dtype, self.device, True)
        return self._borrowed

    @staticmethod
    def of_view(view: iree_runtime.HalBufferView, device: BufferDevice) -> BufferType:
        """Returns the type of an IREE buffer view."""
        return BufferType(tuple(view.shape), _DTYPES[int(view.element_type)], device)


class Buffer:
    """An array in a device's memory.

    `ref` is IREE's reference to the buffer view, None once the buffer has been deleted.

    >>> from axir.runtime.device.devices import default_device
    >>> buffer = default_device().put(np.arange(3, dtype=np.float32))
    >>> buffer.to_numpy()
    array([0., 1., 2.], dtype=float32)
    >>> buffer.shape, buffer.dtype, buffer.device
    ((3,), dtype('float32'), CpuDevice(id=0))
    """

    __slots__ = ("__weakref__", "ref", "type")

    def __init__(self, ref: iree_runtime.VmRef | None, buffer_type: BufferType):
        self.ref = ref
        self.type = buffer_type

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the axes."""
        return self.type.shape

    @property
    def dtype(self) -> Dtype:
        """dtype of the elements."""
        return self.type.dtype

    @property
    def device(self) -> BufferDevice:
        """The device that holds this memory."""
        return self.type.device

    @property
    def nbytes(self) -> int:
        """Size of the elements in bytes."""
        return math.prod(self.type.shape) * self.type.dtype.itemsize

    @property
    def view(self) -> iree_runtime.HalBufferView:
        """IREE's buffer view; raises DeletedArrayError after `delete`."""
        if self.ref is None:
            raise self.deleted_error()
        return self.ref.deref(HalBufferView)

    def to_numpy(self) -> HostArray:
        """Returns the elements as a read-only array, on a CPU without a copy.

        The array keeps the memory alive, also after `delete`.
        """
        kind = self.type
        if timeline.is_on:
            with span("to the host", "transfer", bytes=self.nbytes, device=str(kind.device)):
                array = kind.device.to_numpy(self.view, kind.shape, kind.dtype)
        else:
            array = kind.device.to_numpy(self.view, kind.shape, kind.dtype)
        if kind.device.platform == "cpu":
            self.type = kind.borrowed()
        return array

    def delete(self) -> None:
        """Drops this reference to the memory; later uses raise DeletedArrayError."""
        self.ref = None

    @property
    def is_deleted(self) -> bool:
        """Whether `delete` has been called."""
        return self.ref is None

    @property
    def is_ready(self) -> bool:
        """Whether the contents have been computed."""
        return True

    def block_until_ready(self) -> Buffer:
        """Returns at once, because the contents are computed.

        Raises DeletedArrayError after `delete`.
        """
        if self.ref is None:
            raise self.deleted_error()
        return self

    def deleted_error(self) -> DeletedArrayError:
        """Returns the error for a use after `delete`."""
        return DeletedArrayError(
            f"This buffer of shape {self.shape} and dtype {self.dtype} has been deleted.",
            "Donated arguments cannot be used again: use the function's result, or drop "
            "donate_argnums.",
        )

    def owned(self) -> Buffer:
        """Returns a buffer that a program may overwrite: this one, or a copy of borrowed memory."""
        if not self.type.is_borrowed:
            return self
        return self.type.device.put(self.to_numpy().copy())

    def moved(self) -> Buffer:
        """Returns a buffer of the same memory, and deletes this one."""
        made = Buffer(self.view.ref, self.type)
        self.delete()
        return made

    def shared_with(self, device: BufferDevice) -> Buffer:
        """Returns another buffer of the same elements, on `device`.

        On one device, and where both are on the CPU, they share the memory, which no program
        overwrites from now on.
        """
        if device is self.type.device or device.platform == self.type.device.platform == "cpu":
            ref = self.view.ref
            self.type = self.type.borrowed()
            return Buffer(ref, BufferType(self.shape, self.dtype, device, True))
        return device.put(self.to_numpy())

    def __repr__(self) -> str:
        state = ", deleted" if self.is_deleted else ""
        return f"Buffer({self.dtype}{list(self.shape)}, {self.device}{state})"


def aligned_empty(shape: tuple[int, ...], dtype: DTypeLike) -> HostArray:
    """Returns an uninitialized host array that devices can use without a copy.

    >>> aligned_empty((2, 3), "float32").__array_interface__["data"][0] % ALIGNMENT
    0
    """
    dtype = np.dtype(dtype)
    raw = np.empty(math.prod(shape) * dtype.itemsize + ALIGNMENT, np.uint8)
    offset = -raw.__array_interface__["data"][0] % ALIGNMENT
    return np.ndarray(shape, dtype, raw, offset)


def borrowable_bytes(array: HostArray) -> HostArray | None:
    """Returns the memory of a read-only, contiguous, aligned array as writable bytes.

    A caller that marks an array read-only promises that its memory is not written to any more. IREE
    wants writable memory, but writes to it only if the program was compiled to overwrite that
    argument. None when the array cannot be used without a copy.
    """
    if array.flags.writeable or not array.flags.c_contiguous:
        return None
    pointer = array.__array_interface__["data"][0]
    if pointer % ALIGNMENT:
        return None
    return np.asarray(_WritableBytes(pointer, array))


class _WritableBytes:
    """Presents the memory of a read-only array as writable bytes, and keeps it alive."""

    __slots__ = ("__array_interface__", "owner")

    def __init__(self, pointer: int, owner: HostArray):
        self.owner = owner
        self.__array_interface__ = {
            "version": 3,
            "shape": (owner.nbytes,),
            "typestr": "|u1",
            "data": (pointer, False),
        }


def read_parameter_archive(path: Path) -> dict[str, HostArray]:
    """Returns the content of an archive by name, as bytes: it knows no other types.

    Raises:
        WeightsError: if the file is not such an archive.
    """
    index = iree.runtime.ParameterIndex()
    try:
        index.load(str(path), format="irpa")
        entries = dict(index.items())
    except (ValueError, RuntimeError, IndexError, OSError) as error:
        reason = (str(error).splitlines() or ["it is damaged"])[0]
        raise WeightsError(
            f"{path} is not an archive of parameters: {reason}.",
            "Write it with iree-create-parameters or iree-convert-parameters.",
            where="",
        ) from None
    return {
        name: np.frombuffer(entry.file_view, UNTYPED)
        if entry.is_file
        else np.frombuffer(_repeated(entry.splat_pattern, entry.length), UNTYPED)
        for name, entry in entries.items()
    }


def _repeated(pattern: bytes, length: int) -> bytes:
    return pattern * (length // max(1, len(pattern)))
