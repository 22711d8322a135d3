"""`axir.sharding`: where arrays lie, under the names of `jax.sharding`.

>>> import axir
>>> from axir.sharding import NamedSharding, PartitionSpec
>>> mesh = axir.make_mesh((1,), ("data",))
>>> x = axir.device_put(axir.numpy.ones((4, 2)), NamedSharding(mesh, PartitionSpec("data")))
>>> x.sharding.spec
PartitionSpec('data',)
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from axir._devices.meshes import (
    AbstractDevice,
    AbstractMesh,
    AxisType,
    Mesh,
    get_abstract_mesh,
    get_mesh,
    set_mesh,
    use_abstract_mesh,
)
from axir._devices.partitions import DuplicateSpecError, NamedSharding, PartitionSpec, UnreducedKind
from axir._devices.sharding import Sharding, SingleDeviceSharding
from axir._transforms.sharded import reshard
from axir.dialect.core.annotations import UserFunction, UserObject
from axir.dialect.core.types import ManualAxisType
from axir.runtime import Device

__all__ = [
    "AbstractDevice", "AbstractMesh", "AxisType", "DuplicateSpecError", "ManualAxisType", "Mesh",
    "NamedSharding", "PartitionSpec", "Sharding", "SingleDeviceSharding", "UnreducedKind",
    "auto_axes", "explicit_axes", "get_abstract_mesh", "get_mesh", "make_single_device_sharding",
    "reshard", "set_mesh", "use_abstract_mesh",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


def make_single_device_sharding(
    device: Device, *, memory_kind: str | None = None
) -> SingleDeviceSharding:
    """Returns the sharding of arrays that lie on one device."""
    return SingleDeviceSharding(device, memory_kind=memory_kind)


def auto_axes(
    f: Callable[..., object] | None = None,
    /,
    *,
    axes: str | tuple[str, ...] | None = None,
    out_sharding: object = None,
) -> UserFunction:
    """Returns a function in which the compiler decides along which axes values are spread.

    Args:
        f: The function; without it, this is a decorator with options.
        axes: The axes of the mesh in use, all by default.
        out_sharding: The shardings of its results.
    """
    if f is None:
        return functools.partial(auto_axes, axes=axes, out_sharding=out_sharding)
    return _with_result(f, out_sharding)


def explicit_axes(
    f: Callable[..., object] | None = None,
    /,
    *,
    axes: str | tuple[str, ...] | None = None,
    in_sharding: object = None,
) -> UserFunction:
    """Returns a function in which types say along which axes values are spread.

    Args:
        f: The function; without it, this is a decorator with options.
        axes: The axes of the mesh in use, all by default.
        in_sharding: The shardings of its arguments.
    """
    if f is None:
        return functools.partial(explicit_axes, axes=axes, in_sharding=in_sharding)
    function = f

    @functools.wraps(function)
    def placed(*args: object) -> UserObject:
        return function(*(args if in_sharding is None else reshard(args, in_sharding)))

    return placed


def _with_result(function: Callable[..., object], out_sharding: object) -> Callable[..., object]:
    @functools.wraps(function)
    def placed(*args: object, out_sharding: object = out_sharding) -> UserObject:
        result = function(*args)
        return result if out_sharding is None else reshard(result, out_sharding)

    return placed
