"""Bodies of control flow: closed functions, their tracing and their checks.

The captured values of a body are its first arguments, and operands of the op. So arrays never
become text, and tracers of outer traces reach the body as values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from axir.dialect.core.context import current_location
from axir.dialect.core.errors import ParameterError
from axir.dialect.core.memo import derived
from axir.dialect.core.symbolic_zeros import Marks, chosen, union
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.calls.jit_call import listing, same_types
from axir.dialect.ops.elementwise.family import as_value, instantiate
from axir.dialect.ops.shape.rearranging import move_batch_axis
from axir.dialect.program.effects import current_frame
from axir.dialect.program.function import Function
from axir.dialect.program.function_tracing import function_name
from axir.dialect.program.rules import FlatFunction, Tangent, Value
from axir.dialect.program.tracer import Trace


@dataclass(frozen=True)
class Body:
    """A closed function, and values for the first of its inputs.

    Attributes:
        function: A function without captures.
        captured: The values from its surroundings, in the order of its first inputs.
    """

    function: Function
    captured: tuple


def trace_body(
    function: FlatFunction,
    types: Sequence[ShapedArray],
    name: str | None = None,
    kind: str = "Jit",
    is_branch: bool = False,
) -> Body:
    """Traces a callable of flat values into a closed function.

    Args:
        function: Called with one tracer for each type; returns a sequence of values.
        types: Types of the arguments.
        name: Name of the result; the callable's name by default.
        kind: The transformation that traces, shown in the `repr` of tracers.
        is_branch: Whether ops on values of the surroundings stay in the body.
    """
    name = name or function_name(function)
    with Trace(name, kind, writes_descriptions=True, is_branch=is_branch) as trace:
        inputs = [trace.add_input(t) for t in types]
        outputs = [as_value(x) for x in function(*inputs)]
        for value in outputs:
            trace.lift(value)  # an output may be a value of the surroundings
        captured = tuple(trace.captured)
        _put_captures_first(trace)
        return Body(trace.finish(outputs), captured)


def _put_captures_first(trace: Trace) -> None:
    """Makes the captures the first inputs, by moving the others behind them."""
    if not trace.captures:
        return
    for tracer in trace.inputs:
        moved = trace.block.add_argument(tracer.type.mlir, current_location())
        tracer.value.replace_all_uses_with(moved)
        tracer.value = moved
    for _ in trace.inputs:
        trace.block.erase_argument(0)
    trace.inputs = [*trace.captures, *trace.inputs]
    trace.captures, trace.captured = [], []


@derived
def closed(function: Function) -> Body:
    """Returns a function with its captures as first inputs."""
    if not function.captures:
        return Body(function, ())
    return trace_body(
        lambda *arguments: call_function(function, arguments),
        function.input_types,
        function.name,
        "Vmap",
    )


def call_function(function: Function, arguments: Sequence[Value]) -> list[Value]:
    """Writes the ops of a function in place, with its captures bound to the captured values."""
    return function.interpret([*arguments, *function.captured])


# Types ------------------------------------------------------------------------------------------


def check_arguments(what: str, function: Function, types: Sequence[ShapedArray]) -> None:
    """Raises `ParameterError` if a function does not take arguments of these types."""
    expected = function.in_avals
    if not same_types(types, expected):
        raise ParameterError(
            f"{what} @{function.name} takes {listing(expected)}, but is given {listing(types)}.",
            "The operands are, in order, the constants, the carry and the slices that it takes.",
        )


def check_results(what: str, function: Function, types: Sequence[ShapedArray]) -> None:
    """Raises `ParameterError` if a function does not return values of these types."""
    if not same_types(types, function.output_types):
        raise ParameterError(
            f"{what} @{function.name} must return {listing(types)}, but returns "
            f"{listing(function.output_types)}."
        )


# Operands and marks ----------------------------------------------------------------------------


_Part = TypeVar("_Part")


def split(values: Sequence[_Part], *counts: int) -> list[list[_Part]]:
    """Splits values into parts of given lengths, and the rest."""
    parts, rest = [], list(values)
    for count in counts:
        parts.append(rest[:count])
        rest = rest[count:]
    return [*parts, rest]


def instantiated(tangents: Sequence[Tangent], is_active: Sequence[bool]) -> list[Value]:
    """Returns the marked tangents, with explicit zeros."""
    return [instantiate(t) for t in chosen(tangents, is_active)]


def fixpoint(marks: Marks, reached: Callable[[Marks], Sequence[bool]]) -> Marks:
    """Returns the least marks that contain the given ones and that one pass does not extend.

    Args:
        marks: Which carried values have a property (a tangent, a batch axis) before the loop.
        reached: From marks of carried values before a pass to the marks after it.
    """
    while True:
        grown = union(marks, reached(marks))
        if grown == marks:
            return marks
        marks = grown


def carries_axis(axes: Sequence[int | None]) -> Marks:
    """Tells which values have a batch axis."""
    return tuple(axis is not None for axis in axes)


def in_front(is_batched: Marks) -> tuple[int | None, ...]:
    """Returns the batch axes of values: 0 for the marked ones, None for the others."""
    return tuple(0 if batched else None for batched in is_batched)


def moved_to_front(
    values: Sequence[Value], axes: Sequence[int | None], is_batched: Marks
) -> list[Value]:
    """Brings batch axes to the front; broadcasts marked values without one."""
    size = current_frame().size
    return [
        move_batch_axis(x, axis, size, 0) if batched else x
        for x, axis, batched in zip(values, axes, is_batched, strict=True)
    ]
