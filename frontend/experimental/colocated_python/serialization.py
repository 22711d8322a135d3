"""Names of `jax.experimental.colocated_python.serialization`: lists of devices."""

from __future__ import annotations

from axir.runtime import Device

__all__ = ["DeviceList"]


def __dir__() -> list[str]:
    return __all__


DeviceList = tuple[Device, ...]
