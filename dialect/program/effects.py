"""Ops with effects, ops that wait for the run of a program, and functions that contain them."""

from __future__ import annotations

from axir.dialect.core.annotations import Params
from axir.dialect.core.memo import quickly_derived

from .equation import Equation
from .function import Function, functions_of
from .named_axes import axis_names_of
from .operation import Operation


def is_effectful(equation: Equation) -> bool:
    """Tells whether an op has effects, itself or in its functions."""
    return equation.primitive.is_effectful or any(map(has_effects, functions_of(equation.params)))


@quickly_derived
def has_effects(function: Function) -> bool:
    """Tells whether any op of a function has effects."""
    return any(is_effectful(equation) for equation in function.equations)


def acts(function: Function) -> bool:
    """Tells whether any op of a function has effects other than observing values."""
    return any(
        (equation.primitive.is_effectful and not equation.primitive.is_observer)
        or any(map(acts, functions_of(equation.params)))
        for equation in function.equations
    )


@quickly_derived
def is_staged(function: Function) -> bool:
    """Tells whether a call of a function must be recorded while something is traced.

    It must if any of its ops must be recorded, even on known operands: callbacks, which run with
    the program, and collectives.
    """
    return any(
        equation.primitive.is_staged or any(map(is_staged, functions_of(equation.params)))
        for equation in function.equations
    )


def acts_where_it_stands(primitive: Operation, params: Params) -> bool:
    """Tells whether an op must not move out of the code that applies it.

    Ops with effects must not move, because the effects happen as often as that code runs. Ops that
    communicate must not move, because only code within the map can name the axis. Calls of
    functions with such ops must not move, either.
    """
    if primitive.is_effectful or primitive.axis_names is not None:
        return True
    return any(
        has_effects(function) or axis_names_of(function) for function in functions_of(params)
    )


def primitives_that_act(equation: Equation) -> frozenset[Operation]:
    """Returns the primitives with effects: of an op itself, and in functions that it calls."""
    own = [equation.primitive] if equation.primitive.is_effectful else []
    within = (
        primitives_that_act(inner) for f in functions_of(equation.params) for inner in f.equations
    )
    return frozenset(own).union(*within)
