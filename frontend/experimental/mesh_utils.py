"""Devices in the form of a mesh."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from axir.dialect.core.errors import ParameterError
from axir.runtime import Device
from axir.runtime import devices as all_devices

__all__ = ["create_device_mesh", "create_hybrid_device_mesh"]


def __dir__() -> list[str]:
    return __all__


def create_device_mesh(
    mesh_shape: Sequence[int],
    devices: Sequence[Device] | None = None,
    *,
    contiguous_submeshes: bool = False,
    allow_split_physical_axes: bool = False,
) -> np.ndarray:
    """Returns devices as an array of a shape, for `axir.sharding.Mesh`.

    Args:
        mesh_shape: The shape; along later axes more is communicated.
        devices: The devices; all of the default platform by default.
        contiguous_submeshes: Accepted for compatibility, as is `allow_split_physical_axes`: there
            is no network between the devices.
        allow_split_physical_axes: See there.

    Raises:
        ParameterError: if there are not as many devices as the mesh has places.

    >>> create_device_mesh((1, 1)).shape
    (1, 1)
    """
    chosen = list(all_devices() if devices is None else devices)
    if math.prod(mesh_shape) != len(chosen):
        raise ParameterError(
            f"Number of devices {len(chosen)} must equal the product of mesh_shape "
            f"{tuple(mesh_shape)}.",
            "axir.make_mesh takes the first of more devices.",
        )
    mesh = np.empty(len(chosen), object)
    mesh[:] = chosen
    return mesh.reshape(tuple(mesh_shape))


def create_hybrid_device_mesh(
    mesh_shape: Sequence[int],
    dcn_mesh_shape: Sequence[int],
    devices: Sequence[Device] | None = None,
    *,
    process_is_granule: bool = False,
    should_sort_granules_by_key: bool = True,
    allow_split_physical_axes: bool = False,
) -> np.ndarray:
    """Returns devices of several groups as an array; on each axis the group index varies slowest.

    Args:
        mesh_shape: Shape of the mesh within a group.
        dcn_mesh_shape: Shape of the mesh of the groups.
        devices: As for `create_device_mesh`.
        process_is_granule: Accepted for compatibility, as are the others: there is one group.
        should_sort_granules_by_key: See there.
        allow_split_physical_axes: See there.

    Raises:
        ParameterError: if there are not as many devices as the mesh has places, or the two shapes
            have different numbers of axes.
    """
    if len(mesh_shape) != len(dcn_mesh_shape):
        raise ParameterError(
            f"create_hybrid_device_mesh: {tuple(mesh_shape)} and {tuple(dcn_mesh_shape)} have "
            "different numbers of axes."
        )
    return create_device_mesh(
        [a * b for a, b in zip(mesh_shape, dcn_mesh_shape, strict=True)], devices
    )
