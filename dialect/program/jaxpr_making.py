"""Functions made of equations, as needed by jaxprs that users build or edit.

The equations are recorded again in a separate trace, where their rules check them. Elsewhere:
functions made of part of another one's equations, which need no checks (`function_tracing.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from axir.dialect.core.array import ConcreteArray
from axir.dialect.core.errors import VerificationError

from .equation import Equation, Literal, Var
from .function import Function
from .operation import later
from .rules import Results, Value
from .tracer import Trace
from .walk import Environment, apply_equations


class _Values(Environment):
    """Variables of the equations as values of the trace."""

    __slots__ = ("_trace",)

    def __init__(self, trace: Trace, inputs: Sequence[Var]):
        super().__init__((v, trace.add_input(v.type)) for v in inputs)
        self._trace = trace

    def __missing__(self, variable: Var) -> ConcreteArray:
        if isinstance(variable, Literal):
            self._trace.embed(variable.array)  # it would become a capture
            return variable.array
        raise VerificationError(
            f"A jaxpr uses a variable of type {variable.type} that is none of its inputs and no "
            "result of an equation before.",
            "Each variable is an object of its own: core.Var(aval) makes one.",
        )


def function_of_equations(
    name: str,
    inputs: Sequence[Var],
    captures: Sequence[Var],
    outputs: Sequence[Var],
    equations: Sequence[Equation],
) -> Function:
    """Returns a function that is made of equations.

    Args:
        name: The name of the function.
        inputs: Variables that are its inputs.
        captures: Variables that are its captures; the function does not know their values.
        outputs: Variables that it returns.
        equations: The equations in order; their parameters may be jaxprs.

    Raises:
        VerificationError: for a variable without definition, or a result of another type than its
            variable.
    """
    with Trace(name, "Jaxpr") as trace:

        def record(equation: Equation, operands: list[Value]) -> Results:
            params = {key: _param(value) for key, value in equation.params.items()}
            results = trace.record(equation.primitive, operands, params)
            _check_results(equation, results)
            return results

        values = _Values(trace, (*inputs, *captures))
        apply_equations(equations, values, record)
        made = trace.finish(values.values_of(outputs))
    count = len(inputs)
    return Function(
        name, made.op, made.inputs[:count], made.inputs[count:], (), made.outputs, made.equations
    )


def _check_results(equation: Equation, results: Results) -> None:
    given = list(results) if equation.primitive.multiple_results else [results]
    found = [(x.shape, x.dtype) for x in given]
    said = [(v.type.shape, v.type.dtype) for v in equation.results]
    if found != said:
        types = [", ".join(str(x.type) for x in values) for values in (given, equation.results)]
        raise VerificationError(
            f"{equation.primitive.name} gives {types[0]}, but the results of its equation are said "
            f"to be {types[1]}."
        )


def _param(value: object) -> object:
    """Returns a parameter in a primitive's form: functions in place of jaxprs."""
    if isinstance(value, later.ClosedJaxpr):
        return _without_captures(value.function)
    if isinstance(value, later.Jaxpr):
        return value.function
    if isinstance(value, (tuple, list)):
        return tuple(map(_param, value))
    return value


def _without_captures(function: Function) -> Function:
    """Returns a function with its captured values as constants in its text."""
    if not function.captures:
        return function
    with Trace(function.name, "Jaxpr") as trace:
        inputs = [trace.add_input(t) for t in function.input_types]
        for value in function.captured:
            if isinstance(value, ConcreteArray):
                trace.embed(value)
        return trace.finish(function.evaluate(*inputs))


def function_with(function: Function, values: Sequence[Value]) -> Function:
    """Returns a function with other values of its captures."""
    if len(values) != len(function.captures):
        raise VerificationError(
            f"The jaxpr has {len(function.captures)} constants, but {len(values)} values were "
            "given for them."
        )
    if [*map(id, values)] == [*map(id, function.captured)]:
        return function
    return Function(
        function.name, function.op, function.inputs, function.captures, values, function.outputs,
        function.equations,
    )  # fmt: skip
