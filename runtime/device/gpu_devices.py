"""GPUs: devices behind IREE's Vulkan and CUDA drivers, and the transfer of bytes to and from them.

The host cannot address a GPU's memory, so transfers go through memory that both can address. Small
transfers use a piece that is kept; large ones use the array's own memory, because the driver can
import its pages (`import_host_allocation`). Elsewhere: the properties of GPUs (`gpu_features.py`),
the list of platforms (`devices.py`).
"""

from __future__ import annotations

import functools
import json
import math
import mmap
import threading
from dataclasses import dataclass

import numpy as np
from iree import runtime as iree_runtime

from axir.dialect.core.annotations import Dtype, HostArray
from axir.dialect.core.array import Memories
from axir.dialect.core.config import config
from axir.dialect.core.places import check_transfer
from axir.runtime.errors import DeviceNotFoundError, DeviceUnfitError
from axir.runtime.processes.group import current

from .buffers import HalBufferView
from .devices import Device, offer_platform
from .failures import device_failure, short_status
from .gpu_drivers import CudaDriverError, VulkanLoaderError, cuda_features, vulkan_features
from .gpu_features import CudaFeatures, GpuFeatures, VulkanFeatures

_DEVICE_MEMORY = int(iree_runtime.MemoryType.DEVICE_LOCAL)
_DEVICE_USAGE = int(iree_runtime.BufferUsage.DEFAULT)
_STAGING_MEMORY = (
    int(iree_runtime.MemoryType.HOST_LOCAL)
    | int(iree_runtime.MemoryType.DEVICE_VISIBLE)
    | int(iree_runtime.MemoryType.HOST_CACHED)
)
_TRANSFER = int(iree_runtime.BufferUsage.TRANSFER)
_STAGING_USAGE = _TRANSFER | int(iree_runtime.BufferUsage.MAPPING)
_BYTE = np.dtype(np.uint8)
# Reads of up to this size go through kept memory. From the second size on, the array's pages are
# imported into the driver: that takes as long for 1 MB, and half as long for 64 MB (lavapipe).
_KEPT_BYTES = 1 << 16
_IMPORTED_BYTES = 1 << 20
_PAGE = mmap.PAGESIZE


@dataclass(frozen=True)
class _Found:
    """A GPU that a driver has listed, in this process or in another one.

    Attributes:
        number: Its number on the machine.
        name: The GPU's name.
        path: The driver's name of it; empty if it belongs to another process.
        features: Its properties; None if it belongs to another process.
    """

    number: int
    name: str
    path: str = ""
    features: GpuFeatures | None = None


class GpuDevice(Device):
    """A GPU behind IREE's Vulkan or CUDA driver."""

    is_remote = True

    def __init__(self, device_id: int, process_index: int, found: _Found):
        super().__init__(device_id, found.name, process_index, found.number)
        Memories.has_remote = True
        self._path = found.path
        self.features = found.features
        self._kept: iree_runtime.HalBuffer | None = None
        self._kept_lock = threading.Lock()
        self._imports = True

    def _open(self, driver: str, threads: int) -> iree_runtime.HalDevice:
        uri = f"{driver}://{self._path}" if self._path else driver
        try:
            return iree_runtime.get_driver(driver).create_device_by_uri(uri)
        except (RuntimeError, ValueError) as error:
            raise device_failure(error, self, "Opening the device") from error

    def _forget_handles(self) -> None:
        super()._forget_handles()
        self._kept = None
        self._kept_lock = threading.Lock()

    def close(self) -> None:
        """Gives IREE's device back; see `Device.close`."""
        super().close()
        with self._kept_lock:
            self._kept = None

    def memory_stats(self) -> dict[str, int]:
        """Returns the bytes of the device's memory that this process uses.

        `bytes_in_use` is the present number, `peak_bytes_in_use` the highest so far.
        """
        counted = self.handle().allocator.statistics
        allocated, freed = counted["device_bytes_allocated"], counted["device_bytes_freed"]
        return {
            "bytes_in_use": allocated - freed,
            "peak_bytes_in_use": counted["device_bytes_peak"],
        }

    def _copy_in(
        self, array: HostArray, element: iree_runtime.HalElementType
    ) -> iree_runtime.HalBufferView:
        try:
            if self._imports and array.nbytes >= _IMPORTED_BYTES:
                return self._copy_in_pages(array, element)
            handle = self.handle()
            return handle.allocator.allocate_buffer_copy(
                _DEVICE_MEMORY, _DEVICE_USAGE, handle, array, element
            )
        except (RuntimeError, ValueError) as error:
            raise device_failure(error, self, f"Copying {array.nbytes:,} bytes there") from error

    def _copy_in_pages(
        self, array: HostArray, element: iree_runtime.HalElementType
    ) -> iree_runtime.HalBufferView:
        """Copies from the pages that hold the array: its own pages, if it fills them."""
        size = _whole_pages(array.nbytes)
        memory = array.reshape(-1).view(_BYTE)
        if size != array.nbytes or _address(memory) % _PAGE or not memory.flags.writeable:
            memory = page_aligned_bytes(size)
            memory[: array.nbytes] = array.reshape(-1).view(_BYTE)
        target = self._allocate(_DEVICE_MEMORY, _DEVICE_USAGE, size)
        self._copy(self._import(memory), target)
        return HalBufferView(target, array.shape, element)

    def to_numpy(
        self, view: iree_runtime.HalBufferView, shape: tuple[int, ...], dtype: Dtype
    ) -> HostArray:
        """Returns the elements of an IREE buffer view as a read-only array."""
        check_transfer("device_to_host", f"{dtype}{list(shape)} from {self}")
        size = math.prod(shape) * dtype.itemsize
        try:
            memory = self._read(view.get_buffer(), size) if size else np.empty(0, _BYTE)
        except (RuntimeError, ValueError) as error:
            raise device_failure(error, self, f"Reading {size:,} bytes") from error
        host = memory.view(dtype).reshape(shape)
        host.flags.writeable = False
        return host

    def _read(self, source: iree_runtime.HalBuffer, size: int) -> HostArray:
        length = source.byte_length()
        if length <= _KEPT_BYTES:
            with self._kept_lock:
                kept = self._kept
                if kept is None:
                    kept = self._kept = self._allocate(_STAGING_MEMORY, _STAGING_USAGE, _KEPT_BYTES)
                self._copy(source, kept)
                return _mapped(kept, size).copy()
        if self._imports and size >= _IMPORTED_BYTES:
            memory = page_aligned_bytes(_whole_pages(length))
            self._copy(source, self._import(memory))
            return memory[:size]
        staging = self._allocate(_STAGING_MEMORY, _STAGING_USAGE, length)
        self._copy(source, staging)
        return _mapped(staging, size).copy()

    def _allocate(self, memory: int, usage: int, size: int) -> iree_runtime.HalBuffer:
        return self.handle().allocator.allocate_buffer(
            memory_type=memory, allowed_usage=usage, allocation_size=size
        )

    def _import(self, memory: HostArray) -> iree_runtime.HalBuffer:
        """Returns pages of the host as memory of the device; a copy, if the driver takes none."""
        try:
            return self.handle().allocator.import_host_allocation(
                memory, memory_type=_STAGING_MEMORY, allowed_usage=_TRANSFER
            )
        except (RuntimeError, ValueError):
            self._imports = False
            raise

    def _copy(self, source: iree_runtime.HalBuffer, target: iree_runtime.HalBuffer) -> None:
        """Copies all bytes of one buffer to the beginning of another, and waits for that."""
        handle = self.handle()
        done = iree_runtime.HalFence.create_at(handle.create_semaphore(0), 1)
        handle.queue_copy(source, target, iree_runtime.HalFence(0), done)
        done.wait()


class VulkanDevice(GpuDevice):
    """A GPU (or a software rasterizer) with a Vulkan driver."""

    drivers = ("vulkan",)
    platform = "vulkan"
    _class_name = "VulkanDevice"


class CudaDevice(GpuDevice):
    """An NVIDIA GPU."""

    drivers = ("cuda",)
    platform = "cuda"
    _class_name = "CudaDevice"


_CLASSES: dict[str, type[GpuDevice]] = {"vulkan": VulkanDevice, "cuda": CudaDevice}
VISIBLE_DEVICES = {"vulkan": "axir_vulkan_visible_devices", "cuda": "jax_cuda_visible_devices"}
"""By platform, the option that names the GPUs which a process uses."""
_WAYS_OUT = {
    "vulkan": "Install a Vulkan loader (libvulkan.so.1) and the driver of your GPU, or a software "
    "one (mesa-vulkan-drivers), or run on devices('cpu').",
    "cuda": "Install the NVIDIA driver (libcuda.so), make the GPU visible to this process "
    "(CUDA_VISIBLE_DEVICES), or run on devices('cpu').",
}


def gpu_devices(platform: str) -> tuple[GpuDevice, ...]:
    """Returns the GPUs of a platform that can run programs, of all processes of a job.

    They are numbered process by process. All processes of a job have to call this, and each waits
    for all.

    Args:
        platform: "vulkan" or "cuda".

    Raises:
        DeviceNotFoundError: the driver is missing, or the machine has no GPU or none of the
            selected ones.
        DeviceUnfitError: no GPU has the features that programs need.
    """
    own: list[_Found] = []
    reason: DeviceNotFoundError | DeviceUnfitError | None = None
    try:
        own = _own_gpus(platform)
    except (DeviceNotFoundError, DeviceUnfitError) as error:
        reason = error
    processes = current()
    told = json.dumps([(gpu.number, gpu.name) for gpu in own]).encode()
    make, made = _CLASSES[platform], list[GpuDevice]()
    for process, text in enumerate(processes.all_gather(told, f"the {platform} devices of all")):
        gpus = own if process == processes.index else [_Found(*each) for each in json.loads(text)]
        made += [make(len(made) + place, process, gpu) for place, gpu in enumerate(gpus)]
    if reason is not None and not made:
        raise reason
    return tuple(made)


def _own_gpus(platform: str) -> list[_Found]:
    """Returns the GPUs of this process; raises as `gpu_devices` does if it finds no GPU."""
    try:
        found = iree_runtime.get_driver(platform).query_available_devices()
        features = _features(platform, [info.get("path", "") for info in found])
    except (RuntimeError, ValueError) as error:
        raise _no_such_device(platform, short_status(error)) from error
    except (VulkanLoaderError, CudaDriverError) as error:
        raise _no_such_device(platform, str(error)) from error
    if not found:
        raise _no_such_device(platform, "the driver lists none")
    chosen = _visible(platform, len(found))
    fitting, reasons = [], []
    for number, (info, known) in enumerate(zip(found, features, strict=True)):
        name = info.get("name") or platform
        lack = "its driver does not say what it can" if known is None else known.unmet_need()
        if lack is not None:
            reasons.append(f"{name}: {lack}")
        elif number in chosen:
            fitting.append(_Found(number, name, info.get("path", ""), known))
    if not fitting and reasons:
        raise DeviceUnfitError(
            f"No {platform} device of this machine can run axir's programs ({'; '.join(reasons)}).",
            "Update the driver, or run on devices('cpu').",
        )
    return sorted(fitting, key=lambda gpu: chosen.index(gpu.number))


def _visible(platform: str, count: int) -> list[int]:
    """Returns the numbers of the GPUs, of so many, that this process uses.

    Raises:
        DeviceNotFoundError: the option names a GPU that does not exist.
    """
    option = VISIBLE_DEVICES[platform]
    text = config.read(option)
    parts = [str(n) for n in range(count)] if text == "all" else str(text).split(",")
    chosen = [int(part) for part in parts if part.strip().isdecimal()]
    if len(chosen) < len(parts) or any(number >= count for number in chosen):
        raise DeviceNotFoundError(
            f"{option}={text!r}: this machine has {count} {platform} devices, numbered from 0.",
            "Name some of these, separated by commas, or 'all'.",
        )
    config.fix(option, text, "the devices have been used.")
    return list(dict.fromkeys(chosen))


def _features(platform: str, paths: list[str]) -> list[VulkanFeatures | CudaFeatures | None]:
    """Returns the properties of the devices that IREE lists at these paths."""
    if platform == "cuda":
        in_order = cuda_features()
        return [in_order[n] if n < len(in_order) else None for n in range(len(paths))]
    known = vulkan_features()
    return [known.get(path.removeprefix("GPU-").replace("-", "").lower()) for path in paths]


def _no_such_device(platform: str, reason: str) -> DeviceNotFoundError:
    return DeviceNotFoundError(
        f"There is no {platform} device here: {reason}.", _WAYS_OUT[platform]
    )


for _platform in _CLASSES:
    offer_platform(_platform, functools.partial(gpu_devices, _platform))


def page_aligned_bytes(size: int) -> HostArray:
    """Returns uninitialized host memory that begins with a page.

    >>> page_aligned_bytes(10).__array_interface__["data"][0] % mmap.PAGESIZE
    0
    """
    memory = np.empty(size + _PAGE, _BYTE)
    return memory[-_address(memory) % _PAGE :][:size]


def _whole_pages(size: int) -> int:
    return -(-size // _PAGE) * _PAGE


def _address(memory: HostArray) -> int:
    return int(memory.__array_interface__["data"][0])


def _mapped(buffer: iree_runtime.HalBuffer, size: int) -> HostArray:
    """Returns the first bytes of memory that both can address."""
    view = HalBufferView(buffer, [size], iree_runtime.HalElementType.UINT_8)
    return view.map().asarray((size,), _BYTE)
