"""Which ops have effects or wait for the run of a program, and functions that contain such."""

from __future__ import annotations

from collections.abc import Iterator

from .function import Equation, Function, functions_in

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


def _callees(equation: Equation) -> Iterator[Function]:
    for value in equation.params.values():
        yield from functions_in(value)
