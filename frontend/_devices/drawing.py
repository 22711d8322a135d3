"""Arrays as boxes of text that name the devices which hold them."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence

import numpy as np

from axir.dialect.core.errors import ParameterError
from axir.dialect.program.meshes.layouts import local_shape

from .layouts import layout_of, mesh_axes
from .meshes import AbstractMesh
from .partitions import NamedSharding
from .sharding import Index, Sharding


def drawing_of(shape: Sequence[int], sharding: Sharding) -> str:
    """Returns a box for each part of an array, with the devices that hold it.

    Args:
        shape: Shape of the array, of one or two dimensions.
        sharding: Its sharding. Devices of an abstract mesh have the numbers of their places.

    Raises:
        ParameterError: for other numbers of dimensions.
        ShapeError: if arrays of the shape cannot be spread so.

    >>> from axir.sharding import AbstractMesh, NamedSharding, PartitionSpec
    >>> mesh = AbstractMesh((2, 2), ("x", "y"))
    >>> print(drawing_of((4, 4), NamedSharding(mesh, PartitionSpec("x"))))
    ┌─────┐
    │ 0,1 │
    ├─────┤
    │ 2,3 │
    └─────┘
    """
    if not 1 <= len(shape) <= 2:
        raise ParameterError(
            f"visualize_sharding draws arrays of one or two dimensions, not of shape {shape}.",
            "Reshape the array, or print x.sharding.",
        )
    holders: dict[tuple[int, ...], list[str]] = {}
    for label, index in _holders(shape, sharding):
        begin = tuple(part.start or 0 for part in index)
        holders.setdefault((0, *begin)[-2:], []).append(label)
    rows = sorted({begin[0] for begin in holders})
    columns = sorted({begin[1] for begin in holders})
    return _table([[_joined(holders.get((r, c), [])) for c in columns] for r in rows])


def _holders(shape: Sequence[int], sharding: Sharding) -> Iterator[tuple[str, Index]]:
    if isinstance(sharding, NamedSharding) and isinstance(sharding.mesh, AbstractMesh):
        axes, layout = mesh_axes(sharding.mesh), layout_of(sharding.spec, len(shape))
        extents = local_shape(shape, layout, axes, "visualize_sharding")
        for number, place in enumerate(np.ndindex(*sharding.mesh.axis_sizes)):
            at = dict(zip(sharding.mesh.axis_names, place, strict=True))
            parts = (_part_at(names, at, dict(axes)) for names in layout)
            pairs = zip(extents, parts, strict=True)
            yield str(number), tuple(slice(n * part, n * part + n) for n, part in pairs)
        return
    for device, index in sharding.devices_indices_map(tuple(shape)).items():
        yield f"{device.platform.upper()} {device.id}", index


def _part_at(
    names: Sequence[Hashable], at: Mapping[Hashable, int], sizes: Mapping[Hashable, int]
) -> int:
    part = 0
    for name in names:
        part = part * sizes[name] + at[name]
    return part


def _joined(labels: Sequence[str]) -> str:
    """Joins names of devices; devices of one platform name it once."""
    kinds = {label.rpartition(" ")[0] for label in labels}
    if len(kinds) != 1:
        return ",".join(labels)
    numbers = ",".join(label.rpartition(" ")[2] for label in labels)
    return f"{kinds.pop()} {numbers}".strip()


def _table(cells: Sequence[Sequence[str]]) -> str:
    width = max(len(cell) for row in cells for cell in row) + 2
    count = len(cells[0])

    def line(left: str, middle: str, right: str) -> str:
        return left + middle.join("─" * width for _ in range(count)) + right

    rows = ["│" + "│".join(cell.center(width) for cell in row) + "│" for row in cells]
    between = f"\n{line('├', '┼', '┤')}\n"
    return "\n".join([line("┌", "┬", "┐"), between.join(rows), line("└", "┴", "┘")])
