"""Attributes of arrays that say where they are: devices, shards, memory."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from axir._devices.sharding import Shard, Sharding, SingleDeviceSharding
from axir.dialect.core.annotations import Options, UserFunction, UserObject
from axir.dialect.core.array import ConcreteArray
from axir.dialect.core.errors import AxirError, ConcretizationTypeError
from axir.dialect.program.tracer import Tracer
from axir.runtime import Device, default_device


class DeviceMemoryError(AxirError, ValueError):
    """The address of memory was asked for that the host does not have."""


def device(array: ConcreteArray) -> Device:
    """Returns the device that the array is on."""
    if array._device is None and array._buffer is not None:
        return array._buffer.device
    return array._device or default_device()


def sharding(array: ConcreteArray) -> Sharding:
    """Tells how the array is spread over devices: as it was put there, else it lies on one."""
    return getattr(array, "_sharding", None) or SingleDeviceSharding(device(array))


def devices(array: ConcreteArray) -> set[Device]:
    """Returns the set of the one device that the array is on."""
    array.check_alive()
    return {device(array)}


def shards(array: ConcreteArray) -> list[Shard]:
    """Returns the parts of the array that devices hold: all of it, once."""
    array.check_alive()
    from axir._devices.partitions import shards_of  # late: few ask for parts

    return [
        Shard(place, index, number, array)
        for place, index, number in shards_of(sharding(array), array.shape)
    ]


def addressable_data(array: ConcreteArray, index: int) -> ConcreteArray:
    """Returns the part that a device of this process holds, by its number."""
    return shards(array)[index].data


def is_whole(array: ConcreteArray) -> bool:
    """Tells whether each device holds all of the array, and this process can reach it: True."""
    return True


def on_device_size_in_bytes(array: ConcreteArray) -> int:
    """Returns how much memory the elements take on the device."""
    array.check_alive()
    return array.nbytes


def unsafe_buffer_pointer(array: ConcreteArray) -> int:
    """Returns the address of the elements, which is valid while the array lives.

    Raises:
        DeviceMemoryError: if they lie in the memory of another device than the CPU.
    """
    if device(array).platform != "cpu":
        raise DeviceMemoryError(
            f"The array lies in the memory of {device(array)}, which the host cannot address.",
            "Copy it with np.asarray(x), and take the address of the copy.",
        )
    array._host = np.ascontiguousarray(array.host())
    return int(array._host.__array_interface__["data"][0])


def copy_to_host_async(array: ConcreteArray) -> None:
    """Begins to copy the elements to the host, so that NumPy finds them there.

    On the CPU there is nothing to copy.
    """
    array.check_alive()


def is_ready(array: ConcreteArray) -> bool:
    """Tells whether the elements have been computed, or that has failed: nobody waits for them."""
    array.check_alive()
    return array._host is not None or array._buffer is None or array._buffer.is_ready


METHODS: dict[str, UserFunction] = {
    "devices": devices,
    "addressable_data": addressable_data,
    "on_device_size_in_bytes": on_device_size_in_bytes,
    "unsafe_buffer_pointer": unsafe_buffer_pointer,
}
PROPERTIES: dict[str, Callable[[ConcreteArray], UserObject]] = {
    "addressable_shards": shards,
    "global_shards": shards,
    "is_fully_addressable": is_whole,
    "is_fully_replicated": is_whole,
}
# Programs ask with hasattr whether there is one, hence tracers have none.
UNTRACED_METHODS: dict[str, UserFunction] = {
    "copy_to_host_async": copy_to_host_async,
    "is_ready": is_ready,
}
UNTRACED_PROPERTIES: dict[str, Callable[[ConcreteArray], UserObject]] = {
    "device": device,
    "sharding": sharding,
}


# What a tracer passes on to its value, where that is known.
TRACED_METHODS = (*METHODS, "is_deleted", "delete", "__dlpack__")
TRACED_PROPERTIES = (*PROPERTIES, "committed")


def _of_known(name: str) -> UserFunction:
    def attribute(tracer: Tracer) -> UserObject:
        return getattr(tracer.known(ConcretizationTypeError, f"by .{name}"), name)

    return attribute


def _method_of_known(name: str) -> UserFunction:
    attribute = _of_known(name)

    def call(tracer: Tracer, *arguments: Options, **options: Options) -> UserObject:
        return attribute(tracer)(*arguments, **options)

    call.__doc__ = getattr(ConcreteArray, name).__doc__
    call.__name__ = name
    return call


def install() -> None:
    """Installs the attributes; those of a tracer are its value's, where that is known."""
    for name, method in {**METHODS, **UNTRACED_METHODS}.items():
        setattr(ConcreteArray, name, method)
    for name, getter in {**PROPERTIES, **UNTRACED_PROPERTIES}.items():
        setattr(ConcreteArray, name, property(getter))
    for name in TRACED_METHODS:
        setattr(Tracer, name, _method_of_known(name))
    for name in TRACED_PROPERTIES:
        setattr(Tracer, name, property(_of_known(name), doc=getattr(ConcreteArray, name).__doc__))
