"""Users' derivative rules as functions that are traced when a transformation asks.

A rule arrives as a callable of flat values. Its creator prepares its arguments and checks its
results. Here it becomes a `Function`, once for each choice of arguments that have tangents (one
choice only, unless the rule asks for it).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from axir.dialect.core.symbolic_zeros import Marks, chosen, inexact, moving, spread
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.family import instantiate
from axir.dialect.program.function import DeferredFunction, Function, resolved
from axir.dialect.program.function_tracing import trace_function
from axir.dialect.program.rules import Tangent, Value
from axir.dialect.program.tracer import Tracer


class Rule(DeferredFunction):
    """A rule, as a function for each choice of active arguments.

    Args:
        name: Name of the user's rule.
        make: From the marks of active arguments to the function.
        everything: The marks of the rule's form in modules.
        is_specialized: Whether the rule is traced separately for each choice of active arguments.
    """

    def __init__(
        self,
        name: str,
        make: Callable[[Marks], Function],
        everything: Marks,
        is_specialized: bool = False,
    ):
        super().__init__(name, lambda: self.for_active(everything))
        self.everything = everything
        self.is_specialized = is_specialized
        self._make = make
        self._functions: dict[Marks, Function] = {}

    def key_of(self, active: Marks) -> Marks:
        """Returns the choice of active arguments under which the rule is kept for given ones."""
        return active if self.is_specialized else self.everything

    def for_active(self, active: Marks) -> Function:
        """Returns the function for given active arguments."""
        key = self.key_of(active)
        function = self._functions.get(key)
        if function is None:
            with self.surroundings():
                function = self._functions[key] = self._make(key)
        return function

    def traced_anew(self, active: Marks) -> Function:
        """Returns the function for given active arguments, traced for this call only."""
        with self.surroundings():
            return self._make(self.key_of(active))

    @property
    def is_tied(self) -> bool:
        """Whether a traced form uses values of a trace, so that it is valid there only."""
        return any(type(x) is Tracer for f in self._functions.values() for x in f.captured)


def for_active(rule: object, active: Marks) -> Function:
    """Returns the function of a rule parameter for given active arguments."""
    return rule.for_active(active) if isinstance(rule, Rule) else resolved(rule)


def wants_zeros(rule: object) -> bool:
    """Tells whether a rule is traced for the active arguments only."""
    return isinstance(rule, Rule) and rule.is_specialized


def active_arguments(rule: object, primals: Sequence[Value], tangents: Sequence[Tangent]) -> Marks:
    """Tells which arguments have tangents in a rule: float and complex ones, or moving ones."""
    return moving(tangents) if wants_zeros(rule) else inexact([x.type for x in primals])


def jvp_rule(
    name: str,
    rule: Callable[[Sequence[Any], Sequence[Any]], tuple[list[Any], list[Any]]],
    types: Sequence[ShapedArray],
    is_specialized: bool,
) -> Rule:
    """Returns a forward-mode rule.

    Args:
        name: Name of the user's rule.
        rule: `(primals, tangents) -> (results, tangents of the results)` of flat values. Tangents
            are `Zero` for integers and inactive arguments; those returned may be `Zero`.
        types: Types of the arguments.
        is_specialized: Whether the rule depends on which arguments are active.

    Returns:
        A rule. Its function takes the arguments, then the tangents of the active ones (all float
        and complex ones unless specialized). It returns the results, then the tangents of the float
        and complex results.
    """

    def make(active: Marks) -> Function:
        def apply(*values: Value) -> list[Value]:
            primals, tangents = values[: len(types)], spread(values[len(types) :], active, types)
            outs, out_tangents = rule(primals, tangents)
            return [*outs, *map(instantiate, chosen(out_tangents, inexact([x.type for x in outs])))]

        return trace_function(apply, [*types, *chosen(types, active)], name=name, kind="Jvp")

    return Rule(name, make, inexact(types), is_specialized)
