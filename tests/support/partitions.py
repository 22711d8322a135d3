"""Partitioned programs on one device."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from axir.dialect.ops.sharding.whole_arrays import on_whole_arrays
from axir.dialect.program.function import Function
from axir.dialect.program.meshes.layouts import MeshAxes
from axir.dialect.program.meshes.partitioning import Partitioned

COLLECTIVES = {
    "psum", "pmax", "pmin", "all_gather", "reduce_scatter", "all_to_all", "ppermute",
}  # fmt: skip


def on_one_device(parts: Partitioned, axes: MeshAxes, arguments: Sequence[Any]) -> list[Any]:
    """Whole results that the devices compute together, given whole arguments."""
    whole = on_whole_arrays(parts.local, axes, parts.in_layouts, parts.out_layouts)
    return whole.evaluate(*arguments)


def collectives_of(function: Function) -> Counter[str]:
    """The number of collectives of each kind in a function and its callees."""
    found = Counter(e.primitive.name for e in function.equations if e.primitive.name in COLLECTIVES)
    for callee in function.callees():
        found += collectives_of(callee)
    return found
