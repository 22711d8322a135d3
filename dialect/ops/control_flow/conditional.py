"""`cond`: one of several branches, chosen by an index.

Operands are the index, an int32 scalar that is clamped to the branches there are, and what all
branches take.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ... import dtypes
from ... import stablehlo as hlo
from ...array import ConcreteArray
from ...derived import derive, derive_batched
from ...effects import acts, has_effects
from ...errors import ParameterError, UnsupportedRuleError
from ...function import Function
from ...symbolic import is_undefined_primal
from ...types import ShapedArray
from ..family import full
from ..table import declare
from . import loop_samples
from .bodies import (
    Body,
    activity,
    call_function,
    check_arguments,
    check_results,
    chosen,
    derived_body,
    instantiated,
    spread,
    trace_body,
)
from .execution import implementation, work_of
from .interpretation import quiet, steps_of


def bind_cond(index: Any, branches: Sequence[Body], operands: Sequence[Any]) -> list[Any]:
    """Applies `cond` to branches whose first inputs are captured values."""
    joined, captured = join_captures(branches)
    return cond_primitive.bind(index, *captured, *operands, branches=joined)


def join_captures(branches: Sequence[Body]) -> tuple[tuple[Function, ...], list[Any]]:
    """Has all branches take the values that any of them captured, each value once."""
    while True:
        captured = list({id(x): x for branch in branches for x in branch.captured}.values())
        joined = [_with_captures(branch, captured) for branch in branches]
        if all(a is b for a, b in zip(joined, branches, strict=True)):
            return tuple(branch.function for branch in joined), captured
        # Tracing anew folds constants, which may be captured in turn.
        branches = joined


def _with_captures(branch: Body, captured: list[Any]) -> Body:
    """Returns a branch that takes given captured values, among which are its own."""
    place_of = {id(x): place for place, x in enumerate(captured)}
    places = tuple(place_of[id(x)] for x in branch.captured)
    if places == tuple(range(len(captured))):
        return branch
    function = branch.function
    types = tuple(x.type for x in captured)

    def choose(*arguments: Any) -> list[Any]:
        operands = arguments[len(types) :]
        return function.interpret([*(arguments[i] for i in places), *operands])

    rest = [v.type for v in function.inputs[len(places) :]]
    made = derived_body(
        function,
        ("cond captures", places, types),
        lambda: trace_body(choose, [*types, *rest], function.name),
    )
    return Body(made.function, (*made.captured, *captured))


def _infer(
    *types: ShapedArray, branches: tuple[Function, ...]
) -> list[ShapedArray]:
    if not branches or not types:
        raise ParameterError("cond needs an index and at least one branch.")
    index, *operands = types
    if index.shape or index.dtype != dtypes.int32:
        raise ParameterError(
            f"cond: the index must be an int32 scalar, but is {index}.",
            "Convert a truth value with x.astype(numpy.int32).",
        )
    first = branches[0].output_types
    for number, branch in enumerate(branches):
        check_arguments(f"cond: branch {number}", branch, operands)
        check_results(f"cond: branch {number}, like branch 0,", branch, first)
    return [
        ShapedArray(t.shape, t.dtype, all(b.output_types[place].weak_type for b in branches))
        for place, t in enumerate(first)
    ]


def _evaluate(
    index: np.ndarray, *operands: np.ndarray, branches: tuple[Function, ...]
) -> list[np.ndarray]:
    branch = branches[min(max(int(index), 0), len(branches) - 1)]
    with quiet():
        return steps_of(branch)(operands)


def _work(*, branches: tuple[Function, ...]) -> float:
    return max(map(work_of, branches))


def _lower(
    context: Any, index: Any, *values: Any, branches: tuple[Function, ...]
) -> list[Any]:
    types = [t.words.mlir for t in context.types_out]
    if len(branches) == 1 or not (types or any(map(has_effects, branches))):
        return context.inline(branches[0], *values) if len(branches) == 1 else []

    def region(branch: Function) -> Callable[..., Any]:
        return lambda: context.inline(branch, *values)

    if len(branches) == 2:
        is_second = hlo.compare(index, hlo.constant(np.int32(0)), "GT")
        return hlo.if_(is_second, region(branches[1]), region(branches[0]), types)
    least, most = hlo.constant(np.int32(0)), hlo.constant(np.int32(len(branches) - 1))
    return hlo.case(hlo.clamp(least, index, most), [region(b) for b in branches], types)


# Derivatives -----------------------------------------------------------------------------------


def _joined_activity(active: Sequence[Sequence[bool]]) -> tuple[bool, ...]:
    return tuple(map(any, zip(*active, strict=True)))


def _tangent_branches(
    branches: tuple[Function, ...], active: tuple[bool, ...]
) -> tuple[list[Body], tuple[bool, ...]]:
    derived = [derive(branch, "jvp", active) for branch in branches]
    active_out = _joined_activity([d.active_outputs for d in derived])
    types = branches[0].output_types

    def branch(number: int) -> Body:
        tangent_function = derived[number]

        def apply(*arguments: Any) -> list[Any]:
            results = call_function(tangent_function.function, arguments)
            tangents = spread(results[len(types) :], tangent_function.active_outputs, types)
            return [*results[: len(types)], *instantiated(tangents, active_out)]

        inputs = [v.type for v in tangent_function.function.inputs]
        return trace_body(apply, inputs, tangent_function.function.name, "Jvp")

    return [branch(number) for number in range(len(branches))], active_out


def _value_and_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, branches: tuple[Function, ...]
) -> tuple[list[Any], list[Any]]:
    moving = tangents[1:]
    active = activity(moving)
    bodies, active_out = derived_body(
        branches[0],
        ("cond jvp", branches, active),
        lambda: _tangent_branches(branches, active),
    )
    results = bind_cond(primals[0], bodies, [*primals[1:], *chosen(moving, active)])
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
    active_outputs: tuple[bool, ...]


def _slots_of(splits: Sequence[Any]) -> tuple[list[ShapedArray], list[list[int]]]:
    """Gives the computed residuals of each branch slots, those of equal type the same ones."""
    slots: list[ShapedArray] = []
    places = []
    for split in splits:
        taken: set[int] = set()
        mine = []
        for variable in split.known.outputs[len(split.active_outputs) :]:
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


def _split_branches(branches: tuple[Function, ...], active: tuple[bool, ...]) -> _Split:
    splits = [derive(branch, "linearize", active) for branch in branches]
    slots, places = _slots_of(splits)
    active_out = _joined_activity([s.active_outputs for s in splits])
    shared = tuple(sorted({s for split in splits for s in split.residuals if type(s) is int}))
    operand_types = [v.type for v in branches[0].inputs]
    types = branches[0].output_types

    def known(number: int) -> Body:
        split, mine = splits[number], places[number]

        def apply(*operands: Any) -> list[Any]:
            results = call_function(split.known, operands)
            values: list[Any] = [full(t.shape, 0, t.dtype) for t in slots]
            for place, value in zip(mine, results[len(types) :], strict=True):
                values[place] = value
            return [*results[: len(types)], *values]

        return trace_body(apply, operand_types, split.known.name, "Linearize")

    def linear(number: int) -> Body:
        split, mine = splits[number], places[number]

        def apply(*arguments: Any) -> list[Any]:
            moving = arguments[: sum(active)]
            operands = dict(zip(shared, arguments[sum(active) :], strict=False))
            stored = arguments[sum(active) + len(shared) :]
            residuals = split.residual_values(operands, [stored[i] for i in mine])
            results = split.linear.interpret([*moving, *residuals])
            return instantiated(spread(results, split.active_outputs, types), active_out)

        inputs = [*chosen(operand_types, active), *(operand_types[i] for i in shared), *slots]
        return trace_body(apply, inputs, split.linear.name, "Linearize")

    numbers = range(len(branches))
    return _Split(
        [known(n) for n in numbers], [linear(n) for n in numbers], len(slots), shared, active_out
    )


def _linearize(
    primals: Sequence[Any], tangents: Sequence[Any], *, branches: tuple[Function, ...]
) -> tuple[list[Any], list[Any]]:
    index, *operands = primals
    moving = tangents[1:]
    active = activity(moving)
    split = derived_body(
        branches[0],
        ("cond linearize", branches, active),
        lambda: _split_branches(branches, active),
    )
    results = bind_cond(index, split.known, operands)
    types = branches[0].output_types
    out_tangents: list[Any] = []
    if any(split.active_outputs):
        residuals = [*(operands[i] for i in split.shared), *results[len(types) :]]
        out_tangents = bind_cond(index, split.linear, [*chosen(moving, active), *residuals])
    return results[: len(types)], spread(out_tangents, split.active_outputs, types)


def _transposed_branches(
    branches: tuple[Function, ...], is_linear: tuple[bool, ...], active: tuple[bool, ...]
) -> tuple[list[Body], tuple[bool, ...]]:
    derived = [derive(branch, "transpose", is_linear, active) for branch in branches]
    active_in = _joined_activity([d.active_arguments for d in derived])
    linear_types = chosen([v.type for v in branches[0].inputs], is_linear)

    def branch(number: int) -> Body:
        transposed = derived[number]

        def apply(*arguments: Any) -> list[Any]:
            results = call_function(transposed.function, arguments)
            return instantiated(
                spread(results, transposed.active_arguments, linear_types), active_in
            )

        inputs = [v.type for v in transposed.function.inputs]
        return trace_body(apply, inputs, transposed.function.name, "Transpose")

    return [branch(number) for number in range(len(branches))], active_in


def _transpose(
    cotangents: Sequence[Any], index: Any, *operands: Any, branches: tuple[Function, ...]
) -> list[Any]:
    is_linear = tuple(map(is_undefined_primal, operands))
    active = activity(cotangents)
    bodies, active_in = derived_body(
        branches[0],
        ("cond transpose", branches, is_linear, active),
        lambda: _transposed_branches(branches, is_linear, active),
    )
    known = [x for x in operands if not is_undefined_primal(x)]
    results: list[Any] = []
    if any(active_in):
        results = bind_cond(index, bodies, [*known, *chosen(cotangents, active)])
    linear_types = [x.aval for x in operands if is_undefined_primal(x)]
    pulled = iter(spread(results, active_in, linear_types))
    return [None, *(next(pulled) if is_undefined_primal(x) else None for x in operands)]


# Batching --------------------------------------------------------------------------------------


def _batch(
    operands: Sequence[Any], axes: Sequence[int | None], *, branches: tuple[Function, ...]
) -> tuple[list[Any], list[int | None]]:
    index, *values = operands
    if axes[0] is not None:
        return _select(index, axes[0], values, list(axes[1:]), branches)
    found = [derive_batched(branch, axes[1:]).axes for branch in branches]
    out_axes = tuple(
        next((a for a in entries if a is not None), None) for entries in zip(*found, strict=True)
    )
    batched = [derive_batched(branch, axes[1:], out_axes).function for branch in branches]
    bodies = derived_body(
        batched[0],
        ("cond vmap", tuple(batched)),
        lambda: [
            trace_body(
                lambda *arguments, f=f: call_function(f, arguments),
                [v.type for v in f.inputs], f.name, "Vmap",
            )
            for f in batched
        ],
    )
    return bind_cond(index, bodies, values), list(out_axes)


def _select(
    index: Any,
    index_axis: int,
    values: list[Any],
    axes: list[int | None],
    branches: tuple[Function, ...],
) -> tuple[list[Any], list[int | None]]:
    """Applies all branches, and selects for each place of the batch."""
    from ..broadcasting import broadcast_in_dim
    from ..elementwise import clamp, select_n

    if any(map(acts, branches)):
        raise UnsupportedRuleError(
            "vmap of cond with a mapped predicate runs all branches for all of the batch, but a "
            "branch has effects (a callback), which would happen where it is not chosen.",
            "Move the callback out of the branches, or loop with lax.map instead of vmap.",
        )
    out_axes = (0,) * len(branches[0].outputs)
    results = [
        call_function(derive_batched(branch, axes, out_axes).function, values)
        for branch in branches
    ]
    if len(branches) == 1:
        return results[0], list(out_axes)
    which = clamp(np.int32(0), index, np.int32(len(branches) - 1))
    selected = []
    for cases in zip(*results, strict=True):
        shape = cases[0].shape
        selected.append(select_n(broadcast_in_dim(which, shape, (0,)), *cases))
    return selected, list(out_axes)


def _chosen_body(
    index: Any, *operands: Any, branches: tuple[Function, ...]
) -> tuple[Function, list[Any]] | None:
    if len(branches) == 1:
        return branches[0], list(operands)
    if type(index) is not ConcreteArray:
        return None
    return branches[min(max(int(index), 0), len(branches) - 1)], list(operands)


cond_primitive = declare(
    "cond",
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
    samples=loop_samples.cond_samples,
)
cond_primitive.implementation = implementation(cond_primitive, _work)
