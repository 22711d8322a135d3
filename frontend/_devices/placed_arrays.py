"""Arrays made part by part, for a sharding."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from axir._arguments.arguments import to_value
from axir._trees import tree
from axir.dialect.core.annotations import ArrayLike, DTypeLike, PyTree, ShapeLike, UserObject
from axir.dialect.core.array import Array
from axir.dialect.core.errors import ParameterError, ShapeError

from .partitions import as_sharding
from .placement import put
from .sharding import Index, Sharding


def make_array_from_callback(
    shape: ShapeLike,
    sharding: UserObject,
    data_callback: Callable[[Index | None], ArrayLike],
    dtype: DTypeLike = None,
) -> Array:
    """Makes an array of parts that a function gives, each device's of its own.

    Args:
        shape: Shape of the array.
        sharding: Where the parts go.
        data_callback: From an index into the array to that part of it.
        dtype: Its dtype; that of the parts by default.

    Raises:
        ShapeError: if a part has another shape than its index.

    >>> import axir, numpy as np
    >>> from axir.sharding import NamedSharding, PartitionSpec
    >>> place = NamedSharding(axir.make_mesh((1,), ("x",)), PartitionSpec("x"))
    >>> axir.make_array_from_callback((3,), place, lambda index: np.arange(3.0)[index])
    Array([0., 1., 2.], dtype=float32)
    """
    extents = (shape,) if isinstance(shape, int) else tuple(shape)
    where = as_sharding(sharding, "make_array_from_callback")
    indices = list(where.devices_indices_map(extents).values())
    parts = [data_callback(index) for index in indices]
    return _joined("make_array_from_callback", extents, where, indices, parts, dtype)


def make_array_from_single_device_arrays(
    shape: Sequence[int],
    sharding: UserObject,
    arrays: Sequence[Array],
    *,
    dtype: DTypeLike = None,
) -> Array:
    """Makes an array of the parts that devices hold, in the order of the sharding's devices.

    Args:
        shape: Shape of the array.
        sharding: Where the parts are.
        arrays: The parts.
        dtype: Its dtype; that of the parts by default.

    Raises:
        ParameterError: if there is not one part for each device.
        ShapeError: if a part has another shape than the sharding says.
    """
    name = "make_array_from_single_device_arrays"
    where = as_sharding(sharding, name)
    indices = list(where.devices_indices_map(tuple(shape)).values())
    if len(arrays) != len(indices):
        raise ParameterError(
            f"{name}: {where} has {len(indices)} devices, but {len(arrays)} arrays were passed.",
            "Pass what each of the devices holds.",
        )
    return _joined(name, tuple(shape), where, indices, arrays, dtype)


def make_array_from_process_local_data(
    sharding: UserObject, local_data: PyTree, global_shape: Sequence[int] | None = None
) -> PyTree:
    """Makes an array of the data of this process, which is all there is.

    Args:
        sharding: Where the array goes.
        local_data: A NumPy array, or a tree of them.
        global_shape: Shape of the array: that of the data.

    Raises:
        ShapeError: if `global_shape` is another.
    """
    where = as_sharding(sharding, "make_array_from_process_local_data")

    def make(data: UserObject) -> Array:
        if global_shape is not None and tuple(global_shape) != np.shape(data):
            raise ShapeError(
                f"make_array_from_process_local_data: the data has shape {np.shape(data)}, but "
                f"global_shape is {tuple(global_shape)}.",
                "There is one process, whose data is all of the array.",
            )
        return put(to_value(data, lambda: "The data"), where, "make_array_from_process_local_data")

    return tree.map(make, local_data)


def _joined(
    name: str,
    shape: tuple[int, ...],
    where: Sharding,
    indices: Sequence[Index],
    parts: Sequence[ArrayLike],
    dtype: DTypeLike,
) -> Array:
    hosts = [np.asarray(part) for part in parts]
    whole = np.empty(shape, hosts[0].dtype if dtype is None else np.dtype(dtype))
    for index, host in zip(indices, hosts, strict=True):
        if host.shape != whole[index].shape:
            raise ShapeError(
                f"{name}: the part {index} of an array of shape {shape} has shape "
                f"{whole[index].shape}, but {host.shape} came.",
                "Index an array of the whole shape with the index that is passed.",
            )
        whole[index] = host
    return put(to_value(whole, lambda: "The array"), where, name)
