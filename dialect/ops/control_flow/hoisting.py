"""What of a loop's body is the same in each pass, and can be computed once before the loop."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from ...context import state
from ...effects import is_effectful
from ...function import Equation, Function, Literal, Var, read, write


class Invariants:
    """The ops of a function, split by whether they depend on what changes from pass to pass.

    Ops that depend on literals only are cheap (a broadcast zero) and stay where they are used;
    those with effects stay in the loop.

    Attributes:
        inside: The ops that stay in the loop.
        hoisted: What of the others the ops inside and the outputs use.
    """

    def __init__(self, function: Function, unchanging: Collection[Var]):
        self._fixed = {*unchanging, *function.captures}
        self._free: set[Var] = set()
        # Ops that can be computed before the loop, in order.
        self._candidates: list[Equation] = []
        self.inside: list[Equation] = []
        made: list[Var] = []
        for equation in function.equations:
            if is_effectful(equation) or not all(map(self.is_fixed, equation.operands)):
                self.inside.append(equation)
                continue
            self._candidates.append(equation)
            if all(type(v) is Literal or v in self._free for v in equation.operands):
                self._free.update(equation.results)
                self.inside.append(equation)
            else:
                self._fixed.update(equation.results)
                made += equation.results
        used = {v for equation in self.inside for v in equation.operands}
        used.update(function.outputs)
        self.hoisted = [v for v in made if v in used]

    def is_fixed(self, variable: Var) -> bool:
        """Tells whether a variable has the same value in each pass."""
        return type(variable) is Literal or variable in self._fixed or variable in self._free

    def compute(self, values: dict[Var, Any], wanted: Sequence[Var]) -> list[Any]:
        """Computes unchanging variables before the loop.

        Args:
            values: Values of the unchanging arguments and captures; those computed are added.
            wanted: Which variables to return the values of.
        """
        needed = needed_equations(self._candidates, wanted)
        apply([e for e in needed if e.results[0] not in values], values)
        return [read(values, v) for v in wanted]


def needed_equations(equations: Sequence[Equation], wanted: Collection[Var]) -> list[Equation]:
    """Returns those ops on which variables depend, in order."""
    variables = set(wanted)
    needed = []
    for equation in reversed(equations):
        if any(v in variables for v in equation.results):
            variables.update(equation.operands)
            needed.append(equation)
    return needed[::-1]


def reached_from(function: Function, variables: Collection[Var]) -> set[Var]:
    """Returns the variables that depend on given ones, and these."""
    reached = set(variables)
    for equation in function.equations:
        if any(v in reached for v in equation.operands):
            reached.update(equation.results)
    return reached


def apply(equations: Sequence[Equation], values: dict[Var, Any]) -> None:
    """Applies ops to the values of their operands, and stores those of their results."""
    previous = state.origin
    try:
        for equation in equations:
            state.origin = equation
            operands = [read(values, v) for v in equation.operands]
            write(values, equation, equation.primitive.bind(*operands, **equation.params))
    finally:
        state.origin = previous
