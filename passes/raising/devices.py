"""Communication in StableHLO: collectives, and the number of the device.

The devices of a program are a grid of replicas and partitions. The program is computed for all
devices together: it is vectorized along an axis of devices, or along the axes of a mesh. The value
of another device is then an entry along that axis. With a single device, collectives are applied to
its value only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from iree.compiler import ir

from axir.dialect.core import dtypes
from axir.dialect.core.array import from_numpy
from axir.dialect.ops.collectives.axis_exchanges import all_gather_primitive
from axir.dialect.ops.collectives.axis_reductions import axis_index_primitive
from axir.dialect.ops.elementwise.arithmetic import add, div, mul, rem
from axir.dialect.ops.elementwise.comparison import eq, select_n
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.ops.indexing.dynamic_slicing import dynamic_index_in_dim
from axir.dialect.ops.indexing.static_slicing import index_in_dim, slice_in_dim
from axir.dialect.ops.shape.broadcasting import broadcast_in_dim
from axir.dialect.ops.shape.concatenation import concatenate
from axir.dialect.ops.shape.rearranging import reshape
from axir.dialect.ops.shape.stacking import stack
from axir.dialect.program.rules import Value
from axir.passes.raising.dimensions.attributes import dense, integer

from .grid import Grid, computed_together, programs_of
from .reductions import elementwise
from .table import RaisingContext, raises, refusal

Groups = list[list[int]]
"""Devices that communicate, in the order of each group, by their numbers in the grid."""

_FIRST = np.zeros((), np.int32)
_PAIRS = "source_target_pairs"
_HANDLE = "channel_handle"
_GLOBAL = "use_global_device_ids"


# Groups -------------------------------------------------------------------------------------------


def _groups(context: RaisingContext, operation: ir.Operation) -> Groups:
    """Returns the groups of an operation.

    Raises:
        RaisingError: if they name a device outside the grid.
    """
    grid, given = context.grid, dense(operation.attributes["replica_groups"])
    rows = np.atleast_2d(given).tolist() if given.size else []
    if grid.size == 1:
        return _check_alone(operation, rows)
    has_channel = _channel(operation) > 0
    if has_channel and _is_set(operation, _GLOBAL):
        flat = rows or [list(range(grid.size))]
        groups = [[n for n in row if n >= 0] for row in flat]
    elif operation.name in _OF_ONE_KIND and has_channel:
        groups = list(_along_partitions(grid, rows))
    elif has_channel:
        groups = [
            [grid.number(r, p) for p in range(grid.partitions) for r in row if r >= 0]
            for row in rows or [list(range(grid.replicas))]
        ]
    else:
        groups = list(_along_replicas(grid, rows))
    _check_numbers(operation, grid, [n for group in groups for n in group])
    return groups


def _along_replicas(grid: Grid, rows: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    for row in rows or [range(grid.replicas)]:
        for partition in range(grid.partitions):
            yield [grid.number(r, partition) for r in row if r >= 0]


def _along_partitions(grid: Grid, rows: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    for row in rows or [range(grid.partitions)]:
        for replica in range(grid.replicas):
            yield [grid.number(replica, p) for p in row if p >= 0]


def _is_set(operation: ir.Operation, name: str) -> bool:
    """Tells whether there is an attribute of a name, one of a unit or a truth value."""
    return name in operation.attributes and str(operation.attributes[name]) != "false"


def _channel(operation: ir.Operation) -> int:
    if _HANDLE not in operation.attributes:
        return 0
    shown = str(operation.attributes[_HANDLE])  # which has no class in Python
    return int(shown.split("handle = ")[1].split(",")[0])


def _check_alone(operation: ir.Operation, rows: Sequence[Sequence[int]]) -> Groups:
    """Raises if an operation communicates in a program of one device."""
    if any(len(row) != 1 for row in rows):
        shown = " and ".join(map(str, rows[:2]))
        raise refusal(
            f"{operation.name} communicates among the devices {shown}.",
            "The module does not say that there are several: mhlo.num_replicas or "
            "mhlo.num_partitions among its attributes does.",
        )
    return [[0]]


def _check_numbers(operation: ir.Operation, grid: Grid, numbers: Sequence[int]) -> None:
    wrong = [n for n in numbers if n >= grid.size]
    if wrong:
        raise refusal(
            f"The groups of {operation.name} name the device {wrong[0]}, which is none: there are "
            f"{grid.replicas} replicas of {grid.partitions} partitions.",
            "Correct its groups, or mhlo.num_replicas and mhlo.num_partitions of the module.",
        )


# Values of devices --------------------------------------------------------------------------------


def _held(context: RaisingContext, x: Value) -> list[Value]:
    """Returns the value of each device."""
    gathered, grid = x, context.grid
    for name, size in reversed(grid.axes):
        gathered = all_gather_primitive.bind(
            gathered, axis_name=name, all_gather_dimension=0, axis_size=size, tiled=False,
            axis_index_groups=None,
        )  # fmt: skip
    gathered = reshape(gathered, (grid.size, *x.shape))
    return [index_in_dim(gathered, n, keepdims=False) for n in range(grid.size)]


def _place(context: RaisingContext) -> Value:
    """Returns the number of the device."""
    place: Value = from_numpy(_FIRST)
    for name, size in context.grid.axes:
        index = axis_index_primitive.bind(axis_name=name)
        place = add(mul(place, from_numpy(np.array(size, np.int32))), index)
    return place


def _zeros(x: Value) -> Value:
    return broadcast_in_dim(from_numpy(np.zeros((), x.dtype)), x.shape, ())


def _own(context: RaisingContext, results: Sequence[Value]) -> Value:
    """Returns the result for this device, given the results for all devices."""
    if all(result is results[0] for result in results):
        return results[0]
    return dynamic_index_in_dim(stack(results), _place(context), keepdims=False)


def _by_group(
    context: RaisingContext,
    operation: ir.Operation,
    values: Sequence[Value],
    of_group: Callable[[list[Value]], Sequence[Value]],
    *,
    leaves_out: bool = False,
) -> list[Value]:
    """Applies a function to the values of each group; returns the results for this device."""
    groups = _groups(context, operation)
    if context.grid.size == 1:
        return list(values)
    missing = set(range(context.grid.size)).difference(*groups)
    if missing and not leaves_out:
        raise refusal(
            f"The groups of {operation.name} leave out the device {min(missing)}.",
            "Each device is in one group.",
        )
    results = []
    for x in values:
        held = _held(context, x)
        zeros = _zeros(x) if missing else None
        made: list[Value | None] = [zeros] * context.grid.size
        for group in groups:
            for number, result in zip(group, of_group([held[n] for n in group]), strict=True):
                made[number] = result
        results.append(_own(context, [result for result in made if result is not None]))
    return results


def _reduced(context: RaisingContext, operation: ir.Operation, held: Sequence[Value]) -> Value:
    total = held[0]
    for each in held[1:]:
        (total,) = elementwise(context, operation, [total, each])
    return total


# Rules --------------------------------------------------------------------------------------------


@raises("stablehlo.all_reduce", "stablehlo.cross-replica-sum")
def _all_reduce(
    context: RaisingContext, operation: ir.Operation, *values: Value
) -> Sequence[Value]:
    def of_group(held: list[Value]) -> Sequence[Value]:
        return [_reduced(context, operation, held)] * len(held)

    return _by_group(context, operation, values, of_group)


@raises("stablehlo.all_gather")
def _all_gather(
    context: RaisingContext, operation: ir.Operation, *values: Value
) -> Sequence[Value]:
    dimension = integer(operation, "all_gather_dim")

    def of_group(held: list[Value]) -> Sequence[Value]:
        return [concatenate(held, dimension)] * len(held)

    return _by_group(context, operation, values, of_group)


def _cut(x: Value, count: int, dimension: int) -> list[Value]:
    size = x.shape[dimension] // count
    return [slice_in_dim(x, n * size, (n + 1) * size, axis=dimension) for n in range(count)]


@raises("stablehlo.reduce_scatter")
def _reduce_scatter(
    context: RaisingContext, operation: ir.Operation, *values: Value
) -> Sequence[Value]:
    dimension = integer(operation, "scatter_dimension")

    def of_group(held: list[Value]) -> Sequence[Value]:
        return _cut(_reduced(context, operation, held), len(held), dimension)

    return _by_group(context, operation, values, of_group)


@raises("stablehlo.all_to_all")
def _all_to_all(
    context: RaisingContext, operation: ir.Operation, *values: Value
) -> Sequence[Value]:
    split, joined = (integer(operation, f"{x}_dimension") for x in ("split", "concat"))

    def of_group(held: list[Value]) -> Sequence[Value]:
        parts = [_cut(x, len(held), split) for x in held]
        return [concatenate([each[n] for each in parts], joined) for n in range(len(held))]

    return _by_group(context, operation, values, of_group)


@raises("stablehlo.collective_broadcast", "stablehlo.collective_reduce")
def _from_root(context: RaisingContext, operation: ir.Operation, *values: Value) -> Sequence[Value]:
    """Broadcasts the value of a group's root, or gives the root the reduction of all values."""
    reduces = operation.name == "stablehlo.collective_reduce"
    arrays, roots = values[: len(operation.results)], values[len(operation.results) :]
    results = []
    for number, x in enumerate(arrays):
        root = reshape(index_in_dim(roots[0], number), ()) if roots else from_numpy(_FIRST)

        def of_group(held: list[Value], x: Value = x, root: Value = root) -> Sequence[Value]:
            if not reduces:
                return [dynamic_index_in_dim(stack(held), root, keepdims=False)] * len(held)
            total, zeros = _reduced(context, operation, held), _zeros(x)
            places = (from_numpy(np.array(place, root.dtype)) for place in range(len(held)))
            return [select_n(eq(root, place), zeros, total) for place in places]

        results += _by_group(context, operation, [x], of_group, leaves_out=True)
    return results


@raises("stablehlo.collective_permute")
def _permute(context: RaisingContext, operation: ir.Operation, *values: Value) -> Sequence[Value]:
    grid, routes = context.grid, dense(operation.attributes[_PAIRS]).reshape(-1, 2).tolist()
    if grid.size == 1:
        if routes not in ([], [[0, 0]]):
            raise refusal(
                f"stablehlo.collective_permute communicates among devices: {routes}.",
                "The module does not say that there are several: mhlo.num_replicas or "
                "mhlo.num_partitions among its attributes does.",
            )
        return values if routes else [_zeros(x) for x in values]
    along = _along_partitions if _channel(operation) > 0 else _along_replicas
    moves = [move for route in routes for move in along(grid, [route])]
    _check_numbers(operation, grid, [source for source, _ in moves])
    _check_numbers(operation, grid, [target for _, target in moves])
    results = []
    for x in values:
        held, zeros = _held(context, x), _zeros(x)
        source_of = {target: source for source, target in moves}
        made = [held[source_of[n]] if n in source_of else zeros for n in range(grid.size)]
        results.append(_own(context, made))
    return results


@raises("stablehlo.partition_id", "stablehlo.replica_id")
def _number(context: RaisingContext, operation: ir.Operation) -> Value:
    if context.grid.size == 1:
        return from_numpy(np.zeros((), np.uint32))
    place = convert_element_type(_place(context), dtypes.uint32)
    partitions = from_numpy(np.array(context.grid.partitions, np.uint32))
    return (div if operation.name == "stablehlo.replica_id" else rem)(place, partitions)


@raises("interpreter.run_parallel")
def _run_parallel(
    context: RaisingContext, operation: ir.Operation, *values: Value
) -> Sequence[Value]:
    """Runs a function on each device of a grid, as StableHLO's interpreter does in its tests."""
    rows = programs_of(operation)
    names = {name for row in rows for name in row}
    if len(names) != 1:
        raise refusal(
            f"{operation.name} runs different functions at once: {', '.join(sorted(names))}.",
            "Devices of axir run one program: write one that chooses by stablehlo.partition_id.",
        )
    if any(x is None for x in values):
        raise refusal(
            f"{operation.name} gives tokens to functions, which order infeeds, outfeeds, sends and "
            "receives of several programs.",
            "Functions of axir take arrays: export the program without these.",
        )
    grid = Grid(len(rows), len(rows[0]))
    count = len(values) // grid.size
    whole = [stack(values[n::count]) for n in range(count)]
    name = names.pop()

    def run(*parts: Value) -> list[Value]:
        return context.call(name, parts)

    made = context.on_grid(grid, lambda: computed_together(run, name, grid, whole))
    return [index_in_dim(x, n, keepdims=False) for n in range(grid.size) for x in made]


@raises("stablehlo.infeed", "stablehlo.outfeed", "stablehlo.recv", "stablehlo.send")
def _feed(context: RaisingContext, operation: ir.Operation, *values: Value) -> Sequence[Value]:
    raise refusal(
        f"{operation.name} exchanges arrays with the program that runs the module.",
        "Functions of axir take arguments and return results: export it with these instead.",
    )


@raises("stablehlo.create_token")
def _token(context: RaisingContext, operation: ir.Operation) -> list[None]:
    return [None]


@raises("stablehlo.after_all")
def _after_all(context: RaisingContext, operation: ir.Operation, *tokens: None) -> list[None]:
    return [None]


@raises("builtin.unrealized_conversion_cast", "sdy.sharding_constraint", "sdy.reshard")
def _sharding(context: RaisingContext, operation: ir.Operation, x: Value) -> Value:
    return x


_OF_ONE_KIND = (
    "stablehlo.all_to_all",
    "stablehlo.collective_broadcast",
    "stablehlo.collective_reduce",
)
