"""Communication between the devices that run one program.

A program over a mesh is one function of the parts that a device holds. Its collectives become calls
of `communicate`, made in the same order on every device. A `Channel` carries the parts from one
device to another; the runner of the program opens it for the thread of each device. Elsewhere:
collectives as operations (`dialect/ops/collectives/`), and channels (`runtime/spmd/`).
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from axir.dialect.core.annotations import HostArray
from axir.dialect.core.types import ShapedArray

REDUCTIONS = ("psum", "pmax", "pmin")
"""Kinds of collectives that give every member of a group the same array of the operand's shape."""
KINDS = (*REDUCTIONS, "all_gather", "reduce_scatter", "all_to_all", "ppermute")


@dataclass(frozen=True)
class Collective:
    """One exchange between the devices of a mesh. Devices are named by positions in the mesh.

    Attributes:
        kind: One of `KINDS`.
        groups: The groups of devices that exchange with each other. They have one size, and list
            positions in their order along the axis. Every position is in one group.
        operand_type: Type of the part that each device gives.
        result_type: Type of the value that each device gets.
        dimension: The dimension of the operand to cut (`reduce_scatter`, `all_to_all`), or the
            dimension of the result along which parts are joined (`all_gather`).
        concat_dimension: The dimension along which `all_to_all` joins parts.
        is_tiled: Whether parts of `all_gather` and `reduce_scatter` are slices of a dimension. Else
            they are the entries of a dimension that only the whole array has.
        permutation: Pairs of sender and receiver in `ppermute`, as places in a group.

    >>> from axir.dialect.core.types import ShapedArray
    >>> part = ShapedArray((2,), "float32")
    >>> str(Collective("psum", ((0, 1),), part, part))
    'psum of float32[2] over ((0, 1),)'
    """

    kind: str
    groups: tuple[tuple[int, ...], ...]
    operand_type: ShapedArray
    result_type: ShapedArray
    dimension: int = 0
    concat_dimension: int = 0
    is_tiled: bool = False
    permutation: tuple[tuple[int, int], ...] = ()

    def __hash__(self) -> int:
        return self._hash

    @functools.cached_property
    def _hash(self) -> int:
        # Needed in each exchange; hashing the groups takes a microsecond.
        return hash((self.kind, self.groups, self.operand_type, self.result_type))

    def group_of(self, position: int) -> tuple[int, ...]:
        """Returns the group that a position is in."""
        for group in self.groups:
            if position in group:
                return group
        raise ValueError(f"{self} has no group with the position {position}")

    def __str__(self) -> str:
        return f"{self.kind} of {self.operand_type} over {self.groups}"


class Channel(Protocol):
    """The connection from the thread that runs a program for one device to the others."""

    @property
    def position(self) -> int:
        """The position of the device in the mesh; the last axis varies fastest."""
        ...

    def communicate(self, collective: Collective, operand: HostArray) -> HostArray:
        """Sends this device's part, waits for the others, and returns this device's result."""
        ...


class _OfThread(threading.local):
    channel: Channel | None = None


_of_thread = _OfThread()


@contextlib.contextmanager
def channel_open(channel: Channel) -> Iterator[None]:
    """Lets the collectives of programs that this thread runs go through a channel."""
    before, _of_thread.channel = _of_thread.channel, channel
    try:
        yield
    finally:
        _of_thread.channel = before


def current_channel() -> Channel:
    """Returns the channel of this thread, which runs a program for a device of a mesh."""
    channel = _of_thread.channel
    assert channel is not None, "a program over a mesh was called by itself"
    return channel
