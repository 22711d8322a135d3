"""Bodies of control flow: closed functions, how they are traced, and how they are checked.

A body takes what it uses of its surroundings as its first arguments: its captures are operands of
the op, so that arrays never become text and tracers of outer traces reach the body as values.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ...context import current_location
from ...errors import ParameterError
from ...function import Function
from ...single_flight import made_once
from ...symbolic import Zero
from ...trace import function_name
from ...tracer import Trace
from ...types import ShapedArray
from ..family import Value, as_value, instantiate


@dataclass(frozen=True)
class Body:
    """A closed function, and values for the first of its inputs.

    Attributes:
        function: Without captures.
        captured: Values that it used of its surroundings, for its first inputs.
    """

    function: Function
    captured: tuple[Any, ...]


def trace_body(
    function: Callable[..., Sequence[Any]],
    types: Sequence[ShapedArray],
    name: str | None = None,
    kind: str = "Jit",
    is_branch: bool = False,
) -> Body:
    """Traces a callable of flat values into a closed function.

    Args:
        function: Called with one tracer for each type; returns a sequence of values.
        types: Types of the arguments.
        name: What to call the result; the callable's name by default.
        kind: Which transformation traces, shown in the `repr` of tracers.
        is_branch: Whether ops on values of the surroundings stay in the body.
    """
    name = name or function_name(function)
    with Trace(name, kind, writes_splats=True, is_branch=is_branch) as trace:
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


def derived_body(function: Function, key: Hashable, make: Callable[[], Any]) -> Any:
    """Returns what was made for a function under a key, making it on first demand."""
    return made_once(function.derived, key, make)


def call_function(function: Function, arguments: Sequence[Any]) -> list[Any]:
    """Writes the ops of a function in place, its captures bound to the values captured."""
    return function.interpret([*arguments, *function.captured])


# Types ------------------------------------------------------------------------------------------


def signature(types: Sequence[ShapedArray]) -> str:
    """Renders types as an argument list."""
    return f"({', '.join(map(str, types))})"


def same_types(first: Sequence[ShapedArray], second: Sequence[ShapedArray]) -> bool:
    """Tells whether types agree in shape and dtype."""
    return len(first) == len(second) and all(
        a.shape == b.shape and a.dtype == b.dtype for a, b in zip(first, second, strict=True)
    )


def check_arguments(
    what: str, function: Function, types: Sequence[ShapedArray]
) -> None:
    """Raises `ParameterError` if a function does not take arguments of these types."""
    expected = [v.type for v in (*function.inputs, *function.captures)]
    if not same_types(types, expected):
        raise ParameterError(
            f"{what} @{function.name} takes {signature(expected)}, but is given "
            f"{signature(types)}.",
            "The operands are, in order, the constants, the carry and the slices that it takes.",
        )


def check_results(what: str, function: Function, types: Sequence[ShapedArray]) -> None:
    """Raises `ParameterError` if a function does not return values of these types."""
    if not same_types(types, function.output_types):
        raise ParameterError(
            f"{what} @{function.name} must return {signature(types)}, but returns "
            f"{signature(function.output_types)}."
        )


# Tangents ---------------------------------------------------------------------------------------


def activity(tangents: Sequence[Any]) -> tuple[bool, ...]:
    """Tells which tangents or cotangents are not symbolic zeros."""
    return tuple(type(t) is not Zero for t in tangents)


def chosen(values: Sequence[Any], is_chosen: Sequence[bool]) -> list[Any]:
    """Returns the values that are marked."""
    return [x for x, marked in zip(values, is_chosen, strict=True) if marked]


def spread(
    values: Sequence[Any], is_active: Sequence[bool], types: Sequence[ShapedArray]
) -> list[Any]:
    """Returns the values in the places that are marked, symbolic zeros in the others."""
    remaining: Iterator[Any] = iter(values)
    return [
        next(remaining) if active else Zero(t.to_tangent_aval())
        for t, active in zip(types, is_active, strict=True)
    ]


def instantiated(
    tangents: Sequence[Any], is_active: Sequence[bool]
) -> list[Value]:
    """Returns the tangents that are marked, zeros made explicit."""
    return [instantiate(t) for t in chosen(tangents, is_active)]


def union(first: Sequence[bool], second: Sequence[bool]) -> tuple[bool, ...]:
    """Tells where either is marked."""
    return tuple(a or b for a, b in zip(first, second, strict=True))
