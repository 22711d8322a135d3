"""Cuts of arrays in the notation of GSPMD, XLA's older way to distribute arrays.

`{devices=[2,1,2]<=[4] last_tile_dim_replicate}` cuts the first dimension of a matrix in two. The
device numbers, in a grid of three dimensions, say which device has which part. Such grids become
axes of one mesh: each axis has a stride, the distance between the numbers of neighbours.
Elsewhere: Shardy's notation (`grid.py`), the computation (`parts.py`).
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np

from axir.dialect.core.annotations import HostArray
from axir.dialect.program.meshes.layouts import Layout, MeshAxes

from .table import refusal

Axis: TypeAlias = tuple[int, int]
"""The stride and the size of an axis of devices."""

_TILES = re.compile(r"devices=\[([\d,]+)\](?:<=\[([\d,]+)\](?:T\(([\d,]+)\))?|([\d,]+))")


def _numbers(text: str | None) -> list[int]:
    return [int(number) for number in text.split(",")] if text else []


def cuts_of(sharding: str) -> list[list[Axis]]:
    """Returns the axes along which each dimension is cut, and then further axes of the devices.

    >>> cuts_of("{devices=[2,1,2]<=[4] last_tile_dim_replicate}")
    [[(2, 2)], [], [(1, 2)]]
    >>> cuts_of("{devices=[4]<=[2,2]T(1,0)}"), cuts_of("{devices=[2,2]0,2,1,3}")
    ([[(1, 2), (2, 2)]], [[(1, 2)], [(2, 2)]])
    >>> cuts_of("{replicated}")
    []
    """
    found = _TILES.search(sharding)
    if found is None:
        return []
    axes = _listed(_numbers(found[4])) if found[4] else _strided(_numbers(found[2]))
    if found[3]:
        axes = [axes[place] for place in _numbers(found[3])]
    cuts = []
    for count in _numbers(found[1]):
        taken: list[Axis] = []
        while count > 1:
            stride, size = axes.pop(0)
            used = math.gcd(count, size)
            if used == 1 < size:
                raise _unknown(sharding)
            if used > 1:
                taken.append((stride * (size // used), used))
            if used < size:
                axes.insert(0, (stride, size // used))
            count //= used
        cuts.append(taken)
    return cuts


def _strided(sizes: Sequence[int]) -> list[Axis]:
    strides = itertools.accumulate(reversed(sizes[1:]), int.__mul__, initial=1)
    return list(zip(reversed(list(strides)), sizes, strict=True))


def _listed(devices: Sequence[int]) -> list[Axis]:
    """Returns the axes of a list of numbers that is a grid in some order of its axes."""
    axes: list[Axis] = []
    left = np.array(devices)
    while len(left) > 1:
        stride = int(left[1] - left[0])
        steps = left - left[0] == stride * np.arange(len(left))
        size = max(n for n in range(2, len(left) + 1) if len(left) % n == 0 and steps[:n].all())
        axes.insert(0, (stride, size))
        left = left[::size]
    made = sum(
        (stride * index for (stride, _), index in zip(axes, _indices(axes), strict=True)),
        np.zeros(1, int),
    )
    if not np.array_equal(np.reshape(made, -1), devices):
        raise _unknown(str(list(devices)))
    return axes


def _indices(axes: Sequence[Axis]) -> list[HostArray]:
    return list(np.indices([size for _, size in axes]))


def mesh_of_cuts(shardings: Iterable[str], count: int) -> MeshAxes:
    """Returns the axes of a mesh of a number of devices, fine enough for all given cuts.

    >>> mesh_of_cuts(["{devices=[4]<=[4]}", "{devices=[2,2]<=[2,2]T(1,0)}"], 4)
    (('stride 2', 2), ('stride 1', 2))
    """
    bounds = {1, count}
    for sharding in shardings:
        for stride, size in itertools.chain.from_iterable(cuts_of(sharding)):
            bounds |= {stride, stride * size}
    ordered = sorted(bounds, reverse=True)
    pairs = list(itertools.pairwise(ordered))
    if any(large % small for large, small in pairs):
        raise _unknown(", ".join(shardings))
    return tuple((f"stride {small}", large // small) for large, small in pairs)


def layout_of(sharding: str, rank: int, axes: MeshAxes) -> Layout:
    """Returns the cut of an array of a rank along the axes of `mesh_of_cuts`.

    >>> layout_of("{devices=[4,1]<=[4]}", 2, (("stride 2", 2), ("stride 1", 2)))
    (('stride 2', 'stride 1'), ())
    """
    cuts = [*cuts_of(sharding), *([] for _ in range(rank))][:rank]
    strides = {name: int(str(name).split()[1]) for name, _ in axes}
    return tuple(
        tuple(
            name
            for stride, size in cut
            for name, _ in axes
            if stride <= strides[name] < stride * size
        )
        for cut in cuts
    )


def _unknown(sharding: str) -> Exception:
    return refusal(
        f"The devices of {sharding} are no grid.",
        "Export the program for a mesh whose devices are in order.",
    )
