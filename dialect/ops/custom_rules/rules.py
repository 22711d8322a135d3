"""Users' derivative rules as functions that are traced when a transformation asks.

A rule arrives as a callable of flat values. What it is called with, and how its results are
checked, is known where it was made; here it becomes a `Function`, once for each choice of
arguments that have tangents (one choice only, unless the rule wants to know).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from ...deferred import DeferredFunction, resolved
from ...function import Function
from ...single_flight import made_once
from ...symbolic import Zero
from ...trace import trace_function
from ...tracer import Tracer
from ...types import ShapedArray
from ..family import instantiate
from .bodies import apply_linear, batch_rule, inexact, is_moving

Flags = tuple[bool, ...]


class Rule(DeferredFunction):
    """A rule, as a function for each choice of active arguments.

    Args:
        name: What the user calls it.
        make: From the flags of active arguments to the function.
        everything: The flags with which the rule is written into modules.
        is_specialized: Whether the rule is traced anew for each choice of active arguments.
    """

    def __init__(
        self,
        name: str,
        make: Callable[[Flags], Function],
        everything: Flags,
        is_specialized: bool = False,
    ):
        super().__init__(name, lambda: self.for_active(everything))
        self.everything = everything
        self.is_specialized = is_specialized
        self._make = make
        self._functions: dict[Hashable, Function] = {}

    def for_active(self, active: Flags) -> Function:
        """Returns the function for given active arguments."""
        key = active if self.is_specialized else self.everything
        function = self._functions.get(key)
        if function is None:
            with self.surroundings():
                function = self._functions[key] = self._make(key)
        return function

    @property
    def is_tied(self) -> bool:
        """Whether a traced form uses values of a trace, so that it serves there only."""
        return any(type(x) is Tracer for f in self._functions.values() for x in f.captured)


def for_active(rule: Any, active: Flags) -> Function:
    """Returns the function that a rule parameter is for given active arguments."""
    return rule.for_active(active) if isinstance(rule, Rule) else resolved(rule)


def wants_zeros(rule: Any) -> bool:
    """Tells whether a rule is traced for the active arguments only."""
    return isinstance(rule, Rule) and rule.is_specialized


def derived_rule(rule: Any, key: Hashable, make: Callable[[], Any]) -> Any:
    """Returns what was made from a rule under a key; a rule that uses itself needs it once only."""
    derived = rule.derived if isinstance(rule, Rule) else resolved(rule).derived
    return made_once(derived, key, make)


def jvp_rule(
    name: str,
    rule: Callable[[Sequence[Any], Sequence[Any]], tuple[list[Any], list[Any]]],
    types: Sequence[ShapedArray],
    is_specialized: bool,
) -> Rule:
    """Returns a forward-mode rule.

    Args:
        name: What the user calls it.
        rule: `(primals, tangents) -> (results, tangents of the results)` of flat values. Tangents
            are `Zero` for integers and inactive arguments; those returned may be `Zero`.
        types: Types of the arguments.
        is_specialized: Whether the rule wants to know which arguments are active.

    Returns:
        A rule whose function takes the arguments, then the tangents of the active ones (all float
        and complex ones unless specialized), and returns the results, then the tangents of the
        float and complex ones.
    """

    def make(active: Flags) -> Function:
        def apply(*values: Any) -> list[Any]:
            primals, moving = values[: len(types)], iter(values[len(types) :])
            tangents = [
                next(moving) if is_active else Zero(t.to_tangent_aval())
                for t, is_active in zip(types, active, strict=True)
            ]
            outs, out_tangents = rule(primals, tangents)
            has_tangent = inexact([x.type for x in outs])
            return [
                *outs,
                *(instantiate(t) for t, has in zip(out_tangents, has_tangent, strict=True) if has),
            ]

        moving_types = [t for t, is_active in zip(types, active, strict=True) if is_active]
        return trace_function(apply, [*types, *moving_types], name=name, kind="Jvp")

    return Rule(name, make, tuple(inexact(types)), is_specialized)


def batched_jvp_rule(
    rule: Any, axes: Sequence[int | None], size: int, axis_name: Any, types: Sequence[ShapedArray]
) -> Rule:
    """Returns a forward-mode rule vectorized; its results come along axis 0.

    Args:
        rule: The rule for one element.
        axes: For each argument its batch axis or None; tangents have those of their primals.
        size: Extent of the axis.
        axis_name: Its name.
        types: Types of the arguments of one element.
    """
    everything = tuple(inexact(types))

    def make(active: Flags) -> Function:
        function = for_active(rule, active)
        moving = [axis for axis, is_active in zip(axes, active, strict=True) if is_active]
        count = len(function.outputs)
        return batch_rule(function, size, axis_name, [*axes, *moving], count)

    return derived_rule(
        rule,
        ("batched rule", tuple(axes), size, axis_name),
        lambda: Rule(f"{rule.name}_vmap", make, everything, wants_zeros(rule)),
    )


def apply_jvp_rule(
    rule: Any, primals: Sequence[Any], tangents: Sequence[Any], count: int, trace: Any = None
) -> tuple[list[Any], list[Any]]:
    """Applies a forward-mode rule.

    Args:
        rule: The rule.
        primals: Values of the arguments.
        tangents: Their tangents, perhaps `Zero`.
        count: How many results there are.
        trace: The trace of the tangents, if what depends on them is to be split off.

    Returns:
        The results, and the tangents of the float and complex ones.
    """
    has_tangent = inexact([t.aval if type(t) is Zero else t.type for t in tangents])
    active = tuple(has_tangent)
    if wants_zeros(rule):
        active = tuple(map(is_moving, tangents))
    moving = [instantiate(t) for t, chosen in zip(tangents, active, strict=True) if chosen]
    values = apply_linear(for_active(rule, active), [*primals, *moving], trace)
    return values[:count], values[count:]
