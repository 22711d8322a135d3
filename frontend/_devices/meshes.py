"""Meshes: arrays of devices, or of device numbers, with named axes, and the mesh in use."""

from __future__ import annotations

import enum
import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps

import numpy as np

from axir.dialect.core.annotations import UserObject
from axir.dialect.core.errors import ParameterError
from axir.runtime import Device, devices


class AxisType(enum.Enum):
    """How the sharding along a mesh axis is decided: by the compiler, by types, or by the user."""

    Auto = enum.auto()
    Explicit = enum.auto()
    Manual = enum.auto()

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True)
class AbstractDevice:
    """A description of a mesh's devices.

    Attributes:
        device_kind: Kind of the devices.
        num_cores: Number of their cores, if known.
        platform: Their platform.
    """

    device_kind: str
    num_cores: int | None
    platform: str


class _Axes:
    """Named axes and their extents: the common part of both kinds of meshes."""

    axis_names: tuple[Hashable, ...]
    axis_sizes: tuple[int, ...]
    axis_types: tuple[AxisType, ...]

    def _name(self, sizes: Sequence[int], names: Sequence[Hashable], types: UserObject) -> None:
        self.axis_sizes = tuple(int(size) for size in sizes)
        self.axis_names = tuple(names)
        given = (types,) * len(self.axis_names) if isinstance(types, AxisType) else types
        default = (AxisType.Auto,) * len(self.axis_names)
        self.axis_types = tuple(given) if given is not None else default
        if len(set(self.axis_names)) != len(self.axis_names):
            raise ParameterError(
                f"A mesh names an axis twice: {self.axis_names}.", "Give each a name of its own."
            )
        if not len(self.axis_sizes) == len(self.axis_names) == len(self.axis_types):
            raise ParameterError(
                f"A mesh has axes of extents {self.axis_sizes}, names {self.axis_names} and types "
                f"{self.axis_types}, which are not equally many.",
                "Pass a name for each axis, and types for all or none.",
            )

    @property
    def shape(self) -> OrderedDict[Hashable, int]:
        """Extents of the axes by name."""
        return OrderedDict(zip(self.axis_names, self.axis_sizes, strict=True))

    @property
    def shape_tuple(self) -> tuple[tuple[Hashable, int], ...]:
        """Pairs of name and extent."""
        return tuple(self.shape.items())

    @property
    def size(self) -> int:
        """Number of devices."""
        return math.prod(self.axis_sizes) if self.axis_sizes else 0

    @property
    def empty(self) -> bool:
        """Whether the mesh has no axes."""
        return not self.axis_names

    def _of_type(self, wanted: AxisType) -> tuple[Hashable, ...]:
        named = zip(self.axis_names, self.axis_types, strict=True)
        return tuple(name for name, kind in named if kind is wanted)

    @property
    def auto_axes(self) -> tuple[Hashable, ...]:
        """Names of the axes of type `Auto`."""
        return self._of_type(AxisType.Auto)

    @property
    def explicit_axes(self) -> tuple[Hashable, ...]:
        """Names of the axes of type `Explicit`."""
        return self._of_type(AxisType.Explicit)

    @property
    def manual_axes(self) -> tuple[Hashable, ...]:
        """Names of the axes of type `Manual`."""
        return self._of_type(AxisType.Manual)

    @property
    def are_all_axes_auto(self) -> bool:
        """Whether all axes are of type `Auto`."""
        return all(kind is AxisType.Auto for kind in self.axis_types)

    @property
    def are_all_axes_explicit(self) -> bool:
        """Whether all axes are of type `Explicit`."""
        return all(kind is AxisType.Explicit for kind in self.axis_types)

    @property
    def are_all_axes_manual(self) -> bool:
        """Whether all axes are of type `Manual`."""
        return all(kind is AxisType.Manual for kind in self.axis_types)

    def _key(self) -> tuple[object, ...]:
        return self.axis_sizes, self.axis_names, self.axis_types

    def _described(self) -> str:
        axes = ", ".join(f"{name!r}: {size}" for name, size in self.shape_tuple)
        types = ", ".join(map(repr, self.axis_types))
        comma = "," if len(self.axis_types) == 1 else ""
        return f"{axes}{', ' if axes else ''}axis_types=({types}{comma})"


class AbstractMesh(_Axes):
    """A mesh without devices: extents and names of axes.

    Args:
        axis_sizes: Extents.
        axis_names: Names.
        axis_types: A type for each axis, or one for all; `Auto` by default.
        abstract_device: The description of its devices, if known.

    Raises:
        ParameterError: if these do not fit together.

    >>> AbstractMesh((4, 2), ("data", "model")).shape["model"]
    2
    """

    def __init__(
        self,
        axis_sizes: Sequence[int],
        axis_names: Sequence[Hashable],
        axis_types: AxisType | Sequence[AxisType] | None = None,
        *,
        abstract_device: AbstractDevice | None = None,
    ):
        self._name(axis_sizes, axis_names, axis_types)
        self.abstract_device = abstract_device

    @property
    def abstract_mesh(self) -> AbstractMesh:
        """The mesh itself."""
        return self

    def update(self, **changes: object) -> AbstractMesh:
        """Returns the mesh with some of its arguments replaced."""
        fields = ("axis_sizes", "axis_names", "axis_types", "abstract_device")
        return AbstractMesh(**{**{name: getattr(self, name) for name in fields}, **changes})

    def update_axis_types(self, name_to_type: Mapping[Hashable, AxisType]) -> AbstractMesh:
        """Returns the mesh with other types for the named axes."""
        pairs = zip(self.axis_names, self.axis_types, strict=True)
        return self.update(axis_types=tuple(name_to_type.get(name, kind) for name, kind in pairs))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbstractMesh) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"AbstractMesh({self._described()})"


class Mesh(_Axes):
    """Devices in an array with named axes.

    A mesh is also a context, in which specifications suffice as shardings.

    Args:
        devices: An array of devices, or one of them.
        axis_names: Names of its axes.
        axis_types: A type for each axis, or one for all; `Auto` by default.

    Raises:
        ParameterError: if there is not one name for each axis.

    >>> import axir
    >>> Mesh(axir.devices()[:1], ("data",))
    Mesh('data': 1, axis_types=(Auto,))
    """

    def __init__(
        self,
        devices: UserObject,
        axis_names: str | Sequence[Hashable],
        axis_types: AxisType | Sequence[AxisType] | None = None,
    ):
        self.devices = _as_array(devices)
        names = (axis_names,) if isinstance(axis_names, str) else axis_names
        is_empty = not self.devices.size and not names
        if not is_empty and len(tuple(names)) != self.devices.ndim:
            raise ParameterError(
                "Mesh requires the ndim of its first argument (`devices`) to equal the length of "
                "its second argument (`axis_names`), but got devices.ndim == "
                f"{self.devices.ndim} and axis_names={names!r}.",
                "Reshape the devices, or use axir.make_mesh(shape, names).",
            )
        self._name(() if is_empty else self.devices.shape, names, axis_types)
        self._before: list[Mesh | AbstractMesh | None] = []
        if len(_latest) >= _LATEST_LIMIT:
            _latest.clear()
        _latest[tuple(self.devices.flat), self.shape_tuple] = self

    def update(
        self,
        devices: object = None,
        axis_names: Sequence[Hashable] | None = None,
        axis_types: AxisType | Sequence[AxisType] | None = None,
    ) -> Mesh:
        """Returns the mesh with some of its arguments replaced."""
        return Mesh(
            self.devices if devices is None else devices,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
        )

    @property
    def device_ids(self) -> np.ndarray:
        """Numbers of the devices."""
        return np.array([d.id for d in self.devices.flat], np.int64).reshape(self.devices.shape)

    @property
    def local_mesh(self) -> Mesh:
        """The part of this process.

        Raises:
            ParameterError: if its devices are no block of the mesh.
        """
        if not self.is_multi_process:
            return self
        is_here = np.array([d.is_addressable for d in self.devices.flat], bool)
        found = np.nonzero(is_here.reshape(self.devices.shape))
        block = (
            self.devices[tuple(slice(x.min(), x.max() + 1) for x in found)]
            if len(found[0])
            else self.devices[:0]
        )
        if block.size != is_here.sum() or not block.size:
            raise ParameterError(
                "local_mesh: the devices of this process are no block of the mesh.",
                "Order the devices by process: axir.make_mesh does.",
            )
        return Mesh(block, self.axis_names, self.axis_types)

    @property
    def local_devices(self) -> list[Device]:
        """The devices of this process."""
        return [device for device in self.devices.flat if device.is_addressable]

    @property
    def is_multi_process(self) -> bool:
        """Whether devices belong to several processes."""
        return len({device.process_index for device in self.devices.flat}) > 1

    @property
    def abstract_mesh(self) -> AbstractMesh:
        """The mesh without its devices."""
        if self.empty or not self.devices.size:
            return AbstractMesh(self.axis_sizes, self.axis_names, self.axis_types)
        first = self.devices.flat[0]
        like = AbstractDevice(first.device_kind, None, first.platform)
        return AbstractMesh(self.axis_sizes, self.axis_names, self.axis_types, abstract_device=like)

    def __enter__(self) -> Mesh:
        self._before.append(context.mesh)
        context.mesh = self
        return self

    def __exit__(self, *exception: object) -> None:
        context.mesh = self._before.pop()

    def _identity(self) -> tuple[object, ...]:
        return *self._key(), tuple(self.devices.flat)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mesh) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def __repr__(self) -> str:
        return f"Mesh({self._described()})"


# Meshes by devices and axes, so that results lie on the very mesh that the user made.
_latest: dict[UserObject, Mesh] = {}
_LATEST_LIMIT = 256


def mesh_of(devices: tuple[Device, ...], axes: tuple[tuple[Hashable, int], ...]) -> Mesh:
    """Returns the user's latest mesh of some devices and axes, or a new one."""
    known = _latest.get((devices, axes))
    if known is not None:
        return known
    names, sizes = zip(*axes, strict=True)
    places = np.empty(len(devices), object)
    places[:] = devices
    return Mesh(places.reshape(sizes), names)


def _as_array(found: object) -> np.ndarray:
    array = np.asarray(found, dtype=object)
    for x in array.flat:
        if not isinstance(x, Device):
            raise ParameterError(f"Mesh: {x!r} is not a device.", "Take those of axir.devices().")
    return array


# The mesh in use ---------------------------------------------------------------------------------


class _Context(threading.local):
    """The mesh that a thread uses for specifications without a mesh."""

    mesh: Mesh | AbstractMesh | None = None


context = _Context()
_NO_AXES = AbstractMesh((), ())
_NO_DEVICES = Mesh((), ())


class set_mesh:
    """Makes a mesh the one in use: from now on, or while a `with` block runs.

    Args:
        mesh: The mesh; None to use no mesh.

    >>> import axir
    >>> with set_mesh(axir.make_mesh((1,), ("data",))):
    ...     get_abstract_mesh().axis_names
    ('data',)
    >>> get_abstract_mesh().empty
    True
    """

    def __init__(self, mesh: Mesh | AbstractMesh | None):
        if mesh is not None and not isinstance(mesh, (Mesh, AbstractMesh)):
            raise ParameterError(
                f"set_mesh: {mesh!r} is not a mesh.", "Make one with axir.make_mesh(shape, names)."
            )
        self._before = context.mesh
        self._mesh = context.mesh = mesh

    def __enter__(self) -> Mesh | AbstractMesh | None:
        context.mesh = self._mesh
        return self._mesh

    def __exit__(self, *exception: object) -> None:
        context.mesh = self._before


class use_abstract_mesh(set_mesh):
    """Makes a mesh without devices the one in use while a `with` block runs; see `set_mesh`."""


def get_mesh() -> Mesh:
    """Returns the mesh in use, or a mesh without axes."""
    if isinstance(context.mesh, Mesh):
        return context.mesh
    return _NO_DEVICES


def get_abstract_mesh() -> AbstractMesh:
    """Returns the mesh in use without its devices, or a mesh without axes."""
    return _NO_AXES if context.mesh is None else context.mesh.abstract_mesh


def _takes_older_name(function: Callable[..., Mesh]) -> Callable[..., Mesh]:
    """Makes a function accept `axis_shapes` for `axis_sizes`, JAX's name of it up to 0.11."""

    @wraps(function)
    def taking(*args: object, **kwargs: object) -> Mesh:
        if "axis_shapes" in kwargs:
            kwargs["axis_sizes"] = kwargs.pop("axis_shapes")
        return function(*args, **kwargs)

    return taking


@_takes_older_name
def make_mesh(
    axis_sizes: Sequence[int],
    axis_names: Sequence[Hashable],
    axis_types: Sequence[AxisType] | None = None,
    *,
    devices: Sequence[Device] | None = None,
) -> Mesh:
    """Makes a mesh of the first devices.

    Args:
        axis_sizes: Extents of the axes; older programs call them `axis_shapes`.
        axis_names: Their names.
        axis_types: Their types; `Explicit` by default.
        devices: The devices to choose from; all of the default platform by default.

    Raises:
        ParameterError: if there are too few devices, or not as many names as extents.

    >>> make_mesh((1, 1), ("data", "model")).size
    1
    """
    available = list(devices) if devices is not None else _all_devices()
    count = math.prod(axis_sizes)
    if count > len(available):
        raise ParameterError(
            f"Number of devices {len(available)} must be >= the product of mesh_shape "
            f"{tuple(axis_sizes)}.",
            "Make the mesh smaller; shard_map takes an AbstractMesh of any size, and computes all "
            "of it on one device.",
        )
    types = axis_types if axis_types is not None else (AxisType.Explicit,) * len(axis_names)
    chosen = np.empty(count, object)
    chosen[:] = available[:count]
    return Mesh(chosen.reshape(tuple(axis_sizes)), tuple(axis_names), types)


_all_devices = devices
