"""`while`: repeats a body as long as a condition holds.

Operands are the constants of the condition, the constants of the body, and the carry.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any, Generic, NoReturn, TypeVar

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Param
from axir.dialect.core.array import ConcreteArray, as_array
from axir.dialect.core.errors import ParameterError, ReverseModeError
from axir.dialect.core.memo import derived
from axir.dialect.core.symbolic_zeros import Marks, Zero, chosen, inverted, moving, spread
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.comparison import select_n
from axir.dialect.ops.reductions.reduce import reduce_or
from axir.dialect.ops.shape.broadcasting import broadcast_in_dim
from axir.dialect.program.costs import COMPILED_PASS, compilation_time, interpretation_time
from axir.dialect.program.derived_functions import BatchedFunction, derive, derive_batched
from axir.dialect.program.function import Function
from axir.dialect.program.function_rules import LoweringContext
from axir.dialect.program.op_table import declare
from axir.dialect.program.operation import Unsupported
from axir.dialect.program.rules import OperandTangents, Tangent, Value

from . import loop_samples
from .closed_bodies import (
    Body,
    call_function,
    carries_axis,
    check_arguments,
    check_results,
    closed,
    fixpoint,
    in_front,
    instantiated,
    moved_to_front,
    split,
    trace_body,
)
from .execution import may_compile, quiet, steps_of, unit_of
from .parts import partition_while, varying_while


def bind_while(
    condition: Body,
    body: Body,
    init: Sequence[Value],
    condition_consts: Sequence[Value] = (),
    body_consts: Sequence[Value] = (),
) -> list[Value]:
    """Applies `while` to functions that take captured values first, then constants."""
    first = [*condition.captured, *condition_consts]
    second = [*body.captured, *body_consts]
    params = {
        "body_jaxpr": body.function,
        "body_nconsts": len(second),
        "cond_jaxpr": condition.function,
        "cond_nconsts": len(first),
    }
    return while_primitive.bind(*first, *second, *init, **params)


_Part = TypeVar("_Part")


class _While(Generic[_Part]):
    """The functions of a loop, and its operands (or their types, axes or tangents) in parts.

    Attributes:
        condition, body: The functions.
        first, second: Constants of the condition, and of the body.
        carry: The arguments of both functions after their constants.
    """

    def __init__(
        self,
        values: Sequence[_Part],
        *,
        cond_jaxpr: Function,
        cond_nconsts: int,
        body_jaxpr: Function,
        body_nconsts: int,
    ):
        self.condition, self.body = cond_jaxpr, body_jaxpr
        self.first, self.second, self.carry = split(values, cond_nconsts, body_nconsts)


def _infer(
    *types: ShapedArray, cond_nconsts: int, body_nconsts: int, **functions: Function
) -> list[ShapedArray]:
    if len(types) < cond_nconsts + body_nconsts:
        raise ParameterError(
            f"while has {len(types)} operands, but cond_nconsts={cond_nconsts} and "
            f"body_nconsts={body_nconsts} name {cond_nconsts + body_nconsts} constants.",
            "The operands are the constants of the condition, those of the body, and the carry.",
        )
    loop = _While(types, cond_nconsts=cond_nconsts, body_nconsts=body_nconsts, **functions)
    check_arguments("while: the condition", loop.condition, [*loop.first, *loop.carry])
    check_arguments("while: the body", loop.body, [*loop.second, *loop.carry])
    check_results("while: the condition", loop.condition, [ShapedArray((), dtypes.bool_)])
    check_results("while: the body", loop.body, loop.carry)
    return loop.body.output_types


# Values ----------------------------------------------------------------------------------------


def _iterate(loop: _While, seconds: float | None = None) -> tuple[list[np.ndarray], bool]:
    """Interprets the loop for at most `seconds`; returns the carry, and whether it ended."""
    first, second, carry = loop.first, loop.second, loop.carry
    holds, advance = steps_of(loop.condition), steps_of(loop.body)
    end = None if seconds is None else perf_counter() + seconds
    with quiet():
        while holds([*first, *carry])[0]:
            if end is not None and perf_counter() > end:
                return carry, False
            carry = advance([*second, *carry])
    return carry, True


def _evaluate(*operands: np.ndarray, **params: Param) -> list[np.ndarray]:
    return _iterate(_While(operands, **params))[0]


def _implement(*operands: Value, **params: Param) -> Sequence[Value]:
    if not may_compile(params):
        return while_primitive._evaluate(operands, params)
    arrays = [as_array(x) for x in operands]
    unit = unit_of(while_primitive, params, arrays)
    if unit.is_used:
        return unit(arrays)
    loop = _While([x.host() for x in arrays], **params)
    interpreted_pass = interpretation_time(loop.condition) + interpretation_time(loop.body)
    gains = interpreted_pass > COMPILED_PASS
    seconds = compilation_time(params) * 1e-6 if gains else None
    carry, has_ended = _iterate(loop, seconds)
    results = [ConcreteArray(t, x) for t, x in zip(loop.body.output_types, carry, strict=True)]
    return results if has_ended else unit([*arrays[: len(arrays) - len(carry)], *results])


def _lower(context: LoweringContext, *values: ir.Value, **params: Param) -> list[ir.Value]:
    loop = _While(values, **params)
    if not loop.carry:
        return []
    return hlo.while_(
        loop.carry,
        lambda *carried: context.inline(loop.condition, *loop.first, *carried),
        lambda *carried: context.inline(loop.body, *loop.second, *carried),
    )


# Derivatives -----------------------------------------------------------------------------------


def _active_carry(body_jaxpr: Function, consts: Marks, carry: Marks) -> Marks:
    """Tells which carried values get tangents."""
    return fixpoint(
        carry, lambda active: derive(body_jaxpr, "jvp", (*consts, *active)).active_outputs
    )


@derived
def _tangent_bodies(
    cond_jaxpr: Function, body_jaxpr: Function, consts: Marks, carry: Marks
) -> tuple[Body, Body]:
    """Returns condition and body of the loop that carries values, then tangents of active ones."""
    types = body_jaxpr.output_types
    count = len(types)
    tangent = derive(body_jaxpr, "jvp", (*consts, *carry))

    def advance(*arguments: Value) -> list[Value]:
        primals, tangents, carried, moved = split(arguments, len(consts), sum(consts), count)
        results = call_function(tangent.function, [*primals, *carried, *tangents, *moved])
        out_tangents = spread(results[count:], tangent.active_outputs, types)
        return [*results[:count], *instantiated(out_tangents, carry)]

    const_types, carry_types = split(body_jaxpr.input_types, len(consts))
    active_types = chosen(carry_types, carry)
    inputs = [*const_types, *chosen(const_types, consts), *carry_types, *active_types]
    body = trace_body(advance, inputs, f"{body_jaxpr.name}_jvp", "Jvp")
    kept = cond_jaxpr.input_types

    def holds(*arguments: Value) -> list[Value]:
        return cond_jaxpr.interpret(arguments[: len(kept)])

    return trace_body(holds, [*kept, *active_types], cond_jaxpr.name, "Jvp"), body


def _value_and_jvp(
    primals: Sequence[Value], tangents: OperandTangents, **params: Param
) -> tuple[Sequence[Value], Sequence[Tangent]]:
    loop, change = _While(primals, **params), _While(tangents, **params)
    consts = moving(change.second)
    carry = _active_carry(loop.body, consts, moving(change.carry))
    condition, body = _tangent_bodies(loop.condition, loop.body, consts, carry)
    init = [*loop.carry, *instantiated(change.carry, carry)]
    second = [*loop.second, *chosen(change.second, consts)]
    results = bind_while(condition, body, init, loop.first, second)
    types = loop.body.output_types
    return results[: len(types)], spread(results[len(types) :], carry, types)


def _linearize(
    primals: Sequence[Value], tangents: OperandTangents, **params: Param
) -> tuple[Sequence[Value], Sequence[Tangent]]:
    # The number of passes is unknown, so the extent of stacked residuals is unknown, too. The
    # linear function runs the loop again, values and tangents together.
    outs = while_primitive.bind(*primals, **params)
    change = _While(tangents, **params)
    carry = _active_carry(change.body, moving(change.second), moving(change.carry))
    if not any(chosen(carry, inverted(_handed_on(change)))):
        # No pass changes the active carries: the transpose needs no residuals.
        return outs, [
            tangent if is_active else Zero.from_primal_value(x)
            for tangent, is_active, x in zip(change.carry, carry, outs, strict=True)
        ]
    return outs, _value_and_jvp(primals, tangents, **params)[1]


def _handed_on(loop: _While) -> Marks:
    """Tells which carried values no pass changes."""
    carried = loop.body.inputs[len(loop.second) :]
    # By identity: variables are not compared.
    return tuple(a is b for a, b in zip(carried, loop.body.outputs, strict=True))


class _NoTranspose(Unsupported):
    """A placeholder for the transpose rule."""

    def __call__(self, *args: object, **params: object) -> NoReturn:
        """Raises the error with the alternatives for users."""
        raise ReverseModeError(
            "Reverse-mode differentiation does not work for lax.while_loop, nor for lax.fori_loop "
            f"with traced bounds: {self.reason}.",
            "Give fori_loop bounds that are Python integers, or use lax.scan over the largest "
            "number of passes with lax.cond inside; forward mode (axir.jvp, axir.jacfwd) works as "
            "it is.",
        )


_REASON = "the number of passes is unknown, so what the backward pass needs cannot be kept"


# Batching --------------------------------------------------------------------------------------


def _batch(
    operands: Sequence[Value], axes: Sequence[int | None], **params: Param
) -> tuple[list[Value], list[int | None]]:
    loop, axes_of = _While(operands, **params), _While(axes, **params)

    def condition_of(carry: Marks) -> BatchedFunction:
        return derive_batched(loop.condition, [*axes_of.first, *in_front(carry)])

    def reached(carry: Marks) -> Sequence[bool]:
        if condition_of(carry).axes != (None,):  # lanes end with different values
            return [True] * len(carry)
        return carries_axis(derive_batched(loop.body, [*axes_of.second, *in_front(carry)]).axes)

    carry = fixpoint(carries_axis(axes_of.carry), reached)
    out_axes = in_front(carry)
    init = moved_to_front(loop.carry, axes_of.carry, carry)
    body = derive_batched(loop.body, [*axes_of.second, *out_axes], out_axes).function
    condition = condition_of(carry)
    if condition.axes != (None,):
        return _run_lanes(condition.function, body, loop.first, loop.second, init), list(out_axes)
    results = bind_while(closed(condition.function), closed(body), init, loop.first, loop.second)
    return results, list(out_axes)


def _run_lanes(
    condition: Function,
    body: Function,
    cond_consts: list[Value],
    body_consts: list[Value],
    init: list[Value],
) -> list[Value]:
    """Runs the loop until it has ended for each element of the batch; ended elements stay.

    The loop carries the condition's values, so that a pass computes them once.
    """
    any_runs, advance = _lane_bodies(condition, body, len(cond_consts), len(body_consts))
    running = call_function(condition, [*cond_consts, *init])
    results = bind_while(any_runs, advance, [*running, *init], (), [*cond_consts, *body_consts])
    return results[1:]


@derived
def _lane_bodies(
    condition: Function, body: Function, cond_count: int, body_count: int
) -> tuple[Body, Body]:
    def advance(*arguments: Value) -> list[Value]:
        cond_consts, body_consts, (running, *carry) = split(arguments, cond_count, body_count)
        moved = call_function(body, [*body_consts, *carry])
        # Unchanging carries are not selected per element: a selection would copy them in each pass.
        carry = [
            old if new is old else select_n(_aligned(running, new.type), old, new)
            for old, new in zip(carry, moved, strict=True)
        ]
        return [*call_function(condition, [*cond_consts, *carry]), *carry]

    carried = [v.type for v in (*condition.outputs, *body.inputs[body_count:])]
    const_types = [v.type for v in (*condition.inputs[:cond_count], *body.inputs[:body_count])]
    return (
        trace_body(lambda running, *_: [reduce_or(running, (0,))], carried, condition.name, "Vmap"),
        trace_body(advance, [*const_types, *carried], body.name, "Vmap"),
    )


def _aligned(running: Any, wanted: ShapedArray) -> Value:
    return broadcast_in_dim(running, wanted.shape, (0,)) if wanted.ndim != 1 else running


while_primitive = declare(
    "while",
    parameters={
        "cond_jaxpr": Function,
        "cond_nconsts": int,
        "body_jaxpr": Function,
        "body_nconsts": int,
    },
    takes_keys=True,
    multiple_results=True,
    is_memoized=False,
    is_staged=True,
    infer=_infer,
    evaluate=_evaluate,
    value_and_jvp=_value_and_jvp,
    linearize=_linearize,
    transpose=_NoTranspose("transpose", "while", _REASON),
    batch=_batch,
    lower=_lower,
    partition=partition_while,
    varying=varying_while,
    samples=loop_samples.while_samples,
)
while_primitive.implementation = _implement
