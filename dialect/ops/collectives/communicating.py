"""Lowering of collectives in a program that every device of a mesh runs on its parts.

The axes of such a program are the axes of the mesh (`LoweringContext.mesh_axes`). A collective
becomes a host call that meets the other devices' calls. The calls run in the order of the program,
and do not copy operands and results. Elsewhere: the exchange between devices
(`dialect/program/meshes/communication.py`), and collectives along axes that `vmap` maps.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import numpy as np
from iree.compiler import ir

from axir.dialect.core.annotations import HostArray, Param, Params
from axir.dialect.core.context import describe_location
from axir.dialect.core.errors import UnboundAxisNameError, UnsupportedRuleError
from axir.dialect.program.function_rules import LoweringContext
from axir.dialect.program.meshes.communication import REDUCTIONS, Collective, current_channel

Mesh = Sequence[tuple[Hashable, int]]


def groups_along(
    names: Sequence[Hashable], mesh: Mesh, subgroups: Sequence[Sequence[int]] | None = None
) -> tuple[tuple[int, ...], ...]:
    """Returns the groups of positions in a mesh that differ only along given axes.

    Args:
        names: The axes; the first one varies slowest within a group.
        mesh: Names and extents of all axes.
        subgroups: Indices into a group that form a smaller group each; by default the group is
            whole.

    >>> mesh = (("a", 2), ("b", 3))
    >>> groups_along(("b",), mesh)
    ((0, 1, 2), (3, 4, 5))
    >>> groups_along(("b", "a"), mesh)
    ((0, 3, 1, 4, 2, 5),)
    """
    positions = np.arange(math.prod(size for _, size in mesh)).reshape([s for _, s in mesh])
    places = [name for name, _ in mesh]
    moved = [places.index(name) for name in names]
    others = [place for place in range(len(places)) if place not in moved]
    extent = math.prod(mesh[place][1] for place in moved)
    whole = positions.transpose(others + moved).reshape(-1, extent).tolist()
    chosen = subgroups or [range(extent)]
    return tuple(tuple(group[k] for k in members) for group in whole for members in chosen)


def lower_collective(context: LoweringContext, value: ir.Value, **params: Param) -> list[ir.Value]:
    """Writes the call by which the devices of a mesh communicate; a `lower` rule."""
    kind = context.primitive.name
    mesh = mesh_of(context, params)
    names = names_of(params)
    groups = groups_along(names, mesh, params.get("axis_index_groups"))
    if len(groups[0]) == 1 and kind in REDUCTIONS:
        return [value]
    (operand_type,), (result_type,) = context.types_in, context.types_out
    collective = Collective(kind, groups, operand_type, result_type, **_details(kind, params))

    def communicate(operand: HostArray) -> list[HostArray]:
        return [current_channel().communicate(collective, operand)]

    return context.host_call(communicate, [value], [result_type], kind, keeps_results=True)


def lower_same(context: LoweringContext, value: ir.Value, **params: object) -> list[ir.Value]:
    """Returns a value without communication; a `lower` rule."""
    return [value]


def lower_axis_index(context: LoweringContext, **params: object) -> list[ir.Value]:
    """Writes the call that returns the position of a program's device; a `lower` rule."""
    groups = groups_along(names_of(params), mesh_of(context, params))
    place_of = {
        position: np.int32(place) for members in groups for place, position in enumerate(members)
    }

    def index() -> list[HostArray]:
        return [np.asarray(place_of[current_channel().position])]

    return context.host_call(index, [], context.types_out, "axis_index")


def names_of(params: Params) -> tuple[Hashable, ...]:
    """Returns the axes that the parameters of a collective name."""
    names = params["axes"] if "axes" in params else params["axis_name"]
    return names if isinstance(names, tuple) else (names,)


def _details(kind: str, params: Params) -> Params:
    if kind == "all_gather":
        return {"dimension": params["all_gather_dimension"], "is_tiled": params["tiled"]}
    if kind == "reduce_scatter":
        return {"dimension": params["scatter_dimension"], "is_tiled": params["tiled"]}
    if kind == "all_to_all":
        return {"dimension": params["split_axis"], "concat_dimension": params["concat_axis"]}
    return {"permutation": params["perm"]} if kind == "ppermute" else {}


def mesh_of(context: LoweringContext, params: Params) -> Mesh:
    """Returns the mesh that a program is lowered for.

    Raises:
        UnsupportedRuleError: if it is lowered without a mesh.
        UnboundAxisNameError: if the mesh lacks an axis that a collective names.
    """
    mesh = context.mesh_axes
    where = describe_location(ir.Location.current)
    if mesh is None:
        raise UnsupportedRuleError(
            f"{context.primitive.name}: it communicates over a named axis, which vectorization "
            "resolves.",
            "Map the axis with axir.vmap(..., axis_name=...), or the function with "
            "axir.shard_map over a mesh.",
            where,
        )
    known = [name for name, _ in mesh]
    for name in names_of(params):
        if name not in known:
            raise UnboundAxisNameError(
                f"unbound axis name: {name!r}. The axes of the mesh are: "
                f"{', '.join(map(repr, known))}.",
                "Name an axis of the mesh.",
                where,
            )
    return mesh
