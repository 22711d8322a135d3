"""Moving arrays between host and devices, and asking which devices there are."""

from __future__ import annotations

import numpy as np

from axir._arguments.arguments import to_value
from axir._trees import tree
from axir.dialect.core.annotations import UserObject
from axir.dialect.core.array import Array, ConcreteArray
from axir.dialect.core.dtypes import is_key
from axir.runtime import Device, default_device, device_count, devices, local_devices
from axir.runtime.calls.compiled_function import buffer_of

from .sharding import Sharding, SingleDeviceSharding

__all__ = [
    "Device",
    "block_until_ready",
    "default_backend",
    "device_count",
    "device_get",
    "device_put",
    "devices",
    "host_id",
    "local_device_count",
    "local_devices",
    "process_count",
    "process_index",
]


def default_backend() -> str:
    """Returns the platform that computations run on by default: `cpu`, `vulkan` or `cuda`."""
    return default_device().platform


def local_device_count(backend: str | None = None) -> int:
    """Returns the number of devices of this process, which are all there are."""
    return len(local_devices(backend=backend))


def process_count(backend: str | None = None) -> int:
    """Returns the number of processes that compute together: one."""
    return 1


def process_index(backend: str | None = None) -> int:
    """Returns which of the processes this is: number 0, the only one."""
    return 0


host_id = process_index


def device_put(
    x: UserObject,
    device: UserObject = None,
    *,
    src: UserObject = None,
    donate: UserObject = False,
    may_alias: UserObject = None,
) -> UserObject:
    """Moves the arrays of a tree to a device and commits them to it.

    Computations on committed arrays run on their device.

    Args:
        x: Array, scalar, or tree of them.
        device: Where to: a device, a sharding, a `PartitionSpec` for the mesh in use, or a tree of
            them that is a prefix of `x`. Without it, arrays stay uncommitted on the default device.
        src: Where from; arrays know that.
        donate: Whether the memory of `x` may be reused. A hint: it never is.
        may_alias: Whether results may share memory with `x`. A hint: what is immutable does.

    Raises:
        ParameterError: if `device` is something else, or a sharding over several devices.
        ShapeError: if an array cannot be spread so.

    >>> import axir, axir.numpy as jnp
    >>> x = axir.device_put(jnp.ones(3), axir.devices("cpu")[0])
    >>> x.devices()
    {CpuDevice(id=0)}
    """
    places = tree.broadcast_prefix(device, x, "device")
    leaves, structure = tree.flatten(x)
    return structure.unflatten([_put(leaf, p) for leaf, p in zip(leaves, places, strict=True)])


def _put(leaf: UserObject, place: UserObject) -> UserObject:
    value = to_value(leaf, lambda: "An argument of device_put")
    if place is None:
        return value
    from .partitions import as_sharding  # late: most programs name no places

    return put(value, as_sharding(place, "device_put"), "device_put")


def put(value: Array, place: Sharding, what: str) -> Array:
    """Returns an array where a sharding says; a tracer as it is, for all is computed on a device.

    Args:
        value: The array.
        place: The sharding.
        what: The function that is asked for it, for errors.

    Raises:
        ShapeError: if arrays of this shape cannot be spread so.
        ParameterError: if the sharding has several devices.
    """
    from .partitions import NamedSharding, only_device  # late: as above

    if isinstance(place, NamedSharding):
        place.check_compatible_aval(value.shape)
    if type(value) is not ConcreteArray:
        return value
    device = only_device(place, what)
    placed = ConcreteArray(value.type, value._host, buffer_of(value, device), device)
    if not isinstance(place, SingleDeviceSharding):
        placed._sharding = place
    return placed


def device_get(x: UserObject) -> UserObject:
    """Returns a tree with its arrays as NumPy arrays; random keys stay what they are.

    >>> import axir, axir.numpy as jnp
    >>> axir.device_get({"a": jnp.ones(2)})
    {'a': array([1., 1.], dtype=float32)}
    """
    return tree.map(lambda leaf: _host(leaf) if isinstance(leaf, Array) else leaf, x)


def _host(x: Array) -> UserObject:
    return x if is_key(x.dtype) else np.asarray(x)


def block_until_ready(x: UserObject) -> UserObject:
    """Waits until all arrays of a tree have been computed, and returns the tree."""
    for leaf in tree.leaves(x):
        if isinstance(leaf, ConcreteArray):
            leaf.block_until_ready()
    return x
