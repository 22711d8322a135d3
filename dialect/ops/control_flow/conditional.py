"""`cond`: one of several branches, chosen by an index.

Operands are the index, an int32 scalar that is clamped to the number of branches, and the operands
of all branches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Param, UserFunction
from axir.dialect.core.array import ConcreteArray
from axir.dialect.core.errors import ParameterError, UnsupportedRuleError
from axir.dialect.core.memo import derived
from axir.dialect.core.symbolic_zeros import (
    Marks,
    chosen,
    inverted,
    moving,
    spread,
    unknown,
)
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.calls.jit_call import spread_cotangents
from axir.dialect.ops.elementwise.arithmetic import clamp
from axir.dialect.ops.elementwise.comparison import eq, select_n
from axir.dialect.ops.elementwise.conversion import stop_gradient
from axir.dialect.ops.elementwise.family import full
from axir.dialect.ops.shape.broadcasting import broadcast_in_dim
from axir.dialect.ops.shape.rearranging import moveaxis
from axir.dialect.program.costs import interpretation_time
from axir.dialect.program.derived_functions import derive, derive_batched
from axir.dialect.program.effects import acts, has_effects
from axir.dialect.program.function import Function
from axir.dialect.program.function_rules import LoweringContext
from axir.dialect.program.op_table import declare
from axir.dialect.program.rules import Cotangent, Operand, OperandTangents, Tangent, Value

from . import loop_samples
from .closed_bodies import (
    Body,
    call_function,
    check_arguments,
    check_results,
    closed,
    instantiated,
    split,
    trace_body,
)
from .execution import implementation, quiet, steps_of
from .parts import partition_cond, varying_cond


def bind_cond(index: Operand, branches: Sequence[Body], operands: Sequence[Value]) -> list[Value]:
    """Applies `cond` to branches with captured values as their first inputs."""
    joined, captured = join_captures(branches)
    return cond_primitive.bind(index, *captured, *operands, branches=joined)


def join_captures(branches: Sequence[Body]) -> tuple[tuple[Function, ...], list[Any]]:
    """Lets all branches take the values that any of them captured, each value once."""
    while True:
        captured = list({id(x): x for branch in branches for x in branch.captured}.values())
        joined = [_with_captures(branch, captured) for branch in branches]
        if all(a is b for a, b in zip(joined, branches, strict=True)):
            return tuple(branch.function for branch in joined), captured
        # Tracing again folds constants, and these may be captured in turn.
        branches = joined


def _with_captures(branch: Body, captured: list[Value]) -> Body:
    """Returns a branch that takes given captured values, including its own."""
    place_of = {id(x): place for place, x in enumerate(captured)}
    places = tuple(place_of[id(x)] for x in branch.captured)
    if places == tuple(range(len(captured))):
        return branch
    made = _taking(branch.function, places, tuple(x.type for x in captured))
    return Body(made.function, (*made.captured, *captured))


@derived
def _taking(function: Function, places: tuple[int, ...], types: tuple[ShapedArray, ...]) -> Body:
    """Returns a branch that takes values of given types; its captures stand at given places."""

    def choose(*arguments: Value) -> list[Value]:
        operands = arguments[len(types) :]
        return function.interpret([*(arguments[i] for i in places), *operands])

    return trace_body(choose, [*types, *function.input_types[len(places) :]], function.name)


def _infer(*types: ShapedArray, branches: tuple[Function, ...]) -> list[ShapedArray]:
    if not branches or not types:
        raise ParameterError("cond needs an index and at least one branch.")
    index, *operands = types
    if index.shape or index.dtype != dtypes.int32:
        raise ParameterError(
            f"cond: the index must be an int32 scalar, but is {index}.",
            "Convert a truth value with x.astype(numpy.int32).",
        )
    # If branches differ in weak types, the first one's hold, as in JAX.
    first = branches[0].output_types
    for number, branch in enumerate(branches):
        check_arguments(f"cond: branch {number}", branch, operands)
        check_results(f"cond: branch {number}, like branch 0,", branch, first)
    return list(first)


def _evaluate(
    index: np.ndarray, *operands: np.ndarray, branches: tuple[Function, ...]
) -> list[np.ndarray]:
    branch = branches[min(max(int(index), 0), len(branches) - 1)]
    with quiet():
        return steps_of(branch)(operands)


def _work(*, branches: tuple[Function, ...]) -> float:
    return max(map(interpretation_time, branches))


def _lower(
    context: LoweringContext, index: ir.Value, *values: ir.Value, branches: tuple[Function, ...]
) -> list[ir.Value]:
    types = [t.words.mlir for t in context.types_out]
    if len(branches) == 1 or not (types or any(map(has_effects, branches))):
        return context.inline(branches[0], *values) if len(branches) == 1 else []

    def region(branch: Function) -> UserFunction:
        return lambda: context.inline(branch, *values)

    if len(branches) == 2:
        is_second = hlo.compare(index, hlo.constant(np.int32(0)), "GT")
        return hlo.if_(is_second, region(branches[1]), region(branches[0]), types)
    least, most = hlo.constant(np.int32(0)), hlo.constant(np.int32(len(branches) - 1))
    return hlo.case(hlo.clamp(least, index, most), [region(b) for b in branches], types)


# Derivatives -----------------------------------------------------------------------------------


def _either(active: Sequence[Marks]) -> Marks:
    return tuple(map(any, zip(*active, strict=True)))


def _alike(
    functions: Sequence[Function],
    active: Sequence[Marks],
    types: Sequence[ShapedArray],
    kind: str,
    count: int = 0,
) -> tuple[list[Body], Marks]:
    """Closes functions derived from branches; all return a tangent where any of them does.

    Args:
        functions: One for each branch.
        active: Which tangents (or cotangents) each of them returns.
        types: Types of the primal values of these tangents.
        kind: The transformation that traces.
        count: How many results stand before the tangents.
    """
    either = _either(active)

    def close(function: Function, mine: Marks) -> Body:
        def apply(*arguments: Value) -> list[Value]:
            results = call_function(function, arguments)
            tangents = spread(results[count:], mine, types)
            return [*results[:count], *instantiated(tangents, either)]

        return trace_body(apply, function.input_types, function.name, kind)

    return list(map(close, functions, active)), either


@derived
def _tangent_branches(branches: tuple[Function, ...], active: Marks) -> tuple[list[Body], Marks]:
    parts = [derive(branch, "jvp", active) for branch in branches]
    functions, marks = [d.function for d in parts], [d.active_outputs for d in parts]
    types = branches[0].output_types
    return _alike(functions, marks, types, "Jvp", len(types))


def _value_and_jvp(
    primals: Sequence[Value], tangents: OperandTangents, *, branches: tuple[Function, ...]
) -> tuple[Sequence[Value], Sequence[Tangent]]:
    active = moving(tangents[1:])
    bodies, active_out = _tangent_branches(branches, active)
    results = bind_cond(primals[0], bodies, [*primals[1:], *chosen(tangents[1:], active)])
    types = branches[0].output_types
    return results[: len(types)], spread(results[len(types) :], active_out, types)


class _Split(NamedTuple):
    """Branches split into known and linear ones.

    Attributes:
        known: From the operands to the outputs, then a value for each slot.
        linear: From the tangents, the operands that are residuals, and the slots to tangents.
        slots: Number of the slots: residuals that branches compute, places shared between them.
        shared: Which operands are residuals.
        active_outputs: Which outputs have tangents.
    """

    known: list[Body]
    linear: list[Body]
    slots: int
    shared: tuple[int, ...]
    active_outputs: Marks


def _slots_of(splits: Sequence[Any]) -> tuple[list[ShapedArray], list[list[int]]]:
    """Assigns slots to the computed residuals of branches, which share slots of equal type."""
    slots: list[ShapedArray] = []
    places = []
    for parts in splits:
        taken: set[int] = set()
        mine = []
        for variable in parts.known.outputs[len(parts.active_outputs) :]:
            wanted = variable.type.strip_weak_type()
            place = next(
                (i for i, t in enumerate(slots) if t is wanted and i not in taken), len(slots)
            )
            if place == len(slots):
                slots.append(wanted)
            taken.add(place)
            mine.append(place)
        places.append(mine)
    return slots, places


@derived
def _split_branches(branches: tuple[Function, ...], active: Marks) -> _Split:
    splits = [derive(branch, "linearize", active) for branch in branches]
    slots, places = _slots_of(splits)
    active_out = _either([s.active_outputs for s in splits])
    shared = tuple(sorted({s for parts in splits for s in parts.residuals if type(s) is int}))
    operand_types = branches[0].input_types
    types = branches[0].output_types

    def known(number: int) -> Body:
        parts, mine = splits[number], places[number]

        def apply(*operands: Value) -> list[Value]:
            results = call_function(parts.known, operands)
            values: list[Value] = [full(t.shape, 0, t.dtype) for t in slots]
            for place, value in zip(mine, results[len(types) :], strict=True):
                values[place] = value
            return [*results[: len(types)], *values]

        return trace_body(apply, operand_types, parts.known.name, "Linearize")

    def linear(number: int) -> Body:
        parts, mine = splits[number], places[number]

        def apply(*arguments: Value) -> list[Value]:
            tangents, operands, stored = split(arguments, sum(active), len(shared))
            values = dict(zip(shared, operands, strict=True))
            residuals = parts.residual_values(values, [stored[i] for i in mine])
            results = parts.linear.interpret([*tangents, *residuals])
            return instantiated(spread(results, parts.active_outputs, types), active_out)

        inputs = [*chosen(operand_types, active), *(operand_types[i] for i in shared), *slots]
        return trace_body(apply, inputs, parts.linear.name, "Linearize")

    numbers = range(len(branches))
    return _Split(
        [known(n) for n in numbers], [linear(n) for n in numbers], len(slots), shared, active_out
    )


def _linearize(
    primals: Sequence[Value], tangents: OperandTangents, *, branches: tuple[Function, ...]
) -> tuple[Sequence[Value], Sequence[Tangent]]:
    index, *operands = primals
    active = moving(tangents[1:])
    parts = _split_branches(branches, active)
    results = bind_cond(index, parts.known, operands)
    types = branches[0].output_types
    out_tangents: list[Value] = []
    if any(parts.active_outputs):
        residuals = [*(operands[i] for i in parts.shared), *results[len(types) :]]
        moved = chosen(tangents[1:], active)
        out_tangents = bind_cond(index, parts.linear, [*moved, *residuals])
    return results[: len(types)], spread(out_tangents, parts.active_outputs, types)


@derived
def _transposed_branches(
    branches: tuple[Function, ...], is_linear: Marks, active: Marks
) -> tuple[list[Body], Marks]:
    parts = [derive(branch, "transpose", is_linear, active) for branch in branches]
    functions, marks = [d.function for d in parts], [d.active_arguments for d in parts]
    return _alike(functions, marks, chosen(branches[0].input_types, is_linear), "Transpose")


def _transpose(
    cotangents: Sequence[Cotangent],
    index: Value,
    *operands: Param,
    branches: tuple[Function, ...],
) -> Sequence[Cotangent | None]:
    is_linear, active = unknown(operands), moving(cotangents)
    bodies, active_in = _transposed_branches(branches, is_linear, active)
    pulled: list[Value] = []
    if any(active_in):
        known = chosen(operands, inverted(is_linear))
        pulled = bind_cond(index, bodies, [*known, *chosen(cotangents, active)])
    return [None, *spread_cotangents(operands, active_in, pulled)]


# Batching --------------------------------------------------------------------------------------


def _batch(
    operands: Sequence[Value], axes: Sequence[int | None], *, branches: tuple[Function, ...]
) -> tuple[list[Value], list[int | None]]:
    index, *values = operands
    if axes[0] is not None:
        return _select(index, axes[0], values, list(axes[1:]), branches)
    found = [derive_batched(branch, axes[1:]).axes for branch in branches]
    out_axes = tuple(
        next((a for a in entries if a is not None), None) for entries in zip(*found, strict=True)
    )
    batched = [derive_batched(branch, axes[1:], out_axes).function for branch in branches]
    return bind_cond(index, list(map(closed, batched)), values), list(out_axes)


def _select(
    index: Value,
    index_axis: int,
    values: list[Value],
    axes: list[int | None],
    branches: tuple[Function, ...],
) -> tuple[list[Value], list[int | None]]:
    """Applies all branches, and selects for each element of the batch."""
    if any(map(acts, branches)):
        raise UnsupportedRuleError(
            "vmap of cond with a mapped predicate runs all branches for all of the batch, but a "
            "branch has effects (a callback), which would happen where it is not chosen.",
            "Move the callback out of the branches, or loop with lax.map instead of vmap.",
        )
    out_axes = (0,) * len(branches[0].outputs)
    if len(branches) == 1:
        only = derive_batched(branches[0], axes, out_axes).function
        return call_function(only, values), list(out_axes)
    which = clamp(np.int32(0), index, np.int32(len(branches) - 1))
    results = []
    for number, branch in enumerate(branches):
        chosen_here = eq(which, np.int32(number))
        guarded = [_guarded(x, axis, chosen_here) for x, axis in zip(values, axes, strict=True)]
        inner = [axis if x is y else 0 for x, y, axis in zip(values, guarded, axes, strict=True)]
        results.append(call_function(derive_batched(branch, inner, out_axes).function, guarded))
    handed_on = _handed_on(branches)
    selected: list[Value] = []
    selected_axes: list[int | None] = []
    for place, cases in enumerate(zip(*results, strict=True)):
        operand = handed_on.get(place)
        if operand is not None:
            selected.append(values[operand])
            selected_axes.append(axes[operand])
            continue
        selected.append(select_n(broadcast_in_dim(which, cases[0].shape, (0,)), *cases))
        selected_axes.append(0)
    return selected, selected_axes


def _guarded(x: Value, axis: int | None, is_chosen: Value) -> Value:
    """Returns an operand of a branch with zero derivative where the branch is not chosen.

    The branch may have an infinite derivative there, and zero times infinity is not zero. Arrays
    that are equal for the whole batch stay as they are: they would be copied for each element.
    """
    if not dtypes.is_inexact(x.dtype) or (axis is None and x.ndim):
        return x
    shape = (*is_chosen.shape, *(n for d, n in enumerate(x.shape) if d != axis))
    moved = broadcast_in_dim(x, shape, ()) if axis is None else moveaxis(x, axis, 0)
    return select_n(broadcast_in_dim(is_chosen, shape, (0,)), stop_gradient(moved), moved)


def _handed_on(branches: Sequence[Function]) -> dict[int, int]:
    """Returns the results that are one operand in all branches: from place to operand."""
    result = {}
    for place in range(len(branches[0].outputs)):
        # By identity: variables are not compared.
        numbers = [
            next((n for n, v in enumerate(b.inputs) if v is b.outputs[place]), None)
            for b in branches
        ]
        if numbers[0] is not None and len({*numbers}) == 1:
            result[place] = numbers[0]
    return result


def _chosen_body(
    index: Value, *operands: Value, branches: tuple[Function, ...]
) -> tuple[Function, list[Value]] | None:
    if len(branches) == 1:
        return branches[0], list(operands)
    if type(index) is not ConcreteArray:
        return None
    return branches[min(max(int(index), 0), len(branches) - 1)], list(operands)


cond_primitive = declare(
    "cond",
    parameters={"branches": tuple[Function, ...]},
    takes_keys=True,
    multiple_results=True,
    is_memoized=False,
    is_staged=True,
    chosen_body=_chosen_body,
    infer=_infer,
    evaluate=_evaluate,
    value_and_jvp=_value_and_jvp,
    linearize=_linearize,
    transpose=_transpose,
    batch=_batch,
    lower=_lower,
    partition=partition_cond,
    varying=varying_cond,
    samples=loop_samples.cond_samples,
)
cond_primitive.implementation = implementation(cond_primitive, _work)
