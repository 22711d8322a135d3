"""Moving arrays between host and devices, the argument `out_sharding`, and listing devices."""

from __future__ import annotations

import enum
import gc
import platform
import sys
from collections.abc import Callable
from functools import wraps
from types import SimpleNamespace
from typing import ParamSpec, cast

import numpy as np

from axir._arguments.arguments import to_value
from axir._trees import tree
from axir.dialect.core.annotations import Foreign, Options, T, UserObject
from axir.dialect.core.array import Array, ConcreteArray
from axir.dialect.core.dtypes import is_key
from axir.dialect.core.errors import ParameterError
from axir.dialect.core.places import explicit_transfers
from axir.dialect.ops.sharding.sharding_constraint import sharding_constraint
from axir.dialect.program.rules import Value
from axir.runtime import Device, default_device, device_count, devices, local_devices
from axir.runtime.calls.arguments import buffer_of
from axir.runtime.processes.group import current
from axir.runtime.spmd.placement import host_bytes, spread

from .layouts import device_numbers, mesh_axes, open_layout_of
from .meshes import AxisType
from .partitions import AxisTypeError, NamedSharding, as_sharding, only_device
from .sharding import Sharding, SingleDeviceSharding

MemorySpace = enum.Enum("MemorySpace", ["Device", "Host", "Any"])
"""Where an array lies: in the device's memory, which may be the host's."""

memory = SimpleNamespace(Space=MemorySpace)

__all__ = [
    "Device", "block_until_ready", "copy_to_host_async", "default_backend", "device_count",
    "device_get", "device_put", "devices", "host_count", "host_id", "host_ids", "live_arrays",
    "local_device_count", "local_devices", "process_count", "process_index", "process_indices",
]  # fmt: skip


def default_backend() -> str:
    """Returns the platform that computations run on by default: `cpu`, `vulkan` or `cuda`."""
    return default_device().platform


def local_device_count(backend: str | None = None) -> int:
    """Returns the number of devices of this process."""
    return len(local_devices(backend=backend))


def process_count(backend: str | None = None) -> int:
    """Returns the number of processes that compute together."""
    return current().count


def process_index(backend: str | None = None) -> int:
    """Returns which of the processes this is, counted from 0."""
    return current().index


def process_indices(backend: str | None = None) -> list[int]:
    """Returns the numbers of the processes that compute together."""
    return list(range(current().count))


def copy_to_host_async(x: object) -> UserObject:
    """Starts copying the arrays of a tree to the host's memory; returns the tree.

    >>> import axir.numpy as jnp
    >>> copy_to_host_async({"w": jnp.ones(2), "name": "layer"})
    {'w': Array([1., 1.], dtype=float32), 'name': 'layer'}
    """
    for leaf in tree.leaves(x):
        start = getattr(leaf, "copy_to_host_async", None)
        if start is not None:
            start()
    return x


# JAX's older names.
host_id, host_ids, host_count = process_index, process_indices, process_count


def device_put(
    x: T,
    device: object = None,
    *,
    src: object = None,
    donate: object = False,
    may_alias: object = None,
) -> T:
    """Moves the arrays of a tree to a device and commits them to it.

    Computations on committed arrays run on their device.

    Args:
        x: Array, scalar, or tree of them.
        device: Where to: a device, a sharding, a `PartitionSpec` for the mesh in use, or a tree of
            them that is a prefix of `x`. Without it, and for a `memory.Space`, arrays stay
            uncommitted on the default device.
        src: The present place; ignored, because arrays know it.
        donate: Whether arrays of `x` are donated: they are deleted. One for all, or a tree of them
            that is a prefix of `x`.
        may_alias: Whether results may share memory with `x`, as they do by default where they can.
            If it is False, they have separate memory. One for all, or a tree of them.

    Raises:
        ParameterError: if `device` is something else, or arrays are donated that must not be
            aliased.
        ShapeError: if an array cannot be spread so.

    >>> import axir, axir.numpy as jnp
    >>> x = axir.device_put(jnp.ones(3), axir.devices("cpu")[0])
    >>> x.devices()
    {CpuDevice(id=0)}
    """
    places = tree.broadcast_prefix(device, x, "device")
    donations = tree.broadcast_prefix(donate, x, "donate")
    aliases = tree.broadcast_prefix(may_alias, x, "may_alias")
    leaves, structure = tree.flatten(x)
    every = zip(leaves, places, donations, aliases, strict=True)
    with explicit_transfers():
        placed: UserObject = structure.unflatten([_put(*one) for one in every])
    return placed


def _put(leaf: object, place: object, is_donated: bool, may_alias: bool | None) -> object:
    if is_donated and may_alias is False:
        raise ParameterError(
            "device_put: an array is donated that its result must not be an alias of.",
            "Pass either donate=True or may_alias=False.",
        )
    value = to_value(leaf, lambda: "An argument of device_put")
    if isinstance(place, MemorySpace):
        place = None  # each device has one memory
    found = value if place is None else put(value, as_sharding(place, "device_put"), "device_put")
    if type(value) is not ConcreteArray or type(found) is not ConcreteArray:
        return found
    if may_alias is False:
        value.check_alive()
        return copied(found)
    return moved(found, value) if is_donated and value is leaf else found


def put(value: Array, place: Sharding, what: str) -> Array:
    """Returns an array with a sharding; for a tracer, the program records the sharding.

    Args:
        value: The array.
        place: The sharding.
        what: The called function, for errors.

    Raises:
        ShapeError: if arrays of this shape cannot be cut so.
        DeletedArrayError: if the array has been deleted.
    """
    if isinstance(place, NamedSharding):
        place.check_compatible_aval(value.shape)
    if type(value) is not ConcreteArray:
        return constrained(value, place) if isinstance(place, NamedSharding) else value
    value.check_alive()
    if isinstance(place, NamedSharding) and place.num_devices > 1:
        where = place.placement
        return ConcreteArray(value.type, value._host, spread(value, where), where)
    device = only_device(place, what)
    placed = ConcreteArray(value.type, value._host, buffer_of(value, device), device)
    if not isinstance(place, SingleDeviceSharding):
        placed._sharding = place
    return placed


def laid_out(x: Array, what: str, out_sharding: object) -> Array:
    """Returns a new array with the sharding of the argument `out_sharding`, if it is given.

    Args:
        x: The array.
        what: Name of the function in errors.
        out_sharding: A sharding, or a specification for the mesh in use; None leaves the array.

    Raises:
        AxisTypeError: it names axes that are not of type `Explicit`.
    """
    if out_sharding is None:
        return x
    place = as_sharding(out_sharding, what)
    if isinstance(place, NamedSharding):
        types = dict(zip(place.mesh.axis_names, place.mesh.axis_types, strict=True))
        for name in place.spec.names:
            if types.get(name, AxisType.Explicit) is not AxisType.Explicit:
                raise AxisTypeError(
                    f"PartitionSpec passed to {what} cannot contain axis names that are of type "
                    f"Auto or Manual. Got PartitionSpec: {place.spec} with axis name: {name} of "
                    f"type: {types[name]}.",
                    "Pass a sharding as device=, or make the mesh with axes of type "
                    "AxisType.Explicit.",
                )
    return put(x, place, what)


def place_like(a: object, shape: tuple[int, ...]) -> Sharding | None:
    """Returns the sharding for an array made like another one: the other's, if it is committed.

    An array of another shape does not get the other's sharding.
    """
    if type(a) is not ConcreteArray or not a.committed:
        return None
    place: Sharding = a.sharding
    return place if a.shape == shape or len(place.device_set) == 1 else None


def constrained(value: Value, place: NamedSharding) -> Value:
    """Returns a value of a program with a sharding constraint."""
    mesh = place.mesh
    layout = open_layout_of(place.spec, value.ndim)
    return sharding_constraint(value, mesh_axes(mesh), layout, device_numbers(mesh))


def copied(value: ConcreteArray) -> ConcreteArray:
    """Returns a copy of an array in separate memory, on the same devices."""
    place = value._device
    made = ConcreteArray(value.type, np.array(value.host()), None, place)
    if place is not None:
        made._buffer = spread(made, place) if place.is_spread else place.put_copy(host_bytes(made))
    return _marked(made, value)


def moved(found: ConcreteArray, given: ConcreteArray) -> ConcreteArray:
    """Returns an array that was moved; its source is deleted."""
    buffer: Foreign = found._buffer
    if buffer is not None and given._buffer is found._buffer:
        buffer = buffer.moved()
    made = _marked(ConcreteArray(found.type, found._host, buffer, found._device), found)
    given.delete()
    return made


def _marked(made: ConcreteArray, like: ConcreteArray) -> ConcreteArray:
    place = getattr(like, "_sharding", None)
    if place is not None:
        made._sharding = place
    return made


def device_get(x: object) -> UserObject:
    """Returns a tree with its arrays as NumPy arrays; random keys stay as they are.

    >>> import axir, axir.numpy as jnp
    >>> axir.device_get({"a": jnp.ones(2)})
    {'a': array([1., 1.], dtype=float32)}
    """
    with explicit_transfers():
        return tree.map(lambda leaf: _host(leaf) if isinstance(leaf, Array) else leaf, x)


def _host(x: Array) -> object:
    return x if is_key(x.dtype) else np.asarray(x)


def live_arrays(platform: str | None = None) -> list[Array]:
    """Returns all arrays of the process that have not been deleted, of a platform's devices.

    Args:
        platform: The platform; the default one by default.

    >>> import axir, axir.numpy as jnp
    >>> x = jnp.arange(3.0)
    >>> any(x is other for other in axir.live_arrays())
    True
    """
    wanted = devices(platform)[0].platform
    return [
        x
        for x in gc.get_objects()
        if type(x) is ConcreteArray and hasattr(x, "type") and _lives_on(x, wanted)
    ]


def _lives_on(x: ConcreteArray, platform: str) -> bool:
    if x.is_deleted():
        return False
    buffer: Foreign = x._buffer
    place = x._device or (default_device() if buffer is None else buffer.device)
    return bool(place.platform == platform)


def block_until_ready(x: T) -> T:
    """Waits until all arrays of a tree are computed, and returns the tree."""
    for leaf in tree.leaves(x):
        if isinstance(leaf, ConcreteArray):
            leaf.block_until_ready()
    return x


# The environment ----------------------------------------------------------------------------------


_PACKAGES = ("axir", "iree-base-compiler", "iree-base-runtime", "numpy", "ml_dtypes", "optree")


def versions() -> dict[str, str]:
    """Returns the versions of Python and of the packages that axir needs, by name."""
    from importlib import metadata  # late: loads the email package

    found = {"python": platform.python_version(), "platform": sys.platform}
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


def print_environment_info(return_string: bool = False) -> str | None:
    """Prints the facts for a report of a problem: versions and devices.

    Args:
        return_string: Whether to return the text instead.

    >>> import axir
    >>> "numpy" in axir.print_environment_info(return_string=True)
    True
    """
    facts = {**versions(), "devices": ", ".join(map(str, devices()))}
    width = max(map(len, facts))
    text = "\n".join(f"{name:<{width}}  {value}" for name, value in facts.items())
    if return_string:
        return text
    print(text)
    return None


P = ParamSpec("P")


def lies_where_told(function: Callable[P, Value]) -> Callable[P, Value]:
    """Adds the argument `out_sharding` to a function: the sharding of its result.

    The function has the argument only in its signature, and is called without it. The argument is a
    sharding, or a `PartitionSpec` for the mesh in use.

    Raises:
        MissingMeshError: by a call with a specification if no mesh is in use.
        AxisTypeError: by a call with axes that are not of type `Explicit`.
        ParameterError: by a call with another kind of value.
        ShapeError: by a call if the result cannot be cut so.
    """

    @wraps(function)
    def placed(*args: Options, out_sharding: object = None, **options: Options) -> Value:
        result = function(*args, **options)
        return result if out_sharding is None else laid_out(result, placed.__name__, out_sharding)

    return cast(Callable[P, Value], placed)
