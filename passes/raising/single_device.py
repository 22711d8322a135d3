"""Communication in StableHLO for one device: the result of a collective is its operand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from iree.compiler import ir

from axir.dialect.core.array import from_numpy
from axir.dialect.program.rules import Value

from .attributes import dense
from .table import RaisingContext, raises, refusal


def _check_alone(operation: ir.Operation, name: str = "replica_groups") -> None:
    """Raises if an operation communicates."""
    groups = dense(operation.attributes[name])
    if groups.size and (groups.ndim < 2 or groups.shape[1] != 1):
        shown = " and ".join(str(group.tolist()) for group in np.atleast_2d(groups)[:2])
        raise refusal(
            f"{operation.name} communicates among the devices {shown}.",
            "A module of axir is the program of one device: export it for one.",
        )


@raises(
    "stablehlo.all_reduce",
    "stablehlo.all_gather",
    "stablehlo.all_to_all",
    "stablehlo.reduce_scatter",
    "stablehlo.collective_broadcast",
    "stablehlo.collective_reduce",
    "stablehlo.cross-replica-sum",
)
def _exchange(context: RaisingContext, operation: ir.Operation, *values: Value) -> Sequence[Value]:
    _check_alone(operation)
    return values


@raises("stablehlo.collective_permute")
def _permute(context: RaisingContext, operation: ir.Operation, x: Value) -> Value:
    routes = dense(operation.attributes["source_target_pairs"])
    if routes.tolist() == [[0, 0]]:
        return x
    if not routes.size:
        return from_numpy(np.zeros(x.shape, x.dtype))
    raise refusal(
        f"stablehlo.collective_permute communicates among devices: {routes.tolist()}.",
        "A module of axir is the program of one device: export it for one.",
    )


@raises("stablehlo.partition_id", "stablehlo.replica_id")
def _number(context: RaisingContext, operation: ir.Operation) -> Value:
    return from_numpy(np.zeros((), np.uint32))


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


@raises("sdy.sharding_constraint", "sdy.reshard")
def _sharding(context: RaisingContext, operation: ir.Operation, x: Value) -> Value:
    return x
