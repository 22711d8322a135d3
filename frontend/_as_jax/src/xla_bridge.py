"""Names of `jax._src.xla_bridge`: platforms of devices."""

from __future__ import annotations

from axir import default_backend, device_count, devices, local_devices, process_count, process_index
from axir.dialect.core.annotations import UserObject

__all__ = [
    "default_backend",
    "device_count",
    "devices",
    "local_devices",
    "process_count",
    "process_index",
]

# Objects of XLA's, of which there are none.
_backends: dict[str, UserObject] = {}
