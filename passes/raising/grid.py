"""The devices that run a program: how many there are, and all of them computed together.

What they exchange is in `devices.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from iree.compiler import ir

from axir.dialect.core.state import state, with_axes
from axir.dialect.ops.shape.rearranging import reshape
from axir.dialect.ops.sharding.shard_map import apply_to_parts
from axir.dialect.program.rules import Value
from axir.dialect.program.tracer import Trace
from axir.dialect.text.summary import OF_DEVICES

AXIS = "device"
"""The axis along which devices are computed together."""


class Grid(NamedTuple):
    """How many devices run a program; they are numbered replica by replica."""

    replicas: int = 1
    partitions: int = 1

    @property
    def size(self) -> int:
        """How many devices there are."""
        return self.replicas * self.partitions

    def number(self, replica: int, partition: int) -> int:
        """Returns the number of a device."""
        return replica * self.partitions + partition


ALONE = Grid()
"""One device."""


def grid_of(module: ir.Module) -> Grid:
    """Returns how many devices a module says that it is for."""
    found = module.operation.attributes
    counts = [
        ir.IntegerAttr(found[name]).value if name in found else 1
        for name in ("mhlo.num_replicas", "mhlo.num_partitions")
    ]
    return Grid(*(max(1, count) for count in counts))


def tells_devices_apart(op: ir.Operation) -> bool:
    """Tells whether an operation, or one in it, depends on which device runs it, or on others."""
    if op.name in OF_DEVICES:
        return True
    blocks = (block for region in op.regions for block in region.blocks)
    return any(tells_devices_apart(view.operation) for block in blocks for view in block.operations)


def programs_of(op: ir.Operation) -> list[list[str]]:
    """Returns which function each device runs, by replica and partition: of StableHLO's tests."""
    if op.name != "interpreter.run_parallel":
        return []
    rows = [ir.ArrayAttr(row) for row in ir.ArrayAttr(op.attributes["programs"])]
    return [[ir.FlatSymbolRefAttr(name).value for name in row] for row in rows]


def computed_together(
    function: Callable[[Sequence[Value]], Sequence[Value]],
    name: str,
    grid: Grid,
    values: Sequence[Value],
) -> list[Value]:
    """Applies what each device computes to arrays that have what each of them holds in front.

    Args:
        function: Of what a device holds; in it `AXIS` can be named.
        name: Its name.
        grid: The devices.
        values: The arrays, with a first axis of the devices.
    """
    with with_axes({**state.axis_sizes, AXIS: grid.size}, state.tracked_axes - {AXIS}):
        with Trace(name, "ShardMap") as trace:
            inputs = [trace.add_input(x.type.update(shape=(1, *x.shape[1:]))) for x in values]
            results = function([reshape(x, x.shape[1:]) for x in inputs])
            traced = trace.finish([reshape(x, (1, *x.shape)) for x in results])
    axes = ((AXIS, grid.size),)
    layouts = [((AXIS,), *((),) * (len(v.type.shape) - 1)) for v in traced.inputs]
    made = [((AXIS,), *((),) * (len(v.type.shape) - 1)) for v in traced.outputs]
    return apply_to_parts(traced, values, axes, layouts, made)
