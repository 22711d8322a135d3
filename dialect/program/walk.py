"""Walks over the equations of a function: values of variables, application in order, slices.

All code that applies, differentiates, vectorizes, copies or prunes equations uses this module.
While an equation is visited it is the origin of the ops that its rules record
(`core.state.attributed`). Elsewhere: functions made of part of another one's equations
(`function_tracing.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import NamedTuple, Protocol, TypeAlias

from axir.dialect.core.array import ConcreteArray
from axir.dialect.core.state import attributed

from .equation import Equation, Literal, Var
from .rules import Results, Value

Bind: TypeAlias = Callable[[Equation, list[Value]], Results]
"""What applies an equation to values of its operands; returns what `Primitive.bind` does."""


class HasArguments(Protocol):
    """A function, by its arguments."""

    @property
    def inputs(self) -> Sequence[Var]:
        """Arguments that the caller passes."""
        ...

    @property
    def captures(self) -> Sequence[Var]:
        """Further arguments, for values of the surroundings."""
        ...


class Environment(dict[Var, Value]):
    """Values of variables during a walk over equations; a literal has its own value.

    >>> from axir.dialect.program.function_tracing import trace_function
    >>> from axir.dialect.core.types import ShapedArray
    >>> import axir.numpy as jnp
    >>> function = trace_function(lambda x: [jnp.sin(x)], [ShapedArray((), "float32")])
    >>> environment = Environment.of(function, [jnp.float32(0)])
    >>> apply_equations(function.equations, environment)
    >>> environment.values_of(function.outputs)
    [Array(0., dtype=float32)]
    """

    __slots__ = ()

    @classmethod
    def of(cls, function: HasArguments, arguments: Iterable[Value]) -> Environment:
        """Returns the environment of a function's inputs and captures, given their values."""
        return cls(zip((*function.inputs, *function.captures), arguments, strict=True))

    def __missing__(self, variable: Var) -> ConcreteArray:
        if type(variable) is Literal:
            return variable.array
        raise KeyError(variable)

    def values_of(self, variables: Iterable[Var]) -> list[Value]:
        """Returns the values of variables."""
        return [self[v] for v in variables]

    def store(self, equation: Equation, results: Results) -> None:
        """Stores the results of an equation: a list, or the only result."""
        if equation.primitive.multiple_results:
            for variable, result in zip(equation.results, results, strict=True):
                self[variable] = result
        else:
            self[equation.results[0]] = results


def apply_equations(
    equations: Iterable[Equation], environment: Environment, bind: Bind | None = None
) -> None:
    """Applies equations in order to the values of their operands, and stores the results.

    Args:
        equations: The equations to apply.
        environment: Values of variables; the values of results are added.
        bind: Replaces `Primitive.bind`.
    """
    for equation in attributed(equations):
        operands = [environment[v] for v in equation.operands]
        if bind is None:
            results = equation.primitive.bind(*operands, **equation.params)
        else:
            results = bind(equation, operands)
        environment.store(equation, results)


class Slice(NamedTuple):
    """The equations on which variables depend.

    Attributes:
        equations: These equations, in order.
        variables: Their operands and results, and the wanted variables.
    """

    equations: list[Equation]
    variables: set[Var]

    def marks(self, variables: Iterable[Var]) -> tuple[bool, ...]:
        """Tells which variables belong to the slice."""
        return tuple([v in self.variables for v in variables])


def backward_slice(
    equations: Sequence[Equation],
    wanted: Iterable[Var],
    *,
    given: Mapping[Var, Value] | Set[Var] = frozenset(),
    is_kept: Callable[[Equation], bool] | None = None,
    enter: Callable[[Equation, set[Var]], Equation | None] | None = None,
) -> Slice:
    """Returns the equations on which variables depend.

    Args:
        equations: The equations to search, in order.
        wanted: The variables.
        given: Variables with known values; the equations behind them are not needed for them.
        is_kept: Tells which further equations are wanted, with their dependencies.
        enter: Called with each equation of the slice, from the last to the first, and the variables
            wanted so far. Returns the equation that replaces it, or None if its results are known.
    """
    variables = {v for v in wanted if v not in given}
    found: list[Equation] = []
    for equation in reversed(equations):
        is_reached = any([v in variables for v in equation.results])
        if not is_reached and (is_kept is None or not is_kept(equation)):
            continue
        entered = equation if enter is None else enter(equation, variables)
        if entered is not None:
            variables.update([v for v in entered.operands if v not in given])
            found.append(entered)
    found.reverse()
    return Slice(found, variables)


def dependents(equations: Iterable[Equation], variables: Iterable[Var]) -> set[Var]:
    """Returns the variables that depend on given ones, and the given ones."""
    reached = set(variables)
    for equation in equations:
        if any([v in reached for v in equation.operands]):
            reached.update(equation.results)
    return reached
