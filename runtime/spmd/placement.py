"""Placements: which part of an array each device of a mesh holds, and buffers made of such parts.

Elsewhere: users' shardings, which become placements (`frontend/_devices/`), and programs on parts
(`program.py`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Hashable, Sequence
from typing import TypeAlias

import numpy as np

from axir.dialect.core.annotations import Dtype, Foreign, HostArray, UserObject
from axir.dialect.core.array import ConcreteArray
from axir.dialect.core.extended_dtypes import words_of
from axir.dialect.program.narrow_elements import bytes_of
from axir.runtime.device.buffers import Buffer, BufferType, aligned_empty
from axir.runtime.device.devices import Device
from axir.runtime.errors import NotAddressableError

Index: TypeAlias = tuple[Foreign, ...]
"""A slice for each dimension."""


class Placement:
    """Where the parts of an array lie: on the devices of a mesh, cut along some of its axes.

    Two are equal if they put the same parts on the same devices for the same reasons: devices,
    axes and layout.

    Args:
        devices: The devices, in the order of the mesh: its last axis counts fastest.
        axes: Names and extents of the axes of the mesh.
        layout: For each dimension of the array, the axes along which it is cut; the first axis
            counts slowest. Dimensions at the end may be left out: they are whole.
        sharding: The user's sharding that it comes from.

    >>> from axir.runtime.device.devices import devices
    >>> cpu = devices("cpu")[0]
    >>> place = Placement((cpu, cpu), (("x", 2),), ((), ("x",)))
    >>> place.index(1, (3, 4))
    (slice(None, None, None), slice(2, 4, None))
    """

    is_spread = True

    def __init__(
        self,
        devices: Sequence[Device],
        axes: Sequence[tuple[Hashable, int]],
        layout: Sequence[Sequence[Hashable]],
        sharding: UserObject = None,
    ):
        self.devices = tuple(devices)
        self.axes = tuple(axes)
        kept = [tuple(names) for names in layout]
        while kept and not kept[-1]:
            kept.pop()
        self.layout = tuple(kept)
        self.sharding = sharding
        self._hash = hash((self.devices, self.axes, self.layout))
        self._indices: dict[tuple[int, ...], list[Index]] = {}

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Placement)
            and self.devices == other.devices
            and self.axes == other.axes
            and self.layout == other.layout
        )

    @property
    def platform(self) -> str:
        """The platform of the devices."""
        return self.devices[0].platform

    @functools.cached_property
    def local(self) -> tuple[int, ...]:
        """The positions of the devices that belong to this process."""
        return tuple(p for p, device in enumerate(self.devices) if device.is_addressable)

    @property
    def is_addressable(self) -> bool:
        """Whether all of the devices belong to this process."""
        return len(self.local) == len(self.devices)

    @property
    def is_replicated(self) -> bool:
        """Whether each device holds all of the array."""
        sizes = dict(self.axes)
        return all(sizes[name] == 1 for names in self.layout for name in names)

    def index(self, position: int, shape: Sequence[int]) -> Index:
        """Returns the part of an array of a shape that the device at a position holds."""
        return self.indices(tuple(shape))[position]

    def indices(self, shape: tuple[int, ...]) -> list[Index]:
        """Returns the part of an array of a shape that each device holds."""
        found = self._indices.get(shape)
        if found is None:
            places = np.ndindex(*(size for _, size in self.axes))
            names = [name for name, _ in self.axes]
            found = [
                self._index_at(dict(zip(names, place, strict=True)), shape) for place in places
            ]
            self._indices[shape] = found
        return found

    def _index_at(self, place: dict[Hashable, int], shape: tuple[int, ...]) -> Index:
        sizes = dict(self.axes)
        index = []
        for dimension, extent in enumerate(shape):
            names = self.layout[dimension] if dimension < len(self.layout) else ()
            count = math.prod(sizes[name] for name in names)
            number = 0
            for name in names:
                number = number * sizes[name] + place[name]
            step = extent // count
            is_whole = count == 1
            index.append(slice(None) if is_whole else slice(number * step, (number + 1) * step))
        return tuple(index)

    def whole_shape(self, part_shape: Sequence[int]) -> tuple[int, ...]:
        """Returns the shape of the whole array, given the shape of its parts."""
        sizes = dict(self.axes)
        counts = [math.prod(sizes[name] for name in names) for names in self.layout]
        counts += [1] * (len(part_shape) - len(counts))
        return tuple(extent * count for extent, count in zip(part_shape, counts, strict=True))

    def holds_like(self, other: Placement, shape: tuple[int, ...]) -> bool:
        """Tells whether another placement puts the same parts of an array on the same devices."""
        return self.devices == other.devices and self.indices(shape) == other.indices(shape)

    def part_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Returns the shape of the parts of an array of a shape."""
        sizes = dict(self.axes)
        counts = [math.prod(sizes[name] for name in names) for names in self.layout]
        counts += [1] * (len(shape) - len(counts))
        return tuple(extent // count for extent, count in zip(shape, counts, strict=True))

    @property
    def replicated(self) -> Placement:
        """The placement of arrays that are whole on every device of the mesh."""
        return Placement(self.devices, self.axes, ())

    def __repr__(self) -> str:
        return f"Placement({self.axes}, {self.layout}, {', '.join(map(str, self.devices))})"


class ShardedBuffer:
    """An array in the memory of several devices, one part on each.

    Args:
        kind: Shape and dtype of the whole, and the placement as its device.
        parts: The parts on the devices of this process, in the order of the placement.
    """

    __slots__ = ("__weakref__", "_are_dropped", "parts", "type")

    # Programs for one device read IREE's reference from a buffer: it is None here, so that they
    # ask.
    ref = None

    def __init__(self, kind: BufferType, parts: Sequence[Buffer]):
        self.type = kind
        self.parts = tuple(parts)
        self._are_dropped = False

    @property
    def device(self) -> Placement:
        """The placement: the devices, and their parts."""
        place: Foreign = self.type.device
        return place

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the axes."""
        return self.type.shape

    @property
    def dtype(self) -> Dtype:
        """dtype of the elements."""
        return self.type.dtype

    @property
    def nbytes(self) -> int:
        """How many bytes all devices together hold."""
        return sum(part.nbytes for part in self.parts)

    @property
    def is_deleted(self) -> bool:
        """Whether the memory has been freed, on any device."""
        return self._are_dropped or any(part.is_deleted for part in self.parts)

    @property
    def is_ready(self) -> bool:
        """Whether all parts have been computed."""
        return all(part.is_ready for part in self.parts)

    def to_numpy(self) -> HostArray:
        """Returns the whole as a read-only array: without a copy if every device holds it.

        Raises:
            NotAddressableError: parts of it lie on devices of other processes.
        """
        if self.device.is_replicated and self.parts:
            return self.parts[0].to_numpy()
        if not self.device.is_addressable:
            raise NotAddressableError(
                f"Fetching the value of {self.dtype}{list(self.shape)}, which spans devices of "
                "other processes (non-addressable ones), is not possible.",
                "Read the parts that are here (x.addressable_shards), compute with it inside of "
                "jit, or gather it: axir.experimental.multihost_utils.process_allgather(x, "
                "tiled=True).",
            )
        indices = self.device.indices(self.shape)
        whole = aligned_empty(self.shape, self.dtype)
        written = set()
        for index, part in zip(indices, self.parts, strict=True):
            key = str(index)
            if key not in written:
                written.add(key)
                whole[index] = part.to_numpy()
        whole.flags.writeable = False
        return whole

    def block_until_ready(self) -> ShardedBuffer:
        """Waits for all parts; raises the error of a device."""
        for part in self.parts:
            part.block_until_ready()
        return self

    def moved(self) -> ShardedBuffer:
        """Returns a buffer of the same memory, and deletes this one."""
        made = ShardedBuffer(self.type, [part.moved() for part in self.parts])
        self.delete()
        return made

    def delete(self) -> None:
        """Gives the memory back on all devices."""
        self._are_dropped = True
        for part in self.parts:
            part.delete()
        self.parts = ()

    def __repr__(self) -> str:
        return f"ShardedBuffer({self.dtype}{list(self.shape)}, {self.device})"


@functools.lru_cache(maxsize=1024)
def sharded_type(shape: tuple[int, ...], dtype: Dtype, place: Placement) -> BufferType:
    """Returns the type of buffers that are parts of an array of a shape and dtype."""
    device: Foreign = place
    return BufferType(shape, dtype, device)


def spread(array: ConcreteArray, place: Placement) -> ShardedBuffer:
    """Returns an array's parts on the devices of a placement; copies only the absent ones."""
    buffer: Foreign = array._buffer
    if type(buffer) is ShardedBuffer and not buffer.is_deleted:
        if buffer.device == place:
            return buffer
        if buffer.device.holds_like(place, buffer.shape):
            return ShardedBuffer(sharded_type(buffer.shape, buffer.dtype, place), buffer.parts)
    host = host_bytes(array)
    kind = sharded_type(host.shape, host.dtype, place)
    return ShardedBuffer(kind, parts_of_host(host, place))


def host_bytes(array: ConcreteArray) -> HostArray:
    """Returns the elements as devices keep them, read-only: arrays are immutable."""
    host = bytes_of(words_of(array.host()))
    if host.flags.writeable:
        host = host.view()
        host.flags.writeable = False
    return host


def parts_of_host(host: HostArray, place: Placement) -> list[Buffer]:
    """Returns the parts of a read-only host array on this process's devices of a placement."""
    first: dict[str, Buffer] = {}
    parts = []
    indices = place.indices(host.shape)
    for position in place.local:
        device, index = place.devices[position], indices[position]
        key = str(index)
        known = first.get(key)
        if known is None:
            part = first[key] = device.put(host[index])
        else:
            part = known.shared_with(device)
        parts.append(part)
    return parts
