"""Attributes and methods of an array's memory: devices, shards, its bits in another dtype."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from axir._devices.sharding import Shard, Sharding, SingleDeviceSharding
from axir._later import later
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import DTypeLike, UserFunction, UserObject
from axir.dialect.core.array import ConcreteArray
from axir.dialect.core.errors import (
    AxirError,
    ConcretizationTypeError,
    DTypeError,
    ParameterError,
    ShapeError,
)
from axir.dialect.ops.elementwise.conversion import bitcast_convert_type, complex_
from axir.dialect.ops.shape.rearranging import reshape, rev
from axir.dialect.program.rules import Value
from axir.dialect.program.tracer import Tracer
from axir.numpy._arguments.promotion import constant, dtype_argument
from axir.numpy._arrays.scalar_types import astype
from axir.numpy._elementwise import logic
from axir.runtime import Device, default_device
from axir.runtime.spmd.placement import spread


class DeviceMemoryError(AxirError, ValueError):
    """The address of memory was requested that the host cannot access."""


def device(array: ConcreteArray) -> Device | Sharding:
    """Returns the device that the array is on; the sharding of one that is on several."""
    place = array._device
    return sharding(array) if place is not None and place.is_spread else _only_device(array)


def _only_device(array: ConcreteArray) -> Device:
    """Returns the device of an array that is on one."""
    found: Device | None = array._device
    if found is None and array._buffer is not None:
        found = array._buffer.device
    return found or default_device()


def sharding(array: ConcreteArray) -> Sharding:
    """Returns the sharding of the array: the one it was placed with, or a single device."""
    place = array._device
    if place is not None and place.is_spread:
        return later.sharding_of(place)
    return getattr(array, "_sharding", None) or SingleDeviceSharding(_only_device(array))


def devices(array: ConcreteArray) -> set[Device]:
    """Returns the set of the devices that the array is on."""
    array.check_alive()
    place = array._device
    return set(place.devices) if place is not None and place.is_spread else {_only_device(array)}


def shards(array: ConcreteArray) -> list[Shard]:
    """Returns the parts that devices of this process hold; one device holds all of an array."""
    return [shard for shard in global_shards(array) if shard.data is not None]


def global_shards(array: ConcreteArray) -> list[Shard]:
    """Returns the parts of the array that devices hold; parts in other processes have no data."""
    array.check_alive()
    parts = _parts(array)
    return [
        Shard(place, index, number, parts.get(place))
        for place, index, number in later.shards_of(sharding(array), array.shape)
    ]


def _parts(array: ConcreteArray) -> Mapping[object, ConcreteArray]:
    """Returns the parts on the devices of this process, as arrays."""
    place = array._device
    if place is None or not place.is_spread:
        return {next(iter(sharding(array).device_set)): array}
    buffer = array._buffer = spread(array, place)
    kind = array.type.update(shape=place.part_shape(array.shape))
    return {part.device: ConcreteArray(kind, None, part, part.device) for part in buffer.parts}


def addressable_data(array: ConcreteArray, index: int) -> ConcreteArray:
    """Returns the part that a device of this process holds, by its number."""
    return shards(array)[index].data


def is_reachable(array: ConcreteArray) -> bool:
    """Tells whether this process can reach all of the array."""
    place = array._device
    return place is None or not place.is_spread or place.is_addressable


def is_replicated(array: ConcreteArray) -> bool:
    """Tells whether each device holds all of the array."""
    place = array._device
    return place is None or not place.is_spread or place.is_replicated


def on_device_size_in_bytes(array: ConcreteArray) -> int:
    """Returns how much memory the elements take on all devices together."""
    array.check_alive()
    place = array._device
    if place is None or not place.is_spread:
        return array.nbytes
    return len(place.devices) * math.prod(place.part_shape(array.shape)) * array.itemsize


def unsafe_buffer_pointer(array: ConcreteArray) -> int:
    """Returns the address of the elements, which is valid while the array lives.

    Raises:
        DeviceMemoryError: if they lie in the memory of another device than the CPU.
    """
    places = sorted(devices(array), key=str)
    if len(places) > 1:
        raise DeviceMemoryError(
            f"The array lies in pieces in the memory of {', '.join(map(str, places))}.",
            "Ask for the address of a part: x.addressable_shards[0].data.",
        )
    if places[0].platform != "cpu":
        raise DeviceMemoryError(
            f"The array lies in the memory of {places[0]}, which the host cannot address.",
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
    """Tells whether the elements have been computed, or computing them has failed; never waits."""
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
    "global_shards": global_shards,
    "is_fully_addressable": is_reachable,
    "is_fully_replicated": is_replicated,
}
# Programs test for it with hasattr, so tracers lack it.
UNTRACED_METHODS: dict[str, UserFunction] = {
    "copy_to_host_async": copy_to_host_async,
    "is_ready": is_ready,
}
UNTRACED_PROPERTIES: dict[str, Callable[[ConcreteArray], UserObject]] = {
    "device": device,
    "sharding": sharding,
}


# Attributes that a tracer forwards to its value, if the value is known.
TRACED_METHODS = (*METHODS, "is_deleted", "delete", "__dlpack__")
TRACED_PROPERTIES = (*PROPERTIES, "committed")


def _of_known(name: str) -> UserFunction:
    def attribute(tracer: Tracer) -> UserObject:
        return getattr(tracer.known(ConcretizationTypeError, f"by .{name}"), name)

    return attribute


def _method_of_known(name: str) -> UserFunction:
    attribute = _of_known(name)

    def call(tracer: Tracer, *arguments: object, **options: object) -> UserObject:
        return attribute(tracer)(*arguments, **options)

    call.__doc__ = getattr(ConcreteArray, name).__doc__
    call.__name__ = name
    return call


def install() -> None:
    """Installs the attributes; a tracer forwards them to its value, if the value is known."""
    for name, method in {**METHODS, **UNTRACED_METHODS}.items():
        setattr(ConcreteArray, name, method)
    for name, getter in {**PROPERTIES, **UNTRACED_PROPERTIES}.items():
        setattr(ConcreteArray, name, property(getter))
    for name in TRACED_METHODS:
        setattr(Tracer, name, _method_of_known(name))
    for name in TRACED_PROPERTIES:
        setattr(Tracer, name, property(_of_known(name), doc=getattr(ConcreteArray, name).__doc__))


# Bits ---------------------------------------------------------------------------------------------


def view(self: Value, dtype: DTypeLike = None, type: None = None) -> Value:
    """Reinterprets the bits as another dtype; the last axis grows or shrinks with its width."""
    if type is not None:
        raise ParameterError(
            f"Array.view: type={type!r}, but arrays have one class.", "Leave the argument out."
        )
    if dtype is None:
        return self
    new = dtype_argument("ndarray.view", dtype)
    if dtypes.bool_ in (self.dtype, new):
        if self.dtype == new:
            return self
        if new == dtypes.bool_:
            byte = view(self, dtypes.uint8)
            return logic.not_equal(byte, constant(0, dtypes.uint8))
        return view(astype(self, dtypes.uint8), new)
    if dtypes.is_complex(self.dtype) != dtypes.is_complex(new):
        raise DTypeError(f"An array of {self.dtype} cannot be viewed as {new}.")
    old_size, new_size = self.dtype.itemsize, new.itemsize
    if old_size == new_size:
        return bitcast_convert_type(self, new)
    if not self.ndim or (self.shape[-1] * old_size) % new_size:
        raise ShapeError(
            f"{self.type} cannot be viewed as {new}: the size of its last axis in bytes must be a "
            f"multiple of {new_size}."
        )
    last = self.shape[-1] * old_size // new_size
    if old_size > new_size:
        return reshape(bitcast_convert_type(self, new), (*self.shape[:-1], last))
    grouped = (*self.shape[:-1], last, new_size // old_size)
    return bitcast_convert_type(reshape(self, grouped), new)


def byteswap(self: Value) -> Value:
    """Returns an array of the same dtype with the bytes of each element in reverse.

    The parts of complex elements are reversed one by one, as NumPy does.

    >>> import axir.numpy as jnp
    >>> jnp.arange(3).byteswap()
    Array([       0, 16777216, 33554432], dtype=int32)
    """
    if dtypes.is_complex(self.dtype):
        return complex_(byteswap(self.real), byteswap(self.imag))
    if self.dtype.itemsize == 1:
        return self.copy()
    octets = bitcast_convert_type(self, dtypes.uint8)
    return bitcast_convert_type(rev(octets, (self.ndim,)), self.dtype)
