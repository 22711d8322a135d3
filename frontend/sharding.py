"""`axir.sharding`: where arrays lie, under the names of `jax.sharding`."""

from __future__ import annotations

from axir._devices.sharding import Sharding, SingleDeviceSharding

__all__ = ["Sharding", "SingleDeviceSharding"]
