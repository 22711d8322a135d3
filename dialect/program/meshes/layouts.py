"""Layouts: the mesh axes along which each dimension of an array is cut, and the shapes of parts.

Here a mesh is the names and extents of its axes in order. A layout is a tuple of axis names for
each dimension; the first name varies slowest. Along the axes that a layout does not name, all
devices hold the same. Both are plain tuples, so they can be parameters of ops, text, and keys. They
do not contain the devices: ops hold the names of these, in the order of the mesh.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence

from axir.dialect.core.errors import AxirError, ParameterError, ShapeError

MeshAxes = tuple[tuple[Hashable, int], ...]
"""Names and extents of the axes of a mesh."""

Layout = tuple[tuple[Hashable, ...], ...]
"""For each dimension the axes along which it is cut."""

DeviceNames = tuple[int | str, ...]
"""Devices in the order of a mesh: numbers on the default platform, or names such as `vulkan:0`."""

OpenLayout = tuple[tuple[Hashable, ...] | None, ...]
"""A layout in which None leaves open how a dimension is cut."""


class LayoutError(AxirError, ValueError):
    """A layout does not fit the mesh, or the rank of its array."""


class MeshMismatchError(AxirError, ValueError):
    """Parts of one program name incompatible meshes."""


def replicated(ndim: int) -> Layout:
    """Returns the layout of an array that every device holds as a whole.

    >>> replicated(2)
    ((), ())
    """
    return ((),) * ndim


def axes_in(layout: OpenLayout) -> list[Hashable]:
    """Returns the axes that a layout names, in the order of the dimensions.

    >>> axes_in((("a",), None, ("c", "b")))
    ['a', 'c', 'b']
    """
    return [name for names in layout if names is not None for name in names]


def unnamed(layout: Layout, axes: MeshAxes) -> list[Hashable]:
    """Returns the axes of a mesh along which all devices hold the same.

    >>> unnamed((("a",), ()), (("a", 2), ("b", 3)))
    ['b']
    """
    named = axes_in(layout)
    return [name for name, _ in axes if name not in named]


def without(axes: MeshAxes, names: Iterable[Hashable]) -> MeshAxes:
    """Returns the axes of a mesh that have other names.

    >>> without((("a", 2), ("b", 3)), ["a"])
    (('b', 3),)
    """
    left_out = set(names)
    return tuple((name, size) for name, size in axes if name not in left_out)


def device_count(names: Iterable[Hashable], axes: MeshAxes) -> int:
    """Returns the product of the extents of some axes.

    >>> device_count(("a", "b"), (("a", 2), ("b", 3)))
    6
    """
    sizes = dict(axes)
    return math.prod(sizes[name] for name in names)


def is_cut_evenly(shape: Sequence[int], layout: Layout, axes: MeshAxes) -> bool:
    """Tells whether each extent is a multiple of the number of its parts.

    >>> is_cut_evenly((4, 3), (("a",), ()), (("a", 2),))
    True
    """
    pairs = zip(shape, layout, strict=True)
    return all(extent % device_count(names, axes) == 0 for extent, names in pairs)


def local_shape(
    shape: Sequence[int], layout: Layout, axes: MeshAxes, what: str = "An array"
) -> tuple[int, ...]:
    """Returns the shape of the part of an array that a device holds.

    Args:
        shape: The shape of the array.
        layout: How it is cut.
        axes: The axes of the mesh.
        what: The caller, as named in the message.

    Raises:
        ShapeError: if an extent is no multiple of the number of its parts.

    >>> local_shape((8, 3), (("b", "a"), ()), (("a", 2), ("b", 2)))
    (2, 3)
    """
    for dimension, (extent, names) in enumerate(zip(shape, layout, strict=True)):
        count = device_count(names, axes)
        if extent % count:
            raise ShapeError(
                f"{what}: the layout {layout} cuts dimension {dimension} into {count} parts, of "
                f"which the extent in {tuple(shape)} is no multiple.",
                "Pad the array, or cut another dimension.",
            )
    pairs = zip(shape, layout, strict=True)
    return tuple(extent // device_count(names, axes) for extent, names in pairs)


def global_shape(part: Sequence[int], layout: Layout, axes: MeshAxes) -> tuple[int, ...]:
    """Returns the shape of an array, given the shape of a device's part.

    >>> global_shape((2, 3), (("b", "a"), ()), (("a", 2), ("b", 2)))
    (8, 3)
    """
    pairs = zip(part, layout, strict=True)
    return tuple(extent * device_count(names, axes) for extent, names in pairs)


def check_mesh(what: str, axes: MeshAxes, devices: DeviceNames) -> None:
    """Raises `ParameterError` for repeated names, or a wrong number of devices.

    Args:
        what: The owner of the mesh, as named in the message.
        axes: Names and extents.
        devices: The devices in the order of the mesh; empty if it is abstract.
    """
    names = [name for name, _ in axes]
    if len(set(names)) != len(names) or any(size < 1 for _, size in axes):
        raise ParameterError(
            f"{what}: the mesh has the axes {_described(axes)}.",
            "Give each a name of its own, and a positive extent.",
        )
    count = device_count(names, axes)
    if devices and len(devices) != count:
        raise ParameterError(
            f"{what}: a mesh of {count} places has {len(devices)} devices.",
            "Name one device for each place, or none.",
        )


def check_meshes_agree(what: str, own: MeshAxes, axes: MeshAxes) -> None:
    """Raises `MeshMismatchError` unless one mesh has the axes of another one, in their extents.

    Args:
        what: The owner of the first one, as named in the message.
        own: Its axes.
        axes: Axes of the mesh for which the program is partitioned; perhaps not all of them.
    """
    if not set(axes) <= set(own):
        raise MeshMismatchError(
            f"{what} is for a mesh with the axes {_described(own)}, but the program runs on one "
            f"with {_described(axes)}.",
            "Use one mesh for all that a program names.",
        )


def check_layout(what: str, layout: OpenLayout, ndim: int, axes: MeshAxes) -> None:
    """Raises `LayoutError` if a layout does not fit the rank or the mesh, or names an axis twice.

    Args:
        what: The owner of the layout, as named in the message.
        layout: The layout.
        ndim: Number of dimensions of its array.
        axes: The axes that it may name.
    """
    if len(layout) != ndim:
        raise LayoutError(
            f"{what}: the layout {layout} is for {len(layout)} dimensions, but there are {ndim}.",
            "A layout has an entry for each dimension: () for one that is whole.",
        )
    names = axes_in(layout)
    sizes = dict(axes)
    for name in names:
        if name not in sizes:
            raise LayoutError(
                f"{what}: the layout {layout} names {name!r}, but the mesh has the axes "
                f"{_described(axes)}.",
                "Name axes of the mesh.",
            )
    if len(set(names)) != len(names):
        raise LayoutError(
            f"{what}: the layout {layout} names an axis twice.",
            "One axis cuts at most one dimension.",
        )


def _described(axes: MeshAxes) -> str:
    return ", ".join(f"{name!r} of {size}" for name, size in axes) or "none"
