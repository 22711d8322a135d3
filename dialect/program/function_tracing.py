"""Functions made by tracing, or of part of another function's equations: pruned, restricted, cut.

A restricted function has copies of the equations as they are: nothing is evaluated, and constants
stay constants. Elsewhere: the choice of the needed equations (`walk.py`).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence

from axir.dialect.core.annotations import UserFunction
from axir.dialect.core.array import ConcreteArray
from axir.dialect.core.types import ShapedArray

from .equation import Equation, Var
from .function import Function
from .rules import FlatFunction, Results, Value
from .tracer import Trace
from .walk import Environment, apply_equations


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


class Copy(Environment):
    """Variables of a function as values of a trace into which its equations are copied.

    Args:
        trace: Where the copies are recorded.
        function: The function. Its captures take the captured values, unless they are inputs.
        inputs: Variables of the function that become the next inputs of the trace.
    """

    __slots__ = ("_trace",)

    def __init__(self, trace: Trace, function: Function, inputs: Iterable[Var]):
        super().__init__(zip(function.captures, function.captured, strict=True))
        self._trace = trace
        self.update((v, trace.add_input(v.type)) for v in inputs)

    def __missing__(self, variable: Var) -> ConcreteArray:
        constant = super().__missing__(variable)
        self._trace.embed(constant)  # an array used directly would become a capture
        return constant

    def add(self, equations: Iterable[Equation]) -> None:
        """Copies equations."""
        apply_equations(equations, self, self._record)

    def _record(self, equation: Equation, operands: list[Value]) -> Results:
        # Recorded even if all operands are known: folding would capture the result.
        return self._trace.record(equation.primitive, operands, equation.params)

    def store(self, equation: Equation, results: Results) -> None:
        """Stores the results of a copy, except for variables that have values already."""
        results = results if equation.primitive.multiple_results else (results,)
        for variable, result in zip(equation.results, results, strict=True):
            self.setdefault(variable, result)


def restricted(
    function: Function,
    equations: Iterable[Equation],
    inputs: Iterable[Var],
    outputs: Sequence[Var],
    kind: str,
) -> Function:
    """Returns a function that computes variables of another function from its other variables.

    Args:
        function: The other function. Its captures are captures of the new one, if they are used.
        equations: Which of its equations to copy.
        inputs: Variables that the new function takes.
        outputs: Variables that it returns.
        kind: The transformation that asks, shown in the `repr` of tracers.
    """
    with Trace(function.name, kind) as trace:
        copy = Copy(trace, function, inputs)
        copy.add(equations)
        return trace.finish(copy.values_of(outputs))
