"""The devices that run a program: their grid, and their joint computation.

Elsewhere: communication between them (`devices.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from iree.compiler import ir

from axir.dialect.core.annotations import Returning
from axir.dialect.core.state import state, with_axes
from axir.dialect.ops.shape.rearranging import reshape
from axir.dialect.ops.sharding.shard_map import apply_to_parts
from axir.dialect.program.meshes.layouts import Layout, MeshAxes, local_shape
from axir.dialect.program.rules import Value
from axir.dialect.program.tracer import Trace
from axir.dialect.text.summary import OF_DEVICES
from axir.passes.framework.errors import RaisingError

AXIS = "device"
"""The axis along which devices are computed together."""


class Grid(NamedTuple):
    """The devices that run a program; they are numbered replica by replica.

    Attributes:
        replicas: How many replicas there are.
        partitions: How many partitions each has.
        mesh: The axes of a mesh that they are, if they are one; the last counts fastest.
    """

    replicas: int = 1
    partitions: int = 1
    mesh: MeshAxes = ()

    @property
    def size(self) -> int:
        """The number of devices."""
        return self.replicas * self.partitions

    @property
    def axes(self) -> MeshAxes:
        """The axes along which they are computed together."""
        return self.mesh or ((AXIS, self.size),)

    def number(self, replica: int, partition: int) -> int:
        """Returns the number of a device."""
        return replica * self.partitions + partition


# Operations and custom calls of computations of parts of arrays.
_OF_PARTS = frozenset({"sdy.manual_computation", "SPMDFullToShardShape", "SPMDShardToFullShape"})

ALONE = Grid()
"""One device."""


def grid_of(module: ir.Module) -> Grid:
    """Returns how many devices a module says that it is for."""
    found = module.operation.attributes
    replicas, partitions = (
        max(1, ir.IntegerAttr(found[name]).value) if name in found else 1
        for name in ("mhlo.num_replicas", "mhlo.num_partitions")
    )
    return Grid(replicas, partitions)


def is_of_one_device(ops: Iterable[ir.Operation]) -> bool:
    """Tells whether functions are what one of several devices runs, not of whole arrays.

    They communicate, or ask where they run, elsewhere than in computations of parts.
    """
    names = set[str]()
    for op in ops:
        op.walk(lambda inner: _add_name(names, inner))
    return _OF_PARTS.isdisjoint(names) and not OF_DEVICES.isdisjoint(names)


def _add_name(names: set[str], op: ir.Operation) -> ir.WalkResult:
    is_call = op.name == "stablehlo.custom_call"
    names.add(ir.StringAttr(op.attributes["call_target_name"]).value if is_call else op.name)
    return ir.WalkResult.ADVANCE


def programs_of(op: ir.Operation) -> list[list[str]]:
    """Returns which function each device runs, by replica and partition: of StableHLO's tests."""
    if op.name != "interpreter.run_parallel":
        return []
    rows = [ir.ArrayAttr(row) for row in ir.ArrayAttr(op.attributes["programs"])]
    return [[ir.FlatSymbolRefAttr(name).value for name in row] for row in rows]


def mesh_of(op: ir.Operation) -> dict[str, MeshAxes]:
    """Returns the axes of a mesh by its name; none if its text was not read."""
    if "sym_name" not in op.attributes:
        return {}
    names = [ir.StringAttr(name).value for name in ir.ArrayAttr(op.attributes["axes"])]
    sizes = ir.DenseI64ArrayAttr(op.attributes["sizes"])
    return {ir.StringAttr(op.attributes["sym_name"]).value: tuple(zip(names, sizes, strict=True))}


_SHARDING = re.compile(r'<@(\w+|"[^"]*"), \[([^\]]*)\][^<>]*>')
_CUT = re.compile(r"\{([^}]*)\}")
_SUB_AXIS = re.compile(r'":[(p]')
_NAME = re.compile(r'"([^"]*)"')


def layouts_of(shardings: str) -> tuple[set[str], list[Layout]]:
    """Returns the meshes that shardings name, and how they cut arrays.

    Raises:
        RaisingError: if they cut along a part of an axis.

    >>> layouts_of('<@mesh, [{"x", "y"}, {}]>, <@mesh, []>')
    ({'mesh'}, [(('x', 'y'), ()), ()])
    """
    if _SUB_AXIS.search(shardings):
        raise RaisingError(
            f"The shardings {shardings} cut arrays along parts of an axis.",
            "Export a program for a mesh with these parts as axes.",
            where="",
        )
    found = _SHARDING.findall(shardings)
    layouts = [
        tuple(tuple(_NAME.findall(names)) for names in _CUT.findall(cuts)) for _, cuts in found
    ]
    return {name.strip('"') for name, _ in found}, layouts


def computed_together(
    function: Returning[Sequence[Value]], name: str, grid: Grid, values: Sequence[Value]
) -> list[Value]:
    """Applies the function of a device to arrays with a first axis of devices.

    Args:
        function: Takes the values of a device; it may name the axes of the grid.
        name: Its name.
        grid: The devices.
        values: The arrays, with a first axis of the devices.
    """

    def of_parts(*parts: Value) -> list[Value]:
        results = function(*(reshape(x, x.shape[1:]) for x in parts))
        return [reshape(x, (1, *x.shape)) for x in results]

    def first(rank: int) -> Layout:
        return ((AXIS,), *((),) * (rank - 1))

    return computed_on_parts(of_parts, name, grid, values, [first(x.ndim) for x in values], first)


def computed_on_parts(
    function: Returning[Sequence[Value]],
    name: str,
    grid: Grid,
    values: Sequence[Value],
    in_layouts: Sequence[Layout],
    out_layouts: Sequence[Layout] | Callable[[int], Layout],
) -> list[Value]:
    """Applies the function of a device, which takes parts, to whole arrays.

    Args:
        function: Takes the parts of a device; it may name the axes of the grid.
        name: Its name.
        grid: The devices.
        values: The arrays.
        in_layouts: The cuts of the arrays.
        out_layouts: The cuts of the results, or a function from an array's rank to its cuts.
    """
    axes = grid.axes
    with with_axes({**state.axis_sizes, **dict(axes)}, state.tracked_axes - dict(axes).keys()):
        with Trace(name, "ShardMap") as trace:
            inputs = [
                trace.add_input(x.type.update(shape=local_shape(x.shape, layout, axes, name)))
                for x, layout in zip(values, in_layouts, strict=True)
            ]
            traced = trace.finish(list(function(*inputs)))
    made = [v.type.ndim for v in traced.outputs]
    layouts = list(map(out_layouts, made)) if callable(out_layouts) else out_layouts
    return apply_to_parts(traced, values, axes, in_layouts, layouts)
