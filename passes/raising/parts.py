"""Computations of parts of arrays, as JAX's `shard_map` writes them: by Shardy, and by GSPMD.

Shardy has an operation with the computation of a device as a region. GSPMD has custom calls that
turn whole arrays into parts and back; between them stands the call of a function of a device. A
computation may leave axes of the mesh to the compiler: the devices along these axes then compute
the same. Elsewhere: communication (`devices.py`), the devices of a program (`grid.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from iree.compiler import ir

from axir.dialect.core.array import from_numpy
from axir.dialect.ops.collectives.axis_exchanges import all_gather_primitive
from axir.dialect.ops.collectives.axis_reductions import axis_index_primitive
from axir.dialect.ops.elementwise.arithmetic import add, mul
from axir.dialect.ops.indexing.dynamic_slicing import dynamic_slice_in_dim
from axir.dialect.program.meshes.layouts import Layout, MeshAxes, device_count
from axir.dialect.program.rules import Value
from axir.passes.framework.errors import RaisingError
from axir.passes.raising.dimensions.attributes import text

from .grid import Grid, computed_on_parts, grid_of, layouts_of
from .gspmd import layout_of, mesh_of_cuts
from .table import Raised, RaisingContext, Region, raises, raises_calls_of, refusal

_TO_PARTS, _TO_WHOLE = "SPMDFullToShardShape", "SPMDShardToFullShape"
_SHARDING = "mhlo.sharding"


def _on_parts(
    context: RaisingContext,
    body: Region,
    axes: MeshAxes,
    values: Sequence[Value],
    layouts: tuple[Sequence[Layout], Sequence[Layout]],
) -> list[Value]:
    """Applies the function of a device to parts of arrays, perhaps within another such function."""
    in_layouts, out_layouts = layouts
    if context.grid.size > 1:
        if not set(axes) <= set(context.grid.axes):
            raise refusal(
                "A computation of parts stands in another one, for another mesh.",
                "Export a program for one mesh.",
            )
        parts = [_cut(x, layout, axes) for x, layout in zip(values, in_layouts, strict=True)]
        results = body(*parts)
        return [_joined(x, layout, axes) for x, layout in zip(results, out_layouts, strict=True)]
    grid = Grid(1, math.prod(size for _, size in axes), axes)

    def run() -> list[Value]:
        return computed_on_parts(body, "manual", grid, values, in_layouts, out_layouts)

    return context.on_grid(grid, run)


def _cut(x: Value, layout: Layout, axes: MeshAxes) -> Value:
    """Returns the part of an array that a device has."""
    for dimension, names in enumerate(layout):
        place: Value = from_numpy(np.zeros((), np.int32))
        for name in names:
            size = from_numpy(np.array(dict(axes)[name], np.int32))
            place = add(mul(place, size), axis_index_primitive.bind(axis_name=name))
        if names:
            extent = x.shape[dimension] // device_count(names, axes)
            start = mul(place, from_numpy(np.array(extent, np.int32)))
            x = dynamic_slice_in_dim(x, start, extent, dimension)
    return x


def _joined(x: Value, layout: Layout, axes: MeshAxes) -> Value:
    """Returns the array that devices have parts of."""
    for dimension, names in enumerate(layout):
        for name in reversed(names):
            x = all_gather_primitive.bind(
                x, axis_name=name, all_gather_dimension=dimension, axis_size=dict(axes)[name],
                tiled=True, axis_index_groups=None,
            )  # fmt: skip
    return x


# Shardy -------------------------------------------------------------------------------------------


@raises("sdy.manual_computation")
def _manual_computation(
    context: RaisingContext, operation: ir.Operation, *values: Value
) -> Sequence[Value]:
    inputs, outputs, manual = (
        text(operation, name) for name in ("in_shardings", "out_shardings", "manual_axes")
    )
    (names, in_layouts), (more, out_layouts) = layouts_of(inputs), layouts_of(outputs)
    if len(names | more) > 1:
        raise refusal(f"{operation.name} names several meshes.", "Export a program for one mesh.")
    axes = context.mesh(min(names | more, default=""))

    def cut_along(layout: Layout) -> Layout:
        return tuple(tuple(x for x in names if f'"{x}"' in manual) for names in layout)

    layouts = list(map(cut_along, in_layouts)), list(map(cut_along, out_layouts))
    return _on_parts(context, context.body(operation), axes, values, layouts)


# GSPMD --------------------------------------------------------------------------------------------


class _Parts(NamedTuple):
    """The parts of an array: an operand of the function of a device."""

    whole: Value
    sharding: str


class _Joined(NamedTuple):
    """A result of the function of a device, joined already."""

    whole: Value


@raises_calls_of(_TO_PARTS)
def _to_parts(context: RaisingContext, operation: ir.Operation, x: Value) -> Raised:
    users = [use.owner.operation.name for use in operation.results[0].uses]
    if set(users) - {"func.call"}:
        raise _without_function(_TO_PARTS)
    marked = operation.operands[0].owner
    is_marked = not isinstance(marked, ir.Block) and _SHARDING in marked.attributes
    return [_Parts(x, text(marked, _SHARDING) if is_marked else "")]


@raises_calls_of(_TO_WHOLE)
def _to_whole(context: RaisingContext, operation: ir.Operation, x: Raised) -> Raised:
    if not isinstance(x, _Joined):
        raise _without_function(_TO_WHOLE)
    return x.whole


def _without_function(target: str) -> RaisingError:
    return refusal(
        f"{target} stands beside other operations than calls of a function of a device.",
        "Export the program with JAX, which writes such a function.",
    )


@raises("func.call", "sdy.call")
def _call(context: RaisingContext, operation: ir.Operation, *values: Raised) -> Sequence[Raised]:
    callee = text(operation, "callee")
    shardings = [_sharding_of_whole(result) for result in operation.results]
    is_of_device = any(isinstance(x, _Parts) for x in values)
    if not is_of_device and not any(x is not None for x in shardings):
        return context.call(callee, values)
    operands = [x if isinstance(x, _Parts) else _Parts(x, "") for x in values]
    axes = context.grid.axes
    if context.grid.size == 1:
        count = grid_of(context.module).size
        axes = mesh_of_cuts(_shardings_of(context.module), count)
    in_layouts = [layout_of(x.sharding, x.whole.ndim, axes) for x in operands]
    types = [result.type for result in operation.results]
    out_layouts = [
        layout_of(sharding or "", kind.rank, axes)
        for sharding, kind in zip(shardings, types, strict=True)
    ]

    def body(*parts: Value) -> list[Value]:
        return context.call(callee, parts)

    whole = [x.whole for x in operands]
    results = _on_parts(context, body, axes, whole, (in_layouts, out_layouts))
    return list(map(_Joined, results))


def _sharding_of_whole(part: ir.Value) -> str | None:
    """Returns how a result of a device's function is a part of an array; None for other results."""
    for use in part.uses:
        user = use.owner.operation
        if user.name != "stablehlo.custom_call":
            continue
        if text(user, "call_target_name") == _TO_WHOLE:
            return text(user, _SHARDING)
        if text(user, "call_target_name") == "Sharding":
            found = _sharding_of_whole(user.results[0])
            if found is not None:
                return found
    return None


def _shardings_of(module: ir.Module) -> list[str]:
    """Returns the cuts among all devices that a module names."""
    found: list[str] = []

    def add_sharding(op: ir.Operation) -> ir.WalkResult:
        if op.name == "stablehlo.custom_call" and _SHARDING in op.attributes:
            found.append(text(op, _SHARDING))
        return ir.WalkResult.ADVANCE

    module.operation.walk(add_sharding)
    return found
