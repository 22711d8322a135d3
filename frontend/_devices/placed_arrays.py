"""Makes arrays from their parts, given a sharding."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from axir._trees import tree
from axir.dialect.core.annotations import (
    DTypeLike,
    HostArray,
    PyTree,
    ShapeLike,
    Tree,
    UserObject,
)
from axir.dialect.core.array import Array, ArrayLike, ConcreteArray, as_array
from axir.dialect.core.errors import ParameterError, ShapeError
from axir.runtime.spmd.placement import ShardedBuffer, host_bytes, sharded_type

from .partitions import NamedSharding, as_sharding
from .placement import put
from .sharding import Index, Sharding


def make_array_from_callback(
    shape: ShapeLike,
    sharding: object,
    data_callback: Callable[[Index | None], ArrayLike],
    dtype: DTypeLike = None,
) -> Array:
    """Makes an array of parts that a function returns, each device's part separately.

    Args:
        shape: Shape of the array.
        sharding: Where the parts go.
        data_callback: From an index into the array to that part of it.
        dtype: Its dtype; by default the parts' dtype.

    Raises:
        ShapeError: if a part has another shape than its index.

    >>> import axir, numpy as np
    >>> from axir.sharding import NamedSharding, PartitionSpec
    >>> place = NamedSharding(axir.make_mesh((1,), ("x",)), PartitionSpec("x"))
    >>> axir.make_array_from_callback((3,), place, lambda index: np.arange(3.0)[index])
    Array([0., 1., 2.], dtype=float32)
    """
    name = "make_array_from_callback"
    extents = (shape,) if isinstance(shape, int) else tuple(shape)
    where = as_sharding(sharding, name)
    indices = where.addressable_devices_indices_map(extents)
    known: dict[str, ArrayLike] = {}  # copies of a part are asked for once
    for index in indices.values():
        if str(index) not in known:
            known[str(index)] = data_callback(index)
    parts = [known[str(index)] for index in indices.values()]
    return _joined(name, extents, where, parts, dtype)


def make_array_from_single_device_arrays(
    shape: Sequence[int],
    sharding: object,
    arrays: Sequence[Array],
    *,
    dtype: DTypeLike = None,
) -> Array:
    """Makes an array of the parts that this process's devices hold, in the sharding's order.

    Args:
        shape: Shape of the array.
        sharding: Where the parts are.
        arrays: The parts.
        dtype: Its dtype; by default the parts' dtype.

    Raises:
        ParameterError: if there is not one part for each device.
        ShapeError: if a part has another shape than the sharding says.
    """
    name = "make_array_from_single_device_arrays"
    where = as_sharding(sharding, name)
    count = len(where.addressable_devices)
    if len(arrays) != count:
        raise ParameterError(
            f"{name}: {where} has {count} devices of this process, but {len(arrays)} arrays were "
            "passed.",
            "Pass what each of the devices holds.",
        )
    return _joined(name, tuple(shape), where, arrays, dtype)


def make_array_from_process_local_data(
    sharding: object, local_data: Tree, global_shape: Sequence[int] | None = None
) -> PyTree:
    """Makes arrays from the parts that each process has.

    Args:
        sharding: Where the arrays go: a sharding, or a tree of them that is a prefix of the data.
        local_data: This process's data, a NumPy array or a tree of them: each dimension is either
            whole, or the part that its devices hold.
        global_shape: Shape of the array, or a tree of shapes. By default each process's data is the
            part that its devices hold, and the shape follows from the parts of all processes.

    Raises:
        ShapeError: if the data are neither whole nor the devices' part.

    >>> import axir, numpy as np
    >>> from axir.sharding import NamedSharding, PartitionSpec
    >>> rows = NamedSharding(axir.make_mesh((1,), ("x",)), PartitionSpec("x"))
    >>> axir.make_array_from_process_local_data(rows, np.arange(3.0)).shape
    (3,)
    """
    name = "make_array_from_process_local_data"
    places = tree.broadcast_prefix(sharding, local_data, "sharding")
    leaves, structure = tree.flatten(local_data)
    if global_shape is None or all(isinstance(n, int) for n in global_shape):
        shapes: list[UserObject] = [global_shape] * len(leaves)
    else:
        of_leaves: UserObject = global_shape
        shapes = structure.flatten_up_to(of_leaves)
    return structure.unflatten(
        [
            _of_local_data(name, np.asarray(data), as_sharding(place, name), shape)
            for data, place, shape in zip(leaves, places, shapes, strict=True)
        ]
    )


def _of_local_data(
    name: str, data: HostArray, where: Sharding, shape: Sequence[int] | None
) -> Array:
    """Makes an array from this process's part of it."""
    extents = _global_shape(where, data.shape) if shape is None else tuple(shape)
    indices = where.addressable_devices_indices_map(extents)
    bounds = [bounds_of(index, extents) for index in indices.values()]
    starts = [0] * len(extents)
    for dimension, extent in enumerate(extents):
        begin = min(b[dimension][0] for b in bounds)
        held = max(b[dimension][1] for b in bounds) - begin
        has = data.shape[dimension] if dimension < data.ndim else -1
        if data.ndim != len(extents) or has not in (extent, held):
            raise ShapeError(
                f"{name}: the data has shape {data.shape}, but of an array of shape {extents} this "
                f"process's devices hold {held} of dimension {dimension}.",
                "Pass of each dimension all, or what the devices of this process hold.",
            )
        starts[dimension] = begin if has == held else 0
    parts = [
        data[
            tuple(slice(b - start, e - start) for (b, e), start in zip(bound, starts, strict=True))
        ]
        for bound in bounds
    ]
    return _joined(name, extents, where, parts, None)


def _global_shape(where: Sharding, local: Sequence[int]) -> tuple[int, ...]:
    """Returns the shape of an array, given the shape of the part on this process's devices."""
    # The number of parts does not depend on the extents, as long as all devices can cut them.
    count = len(where.device_set)
    probe = (count,) * len(local)
    parts = [bounds_of(index, probe) for index in where.devices_indices_map(probe).values()]
    here = [
        bounds_of(index, probe) for index in where.addressable_devices_indices_map(probe).values()
    ]
    return tuple(
        extent * len({b[d] for b in parts}) // len({b[d] for b in here})
        for d, extent in enumerate(local)
    )


def bounds_of(index: Index, shape: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Returns begin and end in each dimension of an index into an array.

    >>> bounds_of((slice(None), slice(2, 4)), (3, 8))
    ((0, 3), (2, 4))
    """
    found = [part.indices(extent)[:2] for part, extent in zip(index, shape, strict=True)]
    return tuple((int(begin), int(end)) for begin, end in found)


def _joined(
    name: str,
    shape: tuple[int, ...],
    where: Sharding,
    parts: Sequence[ArrayLike],
    dtype: DTypeLike,
) -> Array:
    """Makes an array from the parts on this process's devices, in the order of the sharding."""
    indices = where.addressable_devices_indices_map(shape)
    hosts = [np.asarray(part, dtype) for part in parts]
    for index, host in zip(indices.values(), hosts, strict=True):
        expected = tuple(end - begin for begin, end in bounds_of(index, shape))
        if host.shape != expected:
            raise ShapeError(
                f"{name}: the part {index} of an array of shape {shape} has shape "
                f"{expected}, but {host.shape} came.",
                "Index an array of the whole shape with the index that is passed.",
            )
    values = [as_array(host, "A part") for host in hosts]
    if not isinstance(where, NamedSharding) or where.num_devices == 1:
        return put(values[0], where, name)
    kind = values[0].type.update(shape=shape)
    place = where.placement
    bytes_of_parts = [host_bytes(value) for value in values]
    buffers = [device.put(content) for device, content in zip(indices, bytes_of_parts, strict=True)]
    whole = bytes_of_parts[0].shape[len(shape) :]
    stored = sharded_type((*shape, *whole), bytes_of_parts[0].dtype, place)
    return ConcreteArray(kind, None, ShardedBuffer(stored, buffers), place)
