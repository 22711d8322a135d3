"""The base class of shardings, and the sharding of an array on a single device.

Elsewhere: shardings over meshes (`partitions.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from axir.dialect.core.annotations import UserObject
from axir.dialect.core.errors import ParameterError
from axir.runtime import Device

Index = tuple[slice, ...]
# Devices have one memory that programs can address.
MEMORY_KIND = "device"


class Sharding:
    """The sharding of an array over devices; the base class of all kinds."""

    @property
    def _device_assignment(self) -> tuple[Device, ...]:
        """The devices in their order, under the name by which libraries ask."""
        return tuple(sorted(self.device_set, key=lambda device: device.id))

    @property
    def _addressable_device_assignment(self) -> tuple[Device, ...]:
        """Those of this process."""
        return tuple(device for device in self._device_assignment if device.is_addressable)

    @property
    def addressable_devices(self) -> set[Device]:
        """The devices of this process among them."""
        return {device for device in self.device_set if device.is_addressable}

    @property
    def is_fully_addressable(self) -> bool:
        """Whether this process can reach all of the array."""
        return all(device.is_addressable for device in self.device_set)

    @property
    def has_addressable_devices(self) -> bool:
        """Whether this process can reach any of the array."""
        return bool(self.addressable_devices)

    def addressable_devices_indices_map(self, global_shape: Sequence[int]) -> dict[Device, Index]:
        """Returns which part of an array of a shape each device of this process holds."""
        found = self.devices_indices_map(global_shape)
        return {device: index for device, index in found.items() if device.is_addressable}

    @property
    def device_set(self) -> set[Device]:
        """The devices."""
        raise NotImplementedError

    def devices_indices_map(self, global_shape: Sequence[int]) -> dict[Device, Index]:
        """Returns which part of an array of a shape each device holds."""
        raise NotImplementedError

    def is_equivalent_to(self, other: Sharding, ndim: int) -> bool:
        """Tells whether another sharding cuts arrays of `ndim` axes in the same way."""
        raise NotImplementedError

    def shard_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]:
        """Returns the shape of a device's part of an array."""
        raise NotImplementedError

    def with_memory_kind(self, kind: str) -> Sharding:
        """Returns the sharding for another memory of the devices."""
        raise NotImplementedError


@dataclass(frozen=True, repr=False)
class SingleDeviceSharding(Sharding):
    """The sharding of an array that lies on one device as a whole.

    Attributes:
        device: The device.
        memory_kind: Which of the device's memories: `"device"`, the only one.

    Raises:
        ParameterError: if `device` is not a device, or lacks that memory.

    >>> import axir, axir.numpy as jnp
    >>> jnp.ones(3).sharding
    SingleDeviceSharding(device=CpuDevice(id=0), memory_kind=device)
    """

    device: Device
    memory_kind: str = MEMORY_KIND

    def __init__(self, device: Device, *, memory_kind: str | None = None):
        if not isinstance(device, Device):
            raise ParameterError(
                f"SingleDeviceSharding: {device!r} is not a device.",
                "Take one of axir.devices().",
            )
        object.__setattr__(self, "device", device)
        object.__setattr__(self, "memory_kind", memory_kind or MEMORY_KIND)
        if self.memory_kind != MEMORY_KIND:
            raise ParameterError(
                f"SingleDeviceSharding: {device} has no memory of kind {memory_kind!r}.",
                f"The only kind is {MEMORY_KIND!r}; leave memory_kind out.",
            )

    @property
    def device_set(self) -> set[Device]:
        """The device, as a set."""
        return {self.device}

    @property
    def num_devices(self) -> int:
        """The number of devices: 1."""
        return 1

    @property
    def is_fully_replicated(self) -> bool:
        """Whether each device holds all of the array: True."""
        return True

    def shard_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]:
        """Returns the shape of a device's part of an array, which is the array's shape."""
        return tuple(global_shape)

    def devices_indices_map(self, global_shape: Sequence[int]) -> dict[Device, Index]:
        """Returns which part of an array of a shape each device holds: all of it."""
        return {self.device: (slice(None),) * len(global_shape)}

    def is_equivalent_to(self, other: Sharding, ndim: int) -> bool:
        """Tells whether another sharding cuts arrays of `ndim` axes in the same way."""
        return self.device_set == other.device_set

    def check_compatible_aval(self, aval_shape: Sequence[int]) -> None:
        """Raises an error if arrays of a shape cannot be cut so: any can."""

    def with_memory_kind(self, kind: str) -> SingleDeviceSharding:
        """Returns the sharding for another memory of the device."""
        return SingleDeviceSharding(self.device, memory_kind=kind)

    def __repr__(self) -> str:
        return f"SingleDeviceSharding(device={self.device!r}, memory_kind={self.memory_kind})"


@dataclass(frozen=True)
class Shard:
    """The part of an array on one device.

    Attributes:
        device: The device.
        index: The part's index into the array.
        replica_id: The number of this copy of the part.
        data: The part, an array.
    """

    device: Device
    index: Index
    replica_id: int
    data: UserObject
