"""Tracing a callable of flat values into a `Function`."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from axir.dialect.core.annotations import UserFunction
from axir.dialect.core.types import ShapedArray

from .function import Function
from .rules import FlatFunction
from .tracer import Trace


def function_name(function: UserFunction) -> str:
    """Returns the name of a callable that suits an MLIR symbol."""
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__name__", None) or type(function).__name__
    name = "".join(letter if letter.isalnum() or letter == "_" else "_" for letter in name)
    return name.strip("_") or "function"


def trace_function(
    function: FlatFunction,
    types: Sequence[ShapedArray],
    *,
    name: str | None = None,
    kind: str = "Jit",
) -> Function:
    """Traces a callable that takes and returns flat values.

    Args:
        function: Called with one tracer for each type; returns a sequence of values.
        types: Types of the arguments.
        name: Name of the result; the callable's name by default.
        kind: The transformation that traces, shown in the `repr` of tracers.

    Returns:
        The traced function. Its captures are the values of its surroundings that it uses.
    """
    with Trace(name or function_name(function), kind) as trace:
        inputs = [trace.add_input(t) for t in types]
        return trace.finish(function(*inputs))
