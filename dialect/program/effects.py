"""Ops with effects, ops that wait for the run of a program, and functions that contain them.

Here: also the named axes that a function's ops use.
"""

from __future__ import annotations

from collections.abc import Hashable

from axir.dialect.core.annotations import Params
from axir.dialect.core.errors import UnboundAxisNameError
from axir.dialect.core.memo import quickly_derived
from axir.dialect.core.state import BatchFrame, Change, state, vectorization, with_axes

from .equation import Equation
from .function import Function, functions_of
from .operation import Operation
from .parameters import AxisName


def named_axis(name: Hashable | None, size: int) -> Change:
    """Lets the code traced inside name an axis; None adds no name."""
    return with_axes(_axes_with(name, size), state.tracked_axes - {name})


def _axes_with(name: Hashable | None, size: int) -> dict[Hashable, int]:
    return state.axis_sizes if name is None else {**state.axis_sizes, name: size}


def axis_extent(name: Hashable) -> int:
    """Returns the extent of a named axis in scope.

    Raises:
        UnboundAxisNameError: if no axis in scope has the name.
    """
    try:
        return state.axis_sizes[name]
    except KeyError:
        known = ", ".join(map(repr, state.axis_sizes)) or "none"
        raise UnboundAxisNameError(
            f"unbound axis name: {name!r}. The axis names in scope are: {known}.",
            f"Call the function inside axir.vmap(..., axis_name={name!r}).",
        ) from None


def batching_over(frame: BatchFrame) -> Change:
    """Sets the axis over which the rules called inside vectorize."""
    sizes = _axes_with(frame.name, frame.size)
    return vectorization(frame, sizes, state.tracked_axes - {frame.name})


def current_frame() -> BatchFrame:
    """Returns the axis over which a pass vectorizes now."""
    frame = state.batching
    assert frame is not None
    return frame


def names_in(equation: Equation) -> frozenset[AxisName]:
    """Returns the names of the axes over which an op, or a function it calls, communicates."""
    rule = equation.primitive.axis_names
    if rule is not None:
        return frozenset(rule(**equation.params))
    names: frozenset[Hashable] = frozenset()
    for function in functions_of(equation.params):
        names |= axis_names_of(function)
    return names


@quickly_derived
def axis_names_of(function: Function) -> frozenset[Hashable]:
    """Returns the names of the axes over which a function communicates."""
    return frozenset().union(*map(names_in, function.equations))


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
