"""Asks the drivers of this machine's GPUs for the GPUs' properties, through ctypes.

IREE's drivers list devices, but do not tell which types of numbers a Vulkan device computes with,
nor the compute capability of NVIDIA's GPUs and the version of their driver. The layouts of Vulkan
follow its specification 1.3 (`vulkan_core.h`); structs are read at offsets, because the fields
before are not needed. Elsewhere: the compiler's flags for them (`gpu_features.py`).
"""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import struct
from collections.abc import Sequence

from .gpu_features import CudaFeatures, VulkanFeatures

_APPLICATION_INFO, _INSTANCE_CREATE_INFO = 0, 1
_FEATURES_2, _PROPERTIES_2 = 1000059000, 1000059001
_VULKAN_11_FEATURES, _VULKAN_12_FEATURES = 49, 51
_VULKAN_11_PROPERTIES = 50
_INTEGER_DOT_FEATURES = 1000280000
_API_VERSION = (1 << 22) | (3 << 12)
# Bits of `supportedOperations` of subgroups.
_ARITHMETIC, _SHUFFLE = 0x4, 0x10


class VulkanLoaderError(Exception):
    """The Vulkan loader is missing, or does not answer."""


@functools.cache
def vulkan_features() -> dict[str, VulkanFeatures]:
    """Returns the properties of each Vulkan device, by its UUID in hexadecimal digits.

    Raises:
        VulkanLoaderError: the Vulkan loader is missing, or it has no driver.
    """
    library = _library()
    instance = _instance(library)
    try:
        return dict(_features(library, device) for device in _physical_devices(library, instance))
    finally:
        library.vkDestroyInstance(instance, None)


def _library() -> ctypes.CDLL:
    for name in ("libvulkan.so.1", ctypes.util.find_library("vulkan")):
        if name is not None:
            try:
                return ctypes.CDLL(name)
            except OSError:
                continue
    raise VulkanLoaderError("the library libvulkan.so.1 is not installed")


def _instance(library: ctypes.CDLL) -> ctypes.c_void_p:
    application = ctypes.create_string_buffer(
        struct.pack("@iPPIPII", _APPLICATION_INFO, 0, 0, 0, 0, 0, _API_VERSION)
    )
    information = ctypes.create_string_buffer(
        struct.pack(
            "@iPIPIPIP",
            *(_INSTANCE_CREATE_INFO, 0, 0, ctypes.addressof(application), 0, 0, 0, 0),
        )
    )
    instance = ctypes.c_void_p()
    _check(library.vkCreateInstance(information, None, ctypes.byref(instance)))
    return instance


def _physical_devices(library: ctypes.CDLL, instance: ctypes.c_void_p) -> list[ctypes.c_void_p]:
    count = ctypes.c_uint32()
    _check(library.vkEnumeratePhysicalDevices(instance, ctypes.byref(count), None))
    devices = (ctypes.c_void_p * count.value)()
    _check(library.vkEnumeratePhysicalDevices(instance, ctypes.byref(count), devices))
    return [ctypes.c_void_p(device) for device in devices[: count.value]]


def _check(result: int) -> None:
    if result < 0:
        raise VulkanLoaderError(f"the Vulkan loader answers with error {result}")


class _Chain:
    """Structs that Vulkan fills in, each with the address of the next one."""

    def __init__(self, types: Sequence[tuple[int, int]]):
        self.parts = [ctypes.create_string_buffer(size) for _, size in types]
        following = [ctypes.addressof(part) for part in self.parts[1:]] + [0]
        for part, (kind, _), address in zip(self.parts, types, following, strict=True):
            struct.pack_into("@iP", part, 0, kind, address)

    def numbers(self, part: int, offset: int, count: int) -> tuple[int, ...]:
        """Returns numbers of 32 bits; offsets count from the end of the header."""
        return struct.unpack_from(f"@{count}I", self.parts[part], 16 + offset)

    def flag(self, part: int, number: int) -> bool:
        """Tells whether one of the truth values that follow the header is set."""
        return bool(self.numbers(part, 4 * number, 1)[0])


# Offsets in VkPhysicalDeviceProperties.
_NAME, _LIMITS = 20, 296
# In VkPhysicalDeviceLimits: maxComputeSharedMemorySize, which the limits of workgroups follow.
_COMPUTE_LIMITS = 216


def _features(library: ctypes.CDLL, device: ctypes.c_void_p) -> tuple[str, VulkanFeatures]:
    properties = _Chain([(_PROPERTIES_2, 2048), (_VULKAN_11_PROPERTIES, 256)])
    library.vkGetPhysicalDeviceProperties2(device, properties.parts[0])
    features = _Chain(
        [
            (_FEATURES_2, 512),
            (_VULKAN_11_FEATURES, 128),
            (_VULKAN_12_FEATURES, 256),
            (_INTEGER_DOT_FEATURES, 64),
        ]
    )
    library.vkGetPhysicalDeviceFeatures2(device, features.parts[0])
    version = properties.numbers(0, 0, 1)[0]
    (vendor,) = properties.numbers(0, 8, 1)
    shared, *counts = properties.numbers(0, _LIMITS + _COMPUTE_LIMITS, 8)
    name = properties.parts[0].raw[16 + _NAME : 16 + _NAME + 256].partition(b"\0")[0]
    uuid = properties.parts[1].raw[16:32].hex()
    size, _, operations = properties.numbers(1, 48, 3)
    return uuid, VulkanFeatures(
        name=name.decode(errors="replace"),
        version=(version >> 22 & 0x7F, version >> 12 & 0x3FF),
        vendor=vendor,
        subgroup_size=size,
        floats=_widths({16: features.flag(2, 7), 32: True, 64: features.flag(0, 39)}),
        integers=_widths(
            {
                8: features.flag(2, 8),
                16: features.flag(0, 41),
                32: True,
                64: features.flag(0, 40),
            }
        ),
        storage=_widths({8: features.flag(2, 2), 16: features.flag(1, 0), 32: True, 64: True}),
        subgroup_operations=tuple(
            name
            for name, bit in (("shuffle", _SHUFFLE), ("arithmetic", _ARITHMETIC))
            if operations & bit
        ),
        has_integer_dot=features.flag(3, 0),
        max_workgroup_memory=shared,
        max_workgroup_counts=(counts[0], counts[1], counts[2]),
        max_threads=counts[3],
        max_workgroup_size=(counts[4], counts[5], counts[6]),
    )


def _widths(present: dict[int, bool]) -> tuple[int, ...]:
    return tuple(bits for bits, is_there in present.items() if is_there)


_LIBRARY = "libcuda.so.1"
# CUdevice_attribute.
_CAPABILITY_MAJOR, _CAPABILITY_MINOR, _SHARED_MEMORY = 75, 76, 97


class CudaDriverError(Exception):
    """NVIDIA's driver is missing, or does not answer."""


def cuda_features() -> list[CudaFeatures]:
    """Returns the properties of each GPU, in the driver's order.

    Raises:
        CudaDriverError: the driver is missing or fails.
    """
    try:
        library = ctypes.CDLL(_LIBRARY)
    except OSError:
        raise CudaDriverError(f"the library {_LIBRARY} is not installed") from None
    _call(library, "cuInit", 0)
    version, count = ctypes.c_int(), ctypes.c_int()
    _call(library, "cuDriverGetVersion", ctypes.byref(version))
    _call(library, "cuDeviceGetCount", ctypes.byref(count))
    driver = (version.value // 1000, version.value % 1000 // 10)
    return [_features_of_cuda(library, number, driver) for number in range(count.value)]


def _features_of_cuda(library: ctypes.CDLL, number: int, driver: tuple[int, int]) -> CudaFeatures:
    device = ctypes.c_int()
    _call(library, "cuDeviceGet", ctypes.byref(device), number)
    name = ctypes.create_string_buffer(256)
    _call(library, "cuDeviceGetName", name, len(name), device)
    major, minor, shared = (
        _attribute(library, attribute, device)
        for attribute in (_CAPABILITY_MAJOR, _CAPABILITY_MINOR, _SHARED_MEMORY)
    )
    return CudaFeatures(name.value.decode(errors="replace"), (major, minor), driver, shared)


def _attribute(library: ctypes.CDLL, attribute: int, device: ctypes.c_int) -> int:
    value = ctypes.c_int()
    _call(library, "cuDeviceGetAttribute", ctypes.byref(value), attribute, device)
    return value.value


def _call(library: ctypes.CDLL, function: str, *arguments: object) -> None:
    result = getattr(library, function)(*arguments)
    if result:
        raise CudaDriverError(f"{function} of NVIDIA's driver answers with error {result}")
