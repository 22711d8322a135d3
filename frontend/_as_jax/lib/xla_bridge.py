"""The module `jax.lib.xla_bridge` where axir stands in for JAX: devices."""

from __future__ import annotations

from axir import (
    default_backend,
    device_count,
    devices,
    host_id,
    local_device_count,
    local_devices,
    process_count,
    process_index,
)

__all__ = [
    "default_backend",
    "device_count",
    "devices",
    "host_id",
    "local_device_count",
    "local_devices",
    "process_count",
    "process_index",
]
