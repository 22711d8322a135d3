"""Communication of the devices that run one program: what they exchange, and with whom.

A program over a mesh is one function of the parts that a device holds. Its collectives become calls
of `communicate`, made in the same order on every device. Who carries the parts from one device to
another is a `Channel`, which whoever runs the program opens for the thread of each device.
Elsewhere: collectives as operations (`dialect/ops/collectives/`), and what carries the parts
(`runtime/spmd/`).
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
    """What the devices of a mesh exchange in one step. Devices are named by positions in the mesh.

    Attributes:
        kind: One of `KINDS`.
        groups: Who exchanges with whom: groups of one size, in each the positions in their order
            along the axis. Every position is in one.
        operand_type: Type of the part that each device gives.
        result_type: Type of what each gets.
        dimension: Of the operand, where it is cut (`reduce_scatter`, `all_to_all`); of the result,
            where parts are put together (`all_gather`).
        concat_dimension: Where `all_to_all` puts parts together.
        is_tiled: Whether parts of `all_gather` and `reduce_scatter` are pieces of a dimension,
            rather than places of one that only the whole has.
        permutation: Pairs of sender and receiver, as places in a group, for `ppermute`.

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
        # Asked for in each exchange; that of the groups takes a microsecond.
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
    """How the thread that runs a program for one device reaches the others."""

    @property
    def position(self) -> int:
        """Where in the mesh the device is, counted along its last axis first."""
        ...

    def communicate(self, collective: Collective, operand: HostArray) -> HostArray:
        """Gives this device's part, waits for the others', and returns what this device gets."""
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
