"""The ops of a loop's body with equal results in each pass: they can run once before the loop."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from axir.dialect.program.effects import is_effectful
from axir.dialect.program.equation import Equation, Literal, Var
from axir.dialect.program.function import Function
from axir.dialect.program.rules import Value
from axir.dialect.program.walk import Environment, apply_equations, backward_slice


class Invariants:
    """The ops of a function, split by whether they depend on values that change from pass to pass.

    Ops that depend on literals only are cheap (a broadcast zero) and stay where they are used;
    those with effects stay in the loop.

    Attributes:
        inside: The ops that stay in the loop.
        hoisted: The other ops, as far as the ops inside or the outputs use them.
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

    def compute(self, values: Environment, wanted: Sequence[Var]) -> list[Value]:
        """Computes unchanging variables before the loop.

        Args:
            values: Values of the unchanging arguments and captures; computed values are added.
            wanted: The variables with values to return.
        """
        apply_equations(backward_slice(self._candidates, wanted, given=values).equations, values)
        return values.values_of(wanted)
