"""The GPU that tests run on: `TEST_GPU` names its platform, by default Vulkan (lavapipe will do).

With `TEST_GPU=any` it is the first of CUDA and Vulkan that the machine has. `GPU_TESTS=all` runs
all tests, which takes minutes to hours on a software device; by default a sample runs.
"""

from __future__ import annotations

import functools
import os

import pytest

from axir.runtime import Device, DeviceNotFoundError, devices

RUNS_ALL = os.environ.get("GPU_TESTS") == "all"
REFUSED: dict[str, str] = {}
"""What tests saw refused: why, by what."""


@functools.cache
def found_gpu(platform: str) -> Device | str:
    """Returns the device that tests run on, or the reason for its absence."""
    reasons = []
    for name in ("cuda", "vulkan") if platform == "any" else (platform,):
        try:
            return devices(name)[0]
        except DeviceNotFoundError as error:
            reasons.append(error.message)
    return " ".join(reasons)


def gpu_or_skip(platform: str | None = None) -> Device:
    """Returns the device, or skips the test."""
    found = found_gpu(platform or os.environ.get("TEST_GPU", "vulkan"))
    if isinstance(found, str):
        pytest.skip(found)
    return found


def is_software(device: Device) -> bool:
    """Tells whether a device is a CPU that acts as a GPU."""
    return "llvmpipe" in device.device_kind
