"""Platforms and devices: the names of `jax.extend.backend` that are no part of XLA."""

from __future__ import annotations

import gc

from axir._devices.placement import default_backend, live_arrays
from axir._transforms.jit import clear_caches
from axir.dialect.core.errors import ParameterError
from axir.runtime import Device, default_device, devices
from axir.runtime.calls.background import wait_for_all
from axir.runtime.calls.successor import begin_all_successors
from axir.runtime.device.devices import Client, known_devices
from axir.runtime.errors import DeviceNotFoundError

__all__ = [
    "backend_xla_version", "backends", "clear_backends", "clear_in_memory_compilation_cache",
    "get_backend", "get_default_device", "wait_for_compilers",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


_PLATFORMS = ("cpu", "cuda", "vulkan")


def get_default_device() -> Device:
    """Returns the device of results that no operand commits to another one."""
    return default_device()


def get_backend(platform: str | Client | None = None) -> Client:
    """Returns the runtime of a platform, by default the default device's.

    Raises:
        DeviceNotFoundError: if the platform does not exist.

    >>> get_backend("cpu").platform
    'cpu'
    """
    if isinstance(platform, Client):
        return platform
    return devices(platform or default_backend())[0].client


def backends() -> dict[str, Client]:
    """Returns the runtimes of this machine's platforms, by platform."""
    found = {}
    for platform in _PLATFORMS:
        try:
            found[platform] = get_backend(platform)
        except (DeviceNotFoundError, ParameterError):
            continue
    return found


def backend_xla_version(platform: str | None = None) -> None:
    """Returns None: IREE has no version of XLA."""
    get_backend(platform)


def clear_in_memory_compilation_cache() -> None:
    """Forgets compiled programs; those on disk stay."""
    clear_caches()


def wait_for_compilers() -> None:
    """Returns when nothing is left to compile in the background.

    A large program runs as it is compiled first. When its calls have taken a tenth of a second,
    IREE begins to compile it for all cores, and its program takes over when it is there. Who
    measures calls has all of that done before.

    >>> wait_for_compilers()
    """
    begin_all_successors()
    wait_for_all()


def clear_backends() -> None:
    """Forgets compiled programs, and closes the GPUs of platforms on which no array lies.

    They are opened again when they are next used. An open one has threads, and drivers in software
    may keep these busy all the time.

    >>> clear_backends()
    """
    clear_caches()
    gc.collect()
    for device in known_devices():
        if device.is_remote and device.is_addressable and not live_arrays(device.platform):
            device.close()
