"""Control flow of StableHLO: branches, loops. Counting loops become `scan` (`loops.py`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from iree.compiler import ir

from axir.dialect.ops.control_flow.closed_bodies import trace_body
from axir.dialect.ops.control_flow.conditional import bind_cond
from axir.dialect.ops.control_flow.while_loop import bind_while
from axir.dialect.ops.elementwise.comparison import lt, select_n
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.program.rules import Value

from .counters import varying_places
from .loops import counted_loop
from .table import RaisingContext, raises


@raises("stablehlo.if")
def _if(context: RaisingContext, operation: ir.Operation, predicate: Value) -> Sequence[Value]:
    return _chosen(context, operation, convert_element_type(predicate, np.int32), (1, 0))


@raises("stablehlo.case")
def _case(context: RaisingContext, operation: ir.Operation, index: Value) -> Sequence[Value]:
    last = len(operation.regions) - 1
    if not _is_inside(operation.operands[0]):
        # An index out of range takes the last branch; `cond` clamps its index.
        index = select_n(lt(index, np.int32(0)), index, np.int32(last))
    return _chosen(context, operation, index, range(last + 1))


def _is_inside(index: ir.Value) -> bool:
    """Tells whether an index is already clamped, or a boolean."""
    owner = index.owner
    if isinstance(owner, ir.Block):
        return False
    if owner.name == "stablehlo.convert":
        return str(owner.operands[0].type.element_type) == "i1"
    return owner.name == "stablehlo.clamp"


def _chosen(
    context: RaisingContext, operation: ir.Operation, index: Value, order: Sequence[int]
) -> Sequence[Value]:
    branches = [
        trace_body(context.body(operation, number), (), f"branch_{place}", is_branch=True)
        for place, number in enumerate(order)
    ]
    return bind_cond(index, branches, ())


@raises("stablehlo.while")
def _while(context: RaisingContext, operation: ir.Operation, *init: Value) -> Sequence[Value]:
    counted = counted_loop(context, operation, init)
    if counted is not None:
        return counted
    condition, body = context.body(operation, 0), context.body(operation, 1)
    varying = varying_places(operation)

    def whole(carry: Sequence[Value]) -> list[Value]:
        values = list(init)
        for place, value in zip(varying, carry, strict=True):
            values[place] = value
        return values

    def advance(*carry: Value) -> list[Value]:
        results: list[Value] = body(*whole(carry))
        return [results[place] for place in varying]

    carry = [init[place] for place in varying]
    types = [x.aval.strip_weak_type() for x in carry]
    results = bind_while(
        trace_body(lambda *values: condition(*whole(values)), types, "condition"),
        trace_body(advance, types, "body"),
        carry,
    )
    return whole(results)
