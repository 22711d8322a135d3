"""Which ops have effects or wait for the run of a program, and functions that contain such."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .axes import axis_names_of
from .function import Equation, Function, functions_in

if TYPE_CHECKING:
    from .primitive import Primitive

_HAS_EFFECTS = "has effects"
_IS_STAGED = "is staged"


def is_effectful(equation: Equation) -> bool:
    """Tells whether applying an op does something besides giving results."""
    return equation.primitive.is_effectful or any(map(has_effects, _callees(equation)))


def has_effects(function: Function) -> bool:
    """Tells whether any op of a function has effects."""
    known = function.derived.get(_HAS_EFFECTS)
    if known is None:
        known = any(is_effectful(equation) for equation in function.equations)
        function.derived[_HAS_EFFECTS] = known
    return known


def acts(function: Function) -> bool:
    """Tells whether any op of a function has effects other than that somebody looks at values."""
    return any(
        (equation.primitive.is_effectful and not equation.primitive.is_observer)
        or any(map(acts, _callees(equation)))
        for equation in function.equations
    )


def is_staged(function: Function) -> bool:
    """Tells whether a call of a function must be recorded while something is traced.

    It must if any of its ops must, even on known operands: callbacks, which run when the program
    does, and collectives.
    """
    known = function.derived.get(_IS_STAGED)
    if known is None:
        known = any(
            equation.primitive.is_staged or any(map(is_staged, _callees(equation)))
            for equation in function.equations
        )
        function.derived[_IS_STAGED] = known
    return known


def acts_where_it_stands(primitive: Primitive, params: dict[str, Any]) -> bool:
    """Tells whether an op must not move out of the code that applies it.

    Such are ops with effects, which happen as often as that code runs, and ops that communicate,
    over an axis that only the code within the map can name; also calls of functions with such.
    """
    if primitive.is_effectful or primitive.axis_names is not None:
        return True
    return any(
        has_effects(function) or axis_names_of(function)
        for value in params.values()
        for function in functions_in(value)
    )


def primitives_that_act(equation: Equation) -> frozenset[Primitive]:
    """Returns the primitives with effects among that of an op and those of functions it calls."""
    own = [equation.primitive] if equation.primitive.is_effectful else []
    within = (primitives_that_act(inner) for f in _callees(equation) for inner in f.equations)
    return frozenset(own).union(*within)


def _callees(equation: Equation) -> Iterator[Function]:
    for value in equation.params.values():
        yield from functions_in(value)
