"""Conversion of users' meshes and specifications to the parameters of ops."""

from __future__ import annotations

from axir.dialect.program.meshes.layouts import DeviceNames, Layout, MeshAxes, OpenLayout
from axir.runtime.spmd.partitioned import device_name

from .meshes import AbstractMesh, Mesh
from .partitions import PartitionSpec


def mesh_axes(mesh: Mesh | AbstractMesh) -> MeshAxes:
    """Returns the names and extents of the axes of a mesh.

    >>> mesh_axes(AbstractMesh((2, 3), ("a", "b")))
    (('a', 2), ('b', 3))
    """
    return tuple(mesh.shape.items())


def device_numbers(mesh: Mesh | AbstractMesh) -> DeviceNames:
    """Returns the device numbers in ops, in the order of a mesh; none if it is abstract.

    Devices of the default platform are numbers, others have names such as `vulkan:0`.
    """
    if not isinstance(mesh, Mesh):
        return ()
    return tuple(device_name(d) for d in mesh.devices.flat)


def layout_of(spec: PartitionSpec, ndim: int) -> Layout:
    """Returns how a specification cuts an array; unspecified axes are not cut.

    >>> layout_of(PartitionSpec("a", None, ("b", "c")), 4)
    (('a',), (), ('b', 'c'), ())
    """
    return tuple(names or () for names in open_layout_of(spec, ndim))


def open_layout_of(spec: PartitionSpec, ndim: int) -> OpenLayout:
    """Returns how a specification cuts an array, None for the dimensions that it leaves open.

    >>> open_layout_of(PartitionSpec("a", PartitionSpec.UNCONSTRAINED), 2)
    (('a',), None)
    """
    return tuple(
        None
        if dimension < len(spec) and spec[dimension] is PartitionSpec.UNCONSTRAINED
        else tuple(spec.names_of(dimension))
        for dimension in range(ndim)
    )
