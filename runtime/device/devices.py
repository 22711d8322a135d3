"""Devices: they run programs, and hold the memory that programs read and write.

The CPU is one device, or as many as `jax_num_cpu_devices` says, with the same memory. A `CpuDevice`
owns two IREE drivers: `local-sync` runs a program on the calling thread (2 us a call), `local-task`
on a pool of threads (15 us a call, and all cores). A buffer made by one driver is passed to the
other's programs without a copy; `runtime/calls/executable.py` chooses the driver for each program.
Devices live as long as the process; handles of IREE are made when first needed, and anew in a
forked child. Elsewhere: GPUs (`gpu_devices.py`), compiling (`compiler/`), calls
(`runtime/calls/executable.py`).
"""

from __future__ import annotations

import ctypes
import functools
import math
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from iree import runtime as iree_runtime
from iree.runtime import _binding

from axir.dialect.core.annotations import Dtype, HostArray
from axir.dialect.core.array import ConcreteArray
from axir.dialect.core.config import config
from axir.dialect.core.dtypes import float0
from axir.dialect.core.errors import ParameterError
from axir.dialect.core.extended_dtypes import words_of
from axir.dialect.core.single_flight import made_once
from axir.dialect.program.narrow_elements import bytes_of
from axir.runtime.errors import DeviceNotFoundError, NotAddressableError
from axir.runtime.processes.group import current, without_launcher_variables

from .buffers import (
    Buffer,
    BufferType,
    HalBufferView,
    aligned_empty,
    borrowable_bytes,
    element_type,
)
from .gpu_features import GpuFeatures
from .process_state import abandon, call_in_forked_child, keep_freed_memory
from .workers import cpu_device_count, with_workers

# The HAL types must be registered before the first buffer view is made: without them its references
# are never released.
INSTANCE = iree_runtime.VmInstance()
# Arrays that are alive when the interpreter ends are no leak, but would be reported as one.
_binding.disable_leak_checker()

_HOST_MEMORY = int(iree_runtime.MemoryType.DEVICE_LOCAL) | int(iree_runtime.MemoryType.HOST_VISIBLE)
_BYTE = np.dtype(np.uint8)
_HOST_USAGE = int(iree_runtime.BufferUsage.DEFAULT) | int(iree_runtime.BufferUsage.MAPPING)
_flags_lock = threading.Lock()
# Below this size a copy (0.8 us) costs less than borrowing (2 us).
BORROWED_BYTES = 1 << 15


@dataclass(frozen=True)
class Client:
    """The software that runs programs on the devices of a platform.

    Attributes:
        platform: The platform.
        platform_version: The name and version of that software.
        runtime_type: The same, in a word.
    """

    platform: str
    platform_version: str = "IREE"
    runtime_type: str = "iree"


@dataclass(frozen=True)
class Memory:
    """A memory of a device that programs can address.

    Attributes:
        kind: Its name: `device`.
        device: The device that it belongs to.
    """

    kind: str
    device: Device


class Device:
    """A device: `id`, `platform`, `drivers`, `device_kind`. Obtained from `devices()`.

    Two devices are the same only when they are the same object.
    """

    drivers: ClassVar[tuple[str, ...]]
    platform: ClassVar[str]
    is_spread: ClassVar[bool] = False
    _class_name: ClassVar[str]
    # Whether its memory is separate from the host's, so that ops on its arrays run on it.
    is_remote: ClassVar[bool] = False
    # The properties of a GPU, as the target of compiled programs; None for a CPU.
    features: GpuFeatures | None = None

    def __init__(
        self,
        device_id: int,
        device_kind: str,
        process_index: int | None = None,
        local_hardware_id: int | None = None,
    ):
        self.id = device_id
        self.device_kind = device_kind
        self.process_index = current().index if process_index is None else process_index
        self.local_hardware_id = device_id if local_hardware_id is None else local_hardware_id
        self._handles: dict[tuple[str, int], iree_runtime.HalDevice] = {}
        self._main_handle: iree_runtime.HalDevice | None = None
        self._lock = threading.Lock()
        call_in_forked_child(self._forget_handles)

    @property
    def client(self) -> Client:
        """The software that runs programs on the device."""
        return Client(self.platform)

    def addressable_memories(self) -> list[Memory]:
        """Returns the memories that programs can address: one."""
        return [self.default_memory()]

    def default_memory(self) -> Memory:
        """Returns the memory that arrays lie in."""
        return Memory("device", self)

    @property
    def driver(self) -> str:
        """The driver that programs run on unless they ask for another of `drivers`."""
        return self.drivers[0]

    def handle(self, driver: str | None = None, threads: int = 1) -> iree_runtime.HalDevice:
        """Returns IREE's device of a driver, made when first asked for.

        Args:
            driver: One of `drivers`, by default the first.
            threads: The number of its threads, if the driver has threads.
        """
        if driver is None and self._main_handle is not None:
            return self._main_handle
        # The threads of a driver are fixed when it is made.
        workers = (threads, config.axir_cpu_ids) if driver == "local-task" else (1, None)
        key = (driver or self.driver, *workers)
        handle = self._handles.get(key)
        if handle is None:
            with self._lock:
                handle = self._handles.get(key)
                if handle is None:
                    self._check_addressable()
                    with without_launcher_variables():
                        handle = self._handles[key] = self._open(*key[:2])
        if driver is None:
            self._main_handle = handle
        return handle

    @property
    def is_addressable(self) -> bool:
        """Whether the device belongs to this process."""
        return self.process_index == current().index

    def _check_addressable(self) -> None:
        if not self.is_addressable:
            raise NotAddressableError(
                f"{self} belongs to process {self.process_index}, and this is process "
                f"{current().index}.",
                "Take one of axir.local_devices(), or a sharding over devices of all processes.",
            )

    def _open(self, driver: str, threads: int) -> iree_runtime.HalDevice:
        raise NotImplementedError  # overridden by each kind of device

    def _forget_handles(self) -> None:
        abandon(self._handles)
        self._handles = {}
        self._main_handle = None
        self._lock = threading.Lock()

    def close(self) -> None:
        """Gives IREE's devices back: they end when no program and no buffer is left on them.

        Devices that are asked for afterwards are new ones, which cannot read buffers of the old
        ones.
        """
        with self._lock:
            self._handles = {}
            self._main_handle = None

    def put(self, array: HostArray) -> Buffer:
        """Copies a host array to the device.

        Args:
            array: an array of any shape and layout, of a dtype that devices have.

        Raises:
            DTypeError: devices have no such dtype.
        """
        if not array.flags.c_contiguous:
            array = array.copy(order="C")
        view = self._copy_in(array, element_type(array.dtype))
        return Buffer(view.ref, BufferType(array.shape, array.dtype, self))

    def put_copy(self, array: HostArray) -> Buffer:
        """Copies a host array, of any layout, to new memory; see `put`."""
        return self.put(array)

    def settle(self, array: ConcreteArray) -> None:
        """Puts an uncommitted array into this device's memory from now on."""
        if array.dtype != float0:
            host = bytes_of(words_of(array.host())).view()
            host.flags.writeable = False
            array._buffer = self.put(host)

    def _copy_in(
        self, array: HostArray, element: iree_runtime.HalElementType
    ) -> iree_runtime.HalBufferView:
        """Returns a copy of a contiguous host array in the device's memory."""
        raise NotImplementedError  # overridden by each kind of device

    def to_numpy(
        self, view: iree_runtime.HalBufferView, shape: tuple[int, ...], dtype: Dtype
    ) -> HostArray:
        """Returns the elements of an IREE buffer view as a read-only array."""
        raise NotImplementedError  # overridden by each kind of device

    def __copy__(self) -> Device:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Device:
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return _device, (self.platform, self.id)

    def __repr__(self) -> str:
        return f"{self._class_name}(id={self.id})"

    def __str__(self) -> str:
        return f"{self.platform}:{self.id}"

    @property
    def host_id(self) -> int:
        """The older name of `process_index`."""
        return self.process_index

    def memory_stats(self) -> dict[str, int] | None:
        """Returns None: IREE's drivers of the CPU count no memory."""
        return None


class CpuDevice(Device):
    """The CPU, or one of several that it is divided into: two drivers, and the host's memory.

    Each has a separate handle of `local-sync`. The handle of `local-task` is the handle of the
    process's first CPU device: it has as many threads as there are cores, and all devices share
    them.
    """

    drivers = ("local-sync", "local-task")
    platform = "cpu"
    _class_name = "CpuDevice"

    def _open(self, driver: str, threads: int) -> iree_runtime.HalDevice:
        if self.local_hardware_id and driver == "local-task":
            return local_devices(backend=self.platform)[0].handle(driver, threads)
        _export_libm()
        keep_freed_memory()
        if driver == "local-task":
            # A driver looks at the flags of the process when it is made.
            with _flags_lock:
                return with_workers(
                    threads, lambda: _binding.create_hal_driver(driver).create_default_device()
                )
        # Not the wheel's cached drivers, because after a fork these belong to the parent.
        return _binding.create_hal_driver(driver).create_default_device()

    def put(self, array: HostArray) -> Buffer:
        """Makes a host array usable by the device.

        A large array that is read-only, contiguous and aligned to 64 bytes (`aligned_empty`) is
        used without a copy and kept alive; any other is copied.
        """
        element = element_type(array.dtype)
        if array.nbytes >= BORROWED_BYTES:
            memory = borrowable_bytes(array)
            if memory is not None:
                view = self._borrow(memory, array.shape, element)
                return Buffer(view.ref, BufferType(array.shape, array.dtype, self, True))
        return super().put(array)

    def put_copy(self, array: HostArray) -> Buffer:
        """Copies a host array, of any layout, to new memory: once."""
        if array.flags.c_contiguous:
            return super().put(array)
        memory = aligned_empty(array.shape, array.dtype)
        np.copyto(memory, array)
        view = self._borrow(memory.reshape(-1).view(_BYTE), array.shape, element_type(array.dtype))
        return Buffer(view.ref, BufferType(array.shape, array.dtype, self))

    def _borrow(
        self, memory: HostArray, shape: tuple[int, ...], element: iree_runtime.HalElementType
    ) -> iree_runtime.HalBufferView:
        """Returns a view of a host array's bytes, which keeps them alive."""
        # DLPack, since an imported host allocation does not keep its memory alive.
        flat = self.handle().from_dlpack_capsule(memory.__dlpack__())
        return HalBufferView(flat.get_buffer(), shape, element)

    def _copy_in(
        self, array: HostArray, element: iree_runtime.HalElementType
    ) -> iree_runtime.HalBufferView:
        handle = self.handle()
        return handle.allocator.allocate_buffer_copy(
            _HOST_MEMORY, _HOST_USAGE, handle, array, element
        )

    def to_numpy(
        self, view: iree_runtime.HalBufferView, shape: tuple[int, ...], dtype: Dtype
    ) -> HostArray:
        """Returns the elements of an IREE buffer view as a read-only array, without a copy."""
        size = math.prod(shape) * dtype.itemsize
        if not size:
            host = np.zeros(shape, dtype)
            host.flags.writeable = False
            return host
        # The array that IREE returns keeps the mapping alive, and NumPy's views of views drop the
        # reference to the array in between; a memoryview keeps it.
        memory = view.map().asarray((size,), _BYTE)
        host = np.frombuffer(memoryview(memory), dtype).reshape(shape)
        host.flags.writeable = False
        return host


_ALIASES = {"gpu": "cuda", "nvidia": "cuda"}
# By platform, the function that finds its devices: see `offer_platform`.
_platforms: dict[str, Callable[[], tuple[Device, ...]]] = {}
# By platform; a device is made once, because devices are compared by identity.
_devices: dict[str, tuple[Device, ...]] = {}
# By the option `jax_platforms`, the first device of this process.
_first_devices: dict[str | None, Device] = {}


def _cpu_devices() -> tuple[Device, ...]:
    """Returns as many devices as `jax_num_cpu_devices` says, which is settled thereby.

    Those of all processes that compute together: they are numbered process by process.
    """
    config.fix("jax_num_cpu_devices", cpu_device_count(), "the devices have been used.")
    processes = current()
    if processes.count == 1:
        return tuple(CpuDevice(number, "cpu") for number in range(cpu_device_count()))
    owners = [
        (process, number)
        for process, info in enumerate(processes.infos)
        for number in range(info["devices"])
    ]
    return tuple(CpuDevice(n, "cpu", *owner) for n, owner in enumerate(owners))


def are_made() -> bool:
    """Tells whether devices have been asked for; they do not change afterwards."""
    return bool(_devices)


def known_devices() -> list[Device]:
    """Returns the devices that have been asked for, of all platforms."""
    return [device for of_platform in _devices.values() for device in of_platform]


def forget() -> None:
    """Clears the list of devices, because processes begin to compute together, or stop."""
    _devices.clear()
    _first_devices.clear()


def offer_platform(platform: str, find: Callable[[], tuple[Device, ...]]) -> None:
    """Registers a platform for `devices`.

    Args:
        platform: Its name.
        find: Returns its devices, when first asked for; raises DeviceNotFoundError.
    """
    _platforms[platform] = find


offer_platform("cpu", _cpu_devices)


def devices(backend: str | None = None) -> list[Device]:
    """Returns the devices of a platform.

    Args:
        backend: "cpu", "vulkan", "cuda" ("gpu" is another name for it), or None for the first
            platform of the option `jax_platforms`, by default the CPU.

    Raises:
        DeviceNotFoundError: the platform is unknown, or its driver or its devices are missing.

    >>> devices("cpu")
    [CpuDevice(id=0)]
    """
    offered = [name.strip() for name in (config.jax_platforms or "").split(",") if name.strip()]
    asked = backend or (offered[0] if offered else "cpu")
    platform = _ALIASES.get(asked, asked)
    if platform not in _platforms:
        raise DeviceNotFoundError(
            f"There is no platform {asked!r}.", "Choose one of cpu, vulkan and cuda."
        )
    if offered and platform not in (_ALIASES.get(name, name) for name in offered):
        raise DeviceNotFoundError(
            f"The platform {asked!r} is not among those that jax_platforms offers: {offered}.",
            "Add it to jax_platforms (or AXIR_PLATFORMS), or set that to None.",
        )
    found = made_once(_devices, platform, _platforms[platform])
    return list(found)


def _device(platform: str, device_id: int) -> Device:
    """Returns a device by its pickled form: platform and id."""
    return devices(platform)[device_id]


def local_devices(
    process_index: int | None = None, backend: str | None = None, host_id: int | None = None
) -> list[Device]:
    """Returns the devices of a process.

    Args:
        process_index: Which process; this one by default.
        backend: The platform; see `devices`.
        host_id: The older name of `process_index`.

    Raises:
        ParameterError: the process does not exist.
    """
    asked = host_id if process_index is None else process_index
    processes = current()
    if asked is not None and not 0 <= asked < processes.count:
        raise ParameterError(
            f"local_devices: there is no process {asked!r}.",
            f"There are {processes.count}; axir.process_index() is {processes.index}.",
        )
    owner = processes.index if asked is None else asked
    return [device for device in devices(backend) if device.process_index == owner]


def device_count(backend: str | None = None) -> int:
    """Returns the number of devices of a platform."""
    return len(devices(backend))


def default_device() -> Device:
    """Returns the device of results that no operand commits to another one.

    It is the option `jax_default_device`, a device or a platform's name, else the first device.
    """
    chosen = config.jax_default_device
    if chosen is None:
        offered = config.jax_platforms
        first = _first_devices.get(offered)
        if first is None:
            first = _first_devices[offered] = local_devices()[0]
        return first
    return local_devices(backend=chosen)[0] if isinstance(chosen, str) else chosen


@functools.cache
def _export_libm() -> None:
    """Exports the C library's f64 functions to compiled programs."""
    try:
        ctypes.CDLL("libm.so.6", ctypes.RTLD_GLOBAL)
    except OSError:  # another C library: its functions are global already
        return
