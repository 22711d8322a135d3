"""Moves from one layout of an array to another: the collectives and their cost.

Each step is found by the first of these rules that applies:

1. The other layout cuts a dimension along a further axis that cuts no dimension yet: a slice.
2. The innermost axis of a dimension must cut another dimension: an exchange (all-to-all).
3. A dimension is cut in another way: a gather along the innermost of its axes.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from axir.dialect.ops.collectives.axis_exchanges import all_gather_primitive, all_to_all_primitive
from axir.dialect.ops.collectives.axis_reductions import axis_index_primitive
from axir.dialect.ops.elementwise.arithmetic import mul
from axir.dialect.ops.indexing.dynamic_slicing import dynamic_slice
from axir.dialect.program.meshes.layouts import Layout, MeshAxes, local_shape
from axir.dialect.program.rules import Value


class Step(NamedTuple):
    """One step from layout to layout.

    Attributes:
        axis: The axis of the mesh.
        left: The dimension that was cut along the axis; None if no dimension was.
        reached: The dimension that is cut along it afterwards; None if no dimension is.
    """

    axis: Hashable
    left: int | None
    reached: int | None


def steps(before: Layout, after: Layout) -> list[Step]:
    """Returns the steps from one layout to another.

    >>> steps((("x",), ()), ((), ("x",)))
    [Step(axis='x', left=0, reached=1)]
    >>> steps((("x",), ()), ((), ()))
    [Step(axis='x', left=0, reached=None)]
    >>> steps(((), ()), (("x", "y"), ()))
    [Step(axis='x', left=None, reached=0), Step(axis='y', left=None, reached=0)]
    """
    found: list[Step] = []
    current = [list(names) for names in before]
    while True:
        step = _next(current, after)
        if step is None:
            return found
        if step.left is not None:
            current[step.left].pop()
        if step.reached is not None:
            current[step.reached].append(step.axis)
        found.append(step)


def _next(current: list[list[Hashable]], after: Layout) -> Step | None:
    used = {name: d for d, names in enumerate(current) for name in names}
    missing = list(_missing(current, after))
    for dimension, name in missing:
        if name not in used:
            return Step(name, None, dimension)
    for dimension, name in missing:
        place = used[name]
        if current[place][-1] == name and not _is_prefix(current[place], after[place]):
            return Step(name, place, dimension)
    for dimension, names in enumerate(current):
        if not _is_prefix(names, after[dimension]):
            return Step(names[-1], dimension, None)
    return None


def _missing(current: list[list[Hashable]], after: Layout) -> Iterator[tuple[int, Hashable]]:
    """Yields the dimensions that must be cut further, and the next axis for each."""
    for dimension, (names, wanted) in enumerate(zip(current, after, strict=True)):
        if len(names) < len(wanted) and _is_prefix(names, wanted):
            yield dimension, wanted[len(names)]


def _is_prefix(names: Sequence[Hashable], wanted: Sequence[Hashable]) -> bool:
    return tuple(names) == tuple(wanted[: len(names)])


def bytes_moved(
    found: Sequence[Step], before: Layout, shape: Sequence[int], itemsize: int, axes: MeshAxes
) -> float:
    """Returns how many bytes a device receives in some steps; slices are free."""
    sizes = dict(axes)
    held = float(math.prod(local_shape(shape, before, axes)) * itemsize)
    total = 0.0
    for axis, left, reached in found:
        count = sizes[axis]
        if left is None:
            held /= count
        elif reached is None:
            total += held * (count - 1)
            held *= count
        else:
            total += held * (count - 1) / count
    return total


def moved(value: Value, found: Sequence[Step], axes: MeshAxes) -> Value:
    """Returns a device's part of an array after some steps, given its part before them."""
    for step in found:
        value = _apply(value, step, dict(axes)[step.axis])
    return value


def _apply(x: Value, step: Step, count: int) -> Value:
    axis, left, reached = step
    if left is None:
        assert reached is not None
        extent = x.shape[reached] // count
        start = mul(axis_index_primitive.bind(axis_name=axis), np.int32(extent))
        starts = [start if d == reached else np.int32(0) for d in range(x.ndim)]
        sizes = [extent if d == reached else n for d, n in enumerate(x.shape)]
        return dynamic_slice(x, starts, sizes, allow_negative_indices=False)
    shared = {"axis_name": axis, "axis_size": count, "axis_index_groups": None}
    if reached is None:
        return all_gather_primitive.bind(x, all_gather_dimension=left, tiled=True, **shared)
    return all_to_all_primitive.bind(x, split_axis=reached, concat_axis=left, **shared)
