"""Shardings of arrays over meshes: `PartitionSpec` and `NamedSharding`."""

from __future__ import annotations

import enum
import functools
import itertools
import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from axir.dialect.core.annotations import UserObject
from axir.dialect.core.errors import ParameterError, ShapeError
from axir.runtime import Device
from axir.runtime.spmd.placement import Placement

from .meshes import AbstractMesh, Mesh, context, mesh_of
from .sharding import MEMORY_KIND, Index, Sharding, SingleDeviceSharding

Partition: TypeAlias = "Hashable | tuple[Hashable, ...] | None"
"""The axes of a mesh along which a dimension is cut."""


class DuplicateSpecError(ParameterError):
    """A specification names an axis of its mesh twice."""


class AxisTypeError(ParameterError):
    """A specification names a mesh axis of a type that it must not have there."""


class MissingMeshError(ParameterError, RuntimeError):
    """A specification was given without a mesh, and none is in use."""


class UnreducedKind(enum.Enum):
    """The reduction of an array's parts along unreduced axes of a mesh."""

    sum = 1
    max = 2
    min = 3


class _Unconstrained:
    def __repr__(self) -> str:
        return "UNCONSTRAINED"


class PartitionSpec:
    """The mesh axes along which each dimension of an array is cut.

    Args:
        *partitions: For each dimension the name of an axis, a tuple of names, or None for a
            dimension that is whole; dimensions at the end may be left out.
        unreduced: Names of axes along which parts have still to be summed.
        reduced: Names of axes along which parts have been summed.
        unreduced_kind: The reduction of the parts; only sums are possible.

    Raises:
        ParameterError: for another kind.

    >>> spec = PartitionSpec("data", None, ("x", "y"))
    >>> spec[2], len(spec)
    (('x', 'y'), 3)
    """

    UNCONSTRAINED = _Unconstrained()

    __slots__ = ("partitions", "reduced", "unreduced")

    def __init__(
        self,
        *partitions: Partition,
        unreduced: frozenset[Hashable] | set[Hashable] = frozenset(),
        reduced: frozenset[Hashable] | set[Hashable] = frozenset(),
        unreduced_kind: UnreducedKind | None = None,
    ):
        if unreduced_kind not in (None, UnreducedKind.sum):
            raise ParameterError(
                f"PartitionSpec: unreduced_kind is {unreduced_kind}, but only sums are left open.",
                "Compute the extremum with lax.pmax or lax.pmin in a shard_map.",
            )
        self.partitions = tuple(tuple(p) if isinstance(p, list) else p for p in partitions)
        self.unreduced = frozenset(unreduced)
        self.reduced = frozenset(reduced)

    @property
    def unreduced_kind(self) -> UnreducedKind | None:
        """The reduction along unreduced axes; None without such axes."""
        return UnreducedKind.sum if self.unreduced else None

    def update(self, **changes: UserObject) -> PartitionSpec:
        """Returns the specification with `partitions`, `unreduced` or `reduced` replaced."""
        partitions = changes.pop("partitions", self.partitions)
        marks = {"unreduced": self.unreduced, "reduced": self.reduced, **changes}
        return PartitionSpec(*partitions, **marks)

    def names_of(self, dimension: int) -> tuple[Hashable, ...]:
        """Returns the names of the axes along which a dimension is cut."""
        partition = self.partitions[dimension] if dimension < len(self.partitions) else None
        if partition is None or partition is PartitionSpec.UNCONSTRAINED:
            return ()
        return partition if isinstance(partition, tuple) else (partition,)

    @property
    def names(self) -> tuple[Hashable, ...]:
        """The names of all axes along which a dimension is cut."""
        return tuple(name for d in range(len(self.partitions)) for name in self.names_of(d))

    def index(self, value: Partition) -> int:
        """Returns the first dimension with a partition."""
        return self.partitions.index(value)

    def count(self, value: Partition) -> int:
        """Returns the number of dimensions with a partition."""
        return self.partitions.count(value)

    def __iter__(self) -> Iterator[UserObject]:
        return iter(self.partitions)

    def __len__(self) -> int:
        return len(self.partitions)

    def __getitem__(self, place: UserObject) -> UserObject:
        return self.partitions[place]

    def __add__(self, other: PartitionSpec | tuple[Partition, ...]) -> PartitionSpec:
        return PartitionSpec(*self.partitions, *other)

    def _key(self) -> tuple[UserObject, ...]:
        return self.partitions, self.unreduced, self.reduced

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PartitionSpec) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __reduce__(self) -> tuple[UserObject, ...]:
        return _spec, self._key()

    def __repr__(self) -> str:
        shown = [*map(repr, self.partitions)]
        shown += [f"{n}={set(v)}" for n, v in (("unreduced", self.unreduced),) if v]
        comma = "," if len(self.partitions) == 1 == len(shown) else ""
        return f"PartitionSpec({', '.join(shown)}{comma})"


def _spec(
    partitions: tuple[Partition, ...], unreduced: frozenset[Hashable], reduced: frozenset[Hashable]
) -> PartitionSpec:
    return PartitionSpec(*partitions, unreduced=unreduced, reduced=reduced)


@dataclass(frozen=True, repr=False)
class NamedSharding(Sharding):
    """The sharding of an array with dimensions cut along axes of a mesh.

    Attributes:
        mesh: The mesh.
        spec: Along which axes each dimension is cut.
        memory_kind: Which of the devices' memories: `"device"`, the only one.

    Raises:
        ParameterError: if the specification names an axis that the mesh does not have.
        DuplicateSpecError: if it names one twice.

    >>> import axir
    >>> NamedSharding(axir.make_mesh((1,), ("x",)), PartitionSpec("x")).shard_shape((4, 3))
    (4, 3)
    """

    mesh: Mesh | AbstractMesh
    spec: PartitionSpec
    memory_kind: str = MEMORY_KIND

    def __init__(
        self,
        mesh: Mesh | AbstractMesh,
        spec: PartitionSpec,
        *,
        memory_kind: str | None = None,
        _logical_device_ids: UserObject = None,
    ):
        if not isinstance(mesh, (Mesh, AbstractMesh)) or not isinstance(spec, PartitionSpec):
            raise ParameterError(
                f"NamedSharding takes a mesh and a PartitionSpec, not {mesh!r} and {spec!r}."
            )
        object.__setattr__(self, "mesh", mesh)
        object.__setattr__(self, "spec", spec)
        object.__setattr__(self, "memory_kind", memory_kind or MEMORY_KIND)
        for name in spec.names:
            if name not in mesh.axis_names:
                raise ParameterError(
                    f"Resource axis: {name} of {spec} is not found in mesh: {mesh.axis_names}."
                )
        if len(set(spec.names)) != len(spec.names):
            raise DuplicateSpecError(
                "A single NamedSharding spec specification can map every mesh axis to at most one "
                f"positional dimension, but {spec} has duplicate entries."
            )

    def update(self, **changes: UserObject) -> NamedSharding:
        """Returns the sharding with `mesh`, `spec` or `memory_kind` replaced."""
        fields = {"mesh": self.mesh, "spec": self.spec, "memory_kind": self.memory_kind, **changes}
        return NamedSharding(fields["mesh"], fields["spec"], memory_kind=fields["memory_kind"])

    @property
    def devices(self) -> np.ndarray:
        """The devices in the form of the mesh."""
        if isinstance(self.mesh, AbstractMesh):
            raise ParameterError(
                f"{self} has no devices, for its mesh is abstract.", "Use a Mesh of devices."
            )
        return self.mesh.devices

    @property
    def device_set(self) -> set[Device]:
        """The devices."""
        return set(self.devices.flat)

    @property
    def num_devices(self) -> int:
        """The number of devices."""
        return self.mesh.size

    @property
    def is_fully_replicated(self) -> bool:
        """Whether each device holds all of the array."""
        return all(self.mesh.shape[name] == 1 for name in self.spec.names)

    @property
    def replicated_axes(self) -> tuple[Hashable, ...]:
        """Names of the axes along which arrays are not cut."""
        return tuple(name for name in self.mesh.axis_names if name not in self.spec.names)

    def check_compatible_aval(self, aval_shape: Sequence[int]) -> None:
        """Raises `ShapeError` if arrays of a shape cannot be cut so."""
        self.shard_shape(aval_shape)

    def parts(self, dimension: int) -> int:
        """Returns into how many parts a dimension is cut."""
        return math.prod(self.mesh.shape[name] for name in self.spec.names_of(dimension))

    def shard_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]:
        """Returns the shape of a device's part of an array with a shape.

        Raises:
            ShapeError: if the array has too few dimensions, or an extent is not a multiple of the
                number of parts.
        """
        if len(self.spec) > len(global_shape):
            raise ShapeError(
                f"{self} is for arrays of at least {len(self.spec)} dimensions, but the shape is "
                f"{tuple(global_shape)}."
            )
        for dimension, extent in enumerate(global_shape):
            if extent % self.parts(dimension):
                raise ShapeError(
                    f"{self} cuts dimension {dimension} into {self.parts(dimension)} parts, of "
                    f"which the extent in {tuple(global_shape)} is no multiple.",
                    "Pad the array.",
                )
        return tuple(extent // self.parts(d) for d, extent in enumerate(global_shape))

    @functools.cached_property
    def placement(self) -> Placement:
        """The placement of arrays' parts, as programs use it."""
        layout = [self.spec.names_of(d) for d in range(len(self.spec))]
        return Placement(tuple(self.devices.flat), self.mesh.shape_tuple, layout, self)

    def devices_indices_map(self, global_shape: Sequence[int]) -> dict[Device, Index]:
        """Returns which part of an array of a shape each device holds."""
        self.check_compatible_aval(global_shape)
        place = self.placement
        return dict(zip(place.devices, place.indices(tuple(global_shape)), strict=True))

    def is_equivalent_to(self, other: Sharding, ndim: int) -> bool:
        """Tells whether another sharding cuts arrays of `ndim` axes in the same way."""
        if isinstance(other, SingleDeviceSharding):
            return self.device_set == other.device_set
        if not isinstance(other, NamedSharding) or self.num_devices != other.num_devices:
            return False
        # With such extents each device has a separate part, for any sharding.
        return self.placement.holds_like(other.placement, (self.num_devices,) * ndim)

    def with_memory_kind(self, kind: str) -> NamedSharding:
        """Returns the sharding for another memory of the devices."""
        return self.update(memory_kind=kind)

    def __repr__(self) -> str:
        return (
            f"NamedSharding(mesh={self.mesh!r}, spec={self.spec}, memory_kind={self.memory_kind})"
        )


def as_sharding(place: UserObject, what: str) -> Sharding:
    """Returns a sharding, a device or a specification for the mesh in use as a sharding.

    Args:
        place: The user's value.
        what: The function that it was given to, for errors.

    Raises:
        MissingMeshError: for a specification if no mesh is in use.
        ParameterError: for anything else.
    """
    if isinstance(place, NamedSharding) and isinstance(place.mesh, AbstractMesh):
        return _of_mesh_in_use(place)
    if isinstance(place, Sharding):
        return place
    if isinstance(place, Device):
        return SingleDeviceSharding(place)
    if isinstance(place, PartitionSpec):
        if context.mesh is None:
            raise MissingMeshError(
                f"{what} requires a non-empty mesh in context if you are passing `PartitionSpec`s.",
                "Choose one with axir.set_mesh(mesh), or pass NamedSharding(mesh, spec).",
            )
        return NamedSharding(context.mesh, place)
    inner = getattr(place, "sharding", None)
    if isinstance(inner, Sharding):  # a `Format`
        return inner
    raise ParameterError(
        f"{what}: {place!r} is neither a device nor a sharding.",
        "Take one of axir.devices(), or a sharding of axir.sharding.",
    )


def _of_mesh_in_use(place: NamedSharding) -> NamedSharding:
    """Returns a sharding of an abstract mesh as one of the mesh in use, if that has its form."""
    mesh = context.mesh
    if mesh is None or mesh.abstract_mesh != place.mesh:
        return place
    return NamedSharding(mesh, place.spec, memory_kind=place.memory_kind)


def place_of(place: Sharding | None) -> Device | Placement | None:
    """Returns the place of arrays with a sharding, as programs need to know it."""
    if isinstance(place, NamedSharding) and place.num_devices > 1:
        return place.placement
    return None if place is None else next(iter(place.device_set))


def sharding_of(place: Placement) -> Sharding:
    """Returns the sharding for the place of an array on several devices."""
    if place.sharding is None:
        spec = PartitionSpec(*[_partition(names) for names in place.layout])
        place.sharding = NamedSharding(mesh_of(place.devices, place.axes), spec)
    return place.sharding


def _partition(names: tuple[Hashable, ...]) -> Partition:
    return None if not names else names[0] if len(names) == 1 else names


def only_device(place: Sharding, what: str) -> Device:
    """Returns the device of a sharding that has one.

    Raises:
        ParameterError: if it cuts arrays over several devices.
    """
    found = sorted({d.id: d for d in place.device_set}.items())
    if len(place.device_set) != 1:
        raise ParameterError(
            f"{what}: {place} spreads arrays over {len(found)} devices, but an array lies on one.",
            "Use a mesh of one device; shard_map with an AbstractMesh computes all parts on one.",
        )
    return next(iter(place.device_set))


def shards_of(place: Sharding, shape: Sequence[int]) -> Iterator[tuple[Device, Index, int]]:
    """Yields for each device of a sharding which part it holds, and the how manieth copy it is."""
    counts: dict[str, Iterator[int]] = {}
    for device, index in place.devices_indices_map(shape).items():
        yield device, index, next(counts.setdefault(str(index), itertools.count()))
