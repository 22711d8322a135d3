"""Shared code for custom rules: checks of rules, their vectorization, functions of tangents.

The operands of these ops are the inputs of their body, then its captured values.

Here: also derivatives of functions as functions, which users' rules of vectorization use.
"""

from __future__ import annotations

from collections.abc import Sequence

from axir.dialect.core.errors import ParameterError, UnexpectedTracerError
from axir.dialect.core.memo import derived
from axir.dialect.core.state import BatchFrame
from axir.dialect.core.symbolic_zeros import Zero, chosen, inexact
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.calls.jit_call import listing, same_types
from axir.dialect.ops.elementwise.family import instantiate
from axir.dialect.ops.shape.movement import insert
from axir.dialect.program.derived_functions import derive, derive_batched
from axir.dialect.program.effects import has_effects
from axir.dialect.program.equation import Equation
from axir.dialect.program.function import Function, functions_of, resolved
from axir.dialect.program.function_tracing import trace_function
from axir.dialect.program.primitive import Primitive
from axir.dialect.program.rules import Operand, Results, Tangent, Value
from axir.dialect.program.tracer import Trace, Tracer

Axes = Sequence[int | None]


def inexact_only(types: Sequence[ShapedArray]) -> list[ShapedArray]:
    """Returns the float and complex types, which have tangents of the same type."""
    return chosen(types, inexact(types))


def argument_types(op: str, types: Sequence[ShapedArray], num_consts: int) -> Sequence[ShapedArray]:
    """Returns the types of the operands before the constants.

    Raises:
        ParameterError: if there are too few operands.
    """
    if not 0 <= num_consts <= len(types):
        raise ParameterError(f"{op}: {num_consts} of {len(types)} operands cannot be constants.")
    return types[: len(types) - num_consts]


def check_rule(
    op: str, rule: Function, arguments: Sequence[ShapedArray], results: Sequence[ShapedArray]
) -> None:
    """Raises `ParameterError` if a rule that was read from text does not fit its function.

    Args:
        op: Name of the op.
        rule: The rule.
        arguments: Types of the arguments that it must take.
        results: Types of the first results that it must return.
    """
    if not same_types(rule.in_avals, arguments):
        raise ParameterError(
            f"{op}: the rule @{rule.name} must take {listing(arguments)}, but takes "
            f"{listing(rule.in_avals)}."
        )
    found = rule.output_types
    if not same_types(found[: len(results)], results):
        raise ParameterError(
            f"{op}: the rule @{rule.name} must return {listing(results)}, but returns "
            f"{listing(found)}."
        )


def bind_call(
    primitive: Primitive,
    function: Function,
    operands: Sequence[Value],
    num_consts: int,
    **params: object,
) -> list[Value]:
    """Applies `custom_jvp_call` or `custom_vjp_call`; captures take the captured values.

    Args:
        primitive: The op.
        function: The function to call.
        operands: Values of its inputs.
        num_consts: How many of these are constants already.
        **params: The rules, and their description.
    """
    return primitive.bind(
        *operands,
        *function.captured,
        call_jaxpr=function,
        num_consts=num_consts + len(function.captured),
        **params,
    )


def closed_over_error(kind: str, name: str) -> UnexpectedTracerError:
    """Returns the error for differentiation in a value that a function closes over."""
    return UnexpectedTracerError(
        f"Detected differentiation of the {kind} function {name!r} with respect to a closed-over "
        f"value: its rule only says how to differentiate with respect to its arguments.",
        "Pass the value to the function as an argument and let the rule handle it, or close over "
        "axir.lax.stop_gradient(value).",
    )


# Vectorization ----------------------------------------------------------------------------------


def batched_in_front(function: Function, axes: Axes) -> Function:
    """Returns a function over the current vectorization's axis, in front of all results."""
    return derive_batched(function, axes, (0,) * len(function.outputs)).function


@derived
def batched_rule(
    rule: Function,
    frame: BatchFrame,
    axes: tuple[int | None, ...],
    out_axes: tuple[int | None, ...] | None = None,
) -> Function:
    """Returns a vectorized rule, with given axes of inputs and results; by default in front."""
    all_axes = (*axes, *(None for _ in rule.captures))
    wanted = (0,) * len(rule.outputs) if out_axes is None else out_axes
    key = (frame.size, all_axes, wanted, frame.name, frame.mesh_axes, frame.maps_devices)
    batched = derive(rule, "vmap", *key).function
    return with_captured(batched, rule, len(rule.inputs))


def with_captured(derived: Function, origin: Function, place: int) -> Function:
    """Returns a derived function that captures the values captured by the original.

    Args:
        derived: A function that takes values of the captures among its inputs.
        origin: The function that it was derived from.
        place: Their position among the inputs.
    """
    if not origin.captures:
        return derived

    def apply(*values: Value) -> list[Value]:
        return derived.evaluate(*values[:place], *origin.captured, *values[place:])

    types = derived.input_types
    del types[place : place + len(origin.captures)]
    return trace_function(apply, types, name=derived.name, kind="Vmap")


def batched_types(types: Sequence[ShapedArray], axes: Axes, size: int) -> list[ShapedArray]:
    """Returns types with a further axis where they get one."""
    return [
        t if axis is None else t.update(shape=insert(t.shape, axis, size))
        for t, axis in zip(types, axes, strict=True)
    ]


# Functions of tangents --------------------------------------------------------------------------


# Calls with a user's rule as their derivative.
_BY_RULES = ("custom_jvp_call", "custom_vjp_call")


def _body_of_call(equation: Equation) -> Function | None:
    """Returns the function of a call by a rule, or of a `jit` with such calls in it."""
    name, params = equation.primitive.name, equation.params
    if name in _BY_RULES:
        return params["call_jaxpr"]
    if name != "jit":
        return None
    body: Function = params["jaxpr"]
    return body if any(_body_of_call(inner) is not None for inner in body.equations) else None


def trace_of_tangents(tangents: Sequence[Tangent]) -> Trace | None:
    """Returns the innermost trace to which tangents belong."""
    owners = [t.owner for t in tangents if type(t) is Tracer]
    return max(owners, key=lambda trace: trace.level, default=None)


def apply_linear(rule: object, arguments: Sequence[Value], trace: Trace | None) -> list[Value]:
    """Applies a function; ops that depend only on tangents go to their trace.

    An op that calls functions and takes both known values and tangents is split as in
    differentiation: its map of tangents is linear, and therefore equal to its derivative at zero. A
    call with a custom derivative is replaced by the ops of its function, because the rule may call
    the function again.

    Args:
        rule: The function, perhaps deferred.
        arguments: Values of its inputs.
        trace: The trace of the tangents; None to split nothing.
    """
    function = resolved(rule)
    return _apply_linear(function, [*arguments, *function.captured], trace)


def _apply_linear(
    function: Function, arguments: Sequence[Value], trace: Trace | None
) -> list[Value]:
    """Applies a function as `apply_linear` does; the arguments include values of its captures."""

    def bind(equation: Equation, operands: Sequence[Value]) -> Results:
        moving = tuple(belongs(x, trace) for x in operands)
        if any(moving) and not all(moving) and _can_be_split(equation):
            body = _body_of_call(equation)
            if body is not None:
                return _apply_linear(body, operands, trace)
            return _split(equation, operands, moving)
        return equation.primitive.bind(*operands, **equation.params)

    return function.interpret(arguments, None if trace is None else bind)


def belongs(value: Operand, trace: Trace | None) -> bool:
    """Tells whether a value is of a trace itself."""
    return type(value) is Tracer and value.owner is trace


def _can_be_split(equation: Equation) -> bool:
    primitive = equation.primitive
    has_functions = any(True for _ in functions_of(equation.params))
    return has_functions and bool(primitive.linearize or primitive.value_and_jvp)


def has_mixed_ops(function: Function) -> bool:
    """Tells whether a function of tangents has ops with a known part to be split off."""
    return any(map(_can_be_split, function.equations))


def _split(equation: Equation, operands: Sequence[Value], moving: Sequence[bool]) -> Results:
    primitive = equation.primitive
    zeros = [Zero.from_primal_value(x) for x in operands]
    pairs = [
        (instantiate(zero), x) if is_moving else (x, zero)
        for x, zero, is_moving in zip(operands, zeros, moving, strict=True)
    ]
    rule = primitive.linearize or primitive.value_and_jvp
    assert rule is not None
    outs, tangents = rule(*map(list, zip(*pairs, strict=True)), **equation.params)
    if not primitive.multiple_results:
        return outs if type(tangents) is Zero else tangents
    return [out if type(t) is Zero else t for out, t in zip(outs, tangents, strict=True)]


def tangents_of(function: Function, active: Sequence[bool]) -> Function:
    """Returns a function of arguments and tangents: results, and tangents of inexact ones.

    Args:
        function: The function to differentiate; its captures have no tangents.
        active: Which inputs have tangents.
    """
    flags = (*active, *(False for _ in function.captures))
    derived = derive(function, "jvp", flags, True).function
    return with_captured(derived, function, len(function.inputs))


def linear_part_of(function: Function, active: Sequence[bool]) -> Function:
    """Returns a function of arguments and tangents that gives tangents only; see `tangents_of`."""
    silent = derive(function, "silence") if has_effects(function) else function
    flags = (*active, *(False for _ in silent.captures))

    def apply(*values: Value) -> list[Value]:
        primals, moving = [*values[: len(active)], *silent.captured], values[len(active) :]
        split = derive(silent, "linearize", flags)
        results = split.known.evaluate(*primals)
        residuals = split.residual_values(primals, results[len(silent.outputs) :])
        tangents = iter(split.linear.interpret([*moving, *residuals]))
        return [
            next(tangents) if has else instantiate(Zero(t))
            for t, has in zip(silent.output_types, split.active_outputs, strict=True)
            if has or inexact([t])[0]
        ]

    types = function.input_types
    traced = trace_function(
        apply, [*types, *chosen(types, active)], name=function.name, kind="Linearize"
    )
    return derive(traced, "prune")


def transpose_of(function: Function, linear: Sequence[bool]) -> Function:
    """Returns the transpose: from the other arguments and cotangents to new cotangents.

    Args:
        function: A function that is linear in some inputs.
        linear: Marks of these inputs; the results are their cotangents.
    """
    flags = (*linear, *(False for _ in function.captures))
    outputs = (True,) * len(function.outputs)
    derived = derive(function, "transpose", flags, outputs, True).function
    return with_captured(derived, function, linear.count(False))
