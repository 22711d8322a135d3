"""What the ops of custom rules share: checks of their bodies, and applying functions of tangents.

All of them take the inputs of their body as operands, then the values that it captured.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import dtypes
from ...array import ConcreteArray
from ...context import state
from ...deferred import resolved
from ...derived import derive, derive_batched
from ...errors import ParameterError, UnexpectedTracerError
from ...function import Equation, Function, functions_in, read, write
from ...symbolic import Zero
from ...tracer import Trace, Tracer
from ...types import ShapedArray
from ..family import Value, instantiate


def arguments_of(function: Function) -> list[ShapedArray]:
    """Returns the types of a function's inputs and captures."""
    return [v.type for v in (*function.inputs, *function.captures)]


def same_types(first: Sequence[ShapedArray], second: Sequence[ShapedArray]) -> bool:
    """Tells whether types agree in number, shapes and dtypes."""
    return len(first) == len(second) and all(
        a.shape == b.shape and a.dtype == b.dtype for a, b in zip(first, second, strict=True)
    )


def listing(types: Sequence[ShapedArray]) -> str:
    """Renders types for messages."""
    return f"({', '.join(map(str, types))})"


def check_call(op: str, function: Function, types: Sequence[ShapedArray]) -> None:
    """Raises `ParameterError` if a function cannot be called with values of these types."""
    expected = arguments_of(function)
    if not same_types(expected, types):
        raise ParameterError(
            f"{op}: @{function.name} takes {listing(expected)}, but was called with "
            f"{listing(types)}."
        )


def check_rule(
    op: str, rule: Any, arguments: Sequence[ShapedArray], results: Sequence[ShapedArray] | None
) -> None:
    """Raises `ParameterError` if a rule that was read from text does not fit its function.

    Args:
        op: Name of the op.
        rule: The rule; only one that is a function already is checked.
        arguments: What it must take.
        results: What it must return at least.
    """
    if type(rule) is not Function:
        return
    if not same_types(arguments_of(rule), arguments):
        raise ParameterError(
            f"{op}: the rule @{rule.name} must take {listing(arguments)}, but takes "
            f"{listing(arguments_of(rule))}."
        )
    found = rule.output_types
    if results is not None and not same_types(found[: len(results)], results):
        raise ParameterError(
            f"{op}: the rule @{rule.name} must return {listing(results)}, but returns "
            f"{listing(found)}."
        )


def inexact(types: Sequence[ShapedArray]) -> list[bool]:
    """Tells which types have tangents of their own kind: float and complex ones."""
    return [dtypes.is_inexact(t.dtype) for t in types]


def evaluate_body(function: Function, operands: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Evaluates a function on NumPy arrays."""
    arrays = [ConcreteArray(t, x) for t, x in zip(arguments_of(function), operands, strict=True)]
    return [x.host() for x in function.interpret(arrays)]


def batched_body(
    function: Function, axes: Sequence[int | None], out_axes: Sequence[int | None] | None = None
) -> Any:
    """Returns a function batched over the axis of the running vectorization."""
    return derive_batched(function, tuple(axes), out_axes)


def spread(types: Sequence[ShapedArray], tangents: Sequence[Any]) -> list[Any]:
    """Returns a tangent for each result, given those of the float and complex ones."""
    remaining = iter(tangents)
    return [
        next(remaining) if has_tangent else Zero(t.to_tangent_aval())
        for t, has_tangent in zip(types, inexact(types), strict=True)
    ]


def is_moving(tangent: Any) -> bool:
    """Tells whether a tangent is other than a symbolic zero."""
    return type(tangent) is not Zero


def closed_over_error(kind: str, name: str) -> UnexpectedTracerError:
    """Returns the error for differentiation in a value that a function closes over."""
    return UnexpectedTracerError(
        f"Detected differentiation of the {kind} function {name!r} with respect to a closed-over "
        f"value: its rule only says how to differentiate with respect to its arguments.",
        "Pass the value to the function as an argument and let the rule handle it, or close over "
        "axir.lax.stop_gradient(value).",
    )


# Functions of tangents --------------------------------------------------------------------------


def trace_of_tangents(tangents: Sequence[Any]) -> Trace | None:
    """Returns the innermost trace to which tangents belong."""
    owners = [t.owner for t in tangents if type(t) is Tracer]
    return max(owners, key=lambda trace: trace.level, default=None)


def apply_linear(rule: Any, arguments: Sequence[Any], trace: Trace | None) -> list[Any]:
    """Applies a function, of which what depends on tangents alone goes to their trace.

    An op that calls functions and takes both known values and tangents is split like
    differentiation splits it: what it maps tangents to is linear, and so its own derivative at
    zero.

    Args:
        rule: The function, perhaps deferred.
        arguments: Values of its inputs.
        trace: The trace of the tangents.
    """
    function = resolved(rule)
    variables = (*function.inputs, *function.captures)
    environment = dict(zip(variables, (*arguments, *function.captured), strict=True))
    previous = state.origin
    try:
        for equation in function.equations:
            state.origin = equation
            operands = [read(environment, v) for v in equation.operands]
            if _is_mixed(equation, operands, trace):
                results = _split_mixed(equation, operands, trace)
            else:
                results = equation.primitive.bind(*operands, **equation.params)
            write(environment, equation, results)
    finally:
        state.origin = previous
    return [read(environment, v) for v in function.outputs]


def _belongs(value: Any, trace: Trace | None) -> bool:
    return type(value) is Tracer and value.owner is trace


def _is_mixed(equation: Equation, operands: Sequence[Value], trace: Trace | None) -> bool:
    primitive = equation.primitive
    if primitive.linearize is None and primitive.value_and_jvp is None:
        return False
    if not any(True for value in equation.params.values() for _ in functions_in(value)):
        return False
    found = [_belongs(x, trace) for x in operands]
    return any(found) and not all(found)


def _split_mixed(equation: Equation, operands: Sequence[Value], trace: Trace | None) -> Any:
    primitive = equation.primitive
    zeros = [Zero(x.type.to_tangent_aval()) for x in operands]
    moving = [_belongs(x, trace) for x in operands]
    primals = [
        instantiate(zero) if m else x for x, zero, m in zip(operands, zeros, moving, strict=True)
    ]
    tangents = [x if m else zero for x, zero, m in zip(operands, zeros, moving, strict=True)]
    rule = primitive.linearize or primitive.value_and_jvp
    assert rule is not None
    outs, out_tangents = rule(primals, tangents, **equation.params)
    if not primitive.multiple_results:
        return outs if type(out_tangents) is Zero else out_tangents
    return [
        out if type(tangent) is Zero else tangent
        for out, tangent in zip(outs, out_tangents, strict=True)
    ]


def has_mixed_ops(function: Function) -> bool:
    """Tells whether a function of tangents has ops whose known part must still be split off."""
    return any(
        functions and (equation.primitive.linearize or equation.primitive.value_and_jvp)
        for equation in function.equations
        for functions in [[f for v in equation.params.values() for f in functions_in(v)]]
    )


def batch_rule(
    rule: Function, size: int, name: Any, axes: Sequence[int | None], count: int
) -> Function:
    """Returns a rule vectorized: its inputs along given axes, `count` results all along axis 0."""
    all_axes = (*axes, *(None for _ in rule.captures))
    out_axes = (0,) * count
    batched = derive(rule, "vmap", size, all_axes, out_axes, name).function
    if not rule.captures:
        return batched
    with Trace(batched.name, "Vmap") as trace:
        inputs = [trace.add_input(v.type) for v in batched.inputs[: len(rule.inputs)]]
        values = [*inputs, *rule.captured, *batched.captured]
        return trace.finish(batched.interpret(values))
