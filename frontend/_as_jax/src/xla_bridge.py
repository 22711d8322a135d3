"""Names of `jax._src.xla_bridge`: platforms of devices."""

from __future__ import annotations

from axir import default_backend, device_count, devices, local_devices, process_count, process_index
from axir.dialect.core.annotations import UserObject
from axir.extend.backend import backends, get_backend

__all__ = [
    "backends",
    "default_backend",
    "device_count",
    "devices",
    "get_backend",
    "local_devices",
    "process_count",
    "process_index",
]

# XLA's objects, which do not exist here.
_backends: dict[str, UserObject] = {}
