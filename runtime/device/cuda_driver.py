"""Asks NVIDIA's driver for the properties of this machine's GPUs, through ctypes.

IREE's driver lists GPUs, but tells neither their compute capability nor the driver's version.
Elsewhere: the compiler's flags for them (`gpu_features.py`).
"""

from __future__ import annotations

import ctypes

from .gpu_features import CudaFeatures

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
    return [_features(library, number, driver) for number in range(count.value)]


def _features(library: ctypes.CDLL, number: int, driver: tuple[int, int]) -> CudaFeatures:
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
